// Models that no program takes, in the build `tract`: when it is fetched, what it computes, and what becomes of its panics.
// Run by `cargo xtask test npm`, or `npm test` after `npm run build`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Embedder } from "../dist/index.js";
import { Embedder as Inline } from "../dist/inline.js";
import * as cnn from "./cnn.mjs";
import { FILES, HEADERS, NATIVE, STRICT, js, launch, page as empty, send, serve, tiny } from "./site.mjs";

/** Where `cargo xtask` puts the real one. */
const minilm = process.env.ISOVEC_TEST_MODEL;
/** Of the vectors' components, which tract computes in f32. */
const BOUND = 1e-6;

const model = cnn.weights();
const folders = { cnn: cnn.files(model), wrong: cnn.files(model, { wrong: true }) };
const reference = JSON.parse(readFileSync(join(tiny, "reference.json"), "utf8")).texts;
const texts = reference.map(({ text }) => text);
const expected = reference.flatMap(({ ids }) => [...cnn.vector(model, ids)]);

/** What was asked for, and what is not to be found. */
let asked = [];
let missing = [];
const fetched = (part) => asked.filter((path) => path.includes(part));

const origin = await serve((request, response, path) => {
  asked.push(path);
  if (path === "/") return empty(response, HEADERS);
  if (path === "/strict") return empty(response, { ...HEADERS, ...STRICT });
  if (missing.some((part) => path.includes(part))) return response.writeHead(404, HEADERS).end();
  const [, folder, ...rest] = path.split("/");
  const made = folders[folder]?.get(rest.join("/"));
  if (made) return response.writeHead(200, HEADERS).end(made);
  const place = { cnn: undefined, wrong: undefined, tiny, minilm };
  const file = folder in place ? place[folder] && join(place[folder], ...rest) : join(js, path);
  send(response, file, HEADERS);
});
const browser = await launch();

/** A page of its own. */
async function open(t, path = "/") {
  const page = await browser.newPage();
  t.after(() => page.close());
  await page.goto(origin + path);
  await page.evaluate(async () => {
    globalThis.isovec = await import("/dist/index.js");
    globalThis.failure = (promise) => promise.then(() => "nothing failed", ({ kind, name, message }) => ({ kind: kind ?? name, message }));
    /** Loads and embeds. */
    globalThis.seen = async (source, options, texts) => {
      const embedder = await isovec.Embedder.load(source, options);
      const values = Array.from((await embedder.embed(texts)).values);
      const knob = embedder.effectiveConfig().find(({ name }) => name === "build");
      const about = { build: embedder.build, provider: embedder.provider(), knob, stats: (await embedder.stats()).provider, values };
      await embedder.dispose();
      return about;
    };
  });
  asked = [];
  return page;
}

/** Whether vectors are those of the reference. */
function agree(values, of = expected) {
  assert.equal(values.length, of.length);
  const off = values.reduce((most, value, at) => Math.max(most, Math.abs(value - of[at])), 0);
  assert.ok(off <= BOUND, `off by ${off}`);
}

/** Whether it is tract that computed, and whether it is said why. */
function byTract({ build, provider, knob, stats }) {
  assert.equal(build, "tract");
  assert.deepEqual([provider.engine, provider.provider], ["portable", "tract"]);
  assert.match(provider.version, /^tract \d/);
  assert.deepEqual([knob.asked, knob.used, knob.honoured], [null, "tract", true]);
  assert.match(knob.why, /Conv/);
  assert.equal(stats.selected, "tract");
  const { from, to, cause } = stats.fallbacks[0];
  assert.ok(["simd128", "relaxed", "threads"].includes(from), from);
  assert.deepEqual([to, cause], ["tract", knob.why]);
}

test("a model that no program takes is computed by tract, in a worker and in the page", async (t) => {
  for (const path of ["/", "/strict"]) {
    for (const worker of [true, false]) {
      const page = await open(t, path);
      const seen = await page.evaluate(({ worker, texts }) => globalThis.seen("/cnn", { worker, cache: "off" }, texts), { worker, texts });
      byTract(seen);
      agree(seen.values);
      // The model's files are handed over, and not fetched again.
      for (const name of ["model.onnx", "tokenizer.json"]) assert.equal(asked.filter((path) => path === `/cnn/${name}`).length, 1, name);
      assert.deepEqual(fetched("/pkg/tract/").toSorted(), ["/pkg/tract/isovec_js.js", "/pkg/tract/isovec_js_bg.wasm"]);
    }
  }
});

test("for an encoder nothing of tract is fetched", async (t) => {
  for (const folder of minilm ? ["tiny", "minilm"] : ["tiny"]) {
    for (const worker of [true, false]) {
      const page = await open(t);
      const { build, knob } = await page.evaluate(({ folder, worker }) => seen(`/${folder}`, { worker }, ["a text"]), { folder, worker });
      assert.ok(build !== "tract" && knob === undefined, build);
      assert.deepEqual([fetched("/tract/"), fetched(`/${folder}/config.json`).length], [[], 1]);
    }
  }
});

