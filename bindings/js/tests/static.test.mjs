// Models of static embeddings in the portable engine's module: Model2Vec's files, and those of sentence-transformers, whose
// table is the tiny model's own. Run by `cargo xtask test npm`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { js, tiny } from "./site.mjs";

const { Embedder } = await import(join(js, "dist", "index.js"));
const { texts } = JSON.parse(readFileSync(join(tiny, "reference.json"), "utf8"));
const tokenizer = new Uint8Array(readFileSync(join(tiny, "tokenizer.json")));
const UNKNOWN = 1;
const bytesOf = (value) => new TextEncoder().encode(JSON.stringify(value));

/** The tiny model's table of words: its rows, one after another, and its extents. */
function words() {
  const file = readFileSync(join(tiny, "model.safetensors"));
  const size = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(8, 8 + size).toString());
  const name = Object.keys(header).find((name) => name.endsWith("embeddings.word_embeddings.weight"));
  const [from, to] = header[name].data_offsets;
  const bytes = Uint8Array.from(file.subarray(8 + size + from, 8 + size + to));
  return { values: new Float32Array(bytes.buffer), shape: header[name].shape };
}

/** A file of tensors. */
function safetensors(tensors) {
  const header = {};
  let end = 0;
  for (const [name, { dtype, shape, values }] of Object.entries(tensors)) {
    header[name] = { dtype, shape, data_offsets: [end, (end += values.byteLength)] };
  }
  let json = JSON.stringify(header);
  json += " ".repeat((8 - (json.length % 8)) % 8);
  const file = Buffer.alloc(8 + json.length + end);
  file.writeBigUInt64LE(BigInt(json.length), 0);
  file.write(json, 8);
  for (const [name, { values }] of Object.entries(tensors)) {
    Buffer.from(values.buffer, values.byteOffset, values.byteLength).copy(file, 8 + json.length + header[name].data_offsets[0]);
  }
  return new Uint8Array(file);
}

const { values: table, shape } = words();
const [count, width] = shape;
/** Tokens share the first rows, each with a factor of its own. */
const mapping = Int32Array.from({ length: count }, (_, id) => (id * 7) % 50);
const weights = Float32Array.from({ length: count }, (_, id) => 0.1 + (id % 11));

/** The vector of a text of these tokens, in double precision. */
function vector(ids, { shared }) {
  const sum = new Float64Array(width);
  for (const id of ids) {
    const [row, factor] = shared ? [mapping[id], weights[id]] : [id, 1];
    for (let at = 0; at < width; at++) sum[at] += factor * table[row * width + at];
  }
  const length = Math.hypot(...sum);
  return Array.from(sum, (x) => x / length);
}

const rows = { dtype: "F32", shape, values: table };
const model2vec = (shared) => ({
  "config.json": bytesOf({ model_type: "model2vec", normalize: true }),
  "tokenizer.json": tokenizer,
  "model.safetensors": safetensors({
    embeddings: rows,
    ...(shared && { mapping: { dtype: "I32", shape: [count], values: mapping }, weights: { dtype: "F32", shape: [count], values: weights } }),
  }),
});
const nested = {
  "modules.json": bytesOf([
    { path: "0_StaticEmbedding", type: "sentence_transformers.models.StaticEmbedding" },
    { path: "1_Normalize", type: "sentence_transformers.models.Normalize" },
  ]),
  "0_StaticEmbedding/tokenizer.json": tokenizer,
  "0_StaticEmbedding/model.safetensors": safetensors({ "embedding.weight": rows }),
};

/** Texts that the reference does not cut, with the ids that are looked up. */
function lookedUp(known) {
  const whole = texts.filter(({ ids }) => ids.length < 64);
  const own = whole.map(({ text, ids }) => ({ text, ids: ids.slice(1, -1).filter((id) => !known || id !== UNKNOWN) }));
  return own.filter(({ ids }) => ids.length > 0);
}

async function agrees(embedder, { known, shared }) {
  const expected = lookedUp(known);
  assert.ok(expected.length > 10);
  const found = await embedder.embed(expected.map(({ text }) => text));
  for (const [at, { text, ids }] of expected.entries()) {
    const wanted = vector(ids, { shared });
    found.row(at).forEach((x, column) => assert.ok(Math.abs(x - wanted[column]) <= 1e-6, `${text}: ${x}, not ${wanted[column]}`));
  }
}

for (const shared of [false, true]) {
  test(`Model2Vec's files${shared ? ", tokens sharing rows" : ""}`, async () => {
    const embedder = await Embedder.load(model2vec(shared), { worker: false });
    await agrees(embedder, { known: true, shared });
    await assert.rejects(embedder.embed(["a dog", "\u{6771}\u{4eac}"]), { kind: "NoTokens" });
    embedder.dispose();
  });
}

test("the files of sentence-transformers, given and fetched", async () => {
  const given = await Embedder.load(nested, { worker: false });
  await agrees(given, { known: false, shared: false });
  const folder = "https://models.test/static/";
  const asked = [];
  const fetch = async (url) => {
    const name = decodeURIComponent(String(url).slice(folder.length));
    asked.push(name);
    const bytes = nested[name];
    return new Response(bytes ?? null, { status: bytes ? 200 : 404 });
  };
  const fetched = await Embedder.load(folder, { fetch, worker: false, cache: "off" });
  await agrees(fetched, { known: false, shared: false });
  assert.deepEqual(fetched.fingerprint(), given.fingerprint());
  assert.equal(new Set(asked).size, asked.length, `something was asked for twice: ${asked.join(", ")}`);
  for (const embedder of [given, fetched]) embedder.dispose();
});

test("a mapping to rows that are not there is named", async () => {
  const files = model2vec(true);
  files["model.safetensors"] = safetensors({ embeddings: rows, mapping: { dtype: "I32", shape: [2], values: Int32Array.of(0, count) } });
  await assert.rejects(Embedder.load(files, { worker: false }), (error) => error.kind === "Weight" && error.message.includes("mapping"));
});
