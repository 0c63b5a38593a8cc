// The built package in headless Chromium, on the tiny seeded model: what a web developer does
// with it, and what goes wrong. Run by `cargo xtask test npm`, or `npm test` after `npm run build`.
import assert from "node:assert/strict";
import { createReadStream, existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join, normalize } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const js = dirname(dirname(fileURLToPath(import.meta.url)));
const data = join(dirname(js), "tests", "data");
const types = { ".js": "text/javascript", ".wasm": "application/wasm", ".json": "application/json", ".html": "text/html" };
const reference = JSON.parse(readFileSync(join(data, "tiny-bert", "reference.json"), "utf8"));
const files = ["config.json", "tokenizer.json", "modules.json", "sentence_bert_config.json", "1_Pooling/config.json", "model.safetensors"];

let server, browser, page, requests;

before(async () => {
  server = createServer((request, response) => {
    const url = new URL(request.url, "http://localhost");
    requests?.push(url.pathname);
    if (url.pathname === "/") return void response.setHeader("content-type", "text/html").end("<!doctype html><title>isovec</title>");
    if (url.pathname.startsWith("/html/")) return void response.setHeader("content-type", "text/html").end("<h1>Welcome</h1>");
    if (url.pathname.startsWith("/slow/")) return void response.setHeader("content-length", "1000000").write("{");
    if (url.pathname.startsWith("/half/") && url.pathname.endsWith(".safetensors")) {
      response.setHeader("content-length", "1000000").write("half");
      return void setTimeout(() => response.destroy(), 50);
    }
    const path = normalize(url.pathname.replace(/^\/half\//, "/data/tiny-bert/"));
    const file = path.startsWith("/data/") ? join(data, path.slice(6)) : join(js, path);
    if (path.includes("..") || !existsSync(file) || !statSync(file).isFile()) return void response.writeHead(404).end();
    response.setHeader("content-type", types[extname(file)] ?? "application/octet-stream");
    response.setHeader("content-length", statSync(file).size);
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  browser = await chromium.launch({
    executablePath: process.env.CHROME ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.evaluate(async () => {
    globalThis.isovec = await import("/dist/index.js");
    globalThis.failure = async (call) => {
      try {
        await call();
        return "nothing failed";
      } catch (error) {
        return { kind: error.kind, typed: error instanceof isovec.IsovecError, message: error.message };
      }
    };
    globalThis.embedder = await isovec.Embedder.load("/data/tiny-bert");
  });
});

after(async () => {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
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
  await page.evaluate(async () => (await isovec.Embedder.load("/data/tiny-bert")).dispose());
  assert.deepEqual([...new Set(external)], ["127.0.0.1"]);
  assert.ok(requests.every((path) => path.startsWith("/data/tiny-bert/")), requests.join());
  requests = undefined;
});

test("files in memory, progress, and the parts of the interface", async () => {
  const seen = await page.evaluate(async (files) => {
    const map = new Map();
    for (const file of files) map.set(file, new Uint8Array(await (await fetch(`/data/tiny-bert/${file}`)).arrayBuffer()));
    const own = await isovec.Embedder.load(map);
    const progress = [];
    await isovec.Embedder.load("/data/tiny-bert", { onProgress: (step) => progress.push(step) });
    const empty = await own.embed([]);
    const long = await own.embed(["word ".repeat(200000)]);
    const again = await isovec.Embeddings.load((await own.embed(["a", "b"])).withLabels(["one", "two"]).save());
    const hits = again.search(await own.embedQuery("a"), 2);
    return {
      progress, empty: empty.length, truncated: long.truncated, labels: again.labels, hits,
      same: isovec.similarity(again.row(0), await own.embedOne("a")),
      provider: own.provider(), knobs: own.effectiveConfig().length, tokens: own.countTokens("a"),
      stats: own.stats(),
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
  assert.equal((await failure(() => isovec.Embedder.load(new Map()))).kind, "MissingFile");
});

test("damaged models and wrong settings are named", async () => {
  const kinds = await page.evaluate(async (files) => {
    const load = async (change, config) => {
      const map = new Map();
      for (const file of files) map.set(file, new Uint8Array(await (await fetch(`/data/tiny-bert/${file}`)).arrayBuffer()));
      change(map);
      return (await failure(() => isovec.Embedder.load(map, { config }))).kind;
    };
    return {
      short: await load((map) => map.set("model.safetensors", map.get("model.safetensors").slice(0, 1000))),
      noTokenizer: await load((map) => map.delete("tokenizer.json")),
      unknownKnob: await load(() => {}, { no_such_knob: 1 }),
      zero: await load(() => {}, { batching: { max_batch_size: 0 } }),
    };
  }, files);
  assert.equal(kinds.short, "InvalidModel");
  assert.match(kinds.noTokenizer, /Missing|Tokeniz/);
  assert.equal(kinds.unknownKnob, "Config");
  assert.equal(kinds.zero, "Config");
});

test("an aborted signal stops loading and running", async () => {
  const kinds = await page.evaluate(async () => {
    const soon = new AbortController();
    setTimeout(() => soon.abort(), 50);
    const loading = await failure(() => isovec.Embedder.load("/slow/", { signal: soon.signal }));
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
    return { loading: loading.kind, running: running.kind, before: before.kind, after };
  });
  assert.deepEqual(kinds, { loading: "Cancelled", running: "Cancelled", before: "Cancelled", after: 1 });
});

test("a disposed embedder says so", async () => {
  const error = await failure(async () => {
    const own = await isovec.Embedder.load("/data/tiny-bert");
    own.dispose();
    await own.embed(["a"]);
  });
  assert.equal(error.kind, "Disposed");
});