test("a build that is asked for is the only one that is fetched", async (t) => {
  let page = await open(t);
  const refused = await page.evaluate(() => failure(isovec.Embedder.load("/cnn", { build: "simd128" })));
  assert.equal(refused.kind, "UnsupportedOperator");
  assert.match(refused.message, /Conv/);
  assert.deepEqual(fetched("/pkg/tract/"), []);
  for (const worker of [true, false]) {
    page = await open(t);
    const own = await page.evaluate(({ worker, texts }) => seen("/cnn", { worker, build: "tract" }, texts), { worker, texts });
    assert.deepEqual([own.build, own.provider.provider, own.knob], ["tract", "tract", undefined]);
    agree(own.values);
    assert.deepEqual(fetched(".wasm"), ["/pkg/tract/isovec_js_bg.wasm"]);
  }
  // What programs take, they compute there too.
  const { values, provider } = await page.evaluate((texts) => seen("/tiny", { build: "tract" }, texts), texts);
  assert.match(provider.version, /^isovec /);
  agree(values, reference.flatMap(({ vector }) => vector));
});

test("a module that is not there is named, and fetched when it is there again", async (t) => {
  for (const worker of [true, false]) {
    for (const part of ["/pkg/tract/isovec_js.js", "/pkg/tract/isovec_js_bg.wasm"]) {
      const page = await open(t);
      missing = [part];
      const refused = await page.evaluate((worker) => failure(isovec.Embedder.load("/cnn", { worker })), worker);
      missing = [];
      assert.equal(refused.kind, "EngineUnavailable", part);
      assert.match(refused.message, /build tract cannot be loaded/);
      byTract(await page.evaluate((worker) => seen("/cnn", { worker }, ["a text"]), worker));
    }
  }
});

test("a call to tract is cancelled in the middle of its work, and the next one is answered", async (t) => {
  for (const worker of [true, false]) {
    const page = await open(t);
    const seen = await page.evaluate(async ({ worker }) => {
      const embedder = await isovec.Embedder.load("/cnn", { worker });
      const long = "a text that is long enough to take a moment ".repeat(6);
      const abort = new AbortController();
      const call = failure(embedder.embed(Array.from({ length: 20000 }, (_, index) => `${index} ${long}`), { signal: abort.signal }));
      // In this thread the timer has a turn only where the work gives it one.
      setTimeout(() => abort.abort(), 100);
      const { kind } = await call;
      const stats = await embedder.stats();
      return { kind, embedded: stats.calls.texts, after: (await embedder.embed(["a text"])).length };
    }, { worker });
    assert.deepEqual([seen.kind, seen.after], ["AbortError", 1]);
    assert.ok(seen.embedded < 20000, `${seen.embedded} texts were embedded`);
  }
});

test("what tract panics at is an error, and the next model is loaded", async (t) => {
  for (const worker of [true, false]) {
    const page = await open(t);
    const seen = await page.evaluate(async ({ worker, texts }) => {
      const load = () => failure(isovec.Embedder.load("/wrong", { worker }));
      const refused = [await load(), await load()];
      return { refused, after: await globalThis.seen("/cnn", { worker }, texts), encoder: (await globalThis.seen("/tiny", { worker }, ["a text"])).build };
    }, { worker, texts });
    for (const { kind, message } of seen.refused) {
      assert.equal(kind, "EnginePoisoned", message);
      // A browser tells the page of a worker's end in its own words, which may come first.
      assert.match(message, worker ? /internal error/ : /panicked at line \d+: ./);
    }
    byTract(seen.after);
    agree(seen.after.values);
    assert.notEqual(seen.encoder, "tract");
  }
});

test("node computes by tract what it has in memory, and what inline has no build for is refused", { skip: NATIVE && "the build native may run it" }, async () => {
  const embedder = await Embedder.load(cnn.files(model));
  const vectors = await embedder.embed(texts);
  byTract({ build: embedder.build, provider: embedder.provider(), knob: embedder.effectiveConfig().find(({ name }) => name === "build"), stats: (await embedder.stats()).provider });
  agree(Array.from(vectors.values));
  // What is beside a text does not change its vector.
  agree(Array.from((await embedder.embed([texts[1]])).values), expected.slice(model.width, 2 * model.width));
  await embedder.dispose();
  await assert.rejects(Inline.load(cnn.files(model)), { kind: "UnsupportedOperator" });
  const encoder = await Embedder.load(new Map(FILES.map((name) => [name, new Uint8Array(readFileSync(join(tiny, name)))])));
  assert.notEqual(encoder.build, "tract");
});
