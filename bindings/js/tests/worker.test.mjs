// The worker that computes for a page: that the page stays free, what crosses the border and how,
// and what happens when it stops. Run by `cargo xtask test npm`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { FILES, HEADERS, ISOLATED, STRICT, WAY, js, launch, page as empty, send, serve, tiny } from "./site.mjs";

const texts = JSON.parse(readFileSync(join(tiny, "reference.json"), "utf8")).texts.map(({ text }) => text);
const PAGES = { "/": HEADERS, "/isolated": ISOLATED, "/strict": STRICT, "/no-worker": { "content-security-policy": "worker-src 'none'" } };
const origin = await serve((request, response, path) => {
  if (PAGES[path]) return empty(response, PAGES[path]);
  if (path.startsWith("/model/slow/")) return response.setHeader("content-length", "1000000").write("{");
  send(response, path.startsWith("/model/") ? join(tiny, path.slice(7)) : join(js, path), ISOLATED);
});
const browser = await launch();

/** A page of its own, with the package and a loaded model. */
async function open(t, path = "/", options = {}) {
  const page = await browser.newPage();
  t.after(() => page.close());
  await page.goto(origin + path);
  await page.evaluate(async (options) => {
    globalThis.isovec = await import("/dist/index.js");
    globalThis.failure = (promise) => promise.then(() => "nothing failed", ({ kind, name, message }) => ({ kind: kind ?? name, message }));
    if (options) globalThis.embedder = await isovec.Embedder.load("/model/", options);
  }, options);
  return page;
}

/** Waits until the page has so many workers: the browser tells of their end a little later. */
async function workers(page, count) {
  for (let turn = 0; page.workers().length !== count && turn < 200; turn++) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(page.workers().length, count);
}

test("a page computes in a worker, and elsewhere gets the same", async (t) => {
  for (const path of ["/", "/isolated", "/strict"]) {
    const page = await open(t, path, { config: { session: { deterministicCompute: true, intraOpThreads: 2 } } });
    const seen = await page.evaluate(async (texts) => {
      const here = await isovec.Embedder.load("/model/", { worker: false, config: { session: { deterministicCompute: true } } });
      const [one, other] = [await embedder.embed(texts), await here.embed(texts)];
      return { worker: [embedder.worker, here.worker], build: embedder.build, same: one.values.every((value, at) => value === other.values[at]), model: one.model };
    }, texts);
    assert.deepEqual(seen, { worker: [true, false], build: PAGES[path] === ISOLATED ? "threads" : "relaxed", same: true, model: seen.model });
  }
});

test("errors keep their kind on the way", async (t) => {
  const page = await open(t);
  const kinds = await page.evaluate(async () => {
    const { Embedder } = isovec;
    const load = (source, options) => failure(Embedder.load(source, options)).then(({ kind }) => kind);
    return [
      await load("/nothing/"),
      await load(new Map()),
      await load("/model/", { config: { noSuchKnob: 1 } }),
      await load("/model/", { build: "none" }),
      await load("/model/", { cache: "off", headers: { "a b": "no header" } }),
      await load("/model/?signed=yes"),
      await failure(embedder.embed(["a", 1])).then(({ kind }) => kind),
      await failure(embedder.embed(["x".repeat(200 << 20)])).then(({ kind }) => kind),
    ];
  });
  assert.deepEqual(kinds, ["Hub", "MissingFile", "Config", "EngineUnavailable", "Hub", "Hub", "InvalidText", "InputTooLarge"]);
});

test("where a worker is forbidden, the error says what to do, and without one it works", async (t) => {
  const page = await open(t, "/no-worker", null);
  const seen = await page.evaluate(async () => {
    const refused = await failure(isovec.Embedder.load("/model/"));
    const here = await isovec.Embedder.load("/model/", { worker: false });
    return { refused, vectors: (await here.embed(["a"])).length };
  });
  assert.equal(seen.refused.kind, "EngineUnavailable");
  assert.match(seen.refused.message, /worker-src.*worker: false/);
  assert.equal(seen.vectors, 1);
});

test("the page's own arrays stay the page's, and a fetch of its own is used", async (t) => {
  const page = await open(t);
  const seen = await page.evaluate(async (files) => {
    const source = new Map();
    for (const file of files) source.set(file, new Uint8Array(await (await fetch(`/model/${file}`)).arrayBuffer()));
    const given = await isovec.Embedder.load(source);
    const chosen = Array.from(source, ([name, content]) => Object.defineProperty(new File([content], name.split("/").at(-1)), "webkitRelativePath", { value: `folder/${name}` }));
    await (await isovec.Embedder.load(chosen)).dispose();
    const asked = [];
    const own = await isovec.Embedder.load("/model/", { cache: "off", fetch: (url, init) => (asked.push(String(url)), fetch(url, init)) });
    return { sizes: Array.from(source.values(), ({ length }) => length), same: isovec.cosine(await given.embedOne("a"), await own.embedOne("a")), asked: asked.length };
  }, FILES);
  assert.ok(seen.sizes.every((size) => size > 0) && Math.abs(seen.same - 1) < 1e-6 && seen.asked > FILES.length - 1, JSON.stringify(seen));
});

