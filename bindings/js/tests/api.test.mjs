// What a program asks of a loaded model, in node on the tiny seeded model: names, words, options of a call, search.
// Run by `cargo xtask test npm`, or `npm test` after `npm run build`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { Embedder, Embeddings, cosine } from "../dist/index.js";
import { FILES, NATIVE, tiny } from "./site.mjs";

const load = (options = {}) => Embedder.load(new Map(FILES.map((file) => [file, readFileSync(join(tiny, file))])), { worker: false, ...options });
const embedder = await load();
after(() => embedder.dispose());
const texts = ["the first text", "another one", "and a third that is longer than the others"];
const close = (left, right) => assert.ok(left.length === right.length && left.every((value, at) => Math.abs(value - right[at]) < 1e-6), `${left} is not ${right}`);

/** Names of members with an underscore, within what users see. Names of operators and of what made a vector are not ours. */
function rusty(value, path = "") {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const own = /_/.test(name) ? [`${path}${name}`] : [];
    return ["operators", "identity"].includes(name) ? own : [...own, ...rusty(inner, `${path}${name}.`)];
  });
}

test("names are camel case in all that an embedder tells", async () => {
  await embedder.embed(texts);
  const told = { stats: await embedder.stats(), capabilities: embedder.capabilities(), description: embedder.description(), provider: embedder.provider(), knobs: embedder.effectiveConfig() };
  assert.deepEqual(rusty(told), []);
  assert.equal(told.stats.memory.wasmBytes > 0, !NATIVE);
  assert.ok(Array.isArray(told.stats.sessions.perSession) && told.stats.memoryPool.enabled !== undefined);
  assert.ok(told.capabilities.intraOpThreads >= 1 && told.description.weightsBytes > 0);
  const knob = told.knobs.find(({ name }) => name === "batching.maxBatchTokens");
  assert.equal(knob?.honoured, true);
  assert.deepEqual(told.knobs.filter(({ name }) => name.includes("_")), []);
});

test("words are what the long form says", async () => {
  const short = await load({ device: "cpu", dtype: "q8" });
  const long = await load({ config: { providers: { executionProviders: ["cpu"] }, model: { dtype: "int8" } } });
  const used = (of) => of.effectiveConfig().map(({ name, used }) => [name, used]);
  assert.deepEqual(used(short), used(long));
  assert.equal(short.fingerprint().precision, "int8");
  await short.dispose();
  await long.dispose();
  // node has no GPU to offer, and says so.
  const gpu = await load({ device: "webgpu" });
  assert.equal(gpu.provider().engine, "portable");
  assert.ok((await gpu.stats()).provider.fallbacks.some(({ from }) => from === "webgpu"));
  await gpu.dispose();
  await assert.rejects(load({ device: "cpu", config: { providers: { executionProviders: ["cpu"] } } }), { kind: "Config" });
});

test("queries and passages get their prompts, one by one and together", async () => {
  const prompted = await load({ config: { text: { prompts: { query: "query: ", passage: "passage: " } } } });
  const plain = async (prompt) => (await embedder.embed(texts.map((text) => prompt + text))).values;
  for (const [all, one, prompt] of [["embedQueries", "embedQuery", "query: "], ["embedPassages", "embedPassage", "passage: "]]) {
    const set = await prompted[all](texts);
    close(set.values, await plain(prompt));
    const alone = await prompted[one](texts[1]);
    assert.equal(alone.length, 1);
    close(alone.row(0), set.row(1));
    const name = prompt.slice(0, -2);
    for (const options of [{ prompt: name }, { prefix: prompt }]) {
      const named = await prompted.embed(texts, options);
      close(named.values, set.values);
      close(await prompted.embedOne(texts[1], options), set.row(1));
      const streamed = [];
      for await (const { vector } of prompted.embedStream(texts, options)) streamed.push(...vector);
      close(Float32Array.from(streamed), set.values);
      await assert.rejects(prompted[all](texts, options), { kind: "Config", message: new RegExp(`"${name}" already`) });
    }
  }
  await prompted.dispose();
});

test("a prompt of the model's is chosen by its name", async () => {
  const prompted = await load({ config: { text: { prompts: { topic: "the topic: ", none: "never: " } } } });
  const plain = async (prompt) => (await embedder.embed(texts.map((text) => prompt + text))).values;
  close((await prompted.embed(texts, { prompt: "topic" })).values, await plain("the topic: "));
  close((await prompted.embed(texts, { prompt: "none" })).values, await plain(""));
  await assert.rejects(prompted.embed(texts, { prompt: "other" }), { kind: "Config", message: /topic/ });
  await assert.rejects(prompted.embed(texts, { prompt: "topic", prefix: "x" }), { kind: "Config", message: /one of them/ });
  await assert.rejects(prompted.embedStream(texts, { role: "query", prompt: "topic" }).next(), { kind: "Config", message: /already/ });
  await assert.rejects(prompted.embed(texts, { prompt: 1 }), { kind: "Config", message: /prompt/ });
  await prompted.dispose();
});

