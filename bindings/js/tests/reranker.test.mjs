// Documents are ranked by a model that reads each with the query: in node and in headless Chromium, the scores of an
// implementation at float64 on the seeded reranker. Run by `cargo xtask test npm`, or `npm test` after `npm run build`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { Classifier, PairScores, Reranker } from "../dist/index.js";
import { Reranker as Inline } from "../dist/inline.js";
import { CLASSIFIER_FILES, DECODER_FILES, HEADERS, NATIVE, WAY, classifier as labelled, decoder, js, launch, page as empty, reranker as folder, send, serve } from "./site.mjs";

/** The largest difference of two scores. */
const NEAR = 1e-5;
const { query, documents } = JSON.parse(readFileSync(join(folder, "reference.json"), "utf8"));
const all = documents.map(({ text }) => text);
const pairs = all.map((text) => [query, text]);
/** The places of the documents, the best first; documents of the same score in their order. */
const ORDER = documents.map(({ logit }, index) => [index, logit]).sort(([, a], [, b]) => b - a).map(([index]) => index);

const sigmoid = (logit) => 1 / (1 + Math.exp(-logit));
const near = (score, wanted) => assert.ok(Math.abs(score - wanted) <= NEAR, `${score} and ${wanted}`);

function files(from = folder, change = {}) {
  const files = new Map(CLASSIFIER_FILES.map((name) => [name, new Uint8Array(readFileSync(join(from, name)))]));
  const config = JSON.parse(new TextDecoder().decode(files.get("config.json")));
  return files.set("config.json", new TextEncoder().encode(JSON.stringify({ ...config, ...change })));
}

const reranker = await Reranker.load(files());
after(() => reranker.dispose());

test("documents come in the order of the reference, on every way in", async () => {
  const ranked = await reranker.rank(query, all);
  assert.deepEqual(ranked.map(({ index }) => index), ORDER);
  for (const { index, score, tokens, truncated } of ranked) {
    near(score, sigmoid(documents[index].logit));
    assert.deepEqual([tokens, truncated], [documents[index].tokens, false]);
  }
  const scored = await reranker.score(pairs, { scores: "logits" });
  assert.deepEqual([scored.length, scored.truncated.some(Boolean)], [all.length, false]);
  assert.deepEqual([...scored.tokenCounts], documents.map(({ tokens }) => tokens));
  const streamed = [];
  for await (const one of reranker.scoreStream(pairs, { scores: "logits" })) streamed.push(one);
  const joined = await Promise.all(pairs.map((pair) => reranker.score([pair], { scores: "logits" })));
  for (const [at, { logit, tokens }] of documents.entries()) {
    near(scored.values[at], logit);
    near(joined[at].values[0], logit);
    near(streamed[at].score, logit);
    assert.deepEqual([streamed[at].index, streamed[at].tokens, streamed[at].truncated], [at, tokens, false]);
  }
  assert.deepEqual(scored.ranked().map(({ index }) => index), ORDER);
  const best = await reranker.rank(query, all, { topN: 2, scores: "logits" });
  assert.deepEqual(best.map(({ index }) => index), ORDER.slice(0, 2));
  near(best[0].score, documents[ORDER[0]].logit);
  assert.deepEqual([(await reranker.rank(query, all, { topN: 1000 })).length, await reranker.rank(query, [])], [all.length, []]);
});

test("scores are what the model's files ask for", async () => {
  for (const [change, form] of [[{}, sigmoid], [{ sbert_ce_default_activation_function: "torch.nn.modules.linear.Identity" }, (logit) => logit]]) {
    const own = await Reranker.load(files(folder, change));
    for (const { index, score } of await own.rank(query, all)) near(score, form(documents[index].logit));
    await own.dispose();
  }
});