test("what a caller gives is never taken away, whichever way a model is loaded", async (t) => {
  const page = await open(t, "/", null);
  const sizes = await page.evaluate(async (files) => {
    const { pipeline } = await import("/dist/compat.js");
    const bytes = new Map();
    for (const file of files) bytes.set(file, await (await fetch(`/model/${file}`)).arrayBuffer());
    /** A view in the middle of something larger. */
    const view = (buffer) => {
      const whole = new Uint8Array(buffer.byteLength + 16);
      whole.set(new Uint8Array(buffer), 8);
      return whole.subarray(8, 8 + buffer.byteLength);
    };
    const forms = {
      buffers: () => new Map(Array.from(bytes, ([name, buffer]) => [name, buffer.slice()])),
      arrays: () => Object.fromEntries(Array.from(bytes, ([name, buffer]) => [name, new Uint8Array(buffer.slice())])),
      views: () => new Map(Array.from(bytes, ([name, buffer]) => [name, view(buffer)])),
      blobs: () => new Map(Array.from(bytes, ([name, buffer]) => [name, new Blob([buffer])])),
      folder: () => Array.from(bytes, ([name, buffer]) => Object.defineProperty(new File([buffer], name.split("/").at(-1)), "webkitRelativePath", { value: `folder/${name}` })),
    };
    const sizeOf = (file) => file.size ?? file.byteLength;
    const left = {};
    for (const [form, make] of Object.entries(forms)) {
      for (const worker of [true, false]) {
        for (const own of [true, false]) {
          const source = make();
          const options = { worker, ...(own && { fetch: (...all) => fetch(...all) }) };
          const embedder = await isovec.Embedder.load(source, options);
          const extractor = await pipeline("feature-extraction", source, { isovec: options });
          // Another head loads the model a second time, from the same files.
          const { dims } = await extractor(["a text"], { pooling: "cls" });
          const all = source instanceof Map ? [...source.values()] : Object.values(source);
          left[`${form} worker=${worker} fetch=${own}`] = [all.map(sizeOf), dims[0], (await embedder.embed(["a"])).length];
          await Promise.all([embedder.dispose(), extractor.dispose()]);
        }
      }
    }
    // What looks like a response may hand out arrays of the caller's.
    const mine = new Map(Array.from(bytes, ([name, buffer]) => [name, buffer.slice()]));
    const answer = async (url) => {
      const buffer = mine.get(new URL(url).pathname.slice("/model/".length));
      const headers = new Headers(buffer && { "content-length": String(buffer.byteLength) });
      return { ok: Boolean(buffer), status: buffer ? 200 : 404, headers, body: null, arrayBuffer: async () => buffer };
    };
    await (await isovec.Embedder.load("/model/", { cache: "off", fetch: answer })).dispose();
    left.answered = [[...mine.values()].map(sizeOf), 1, 1];
    // Sets and texts.
    const embedder = await isovec.Embedder.load("/model/");
    const texts = ["one", "two"];
    const set = await embedder.embed(texts);
    const file = set.save();
    const opened = await isovec.Embeddings.load(file.buffer);
    opened.search(set, 1);
    isovec.Embeddings.concat([opened, set]);
    await embedder.embed(texts);
    return { left, sizes: Array.from(bytes.values(), sizeOf), sets: [file.byteLength > 0, opened.values.length, set.values.length, texts.length], dimension: set.dimension };
  }, FILES);
  assert.equal(Object.keys(sizes.left).length, 5 * 2 * 2 + 1);
  for (const [way, seen] of Object.entries(sizes.left)) assert.deepEqual(seen, [sizes.sizes, 1, 1], way);
  assert.deepEqual(sizes.sets, [true, 2 * sizes.dimension, 2 * sizes.dimension, 2]);
});

