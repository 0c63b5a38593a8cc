// Texts become labels: in node and in headless Chromium, the scores of an implementation at float64 on the seeded classifier.
// Run by `cargo xtask test npm`, or `npm test` after `npm run build`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { Classifications, Classifier, Embedder } from "../dist/index.js";
import { Classifier as Inline } from "../dist/inline.js";
import { CLASSIFIER_FILES, FILES, HEADERS, NATIVE, WAY, classifier as folder, js, launch, page as empty, send, serve, tiny } from "./site.mjs";

/** The largest difference of two scores. */
const NEAR = 1e-5;
const { labels, texts } = JSON.parse(readFileSync(join(folder, "reference.json"), "utf8"));
const all = texts.map(({ text }) => text);

const softmax = (logits) => {
  const powers = logits.map(Math.exp);
  const sum = powers.reduce((sum, power) => sum + power);
  return powers.map((power) => power / sum);
};
const sigmoid = (logits) => logits.map((logit) => 1 / (1 + Math.exp(-logit)));
const logits = (logits) => logits;

const near = (scores, wanted, what) => {
  assert.equal(scores.length, wanted.length, what);
  for (const [at, score] of Array.from(scores).entries()) assert.ok(Math.abs(score - wanted[at]) <= NEAR, `${what}: ${scores} and ${wanted}`);
};
/** Scores in the model's order, out of labels in any. */
const unranked = (ranked) => {
  assert.ok(ranked.every(({ score }, at) => at === 0 || ranked[at - 1].score >= score), JSON.stringify(ranked));
  assert.ok(ranked.every(({ index, label }) => labels[index] === label), JSON.stringify(ranked));
  return [...ranked].sort((a, b) => a.index - b.index).map(({ score }) => score);
};

async function collected(stream) {
  const all = [];
  for await (const one of stream) all.push(one);
  return all;
}

/** The model's files, with other entries in its `config.json`. */
function files(change = {}) {
  const files = new Map(CLASSIFIER_FILES.map((name) => [name, new Uint8Array(readFileSync(join(folder, name)))]));
  const config = JSON.parse(new TextDecoder().decode(files.get("config.json")));
  return files.set("config.json", new TextEncoder().encode(JSON.stringify({ ...config, ...change })));
}

const classifier = await Classifier.load(files());
after(() => classifier.dispose());

test("scores are the references, on every way in", async () => {
  assert.deepEqual(classifier.labels, labels);
  const said = await classifier.classify(all, { scores: "logits" });
  assert.deepEqual([said.length, said.labels, said.values.length], [all.length, labels, all.length * labels.length]);
  const streamed = await collected(classifier.classifyStream(all, { scores: "logits" }));
  const joined = await Promise.all(all.map((text) => classifier.classify([text], { scores: "logits" })));
  const one = await Promise.all(all.map((text) => classifier.classifyOne(text, { scores: "logits" })));
  for (const [at, { text, ids, logits }] of texts.entries()) {
    near(said.scores(at), logits, text);
    near(unranked(said.ranked(at)), logits, text);
    near(unranked(streamed[at].labels), logits, text);
    near(joined[at].scores(0), logits, text);
    near(unranked(one[at]), logits, text);
    assert.deepEqual(said.best(at), said.ranked(at)[0]);
    assert.deepEqual([said.tokenCounts[at], said.truncated[at]], [ids.length, text.length > 300], text);
    assert.deepEqual([streamed[at].index, streamed[at].tokens, streamed[at].truncated], [at, ids.length, text.length > 300], text);
  }
});

test("scores are what the model's files or the call ask for", async () => {
  for (const [change, form] of [[{}, softmax], [{ problem_type: "single_label_classification" }, softmax], [{ problem_type: "multi_label_classification" }, sigmoid], [{ problem_type: "regression" }, logits]]) {
    const own = await Classifier.load(files(change));
    const said = await own.classify(all);
    for (const [scores, asked] of Object.entries({ softmax, sigmoid, logits })) {
      const forced = await own.classify(all, { scores });
      for (const [at, { text, logits }] of texts.entries()) near(forced.scores(at), asked(logits), text);
    }
    for (const [at, { text, logits }] of texts.entries()) near(said.scores(at), form(logits), text);
    await own.dispose();
  }
  const nameless = await Classifier.load(files({ id2label: undefined }));
  assert.deepEqual(nameless.labels, ["LABEL_0", "LABEL_1", "LABEL_2"]);
  await nameless.dispose();
});

test("equal scores stay in the model's order, and there is no text behind the last", async () => {
  const set = new Classifications({ labels: ["a", "b", "c"], values: Float32Array.of(0.25, 0.5, 0.25, 0.5, 0, 0.5), tokenCounts: Uint32Array.of(3, 4), truncated: Uint8Array.of(0, 1) });
  const order = (text) => set.ranked(text).map(({ index }) => index);
  assert.deepEqual([order(0), order(1), set.best(1)], [[1, 0, 2], [0, 2, 1], { index: 0, label: "a", score: 0.5 }]);
  assert.deepEqual([[...set.scores(1)], set.truncated], [[0.5, 0, 0.5], [false, true]]);
  for (const text of [2, -1, 0.5, undefined]) for (const call of ["scores", "best", "ranked"]) assert.throws(() => set[call](text), RangeError);
  const none = await classifier.classify([]);
  assert.deepEqual([none.length, none.values.length, none.labels], [0, 0, labels]);
});

