// Which files are taken of a model: a page goes by the same table as the hub's client and folders do
// (engine/hub/tests/hub/choice.rs). Run by `cargo xtask test npm`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { data, js } from "./site.mjs";

const { Embedder } = await import(join(js, "dist", "index.js"));
const { cases } = JSON.parse(readFileSync(join(data, "choice", "table.json"), "utf8"));

/** A file's bytes, by what the table has of it. */
function bytesOf(content) {
  if (typeof content === "number") return new Uint8Array(content).fill(0x78);
  return new TextEncoder().encode(typeof content === "string" ? content : JSON.stringify(content));
}

/** Loads a model of these files, none of which is one; says what failed, and what was asked for. */
async function load(files, { onnx_file: onnxFile, smallest }) {
  const folder = "https://models.test/model/";
  const asked = [];
  const fetch = async (url, init = {}) => {
    const name = decodeURIComponent(String(url).slice(folder.length));
    const method = init.method ?? "GET";
    asked.push(`${method} ${name}`);
    if (!Object.hasOwn(files, name)) return new Response(null, { status: 404 });
    const bytes = bytesOf(files[name]);
    return new Response(method === "HEAD" ? null : bytes, { headers: { "content-length": String(bytes.length) } });
  };
  const model = { ...(onnxFile && { onnxFile }), ...(smallest && { dtype: "auto" }) };
  const error = await Embedder.load(folder, { fetch, worker: false, cache: "off", config: { model } }).then(
    () => assert.fail("no file of the table is a model"),
    (error) => error,
  );
  return { error, asked };
}

for (const { name, files, settings, weights, all, error: kind } of cases) {
  test(`as natively: ${name}`, async () => {
    const { error, asked } = await load(files, settings);
    assert.equal(new Set(asked).size, asked.length, `something was asked for twice: ${asked.join(", ")}`);
    if (kind) return assert.equal(error.kind, kind, error.message);
    // The file that was read says that it is no model.
    const first = weights.endsWith(".index.json") ? "a.safetensors" : weights;
    assert.ok(error.message.includes(`/${first} `), error.message);
    for (const file of all ?? []) assert.ok(asked.includes(`GET ${file}`), `${file} was not fetched: ${asked.join(", ")}`);
  });
}

test("a list in config.json that another folder has leads to what is there", async () => {
  const stated = { bytes: 5, sha256: "0".repeat(64) };
  const config = { model_type: "bert", isovec: { files: { "model.onnx": stated } } };
  const { error, asked } = await load({ "config.json": config, "tokenizer.json": {}, "model.safetensors": 100 }, {});
  assert.ok(error.message.includes("/model.safetensors "), error.message);
  assert.ok(asked.includes("GET model.onnx"), asked.join());
});

test("names in a model's files lead nowhere else", async () => {
  const modules = ["1_Pooling?x", "2#y", "%2e%2e", "..", "/etc", "a b"].map((path) => ({ path, type: "m.Pooling" }));
  const { asked } = await load({ "config.json": { model_type: "bert" }, "tokenizer.json": {}, "modules.json": modules, "model.safetensors": 10 }, {});
  // As they are written, encoded, and not one step up.
  assert.deepEqual(
    asked.filter((one) => one.endsWith("/config.json")),
    ["1_Pooling?x", "2#y", "%2e%2e", "a b"].map((path) => `GET ${path}/config.json`),
  );
});