test("a word that does not exist is refused, and those that do are named", async (t) => {
  const page = await open(t);
  const seen = await page.evaluate(async () => {
    const stream = (role, texts = ["a"]) => failure(Array.fromAsync(embedder.embedStream(texts, { role })));
    const load = (options) => failure(isovec.Embedder.load("/model/", options));
    const wrong = [await stream("passages"), await stream("Query", []), await stream(7), await load({ cache: "none" }), await load({ cache: "reload " }), await load({ worker: false, cache: null })];
    return { wrong, right: [await stream("passage"), await stream("query"), await stream("default"), await stream(undefined)] };
  });
  const roles = /`role` is .*"default", "query", "passage"/;
  const caches = /`cache` is .*"use", "reload", "off"/;
  for (const [index, pattern] of [roles, roles, roles, caches, caches, caches].entries()) {
    assert.equal(seen.wrong[index].kind, "Config");
    assert.match(seen.wrong[index].message, pattern);
  }
  assert.deepEqual(seen.right, Array(4).fill("nothing failed"));
});

test("the module refuses a role that it does not know, whoever asks", async () => {
  const { Embedder } = await import("../dist/inline.js");
  const embedder = await Embedder.load(Object.fromEntries(FILES.map((file) => [file, new Uint8Array(readFileSync(join(tiny, file)))])), { build: "simd128" });
  // As a page of another version of the package would.
  const { RawModel } = await import("../pkg/simd128/isovec_js.js");
  const { embed } = RawModel.prototype;
  RawModel.prototype.embed = function (texts, _, cancel) {
    return embed.call(this, texts, "passages", cancel);
  };
  try {
    await assert.rejects(embedder.embed(["a"]), { kind: "Config", message: /"passages".*"default", "none", "query" and "passage"/ });
  } finally {
    RawModel.prototype.embed = embed;
  }
  assert.equal((await embedder.embed(["a"])).length, 1);
});

test("an aborted call ends at once, and the worker goes on with the next", async (t) => {
  const page = await open(t);
  const seen = await page.evaluate(async () => {
    const many = Array.from({ length: 20000 }, (_, index) => `text number ${index} that is long enough to take a moment`);
    const abort = new AbortController();
    const long = failure(embedder.embed(many, { signal: abort.signal }));
    await new Promise((resolve) => setTimeout(resolve, 50));
    const other = new AbortController();
    const queued = failure(embedder.embed(many, { signal: other.signal }));
    other.abort();
    const first = await queued;
    abort.abort(new Error("enough"));
    const kinds = [first.kind, (await long).message];
    const next = (await embedder.embed(["next"])).length;
    const stats = await embedder.stats();
    const before = await failure(embedder.embed(["a"], { signal: AbortSignal.abort() }));
    const soon = new AbortController();
    setTimeout(() => soon.abort(), 50);
    const loading = await failure(isovec.Embedder.load("/model/slow/", { signal: soon.signal }));
    return { kinds, next, texts: stats.calls.texts, before: before.kind, loading: loading.kind };
  });
  assert.deepEqual([seen.kinds, seen.next, seen.before, seen.loading], [["AbortError", "enough"], 1, "AbortError", "AbortError"]);
  assert.ok(seen.texts < 40000, `${seen.texts} texts were embedded all the same`);
});

test("many short texts keep neither a worker nor a page from everything else", async (t) => {
  const page = await open(t);
  const order = await page.evaluate(async () => {
    const short = Array.from({ length: 20000 }, (_, index) => `text ${index}`);
    const order = [];
    const own = await isovec.Embedder.load("/model/", { worker: false });
    await own.embed(["warm"]);
    for (const one of [embedder, own]) {
      const all = one.embed(short).then(() => order.push("texts"));
      await new Promise((turn) => setTimeout(turn));
      const other = one.countTokens("a text").then(() => order.push("other"));
      await Promise.all([all, other]);
    }
    await own.dispose();
    return order;
  });
  assert.deepEqual(order, ["other", "texts", "other", "texts"]);
});

test("many calls at once are computed together, and none is lost when the queue is full", async (t) => {
  const page = await open(t, "/", { config: { batching: { maxQueue: 64 } } });
  const seen = await page.evaluate(async () => {
    const words = Array.from({ length: 1000 }, (_, index) => `word ${index}`);
    const joined = await Promise.all(words.map((word) => embedder.embedOne(word)));
    const alone = await embedder.embed(words);
    const worst = Math.min(...joined.map((vector, index) => isovec.cosine(vector, alone.row(index))));
    const { queue } = await embedder.stats();
    return { worst, queue };
  });
  assert.ok(seen.worst > 1 - 1e-6, String(seen.worst));
  assert.ok(seen.queue.batchedTexts > seen.queue.batches, JSON.stringify(seen.queue));
  assert.ok(seen.queue.peakTexts <= 64);
});

