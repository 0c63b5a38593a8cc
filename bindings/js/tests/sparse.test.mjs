// Texts get weights of words: in node and in headless Chromium, the weights of an implementation at float64 on the seeded SPLADE model.
// Run by `cargo xtask test npm`, or `npm test` after `npm run build`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { Embedder, Embeddings, SparseEmbedder, SparseEmbeddings } from "../dist/index.js";
import { SparseEmbedder as Inline } from "../dist/inline.js";
import { HEADERS, WAY, data, js, launch, page as empty, send, serve, splade as folder } from "./site.mjs";

/** The largest difference of two weights. */
const NEAR = 1e-5;
const FILES = ["config.json", "config_sentence_transformers.json", "tokenizer.json", "modules.json", "1_SpladePooling/config.json", "model.safetensors"];
const reference = JSON.parse(readFileSync(join(folder, "reference.json"), "utf8"));
const texts = reference.texts.map(({ text }) => text);

function files(change = {}) {
  const files = new Map(FILES.map((name) => [name, new Uint8Array(readFileSync(join(folder, name)))]));
  for (const [name, content] of Object.entries(change)) files.set(name, new TextEncoder().encode(JSON.stringify(content)));
  return files;
}

function check({ indices, values }, wanted) {
  const weights = new Float64Array(wanted.length);
  for (const [at, index] of indices.entries()) {
    assert.ok(at === 0 || indices[at - 1] < index);
    assert.ok(values[at] > 0);
    weights[index] = values[at];
  }
  for (const [word, weight] of wanted.entries()) assert.ok(Math.abs(weights[word] - weight) <= NEAR, `word ${word}: ${weights[word]} and ${weight}`);
}

const embedder = await SparseEmbedder.load(files());
after(() => embedder.dispose());

test("weights are those of the reference, on every way in", async () => {
  assert.equal(embedder.vocabularySize, reference.vocabulary_size);
  const set = await embedder.embed(texts);
  assert.deepEqual([set.length, set.dimension, set.prompt, set.truncated.some(Boolean)], [texts.length, reference.vocabulary_size, null, false]);
  const streamed = [];
  for await (const one of embedder.embedStream(texts)) streamed.push(one);
  const joined = await Promise.all(texts.map((text) => embedder.embed([text])));
  for (const [at, { weights, tokens }] of reference.texts.entries()) {
    check(set.row(at), weights);
    check(streamed[at].vector, weights);
    check(joined[at].row(0), weights);
    assert.deepEqual([set.tokenCounts[at], streamed[at].tokens, streamed[at].index], [tokens, tokens, at]);
  }
  const few = await embedder.embed(texts, { topK: 3 });
  for (let at = 0; at < few.length; at++) {
    const { values } = few.row(at);
    const largest = [...set.row(at).values].sort((a, b) => b - a).slice(0, 3);
    assert.deepEqual([...values].sort((a, b) => b - a), largest);
  }
  assert.equal((await embedder.embedQuery("the dog")).prompt, "query");
  assert.equal((await embedder.embedPassages(texts)).length, texts.length);
  assert.equal((await embedder.embed([])).length, 0);
  assert.throws(() => set.row(texts.length), RangeError);
});

/** The weight of a token of a query in `routed`. */
const weightOf = (id) => (id % 8) / 4;

/** The same model behind a `Router`: its transformer in a folder, and a table with the weights of a query's tokens. */
function routed() {
  const all = files();
  const own = "document_0_MLMTransformer";
  const [pooled, table] = ["document_1_SpladePooling", "query_0_SparseStaticEmbedding"];
  const json = (value) => new TextEncoder().encode(JSON.stringify(value));
  const module = "sentence_transformers.sparse_encoder.models";
  const header = json({ weight: { dtype: "F32", shape: [reference.vocabulary_size], data_offsets: [0, 4 * reference.vocabulary_size] } });
  const weights = Float32Array.from({ length: reference.vocabulary_size }, (_, id) => weightOf(id));
  const size = new Uint8Array(BigUint64Array.of(BigInt(header.length)).buffer);
  const moved = new Map([
    ["config_sentence_transformers.json", all.get("config_sentence_transformers.json")],
    ["modules.json", json([{ idx: 0, name: "0", path: "", type: "sentence_transformers.models.Router" }])],
    ["router_config.json", json({
      types: { [own]: `${module}.MLMTransformer`, [pooled]: `${module}.SpladePooling`, [table]: `${module}.SparseStaticEmbedding` },
      structure: { document: [own, pooled], query: [table] },
      parameters: { default_route: "document" },
    })],
    [`${pooled}/config.json`, all.get("1_SpladePooling/config.json")],
    [`${table}/config.json`, json({ frozen: true })],
    [`${table}/tokenizer.json`, all.get("tokenizer.json")],
    [`${table}/model.safetensors`, Buffer.concat([size, header, new Uint8Array(weights.buffer)])],
  ]);
  for (const name of ["config.json", "tokenizer.json", "model.safetensors"]) moved.set(`${own}/${name}`, all.get(name));
  return moved;
}