test("a call has a dimension of its own, and its vectors say so", async () => {
  const whole = await embedder.embed(texts);
  const loaded = await load({ config: { text: { dimension: 8 } } });
  const expected = await loaded.embed(texts);
  const cut = await embedder.embed(texts, { dimension: 8 });
  assert.deepEqual([cut.dimension, whole.dimension, embedder.dimension], [8, 32, 32]);
  close(cut.values, expected.values);
  assert.deepEqual(cut.fingerprint.identity, expected.fingerprint.identity);
  close((await embedder.embedOne(texts[0], { dimension: 8 })), expected.row(0));
  const streamed = [];
  for await (const { vector } of embedder.embedStream(texts, { dimension: 8, role: "passage" })) streamed.push(...vector);
  close(streamed, expected.values);
  assert.equal(cut.searchOne(await embedder.embedQuery(texts[2], { dimension: 8 }), 1)[0].index, 2);
  assert.throws(() => cut.search(whole, 1), { kind: "IncompatibleIndex", message: /dimension/ });
  assert.deepEqual((await Embeddings.load(cut.save())).dimension, 8);
  for (const dimension of [0, 1.5, -1, "8", 2 ** 32, 33]) await assert.rejects(embedder.embed(texts, { dimension }), { kind: "Config", message: /dimension/ }, String(dimension));
  await loaded.dispose();
});

test("a call says whether its vectors have unit length", async () => {
  const raw = await load({ config: { text: { normalize: false } } });
  const [long, unit, plain] = [await raw.embed(texts), await raw.embed(texts, { normalize: true }), await embedder.embed(texts)];
  assert.ok(Math.abs(Math.hypot(...long.row(0)) - 1) > 1e-3);
  close(unit.values, plain.values);
  assert.deepEqual(unit.fingerprint.identity, plain.fingerprint.identity);
  assert.deepEqual((await raw.embed(texts, { normalize: false })).values, long.values);
  await assert.rejects(embedder.embed(texts, { normalize: false }), { kind: "Config", message: /text\.normalize/ });
  await assert.rejects(embedder.embed(texts, { normalize: "yes" }), { kind: "Config", message: /normalize/ });
  await raw.dispose();
});

test("one query has one list of hits, and all pairs a matrix", async () => {
  const [passages, queries] = [await embedder.embedPassages(texts), await embedder.embedQueries(texts.slice(1))];
  const scores = passages.similarity(queries);
  assert.deepEqual([scores.rows, scores.columns, scores.values.length], [3, 2, 6]);
  const found = passages.search(queries, 3);
  for (const [column, hits] of found.entries()) {
    for (const { index, score } of hits) assert.equal(scores.row(index)[column], score);
    assert.deepEqual(passages.searchOne(await embedder.embedQuery(texts[column + 1]), 3).map(({ index }) => index), hits.map(({ index }) => index));
  }
  for (const [row, of] of [...scores].entries()) for (const [column, score] of of.entries()) assert.ok(Math.abs(score - cosine(passages.row(row), queries.row(column))) < 1e-7);
  assert.deepEqual([passages.metric, embedder.metric], ["cosine", "cosine"]);
  assert.throws(() => passages.searchOne(queries, 1), { kind: "NotOneQuery", message: /has 2/ });
  assert.throws(() => scores.row(3), RangeError);
  // More pairs than an array can hold.
  const wide = Object.create(Embeddings.prototype, { length: { value: 2 ** 50 } });
  assert.throws(() => Embeddings.prototype.similarity.call(wide, { length: 2 }), { kind: "InputTooLarge" });
  const other = await load({ config: { text: { pooling: "cls" } } });
  const foreign = await other.embed(texts);
  assert.throws(() => passages.similarity(foreign), { kind: "IncompatibleIndex" });
  assert.deepEqual((await embedder.embed([])).similarity(queries).values.length, 0);
  await other.dispose();
});

test("an aborted call rejects with the signal's reason", async () => {
  const reason = { mine: true };
  const rejected = (promise) => promise.then(() => assert.fail("it was answered"), (thrown) => thrown);
  assert.equal(await rejected(embedder.embed(texts, { signal: AbortSignal.abort(reason) })), reason);
  assert.equal(await rejected(load({ signal: AbortSignal.abort(reason) })), reason);
  // So many that the engine pauses, also where a busy machine makes it believe that it has just done so.
  const many = Array.from({ length: 20000 }, (_, at) => `text number ${at} that takes a moment`);
  const abort = new AbortController();
  const running = rejected(embedder.embed(many, { signal: abort.signal }));
  setTimeout(() => abort.abort(), 1);
  const thrown = await running;
  assert.ok(thrown instanceof DOMException && thrown.name === "AbortError", String(thrown));
  const late = await rejected(embedder.embed(many, { signal: AbortSignal.timeout(1) }));
  assert.equal(late.name, "TimeoutError");
  const stream = async () => {
    for await (const { index } of embedder.embedStream(many, { signal: abort.signal })) assert.fail(`text ${index} was embedded`);
  };
  assert.equal(await rejected(stream()), abort.signal.reason);
  assert.equal((await embedder.embed(["goes on"])).length, 1);
});