test("a stream is embedded in order, as far as it is taken, and what arrives late is not waited for", async (t) => {
  const page = await open(t);
  const seen = await page.evaluate(async () => {
    let taken = 0;
    function* numbers() {
      for (; ; taken++) yield `number ${taken}`;
    }
    const found = [];
    for await (const { index, vector, tokens, truncated } of embedder.embedStream(numbers())) {
      found.push([index, vector.length, tokens, truncated]);
      if (index === 700) break;
    }
    const ahead = taken;
    const row = (await embedder.embed(["number 2"])).row(0);
    const [, , third] = await Array.fromAsync(embedder.embedStream(["number 0", "number 1", "number 2"]));
    // The second text comes only when the first has been embedded.
    const { promise, resolve } = Promise.withResolvers();
    async function* slow() {
      yield "first";
      yield await promise;
    }
    const order = [];
    for await (const { index } of embedder.embedStream(slow())) {
      order.push(index);
      resolve("second");
    }
    const wrong = await failure(Array.fromAsync(embedder.embedStream(["fine", 7])));
    const empty = await Array.fromAsync(embedder.embedStream([]));
    const abort = new AbortController();
    const aborted = await failure((async () => { for await (const _ of embedder.embedStream(numbers(), { signal: abort.signal })) abort.abort(); })());
    return { found: found.length, ordered: found.every(([index], at) => index === at), ahead, same: isovec.cosine(row, third.vector), order, wrong, empty, aborted: aborted.kind };
  });
  assert.deepEqual([seen.found, seen.ordered, seen.order, seen.empty, seen.aborted], [701, true, [0, 1], [], "AbortError"]);
  assert.ok(seen.ahead < 701 + 3 * 256, `${seen.ahead} texts were taken for 701`);
  assert.ok(Math.abs(seen.same - 1) < 1e-6);
  assert.equal(seen.wrong.kind, "InvalidText");
  assert.match(seen.wrong.message, /text 1/);
});

test("a crash ends the calls that wait, and the next one starts anew", async (t) => {
  const page = await open(t, "/", { config: { session: { intraOpThreads: 2 } } });
  const [worker] = page.workers();
  // It crashes as the call arrives: a crash that is sent after it may find the texts embedded.
  await worker.evaluate(() => {
    const crash = ({ data }) => { if (data.call === "run") throw new WebAssembly.RuntimeError("unreachable executed in isovec_js"); };
    addEventListener("message", crash, { capture: true });
  });
  const kinds = await page.evaluate(async () => {
    const waiting = Array.from({ length: 2 }, () => embedder.embed(Array.from({ length: 40000 }, (_, index) => `a text that waits, number ${index}`)));
    return (await Promise.all(waiting.map(failure))).map(({ kind }) => kind);
  });
  assert.deepEqual(kinds, ["EnginePoisoned", "EnginePoisoned"]);
  const after = await page.evaluate(async () => (await embedder.embed(["again"])).length);
  assert.equal(after, 1);
  // The new one, and its second thread where it may have one.
  await workers(page, WAY.isolated ? 2 : 1);
  // And by hand.
  await page.evaluate(() => embedder.recreate());
  assert.equal(await page.evaluate(async () => (await embedder.stats()).calls.texts), 0);
  // A disposed one stays disposed.
  const disposed = await page.evaluate(async () => {
    const running = failure(embedder.embed(Array.from({ length: 4000 }, (_, index) => `a text that waits, number ${index}`)));
    await embedder.dispose();
    return [(await running).kind, (await failure(embedder.embed(["a"]))).kind, (await failure(embedder.recreate())).kind];
  });
  assert.deepEqual(disposed, ["Disposed", "Disposed", "Disposed"]);
  await workers(page, 0);
});

test("arrays that were given are not held on to, and a crash says so", async (t) => {
  const page = await open(t, "/", null);
  await page.evaluate(async (files) => {
    const source = {};
    for (const file of files) source[file] = await (await fetch(`/model/${file}`)).arrayBuffer();
    globalThis.embedder = await isovec.Embedder.load(source);
  }, FILES);
  await page.workers()[0].evaluate(() => setTimeout(() => { throw new WebAssembly.RuntimeError("unreachable executed in isovec_js"); }));
  await page.evaluate(async () => {
    while (await embedder.stats().then(() => true, () => false)) await new Promise((resolve) => setTimeout(resolve, 10));
  });
  const error = await page.evaluate(() => failure(embedder.embed(["a"])));
  assert.equal(error.kind, "EnginePoisoned");
  assert.match(error.message, /Load the model again/);
});

test("loads and disposes leave no worker behind", async (t) => {
  const page = await open(t, "/", null);
  await page.evaluate(async () => {
    for (let round = 0; round < 20; round++) {
      const own = await isovec.Embedder.load("/model/");
      await own.embed(["a"]);
      await own[Symbol.asyncDispose]();
    }
  });
  await workers(page, 0);
});