/** Checks that a row is of a query that was looked up. */
function checkLookedUp({ indices, values }) {
  assert.ok(indices.length > 2);
  for (const [at, id] of indices.entries()) assert.equal(values[at], weightOf(id));
}

test("queries of a model with a table are looked up, and its passages are computed", async () => {
  const model = await SparseEmbedder.load(routed());
  const passages = await model.embedPassages(texts);
  for (const [at, { weights }] of reference.texts.entries()) check(passages.row(at), weights);
  const runs = async () => (await model.stats()).sessions.run.count;
  const before = await runs();
  const query = await model.embedQuery("the dog and the dog");
  checkLookedUp(query.row(0));
  assert.equal(await runs(), before);
  assert.equal(passages.searchOne(query, 1).length, 1);
  await model.dispose();
});

test("a search finds the largest products, and another model's vectors are refused", async () => {
  const index = await embedder.embed(texts);
  const product = (a, b) => a.reduce((sum, weight, at) => sum + weight * b[at], 0);
  for (const [at, { weights }] of reference.texts.entries()) {
    const wanted = reference.texts.map((other, place) => [place, product(weights, other.weights)]).sort(([, a], [, b]) => b - a);
    const hits = index.searchOne(await embedder.embed([texts[at]]), 2);
    assert.deepEqual(hits.map(({ index }) => index), wanted.slice(0, 2).map(([place]) => place));
    for (const [place, { score }] of hits.entries()) assert.ok(Math.abs(score - wanted[place][1]) <= 1e-4 * wanted[place][1]);
  }
  assert.throws(() => index.searchOne(index, 1), { kind: "NotOneQuery" });
  const other = await SparseEmbedder.load(files({ "1_SpladePooling/config.json": { pooling_strategy: "max", activation_function: "log1p_relu" } }));
  const query = await other.embedQuery("the dog");
  assert.throws(() => index.search(query, 1), { kind: "IncompatibleIndex", message: /pooling/ });
  await other.dispose();
});

test("words are read by people", async () => {
  const set = await embedder.embed(texts);
  const row = set.row(0);
  const words = await embedder.words(row);
  assert.equal(words.length, row.indices.length);
  const vocabulary = JSON.parse(readFileSync(join(folder, "tokenizer.json"), "utf8")).model.vocab;
  for (const [at, { index, token, weight }] of words.entries()) {
    assert.equal(vocabulary[token], index);
    assert.ok(at === 0 || words[at - 1].weight >= weight);
  }
  assert.deepEqual(await embedder.words(row, 2), words.slice(0, 2));
  const beyond = { indices: Uint32Array.of(reference.vocabulary_size), values: Float32Array.of(1) };
  await assert.rejects(embedder.words(beyond), { kind: "InvalidEmbeddings" });
});

test("what is wrong is said", async () => {
  for (const topK of [0, 1.5, "2"]) await assert.rejects(embedder.embed(texts, { topK }), { kind: "Config", message: /topK/ });
  await assert.rejects(embedder.embed(["\uD800"]), { kind: "InvalidText" });
  await assert.rejects(embedder.embedStream(texts, { role: "answer" }).next(), { kind: "Config", message: /role/ });
  await assert.rejects(SparseEmbedder.load(files({ "1_SpladePooling/config.json": { pooling_strategy: "mean" } })), { kind: "UnsupportedModel", message: /mean/ });
  await assert.rejects(Embedder.load(files()), { kind: "UnsupportedModel", message: /SparseEmbedder/ });
  const reason = { mine: true };
  await embedder.embed(texts, { signal: AbortSignal.abort(reason) }).then(() => assert.fail("it was answered"), (thrown) => assert.equal(thrown, reason));
});

test("inline, the same numbers", async () => {
  const config = { session: { deterministicCompute: true } };
  const [inline, usual] = [await Inline.load(files(), { config }), await SparseEmbedder.load(files(), { config })];
  const [one, other] = [await inline.embed(texts), await usual.embed(texts)];
  assert.deepEqual([one.indices, one.values, one.offsets], [other.indices, other.values, other.offsets]);
  await Promise.all([inline.dispose(), usual.dispose()]);
});