test("a classifier tells what an embedder tells", async () => {
  const own = await Classifier.load(files(), { config: { batching: { maxBatchSize: 5 }, embeddingCache: { memory: 1 << 20 } } });
  const profile = await own.profile();
  const first = await own.classify(all);
  // What is kept are the model's numbers: a call that asks for other scores computes nothing.
  near((await own.classify(all, { scores: "logits" })).values, texts.flatMap(({ logits }) => logits), "kept");
  assert.deepEqual((await own.classify(all)).values, first.values);
  const { calls, tokens, embeddingCache, queue, memory } = await own.stats();
  assert.deepEqual([calls.embedded, calls.failed, embeddingCache.hits + embeddingCache.misses, queue.overloaded], [3, 0, 3 * all.length, 0]);
  // The empty text and white space are one text to the model.
  assert.ok(calls.texts === embeddingCache.misses && calls.texts < all.length && calls.truncated === 1, JSON.stringify([calls, embeddingCache]));
  assert.deepEqual([tokens.real > 0, memory.wasmBytes > 0], [true, !NATIVE]);
  assert.ok((await profile.finish()).events().some(({ cat }) => cat === "run"));
  const knob = own.effectiveConfig().find(({ name }) => name === "batching.maxBatchSize");
  assert.deepEqual([knob.used, knob.honoured], ["5", true]);
  assert.equal(own.provider().engine, "portable");
  assert.equal(await own.countTokens(all[0]), texts[0].ids.length);
  assert.ok(own.maxLength >= texts[0].ids.length && own.capabilities().intraOpThreads >= 1 && own.description().parameters > 0);
  assert.deepEqual((await own.downloaded()).files, [], "what was given is no download");
  await own.dispose();
  await assert.rejects(own.classify(["a"]), { kind: "Disposed" });
});

test("a model is loaded for what it is, and what is wrong is said", async () => {
  const vectors = new Map(FILES.map((name) => [name, new Uint8Array(readFileSync(join(tiny, name)))]));
  await assert.rejects(Classifier.load(vectors), { kind: "UnsupportedModel", message: /logits/ });
  for (const text of [{ dimension: 2 }, { normalize: true }, { pooling: "cls" }]) await assert.rejects(Classifier.load(files(), { config: { text } }), { kind: "Config", message: /classifier/ });
  await assert.rejects(Classifier.load(files({ id2label: { 0: "no", 1: "yes" } })), { kind: "InvalidModel", message: /id2label/ });
  const words = { kind: "Config", message: /`scores` is "best".*"softmax", "sigmoid", "logits"/ };
  await assert.rejects(classifier.classify(["a"], { scores: "best" }), words);
  await assert.rejects(classifier.classifyStream(["a"], { scores: "best" }).next(), words);
  await assert.rejects(classifier.classify("a text"), { kind: "InvalidText" });
  await assert.rejects(classifier.classify(["a", "\uD800"]), { kind: "InvalidText", message: /text 1/ });
  // Hidden states can be pooled, so a checkpoint that classifies gives vectors as well.
  const embedder = await Embedder.load(files(), { config: { text: { pooling: "mean" } } });
  const [own, plain] = [await embedder.embedOne("a cat"), await Embedder.load(tiny).then((embedder) => embedder.embedOne("a cat"))];
  near(own, Array.from(plain), "vectors");
  await embedder.dispose();
});

test("the module refuses scores that it does not know, and labels of a model that gives vectors, whoever asks", async () => {
  const pkg = new URL("../pkg/simd128/", import.meta.url);
  const { default: init, RawCancel, RawModel } = await import(new URL("isovec_js.js#raw", pkg).href);
  await init({ module_or_path: await WebAssembly.compile(readFileSync(new URL("isovec_js_bg.wasm", pkg))) });
  const load = (files, labels) => RawModel.load("a model", files, "{}", labels, undefined, new RawCancel());
  const raw = await load(files(), "labels");
  await assert.rejects(async () => raw.classify(["a"], undefined, "best", "default", new RawCancel()), { kind: "Config", message: /"best".*"softmax", "sigmoid" and "logits"/ });
  const vectors = await load(new Map(FILES.map((name) => [name, new Uint8Array(readFileSync(join(tiny, name)))])), "vectors");
  await assert.rejects(vectors.classify(["a"], undefined, undefined, "default", new RawCancel()), { kind: "Config", message: /labels/ });
  await assert.rejects(raw.classify(["a", "b"], ["c"], undefined, "default", new RawCancel()), { kind: "Config", message: /2 first texts have 1 second/ });
  await assert.rejects(load(files(), "rows"), { kind: "Config", message: /"rows".*"relevance"/ });
  raw.free();
  vectors.free();
});

