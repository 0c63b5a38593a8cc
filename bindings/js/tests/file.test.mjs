// The embeddings file between the SDKs: what the native one wrote is read here, what is written here
// is what it reads (tests/embeddings_file.rs holds the other half), and damage is refused.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Embeddings, cosine, topK } from "../dist/index.js";
import { data } from "./site.mjs";

const file = (name) => new Uint8Array(readFileSync(join(data, "embeddings", name)));
const native = () => Embeddings.load(file("native.safetensors"));
const expected = JSON.parse(readFileSync(join(data, "embeddings", "hits.json"), "utf8"));
const kind = (name) => (error) => error.name === "IsovecError" && error.kind === name;

test("a native file is opened, and finds what it finds there, to the last bit", async () => {
  const set = await native();
  assert.deepEqual([set.length, set.labels[3], set.metric], [5, "Δοκιμή: größer, 深い海, 🐈", "cosine"]);
  assert.deepEqual(set.search(set, 3), expected);
  assert.deepEqual(topK(set.row(0), set, 3), expected[0]);
  assert.ok(Math.abs(cosine(set.row(1), set.row(1)) - 1) < 1e-7);
});

test("what is written is what the native SDK's tests read", async () => {
  assert.deepEqual((await native()).save(), file("npm.safetensors"));
});

test("vectors are viewed where they lie, also in the middle of something larger", async () => {
  const bytes = file("native.safetensors");
  const set = await Embeddings.load(bytes);
  assert.equal(set.values.buffer, bytes.buffer);
  const shifted = new Uint8Array(bytes.length + 1);
  shifted.set(bytes, 1);
  assert.deepEqual((await Embeddings.load(shifted.subarray(1))).values, set.values);
  assert.deepEqual((await Embeddings.load(new Blob([bytes]))).values, set.values);
});

test("sets are joined, and strangers are not", async () => {
  const set = await native();
  const both = Embeddings.concat([set, set]);
  assert.deepEqual([both.length, both.labels.length, both.row(7)], [10, 10, set.row(2)]);
  assert.deepEqual((await Embeddings.load(both.save())).search(set, 1).map(([hit]) => hit.index), [0, 1, 2, 3, 4]);
  const text = new TextDecoder("latin1").decode(file("native.safetensors"));
  const stranger = await Embeddings.load(Uint8Array.from(text.replace("mean", "maxx"), (one) => one.charCodeAt(0)));
  for (const call of [() => set.search(stranger, 1), () => Embeddings.concat([set, stranger])]) {
    assert.throws(call, (error) => kind("IncompatibleIndex")(error) && /pooling: mean here, maxx there/.test(error.message));
  }
  assert.throws(() => set.withLabels(["one"]), kind("InvalidEmbeddings"));
  assert.throws(() => Embeddings.concat([]), kind("InvalidEmbeddings"));
  assert.throws(() => set.row(5), RangeError);
});

test("no damage is read as something", async () => {
  const whole = file("native.safetensors");
  const same = await native();
  let refused = 0;
  for (let at = 0; at < whole.length; at++) {
    await assert.rejects(Embeddings.load(whole.slice(0, at)), kind("InvalidEmbeddings"), `cut at ${at}`);
    const damaged = whole.slice();
    damaged[at] ^= 0x80;
    // A vector, a label or a name may be another one after that; sizes, types and counts may not.
    const read = await Embeddings.load(damaged).catch((error) => assert.ok(kind("InvalidEmbeddings")(error), String(error)) ?? refused++);
    if (read instanceof Embeddings) assert.deepEqual([read.length, read.dimension, read.labels.length], [same.length, same.dimension, 5], `byte ${at}`);
  }
  assert.ok(refused > 500, `${refused} of ${whole.length} damaged files were refused`);
});

test("ties keep their order, and what is no number comes last", () => {
  const rows = [[1, 0], [NaN, 0], [2, 0], [0, 1], [3, 0]].map((row) => Float32Array.from(row));
  const hits = topK(Float32Array.of(1, 0), rows, 9);
  assert.deepEqual(hits.map(({ index }) => index), [0, 2, 4, 3, 1]);
  assert.deepEqual(topK(Float32Array.of(1, 0), rows, 2).map(({ index }) => index), [0, 2]);
  assert.deepEqual(topK(Float32Array.of(1, 0), rows, 0), []);
  assert.throws(() => topK(Float32Array.of(1), rows, 1), kind("IncompatibleIndex"));
  assert.throws(() => topK(Float32Array.of(1, 0), rows, -1), RangeError);
});
