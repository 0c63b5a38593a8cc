// Compact sets between the SDKs: codes, files and hits are those that the native one gave (tests/whole/embeddings_file.rs holds the
// other half), and damage is refused.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CompactEmbeddings, Embeddings, fuse } from "../dist/index.js";
import { data } from "./site.mjs";

const file = (name) => new Uint8Array(readFileSync(join(data, "embeddings", name)));
const native = () => Embeddings.load(file("native.safetensors"));
/** Rust writes the shortest text of a number in f32. */
const expected = JSON.parse(readFileSync(join(data, "embeddings", "compact-hits.json"), "utf8"), (key, value) => (key === "score" ? Math.fround(value) : value));
const kind = (name) => (error) => error.name === "IsovecError" && error.kind === name;

/** A set of one of its vectors. */
function rowOf(set, row) {
  return new Embeddings({ values: set.row(row).slice(), dimension: set.dimension, tokenCounts: set.tokenCounts.slice(row, row + 1), truncated: new Uint8Array(1), fingerprint: set.fingerprint, metric: set.metric, model: set.model, prompt: null, labels: undefined });
}

for (const [at, form] of ["int8", "binary"].entries()) {
  test(`a set in ${form} has the native file's bytes and hits`, async () => {
    const set = await native();
    const compact = set.compact(form);
    assert.deepEqual(compact.save(), file(`${form}.safetensors`));
    const read = await CompactEmbeddings.load(file(`${form}.safetensors`));
    for (const own of [compact, read]) {
      assert.deepEqual([own.form, own.length, own.dimension, own.labels], [form, set.length, set.dimension, set.labels]);
      assert.deepEqual(own.search(set, 3), expected[at]);
      assert.deepEqual(own.searchOne(rowOf(set, 2), 3), expected[at][2]);
    }
  });

  test(`no cut of a file in ${form} is read as something`, async () => {
    const whole = file(`${form}.safetensors`);
    for (let length = 0; length < whole.length; length++) await assert.rejects(CompactEmbeddings.load(whole.slice(0, length)), kind("InvalidEmbeddings"), `cut at ${length}`);
    await assert.rejects(Embeddings.load(whole), (error) => kind("InvalidEmbeddings")(error) && /CompactEmbeddings/.test(error.message));
  });
}

test("what a file says and does not hold is refused", async () => {
  const replaced = (name, from, to) => Uint8Array.from(new TextDecoder("latin1").decode(file(name)).replace(from, to), (one) => one.charCodeAt(0));
  const refused = (bytes, words) => assert.rejects(CompactEmbeddings.load(bytes), (error) => kind("InvalidEmbeddings")(error) && words.test(error.message));
  const { dimension } = await CompactEmbeddings.load(file("int8.safetensors"));
  const size = `dimension\\":${dimension}`;
  await refused(replaced("int8.safetensors", size, `dimension\\":${dimension + 1}`), /components take/);
  await refused(replaced("int8.safetensors", size, size.replace("n", "m")), /how many components/);
  await refused(replaced("int8.safetensors", '"scales"', '"scaled"'), /not U8/);
  await refused(file("native.safetensors"), /Embeddings.load/);
  const bytes = file("int8.safetensors");
  const start = 8 + Number(new DataView(bytes.buffer).getBigUint64(0, true));
  for (const scale of [NaN, Infinity, -1]) {
    new DataView(bytes.buffer).setFloat32(start, scale, true);
    await refused(bytes, /no scale/);
  }
});

test("hits are scored again, and strangers are refused", async () => {
  const set = await native();
  const query = rowOf(set, 1);
  const all = set.searchOne(query, 5);
  const some = all.map(({ index }) => ({ index, score: 0 })).reverse();
  assert.deepEqual(set.rescored(query, some, 2), all.slice(0, 2));
  assert.deepEqual(set.compact("int8").rescored(query, some, 3), expected[0][1]);
  assert.throws(() => set.rescored(query, [{ index: 5, score: 1 }], 1), (error) => kind("InvalidEmbeddings")(error) && /5 rows/.test(error.message));
  assert.throws(() => set.compact("int8").searchOne(set, 1), kind("NotOneQuery"));
  assert.throws(() => set.compact("int4"), kind("Config"));
  const text = new TextDecoder("latin1").decode(file("native.safetensors"));
  const stranger = await Embeddings.load(Uint8Array.from(text.replace("mean", "maxx"), (one) => one.charCodeAt(0)));
  assert.throws(() => set.compact("binary").search(stranger, 1), kind("IncompatibleIndex"));
  const far = new Embeddings({ ...rowOf(set, 0), truncated: new Uint8Array(1), prompt: null, metric: "manhattan" });
  assert.throws(() => far.compact("int8"), kind("InvalidEmbeddings"));
});

test("rankings are joined by reciprocal rank", () => {
  const ranking = (...rows) => rows.map((index) => ({ index, score: 0 }));
  const fused = fuse([ranking(4, 7), ranking(7, 9)], 9);
  assert.deepEqual(fused, [{ index: 7, score: Math.fround(1 / 61 + 1 / 62) }, { index: 4, score: Math.fround(1 / 61) }, { index: 9, score: Math.fround(1 / 62) }]);
  assert.deepEqual(fuse([ranking(5, 1), ranking(1, 5)], 1).map(({ index }) => index), [1]);
  assert.deepEqual(fuse([], 5), []);
});
