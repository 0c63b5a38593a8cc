// `isovec/inline`: no worker, nothing imported later, a module that somebody else compiled. Run by
// `cargo xtask test npm`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { Embedder as Usual } from "../dist/index.js";
import { Embedder, IsovecError } from "../dist/inline.js";
import { FILES, js, launch, page as empty, send, serve, tiny } from "./site.mjs";

const module = (build) => WebAssembly.compile(readFileSync(join(js, "pkg", build, "isovec_js_bg.wasm")));
const files = () => new Map(FILES.map((name) => [name, new Uint8Array(readFileSync(join(tiny, name)))]));
const EXACT = { session: { deterministicCompute: true } };

test("a compiled module computes what the usual way computes", async () => {
  const inline = await Embedder.load(files(), { module: module("simd128"), config: EXACT });
  assert.deepEqual([inline.build, inline.worker], ["simd128", false]);
  const usual = await Usual.load(files(), { config: EXACT });
  assert.deepEqual(await inline.embedOne("a text"), await usual.embedOne("a text"));
  await assert.rejects(Embedder.load(files(), { build: "threads" }), (error) => error instanceof IsovecError && error.kind === "EngineUnavailable");
});

test("a folder on the disk is loaded where there is no page", async () => {
  for (const source of [pathToFileURL(`${tiny}/`), tiny]) {
    const embedder = await Embedder.load(source);
    assert.equal((await embedder.embed(["a", "b"])).length, 2);
    await embedder.dispose();
  }
  await assert.rejects(Embedder.load(pathToFileURL(join(tiny, "nothing"))), ({ kind }) => kind === "Hub");
});

test("nothing is imported later, and no worker is started", async () => {
  const asked = [];
  const origin = await serve((request, response, path) => {
    asked.push(path);
    return path === "/" ? empty(response) : send(response, path.startsWith("/model/") ? join(tiny, path.slice(7)) : join(js, path));
  });
  const page = await (await launch()).newPage();
  await page.goto(origin);
  await page.evaluate(async () => {
    globalThis.inline = await import("/dist/inline.js");
  });
  const before = asked.filter((path) => path.endsWith(".js")).length;
  const build = await page.evaluate(async () => {
    const embedder = await inline.Embedder.load("/model/");
    await embedder.embed(["a"]);
    return embedder.build;
  });
  assert.equal(build, "relaxed");
  assert.equal(asked.filter((path) => path.endsWith(".js")).length, before);
  assert.equal(page.workers().length, 0);
});
