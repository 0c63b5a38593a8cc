// The built package in headless Chromium, on the tiny seeded model: what a web developer does
// with it, and what goes wrong. Run by `cargo xtask test npm`, or `npm test` after `npm run build`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { FILES as files, HEADERS, data, js, launch, page as empty, send, serve, tiny } from "./site.mjs";

const reference = JSON.parse(readFileSync(join(tiny, "reference.json"), "utf8"));

let requests;

const origin = await serve((request, response, path) => {
  requests?.push(path);
  if (path === "/") return empty(response, HEADERS);
  if (path.startsWith("/html/")) return response.setHeader("content-type", "text/html").end("<h1>Welcome</h1>");
  if (path.startsWith("/slow/")) return response.setHeader("content-length", "1000000").write("{");
  if (path.startsWith("/half/") && path.endsWith(".safetensors")) {
    response.setHeader("content-length", "1000000").write("half");
    return setTimeout(() => response.destroy(), 50);
  }
  const file = path.replace(/^\/half\//, "/data/tiny-bert/");
  send(response, file.startsWith("/data/") ? join(data, file.slice(6)) : join(js, file), HEADERS);
});
const browser = await launch();
const page = await browser.newPage();
await page.goto(origin);
await page.evaluate(async () => {
  globalThis.isovec = await import("/dist/index.js");
  globalThis.failure = async (call) => {
    try {
      await call();
      return "nothing failed";
    } catch (error) {
      return { kind: error.kind ?? error.name, typed: error instanceof isovec.IsovecError, message: error.message };
    }
  };
  globalThis.embedder = await isovec.Embedder.load("/data/tiny-bert");
});

/** Runs a call in the page that should fail, and returns how it did. */
async function failure(call, argument) {
  const result = await page.evaluate(`failure(() => (${call})(${JSON.stringify(argument)}))`);
  assert.equal(result.typed, true, JSON.stringify(result));
  return result;
}

test("vectors are those of the reference", async () => {
  const vectors = await page.evaluate(async (texts) => {
    const embeddings = await embedder.embed(texts);
    return Array.from(embeddings, (row) => Array.from(row));
  }, reference.texts.map(({ text }) => text));
  assert.equal(vectors.length, reference.texts.length);
  for (const [index, row] of vectors.entries()) {
    for (const [at, value] of row.entries()) {
      assert.ok(Math.abs(value - reference.texts[index].vector[at]) <= 1e-6, `text ${index}, component ${at}`);
    }
  }
});

test("nobody but the named source is asked", async () => {
  requests = [];
  const external = [];
  page.on("request", (request) => external.push(new URL(request.url()).hostname));
  await page.evaluate(async () => (await isovec.Embedder.load("/data/tiny-bert", { cache: "reload" })).dispose());
  assert.deepEqual([...new Set(external)], ["127.0.0.1"]);
  // The model's files, and the worker's script.
  const others = requests.filter((path) => !path.startsWith("/data/tiny-bert/"));
  assert.ok(requests.length > others.length && others.every((path) => /^\/(dist|pkg)\/[\w/-]+\.js$/.test(path)), requests.join());
  requests = undefined;
});

test("files in memory, progress, and the parts of the interface", async () => {
  const seen = await page.evaluate(async (files) => {
    const map = new Map();
    for (const file of files) map.set(file, new Uint8Array(await (await fetch(`/data/tiny-bert/${file}`)).arrayBuffer()));
    const own = await isovec.Embedder.load(map);
    const progress = [];
    await isovec.Embedder.load("/data/tiny-bert", { cache: "off", onProgress: (step) => progress.push(step) });
    const empty = await own.embed([]);
    const long = await own.embed(["word ".repeat(200000)]);
    const again = await isovec.Embeddings.load((await own.embed(["a", "b"])).withLabels(["one", "two"]).save());
    const hits = again.search(await own.embedQuery("a"), 2);
    return {
      progress, empty: empty.length, truncated: long.truncated, labels: again.labels, hits,
      same: isovec.cosine(again.row(0), await own.embedOne("a")),
      provider: own.provider(), knobs: own.effectiveConfig().length, tokens: await own.countTokens("a"),
      stats: await own.stats(),
      identity: Object.keys(own.fingerprint().identity).length,
    };
  }, files);
  const last = seen.progress.filter((step) => step.file === "model.safetensors").at(-1);
  assert.equal(last.bytes, last.total);
  assert.equal(seen.empty, 0);
  assert.deepEqual(seen.truncated, [true]);
  assert.deepEqual(seen.labels, ["one", "two"]);
  assert.equal(seen.hits[0].length, 2);
  assert.ok(Math.abs(seen.same - 1) < 1e-6);
  assert.equal(seen.provider.engine, "portable");
  assert.deepEqual([seen.stats.provider.engine, seen.stats.calls.truncated], ["portable", 1]);
  assert.ok(seen.stats.calls.texts >= 4 && seen.stats.tokens.real > 0);
  assert.equal(seen.stats.sessions.run.count, seen.stats.calls.batches);
  assert.ok(seen.knobs > 0 && seen.tokens >= 3 && seen.identity > 3);
});

test("what cannot be text is refused by its place", async () => {
  for (const text of ["\uD800", "a\uDC00b", "\uDC00\uD800"]) {
    const error = await failure((text) => embedder.embed(["fine", text]), text);
    assert.equal(error.kind, "InvalidText");
    assert.match(error.message, /text 1/);
  }
  assert.equal((await failure(() => embedder.embed([1]))).kind, "InvalidText");
  assert.equal((await failure(() => embedder.embed("not a list"))).kind, "InvalidText");
});

test("sources that are none", async () => {
  for (const [source, words] of [["/nothing/", /404/], ["/html/", /web page/], ["/half/", /half|bytes|broke off/]]) {
    const error = await failure((source) => isovec.Embedder.load(source), source);
    assert.equal(error.kind, "Hub", JSON.stringify(error));
    assert.match(error.message, words);
  }
  assert.equal((await failure(() => isovec.Embedder.load("http://127.0.0.1:9/model/"))).kind, "Hub");
  assert.equal((await failure(() => isovec.Embedder.load("not an id"))).kind, "Hub");
  assert.equal((await failure(() => isovec.Embedder.load("https://["))).kind, "Hub");
  assert.equal((await failure(() => isovec.Embedder.load(undefined))).kind, "Config");
  assert.match((await failure(() => isovec.Embedder.load({ "config.json": 5 }))).message, /config.json has to be a Uint8Array/);
  assert.equal((await failure(() => isovec.Embedder.load(new Map()))).kind, "MissingFile");
});

test("damaged models and wrong settings are named", async () => {
  const seen = await page.evaluate(async (files) => {
    const load = async (change, config) => {
      const map = new Map();
      for (const file of files) map.set(file, new Uint8Array(await (await fetch(`/data/tiny-bert/${file}`)).arrayBuffer()));
      change(map);
      const { kind, message } = await failure(() => isovec.Embedder.load(map, { config }));
      return [kind, message];
    };
    return {
      short: await load((map) => map.set("model.safetensors", map.get("model.safetensors").slice(0, 1000))),
      noTokenizer: await load((map) => map.delete("tokenizer.json")),
      unknownKnob: await load(() => {}, { noSuchKnob: 1 }),
      unknownInGroup: await load(() => {}, { text: { maxLen: 1 } }),
      rustsName: await load(() => {}, { batching: { max_batch_size: 8 } }),
      zero: await load(() => {}, { batching: { maxBatchSize: 0 } }),
    };
  }, files);
  for (const [name, kind, words] of [
    ["short", /^InvalidModel$/, /safetensors/],
    ["noTokenizer", /^(Missing|Invalid)Tokenizer$/, /tokenizer/],
    ["unknownKnob", /^Config$/, /"noSuchKnob".*embeddingCache/],
    ["unknownInGroup", /^Config$/, /`maxLen`.*`maxLength`/],
    ["rustsName", /^Config$/, /`batching\.max_batch_size`.*`batching\.maxBatchSize`/],
    ["zero", /^Config$/, /batching\.maxBatchSize is 0/],
  ]) {
    assert.match(seen[name][0], kind, name);
    assert.match(seen[name][1], words, name);
  }
});

test("an aborted signal stops loading and running", async () => {
  const kinds = await page.evaluate(async () => {
    const soon = new AbortController();
    setTimeout(() => soon.abort(), 50);
    const loading = await failure(() => isovec.Embedder.load("/slow/", { signal: soon.signal }));
    const never = await failure(() => isovec.Embedder.load("/data/tiny-bert", { signal: AbortSignal.abort() }));
    const later = new AbortController();
    const texts = Array.from({ length: 4000 }, (_, index) => `text number ${index} that is long enough to take a moment`);
    const run = failure(() => embedder.embed(texts, { signal: later.signal }));
    // A turn of the event loop by the way the engine itself gives turns; a timer may come late.
    const { port1, port2 } = new MessageChannel();
    await new Promise((turn) => {
      port1.onmessage = turn;
      port2.postMessage(null);
    });
    later.abort();
    const running = await run;
    const before = await failure(() => embedder.embed(["a"], { signal: AbortSignal.abort() }));
    const after = (await embedder.embed(["still works"])).length;
    return { loading: loading.kind, never: never.kind, running: running.kind, before: before.kind, after };
  });
  assert.deepEqual(kinds, { loading: "AbortError", never: "AbortError", running: "AbortError", before: "AbortError", after: 1 });
});

test("a disposed embedder says so", async () => {
  const error = await failure(async () => {
    const own = await isovec.Embedder.load("/data/tiny-bert");
    await own.dispose();
    await own.embed(["a"]);
  });
  assert.equal(error.kind, "Disposed");
});
