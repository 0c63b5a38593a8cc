// Tokens get vectors: in node and in headless Chromium, those of an implementation at float64 on the seeded model of late interaction.
// Run by `cargo xtask test npm`, or `npm test` after `npm run build`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { Embedder, Embeddings, MultiVectorEmbedder, MultiVectorEmbeddings } from "../dist/index.js";
import { MultiVectorEmbedder as Inline } from "../dist/inline.js";
import { HEADERS, WAY, colbert as folder, data, js, launch, page as empty, send, serve } from "./site.mjs";

/** The largest difference of two components. */
const NEAR = 1e-6;
const FILES = ["config.json", "config_sentence_transformers.json", "tokenizer.json", "tokenizer_config.json", "modules.json", "1_Dense/config.json", "1_Dense/model.safetensors", "model.safetensors"];
const reference = JSON.parse(readFileSync(join(folder, "reference.json"), "utf8"));
const texts = reference.passages.map(({ text }) => text);

function files(change = {}) {
  const files = new Map(FILES.map((name) => [name, new Uint8Array(readFileSync(join(folder, name)))]));
  for (const [name, content] of Object.entries(change)) files.set(name, new TextEncoder().encode(JSON.stringify(content)));
  return files;
}

function check(values, wanted) {
  const flat = wanted.flat();
  assert.equal(values.length, flat.length);
  for (const [at, value] of flat.entries()) assert.ok(Math.abs(values[at] - value) <= NEAR, `component ${at}: ${values[at]} and ${value}`);
}

const embedder = await MultiVectorEmbedder.load(files());
after(() => embedder.dispose());

test("vectors are those of the reference, on every way in", async () => {
  const set = await embedder.embedPassages(texts);
  // The last is longer than the model's passages.
  assert.deepEqual([set.length, set.dimension, [...set.truncated].map(Boolean)], [texts.length, embedder.dimension, [false, false, true]]);
  const streamed = [];
  for await (const one of embedder.embedStream(texts)) streamed.push(one);
  const joined = await Promise.all(texts.map((text) => embedder.embedPassage(text)));
  for (const [at, { vectors }] of reference.passages.entries()) {
    check(set.row(at), vectors);
    check(streamed[at].vectors, vectors);
    check(joined[at].row(0), vectors);
    assert.deepEqual([streamed[at].tokens, streamed[at].index], [set.tokenCounts[at], at]);
  }
  const query = await embedder.embedQuery(reference.query.text);
  check(query.row(0), reference.query.vectors);
  check((await embedder.embedQueries([reference.query.text, "a"])).row(0), reference.query.vectors);
  assert.equal((await embedder.embedPassages([])).length, 0);
  assert.throws(() => set.row(texts.length), RangeError);
});

test("a search finds the highest scores, and another model's vectors are refused", async () => {
  const index = await embedder.embedPassages(texts);
  const query = await embedder.embedQuery(reference.query.text);
  const wanted = reference.passages.map(({ score }, place) => [place, score]).sort(([, a], [, b]) => b - a);
  const hits = index.searchOne(query, 2);
  assert.deepEqual(hits.map(({ index }) => index), wanted.slice(0, 2).map(([place]) => place));
  for (const [at, { score }] of hits.entries()) assert.ok(Math.abs(score - wanted[at][1]) <= 1e-5);
  assert.throws(() => index.searchOne(index, 1), { kind: "NotOneQuery" });
  const settings = JSON.parse(readFileSync(join(folder, "config_sentence_transformers.json"), "utf8"));
  const other = await MultiVectorEmbedder.load(files({ "config_sentence_transformers.json": { ...settings, query_length: 11 } }));
  const foreign = await other.embedQuery("the dog");
  assert.throws(() => index.search(foreign, 1), { kind: "IncompatibleIndex", message: /late interaction/ });
  await other.dispose();
});

test("what is wrong is said", async () => {
  await assert.rejects(embedder.embedPassages(["\uD800"]), { kind: "InvalidText" });
  await assert.rejects(embedder.embedStream(texts, { role: "answer" }).next(), { kind: "Config", message: /role/ });
  await assert.rejects(Embedder.load(files()), { kind: "UnsupportedModel", message: /MultiVectorEmbedder/ });
  const reason = { mine: true };
  await embedder.embedPassages(texts, { signal: AbortSignal.abort(reason) }).then(() => assert.fail("it was answered"), (thrown) => assert.equal(thrown, reason));
});