test("an aborted call rejects with the signal's reason, and a stream that is left computes no more", async () => {
  const reason = { mine: true };
  const rejected = (promise) => promise.then(() => assert.fail("it was answered"), (thrown) => thrown);
  assert.equal(await rejected(classifier.classify(all, { signal: AbortSignal.abort(reason) })), reason);
  assert.equal(await rejected(Classifier.load(files(), { signal: AbortSignal.abort(reason) })), reason);
  assert.equal(await rejected(classifier.classifyOne("a", { signal: AbortSignal.abort(reason) })), reason);
  let taken = 0;
  function* endless() {
    for (;;) yield `text number ${taken++}`;
  }
  for await (const { index } of classifier.classifyStream(endless())) if (index === 300) break;
  assert.ok(taken > 300 && taken < 3000, String(taken));
  assert.equal((await classifier.classify(["goes on"])).length, 1);
});

test("weights in a smaller form give nearly the same logits", async () => {
  for (const [dtype, bound] of [["f16", 2e-3], ["int8", 0.05]]) {
    const own = await Classifier.load(files(), { dtype });
    const said = await own.classify(all, { scores: "logits" });
    assert.equal(own.fingerprint().precision, dtype);
    const far = Array.from(said.values, (score, at) => Math.abs(score - texts[Math.floor(at / labels.length)].logits[at % labels.length]));
    assert.ok(Math.max(...far) <= bound && Math.max(...far) > 0, `${dtype}: ${Math.max(...far)}`);
    await own.dispose();
  }
});

test("inline, the same numbers", async () => {
  const config = { session: { deterministicCompute: true } };
  const [inline, usual] = [await Inline.load(files(), { config }), await Classifier.load(files(), { config })];
  assert.deepEqual((await inline.classify(all)).values, (await usual.classify(all)).values);
  await Promise.all([inline.dispose(), usual.dispose()]);
});

test("in a page a worker classifies, and on a GPU where one is asked for", async (t) => {
  const origin = await serve((request, response, path) => {
    if (path === "/") return empty(response, HEADERS);
    send(response, path.startsWith("/model/") ? join(folder, path.slice(7)) : join(js, path), HEADERS);
  });
  const page = await (await launch()).newPage();
  t.after(() => page.close());
  await page.goto(origin);
  const seen = await page.evaluate(async ({ all, webgpu }) => {
    const { Classifier } = await import("/dist/index.js");
    const failure = (promise) => promise.then(() => "nothing failed", ({ kind, name }) => kind ?? name);
    const steps = [];
    const config = webgpu ? { providers: { executionProviders: ["webgpu"], webgpu: { softwareAdapter: true } } } : {};
    const classifier = await Classifier.load("/model/", { config, onProgress: ({ file }) => steps.push(file) });
    const here = await Classifier.load("/model/", { worker: false });
    const rows = (said) => Array.from({ length: said.length }, (_, at) => Array.from(said.scores(at)));
    const said = await classifier.classify(all, { scores: "logits" });
    const streamed = [];
    for await (const { index, labels } of classifier.classifyStream(all)) streamed.push([index, labels]);
    const abort = new AbortController();
    const aborted = failure(classifier.classify(Array.from({ length: 5000 }, (_, at) => `text number ${at}`), { signal: abort.signal }));
    abort.abort();
    const result = {
      worker: [classifier.worker, here.worker], labels: classifier.labels, engine: classifier.provider().provider,
      said: rows(said), here: rows(await here.classify(all, { scores: "logits" })), streamed, one: await classifier.classifyOne(all[0]),
      counts: Array.from(said.tokenCounts), truncated: said.truncated, steps: [...new Set(steps)].sort(),
      aborted: await aborted, refused: await failure(classifier.classify(["a"], { scores: "best" })),
    };
    await classifier.recreate();
    result.again = rows(await classifier.classify(all, { scores: "logits" }));
    await classifier.dispose();
    return { ...result, disposed: await failure(classifier.classify(["a"])), stats: (await here.stats()).calls.texts };
  }, { all, webgpu: WAY.webgpu });
  assert.deepEqual([seen.worker, seen.labels, seen.stats], [[true, false], labels, all.length]);
  assert.match(seen.engine, WAY.webgpu ? /webgpu/i : /wasm/);
  assert.ok(["config.json", "model.safetensors", "tokenizer.json"].every((file) => seen.steps.includes(file)), seen.steps.join());
  for (const [at, { text, ids, logits }] of texts.entries()) {
    for (const scores of [seen.said[at], seen.here[at], seen.again[at]]) near(scores, logits, text);
    const [index, ranked] = seen.streamed[at];
    near(unranked(ranked), softmax(logits), text);
    assert.deepEqual([index, seen.counts[at], seen.truncated[at]], [at, ids.length, text.length > 300]);
  }
  near(unranked(seen.one), softmax(texts[0].logits), "one");
  assert.deepEqual([seen.aborted, seen.refused, seen.disposed], ["AbortError", "Config", "Disposed"]);
});
