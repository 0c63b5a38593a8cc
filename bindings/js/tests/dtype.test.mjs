// Which form of a model is fetched, and what its vectors are then: the real model as `isovec export`
// writes it, in headless Chromium. `cargo xtask test npm` exports it and says where it lies.
import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { data, js, launch, page as empty, send, serve, typeOf } from "./site.mjs";

const { ISOVEC_TEST_MODEL: checkpoint, ISOVEC_TEST_EXPORTS: exports } = process.env;
const skip = checkpoint && exports ? false : "`cargo xtask test npm` says where the models are";
const HALF = "onnx/model_fp16.onnx";
/** Of the project's promises (`tests/dtype.rs`): the least cosine to the reference, and its mean. */
const BOUNDS = { f32: [1 - 1e-6, 1 - 1e-6], f16: [0.99998, 0.99999], bf16: [0.9998, 0.9999], int8: [0.99, 0.9985], "int8-fast": [0.99, 0.9985] };

let log;

/**
 * Where the answer to a path lies. `/auto…/` is the checkpoint with a 16-bit file beside it, `/copied/`
 * the checkpoint with the `config.json` of an exported folder.
 */
function place(path) {
  const [, first, ...rest] = path.split("/");
  const name = rest.join("/");
  const half = (file) => (name === HALF ? file : join(checkpoint, name));
  switch (first) {
    case "export": return join(exports, name);
    case "checkpoint": return join(checkpoint, name);
    case "tiny": return join(data, "tiny-bert", name);
    case "copied": return join(name === "config.json" ? join(exports, "int8") : checkpoint, name);
    case "auto": case "auto-no-head": return half(join(exports, "f16", "model.onnx"));
    case "auto-same": return half(join(checkpoint, "model.safetensors"));
    case "auto-alone": return name === "model.safetensors" ? undefined : half(join(exports, "f16", "model.onnx"));
    default: return join(js, path);
  }
}

const origin = await serve((request, response, path) => {
  if (path === "/") return empty(response);
  const file = place(path);
  const found = file !== undefined && existsSync(file) && statSync(file).isFile();
  const status = path.startsWith("/auto-no-head/") && request.method === "HEAD" ? 405 : found ? 200 : 404;
  if (status !== 200) {
    log.push({ method: request.method, path, status, bytes: 0 });
    return response.writeHead(status).end();
  }
  // As servers do: what has a type of its own compresses well, weights do not.
  const type = typeOf(file);
  const small = type !== "application/octet-stream" && gzipSync(readFileSync(file));
  const bytes = small ? small.length : statSync(file).size;
  log.push({ method: request.method, path, status, bytes: request.method === "GET" ? bytes : 0 });
  if (!small) return send(response, file);
  response.writeHead(200, { "content-type": type, "content-encoding": "gzip", "content-length": bytes }).end(small);
});
const browser = await launch();

/**
 * What somebody sees who was never here: a model is loaded from a folder (with `files`, from these of
 * its files, in memory) and embeds `texts`.
 */
async function visit({ folder, files, config, texts = ["a text"] }) {
  log = [];
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(origin);
    const seen = await page.evaluate(
      async ({ folder, files, config, texts }) => {
        const { Embedder } = await import("/dist/index.js");
        let source = folder;
        if (files) {
          source = new Map();
          for (const file of files) source.set(file, await (await fetch(folder + file)).blob());
        }
        const embedder = await Embedder.load(source, { config });
        const rows = Array.from(await embedder.embed(texts), (row) => Array.from(row));
        const dtype = embedder.effectiveConfig().find(({ name }) => name === "model.dtype");
        return { rows, dtype, precision: embedder.fingerprint().precision };
      },
      { folder, files, config, texts },
    );
    const under = log.filter(({ path }) => path.startsWith(folder));
    return { ...seen, asked: under.map(({ method, path }) => `${method} ${path.slice(folder.length)}`), log };
  } finally {
    await context.close();
  }
}

/** The reference's texts, and their vectors as NumPy wrote them: little-endian f32 after a header. */
function reference() {
  const texts = readFileSync(join(data, "reference", "texts.txt"), "utf8").trimEnd().split("\n");
  const npy = readFileSync(join(data, "reference", "vectors.npy"));
  const values = npy.subarray(10 + npy.readUInt16LE(8));
  const dim = values.length / 4 / texts.length;
  return { texts, vectors: texts.map((_, row) => Array.from({ length: dim }, (_, at) => values.readFloatLE(4 * (row * dim + at)))) };
}