test("inline, the same numbers", async () => {
  const config = { session: { deterministicCompute: true } };
  const [inline, usual] = [await Inline.load(files(), { config }), await MultiVectorEmbedder.load(files(), { config })];
  const [one, other] = [await inline.embedPassages(texts), await usual.embedPassages(texts)];
  assert.deepEqual([one.values, one.offsets], [other.values, other.offsets]);
  await Promise.all([inline.dispose(), usual.dispose()]);
});

test("in a page a worker computes, and a GPU where one is asked for", async (t) => {
  const origin = await serve((request, response, path) => {
    if (path === "/") return empty(response, HEADERS);
    send(response, path.startsWith("/model/") ? join(folder, path.slice(7)) : join(js, path), HEADERS);
  });
  const page = await (await launch()).newPage();
  t.after(() => page.close());
  await page.goto(origin);
  const seen = await page.evaluate(async ({ texts, query, webgpu }) => {
    const { MultiVectorEmbedder } = await import("/dist/index.js");
    const config = webgpu ? { providers: { executionProviders: ["webgpu"], webgpu: { softwareAdapter: true } } } : {};
    const embedder = await MultiVectorEmbedder.load("/model/", { config });
    const set = await embedder.embedPassages(texts);
    const rows = texts.map((_, at) => [...set.row(at)]);
    const asked = [...(await embedder.embedQuery(query)).row(0)];
    const result = { worker: embedder.worker, engine: embedder.provider().provider, rows, asked };
    await embedder.dispose();
    return result;
  }, { texts, query: reference.query.text, webgpu: WAY.webgpu });
  assert.equal(seen.worker, true);
  assert.match(seen.engine, WAY.webgpu ? /webgpu/i : /wasm/);
  for (const [at, row] of seen.rows.entries()) check(row, reference.passages[at].vectors);
  check(seen.asked, reference.query.vectors);
});

test("a set is saved and opened, here and in Rust", async () => {
  const read = (name) => new Uint8Array(readFileSync(join(data, "embeddings", `${name}.safetensors`)));
  const file = read("tokens");
  const set = await MultiVectorEmbeddings.load(file);
  assert.deepEqual(set.save(), file);
  const wanted = JSON.parse(readFileSync(join(data, "embeddings", "text-hits.json"), "utf8"))[1];
  for (const [query, hits] of set.search(set, 3).entries()) {
    assert.deepEqual(hits.map(({ index }) => index), wanted[query].map(({ index }) => index));
    hits.forEach(({ score }, at) => assert.ok(Math.abs(score - wanted[query][at].score) <= 1e-4, `${score} and ${wanted[query][at].score}`));
  }
  // What the model gives here is the same set, and finds the same in the file's.
  const own = await embedder.embedPassages(["the dog is an animal", "", "money in the bank", "a cat and a dog"]);
  assert.equal(own.search(set, 1).length, 4);
  const again = await MultiVectorEmbeddings.load(own.save());
  assert.deepEqual([again.save(), again.model, [...again.offsets]], [own.save(), own.model, [...own.offsets]]);
  assert.deepEqual([again.truncated, [...again.tokenCounts], again.prompt, again.fingerprint], [own.truncated, [...own.tokenCounts], own.prompt, own.fingerprint]);
  const none = await MultiVectorEmbeddings.load((await embedder.embedPassages([])).save());
  assert.equal(none.length, 0);
  const shifted = new Uint8Array(file.length + 1);
  shifted.set(file, 1);
  assert.deepEqual((await MultiVectorEmbeddings.load(shifted.subarray(1))).save(), file);
  assert.deepEqual((await MultiVectorEmbeddings.load(new Blob([file]))).save(), file);
  const text = new TextDecoder("latin1").decode(file);
  const damaged = (from, to) => Uint8Array.from(text.replace(from, to), (one) => one.charCodeAt(0));
  for (const [from, to] of [['"embeddings"', '"Embeddings"'], ['"dtype":"F32"', '"dtype":"I32"'], ["vector_counts", "vector_Counts"], ['\\"format_version\\":3', '\\"format_version\\":5']]) {
    await assert.rejects(MultiVectorEmbeddings.load(damaged(from, to)), { kind: "InvalidEmbeddings" }, from);
  }
  for (let cut = 0; cut < file.length; cut += 7) await assert.rejects(MultiVectorEmbeddings.load(file.slice(0, cut)), { kind: "InvalidEmbeddings" });
  await assert.rejects(MultiVectorEmbeddings.load(read("native")), { kind: "InvalidEmbeddings", message: /Embeddings\.load/ });
  await assert.rejects(Embeddings.load(file), { kind: "InvalidEmbeddings", message: /MultiVectorEmbeddings\.load/ });
});