test("equal scores stay in their order, and what was cut says so", async () => {
  const set = new PairScores({ values: Float32Array.of(0.5, -1, 0.75, 0.5), tokenCounts: Uint32Array.of(3, 4, 5, 6), truncated: Uint8Array.of(0, 1, 0, 0) });
  assert.deepEqual(set.ranked().map(({ index }) => index), [2, 0, 3, 1]);
  assert.deepEqual(set.ranked()[3], { index: 1, score: -1, tokens: 4, truncated: true });
  const own = await Reranker.load(files(), { config: { text: { maxLength: 12 } } });
  const [best, other] = await own.rank("a dog", ["the dog is an animal ".repeat(9), "a cat"]).then((ranked) => [...ranked].sort((a, b) => a.index - b.index));
  assert.deepEqual([best.tokens, best.truncated, other.tokens, other.truncated], [12, true, 7, false]);
  await own.dispose();
});

test("what is wrong is said", async () => {
  await assert.rejects(Reranker.load(files(labelled)), { kind: "UnsupportedModel", message: /3 labels/ });
  await assert.rejects(Reranker.load(files(folder, { architectures: ["BertModel"] })), { kind: "UnsupportedModel", message: /BertForSequenceClassification/ });
  await assert.rejects(Reranker.load(files(folder, { sentence_transformers: { activation_fn: "torch.nn.modules.activation.Tanh" } })), { kind: "UnsupportedModel", message: /Tanh/ });
  for (const topN of [0, 1.5, -1, "2"]) await assert.rejects(reranker.rank(query, all, { topN }), { kind: "Config", message: /topN/ });
  const words = { kind: "Config", message: /`scores` is "softmax".*"sigmoid", "logits"/ };
  await assert.rejects(reranker.rank(query, all, { scores: "softmax" }), words);
  await assert.rejects(reranker.scoreStream(pairs, { scores: "softmax" }).next(), words);
  await assert.rejects(reranker.rank(undefined, all), { kind: "InvalidText", message: /query/ });
  await assert.rejects(reranker.rank(query, ["a", 1]), { kind: "InvalidText", message: /text 1/ });
  await assert.rejects(reranker.rank("\uD800", all), { kind: "InvalidText" });
  for (const bad of ["a pair", [["a"]], [["a", "b", "c"]], [["a", null]], ["ab"]]) await assert.rejects(reranker.score(bad), { kind: "InvalidText" }, JSON.stringify(bad));
  const reason = { mine: true };
  await reranker.rank(query, all, { signal: AbortSignal.abort(reason) }).then(() => assert.fail("it was answered"), (thrown) => assert.equal(thrown, reason));
});

test("a classifier reads pairs, too", async () => {
  const own = await Classifier.load(files());
  const said = await own.classifyPairs(pairs, { scores: "logits" });
  for (const [at, { logit }] of documents.entries()) near(said.scores(at)[0], logit);
  await assert.rejects(own.classifyPairs(pairs, { scores: "best" }), { kind: "Config" });
  await own.dispose();
});

test("inline, the same numbers", async () => {
  const config = { session: { deterministicCompute: true } };
  const [inline, usual] = [await Inline.load(files(), { config }), await Reranker.load(files(), { config })];
  assert.deepEqual(await inline.rank(query, all), await usual.rank(query, all));
  await Promise.all([inline.dispose(), usual.dispose()]);
});

test("in a page a worker ranks, and on a GPU where one is asked for", async (t) => {
  const origin = await serve((request, response, path) => {
    if (path === "/") return empty(response, HEADERS);
    send(response, path.startsWith("/model/") ? join(folder, path.slice(7)) : join(js, path), HEADERS);
  });
  const page = await (await launch()).newPage();
  t.after(() => page.close());
  await page.goto(origin);
  const seen = await page.evaluate(async ({ query, all, webgpu }) => {
    const { Reranker } = await import("/dist/index.js");
    const config = webgpu ? { providers: { executionProviders: ["webgpu"], webgpu: { softwareAdapter: true } } } : {};
    const reranker = await Reranker.load("/model/", { config });
    const here = await Reranker.load("/model/", { worker: false });
    const result = { worker: [reranker.worker, here.worker], engine: reranker.provider().provider, ranked: await reranker.rank(query, all), here: await here.rank(query, all) };
    await reranker.dispose();
    return result;
  }, { query, all, webgpu: WAY.webgpu });
  assert.deepEqual(seen.worker, [true, false]);
  assert.match(seen.engine, WAY.webgpu ? /webgpu/i : /wasm/);
  for (const ranked of [seen.ranked, seen.here]) {
    assert.deepEqual(ranked.map(({ index }) => index), ORDER);
    for (const { index, score } of ranked) near(score, sigmoid(documents[index].logit));
  }
});