test("in a page a worker weighs words, and on a GPU where one is asked for", async (t) => {
  const two = routed();
  const origin = await serve((request, response, path) => {
    if (path === "/") return empty(response, HEADERS);
    if (path.startsWith("/routed/")) {
      const file = two.get(path.slice(8));
      return response.writeHead(file ? 200 : 404, { ...HEADERS, "content-length": file?.length ?? 0 }).end(request.method === "HEAD" ? undefined : file);
    }
    send(response, path.startsWith("/model/") ? join(folder, path.slice(7)) : join(js, path), HEADERS);
  });
  const page = await (await launch()).newPage();
  t.after(() => page.close());
  await page.goto(origin);
  const seen = await page.evaluate(async ({ texts, webgpu }) => {
    const { SparseEmbedder } = await import("/dist/index.js");
    const config = webgpu ? { providers: { executionProviders: ["webgpu"], webgpu: { softwareAdapter: true } } } : {};
    const embedder = await SparseEmbedder.load("/model/", { config });
    const set = await embedder.embed(texts);
    const rows = texts.map((_, at) => ({ indices: [...set.row(at).indices], values: [...set.row(at).values] }));
    const words = await embedder.words(set.row(0), 1);
    const result = { worker: embedder.worker, engine: embedder.provider().provider, rows, words };
    await embedder.dispose();
    // Nobody lists its files: the page asks for what its ways name.
    const routed = await SparseEmbedder.load("/routed/", { config });
    const [query, passage] = [await routed.embedQuery("the dog and the dog"), await routed.embedPassage(texts[0])];
    [result.query, result.passage] = [query, passage].map((set) => ({ indices: [...set.row(0).indices], values: [...set.row(0).values] }));
    await routed.dispose();
    return result;
  }, { texts, webgpu: WAY.webgpu });
  assert.equal(seen.worker, true);
  assert.match(seen.engine, WAY.webgpu ? /webgpu/i : /wasm/);
  for (const [at, row] of seen.rows.entries()) check(row, reference.texts[at].weights);
  assert.equal(typeof seen.words[0].token, "string");
  checkLookedUp(seen.query);
  check(seen.passage, reference.texts[0].weights);
});

test("a set is saved and opened, here and in Rust", async () => {
  const read = (name) => new Uint8Array(readFileSync(join(data, "embeddings", `${name}.safetensors`)));
  const file = read("sparse");
  const set = await SparseEmbeddings.load(file);
  assert.deepEqual(set.save(), file);
  const wanted = JSON.parse(readFileSync(join(data, "embeddings", "text-hits.json"), "utf8"))[0];
  for (const [query, hits] of set.search(set, 3).entries()) {
    assert.deepEqual(hits.map(({ index }) => index), wanted[query].map(({ index }) => index));
    hits.forEach(({ score }, at) => assert.ok(Math.abs(score - wanted[query][at].score) <= 1e-4, `${score} and ${wanted[query][at].score}`));
  }
  // What the model gives here is the same set, and finds the same in the file's.
  const own = await embedder.embedPassages(["the dog is an animal", "", "money in the bank", "a cat and a dog"]);
  assert.equal(own.search(set, 1).length, 4);
  const again = await SparseEmbeddings.load(own.save());
  assert.deepEqual([again.save(), again.model, [...again.offsets]], [own.save(), own.model, [...own.offsets]]);
  assert.deepEqual([again.truncated, [...again.tokenCounts], again.prompt, again.fingerprint], [own.truncated, [...own.tokenCounts], own.prompt, own.fingerprint]);
  const none = await SparseEmbeddings.load((await embedder.embedPassages([])).save());
  assert.equal(none.length, 0);
  const shifted = new Uint8Array(file.length + 1);
  shifted.set(file, 1);
  assert.deepEqual((await SparseEmbeddings.load(shifted.subarray(1))).save(), file);
  assert.deepEqual((await SparseEmbeddings.load(new Blob([file]))).save(), file);
  const text = new TextDecoder("latin1").decode(file);
  const damaged = (from, to) => Uint8Array.from(text.replace(from, to), (one) => one.charCodeAt(0));
  for (const [from, to] of [['"values"', '"Values"'], ['"dtype":"F32"', '"dtype":"I32"'], ["word_counts", "word_Counts"], ['\\"format_version\\":4', '\\"format_version\\":5']]) {
    await assert.rejects(SparseEmbeddings.load(damaged(from, to)), { kind: "InvalidEmbeddings" }, from);
  }
  for (let cut = 0; cut < file.length; cut += 7) await assert.rejects(SparseEmbeddings.load(file.slice(0, cut)), { kind: "InvalidEmbeddings" });
  // A weight that is not above 0, and ids that do not rise.
  const at = (name) => 8 + Number(new DataView(file.buffer).getBigUint64(0, true)) + JSON.parse(text.slice(8, 8 + Number(new DataView(file.buffer).getBigUint64(0, true))))[name].data_offsets[0];
  for (const [name, value] of [["values", -1], ["values", NaN], ["indices", 0xffffffff]]) {
    const bad = file.slice();
    const view = new DataView(bad.buffer);
    if (name === "values") view.setFloat32(at(name), value, true);
    else view.setUint32(at(name), value, true);
    await assert.rejects(SparseEmbeddings.load(bad), { kind: "InvalidEmbeddings" }, `${name} ${value}`);
  }
  await assert.rejects(SparseEmbeddings.load(read("native")), { kind: "InvalidEmbeddings", message: /Embeddings\.load/ });
  await assert.rejects(Embeddings.load(file), { kind: "InvalidEmbeddings", message: /SparseEmbeddings\.load/ });
});