test("a compact set has the bytes of Rust's, and finds what it finds", async () => {
  const read = (name) => new Uint8Array(readFileSync(join(data, "embeddings", `${name}.safetensors`)));
  const set = await MultiVectorEmbeddings.load(read("tokens"));
  assert.deepEqual([set.form, set.values.length], [undefined, set.offsets.at(-1) * set.dimension]);
  const wanted = JSON.parse(readFileSync(join(data, "embeddings", "text-hits.json"), "utf8"));
  for (const [form, place] of [["int8", 2], ["binary", 3]]) {
    const file = read(`tokens-${form}`);
    const compact = set.compact(form);
    assert.deepEqual(compact.save(), file);
    const opened = await MultiVectorEmbeddings.load(file);
    assert.deepEqual([opened.save(), opened.form, opened.values, opened.length], [file, form, undefined, set.length]);
    for (const own of [compact, opened]) {
      for (const [query, hits] of own.search(set, 3).entries()) {
        assert.deepEqual(hits.map(({ index }) => index), wanted[place][query].map(({ index }) => index));
        hits.forEach(({ score }, at) => assert.ok(Math.abs(score - wanted[place][query][at].score) <= 1e-4, `${score} and ${wanted[place][query][at].score}`));
      }
    }
    for (let at = 0; at < set.length; at++) {
      const [row, stood] = [set.row(at), compact.row(at)];
      assert.equal(stood.length, row.length);
      const [most, unit] = [row.reduce((most, value) => Math.max(most, Math.abs(value)), 0), 1 / Math.sqrt(set.dimension)];
      for (const [place, value] of row.entries()) {
        if (form === "int8") assert.ok(Math.abs(stood[place] - value) <= (most / 127) * 0.51);
        else assert.ok(Math.abs(stood[place] - (value > 0 ? unit : -unit)) <= 1e-7);
      }
    }
    // What codes stand for has these codes again.
    assert.deepEqual(opened.compact(form).save(), file);
    for (let cut = 0; cut < file.length; cut += 7) await assert.rejects(MultiVectorEmbeddings.load(file.slice(0, cut)), { kind: "InvalidEmbeddings" });
    const text = new TextDecoder("latin1").decode(file);
    const damaged = (from, to) => Uint8Array.from(text.replace(from, to), (one) => one.charCodeAt(0));
    const changes = form === "int8" ? [['"scales"', '"Scales"'], ['"I8"', '"U8"']] : [['"embeddings":{"dtype":"U8"', '"embeddings":{"dtype":"I8"'], ["vector_counts", "vector_Counts"]];
    for (const [from, to] of changes) await assert.rejects(MultiVectorEmbeddings.load(damaged(from, to)), { kind: "InvalidEmbeddings" }, from);
  }
  assert.throws(() => set.compact("int4"), { kind: "Config", message: /int4/ });
  // A scale that is none, and a number of vectors that is another.
  const file = read("tokens-int8");
  const header = 8 + Number(new DataView(file.buffer).getBigUint64(0, true));
  const scales = file.slice();
  new DataView(scales.buffer).setFloat32(header, -1, true);
  await assert.rejects(MultiVectorEmbeddings.load(scales), { kind: "InvalidEmbeddings", message: /scale/ });
  const empty = (await embedder.embedPassages([])).compact("binary");
  assert.equal((await MultiVectorEmbeddings.load(empty.save())).length, 0);
});