function cosine(a, b) {
  const dot = (a, b) => a.reduce((sum, value, at) => sum + value * b[at], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

for (const dtype of Object.keys(BOUNDS)) {
  test(`an exported folder in ${dtype} is fetched by its list, and keeps the model's vectors`, { skip }, async (t) => {
    const { texts, vectors } = reference();
    const folder = `/export/${dtype}/`;
    const seen = await visit({ folder, texts });
    assert.deepEqual(seen.log.filter(({ status }) => status !== 200), []);
    assert.ok(seen.asked.includes("GET model.onnx") && !seen.asked.includes("GET vocab.txt"), seen.asked.join());
    assert.deepEqual([seen.precision, seen.dtype.used], [dtype, dtype]);
    const cosines = seen.rows.map((row, at) => cosine(row, vectors[at]));
    const [worst, mean] = [Math.min(...cosines), cosines.reduce((sum, one) => sum + one) / cosines.length];
    const bytes = seen.log.reduce((sum, one) => sum + one.bytes, 0);
    t.diagnostic(`${dtype}: ${(bytes / 1e6).toFixed(2)} MB with isovec itself; cosine ${worst.toFixed(6)} worst, ${mean.toFixed(6)} mean`);
    assert.ok(worst >= BOUNDS[dtype][0] && mean >= BOUNDS[dtype][1], `${worst} worst, ${mean} mean`);
    if (dtype.startsWith("int8")) assert.ok(bytes <= 25e6, `${bytes} bytes`);

    const files = seen.asked.map((one) => one.replace("GET ", ""));
    const inMemory = await visit({ folder, files, texts: texts.slice(0, 4) });
    assert.deepEqual(inMemory.rows, seen.rows.slice(0, 4));
  });
}

test("int8 is made of a checkpoint at load, with the vectors of the exported folder", { skip }, async () => {
  const texts = reference().texts.slice(0, 8);
  const made = await visit({ folder: "/checkpoint/", config: { model: { dtype: "int8" } }, texts });
  const read = await visit({ folder: "/export/int8/", config: { model: { dtype: "int8" } }, texts });
  assert.deepEqual(made.rows, read.rows);
  assert.deepEqual([made.precision, made.dtype.used, made.dtype.honoured], ["int8", "int8", true]);
  assert.match(made.dtype.why, /at load and not cached/);
  assert.match(read.dtype.why, /the model's file stores them so/);
});

test("precision that a file does not have is not claimed", { skip }, async () => {
  const seen = await visit({ folder: "/export/int8/", config: { model: { dtype: "f32" } } });
  assert.deepEqual([seen.precision, seen.dtype.used, seen.dtype.honoured], ["int8", "int8", false]);
});

/** The requests for weights. */
const weights = ({ asked }) => asked.filter((one) => /\.(onnx|safetensors)$/.test(one)).sort();
const auto = { model: { dtype: "auto" } };

test("auto takes the 16-bit file where it is smaller, and not a byte of the checkpoint", { skip }, async () => {
  const smaller = await visit({ folder: "/auto/", config: auto });
  assert.deepEqual(weights(smaller), [`GET ${HALF}`, "HEAD model.safetensors"]);
  assert.deepEqual([smaller.precision, smaller.dtype.used], ["f16", "f16"]);
  const alone = await visit({ folder: "/auto-alone/", config: auto });
  assert.deepEqual([weights(alone), alone.precision], [[`GET ${HALF}`, "HEAD model.safetensors"], "f16"]);
});

test("auto takes the checkpoint where that is as small, and where nobody says", { skip }, async () => {
  for (const folder of ["/auto-same/", "/auto-no-head/"]) {
    const seen = await visit({ folder, config: auto });
    assert.deepEqual(weights(seen), [`GET model.safetensors`, `GET ${HALF}`, "HEAD model.safetensors"], folder);
    assert.equal(seen.precision, "f32", folder);
  }
});

test("auto asks for the 16-bit file where it may be, and others do not ask", { skip }, async () => {
  assert.deepEqual(weights(await visit({ folder: "/tiny/", config: auto })), ["GET model.safetensors", `GET ${HALF}`]);
  assert.deepEqual(weights(await visit({ folder: "/export/int8/", config: auto })), ["GET model.onnx"]);
  for (const dtype of ["f32", "f16", "int8"]) {
    const seen = await visit({ folder: "/tiny/", config: { model: { dtype } } });
    assert.deepEqual([weights(seen), seen.precision], [["GET model.safetensors"], dtype]);
  }
});

test("a list that was copied from another folder hides no weights", { skip }, async () => {
  const seen = await visit({ folder: "/copied/" });
  assert.deepEqual([weights(seen), seen.precision], [["GET model.onnx", "GET model.safetensors"], "f32"]);
});

test("a file that is named is the one that is fetched", { skip }, async () => {
  const seen = await visit({ folder: "/auto/", config: { model: { onnxFile: HALF } } });
  assert.deepEqual([weights(seen), seen.precision], [[`GET ${HALF}`], "f16"]);
});