const answers = JSON.parse(readFileSync(join(decoder, "reference.json"), "utf8"));
const decoderFiles = () => new Map(DECODER_FILES.map((name) => [name, new Uint8Array(readFileSync(join(decoder, name)))]));

test("a decoder is asked in the words of its chat template", async () => {
  const own = await Reranker.load(decoderFiles());
  const asked = answers.documents.map(({ text }) => [answers.query, text]);
  for (const [options, field] of [[{}, "logit"], [{ instruction: answers.instruction }, "instructed"], [{ prompt: "short" }, "short"]]) {
    const scored = await own.score(asked, options);
    for (const [at, document] of answers.documents.entries()) near(scored.values[at], document[field]);
    if (field === "logit") assert.deepEqual([...scored.tokenCounts], answers.documents.map(({ tokens }) => tokens));
  }
  // Only one build reads templates, which is fetched for such a model.
  const { fallbacks } = (await own.stats()).provider;
  const moved = fallbacks.some(({ to, cause }) => to === "tract" && cause.includes("chat_template.jinja"));
  assert.ok(NATIVE ? !moved : moved && own.build === "tract", JSON.stringify(fallbacks));
  if (!NATIVE) await assert.rejects(Reranker.load(decoderFiles(), { build: "simd128" }), { kind: "UnsupportedModel", message: /build `tract`/ });
  await assert.rejects(own.rank("a", ["b"], { prompt: "short", instruction: "x" }), { kind: "Config", message: /one of them/ });
  await assert.rejects(own.rank("a", ["b"], { prompt: "none such" }), { kind: "Config", message: /short/ });
  await assert.rejects(own.scoreStream(asked, { instruction: 1 }).next(), { kind: "Config", message: /instruction/ });
  await own.dispose();
  // The template in the file that had it before there was one of its own.
  const older = decoderFiles();
  older.set("tokenizer_config.json", new TextEncoder().encode(JSON.stringify({ chat_template: new TextDecoder().decode(older.get("chat_template.jinja")) })));
  older.delete("chat_template.jinja");
  const same = await Reranker.load(older);
  const [first] = (await same.score(asked)).values;
  near(first, answers.documents[0].logit);
  await same.dispose();
  const silent = decoderFiles();
  silent.set("chat_template.jinja", new TextEncoder().encode("{{ messages[0].content }}"));
  await assert.rejects(Reranker.load(silent), { kind: "UnsupportedModel", message: /role "document"/ });
  const without = decoderFiles();
  without.delete("chat_template.jinja");
  await assert.rejects(Reranker.load(without), { kind: "MissingFile", message: /chat_template\.jinja/ });
});

test("a page fetches the template, and asks by it", async (t) => {
  const origin = await serve((request, response, path) => {
    if (path === "/") return empty(response, HEADERS);
    send(response, path.startsWith("/model/") ? join(decoder, path.slice(7)) : join(js, path), HEADERS);
  });
  const page = await (await launch()).newPage();
  t.after(() => page.close());
  await page.goto(origin);
  const scores = await page.evaluate(async ({ query, texts }) => {
    const { Reranker } = await import("/dist/index.js");
    const reranker = await Reranker.load("/model/");
    const { values } = await reranker.score(texts.map((text) => [query, text]));
    await reranker.dispose();
    return [...values];
  }, { query: answers.query, texts: answers.documents.map(({ text }) => text) });
  for (const [at, { logit }] of answers.documents.entries()) near(scores[at], logit);
});
