// The built package in node, on the real model: what loading it takes, and the bits that every
// machine gives. Run by `cargo xtask test npm`, which says where the model is.
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const js = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = process.env.ISOVEC_TEST_MODEL;
const skip = folder ? false : "ISOVEC_TEST_MODEL does not name all-MiniLM-L6-v2";
const WEIGHTS = "model.safetensors";
const files = ["config.json", "tokenizer.json", "modules.json", "sentence_bert_config.json", "1_Pooling/config.json", WEIGHTS];

const { Embedder } = await import("../dist/index.js");

function load(config) {
  const contents = files.map((file) => [file, new Uint8Array(readFileSync(join(folder, file)))]);
  return Embedder.load(new Map(contents), { config });
}

// The first, as the memory never shrinks.
test("loading and embedding take little more memory than the weights", { skip: skip || (process.env.ISOVEC_REQUIRE_NATIVE ? "there is no memory of WebAssembly" : false) }, async () => {
  const weights = statSync(join(folder, WEIGHTS)).size;
  const embedder = await load({});
  await embedder.embed(["a first text"]);
  const bytes = (await embedder.stats()).memory.wasmBytes;
  assert.ok(bytes > weights && bytes <= 1.3 * weights, `${bytes} bytes for weights of ${weights}`);
  await embedder.dispose();
});

test("the bits are those of every machine", { skip }, async () => {
  const source = readFileSync(join(dirname(dirname(js)), "tests", "parity", "src", "bits.rs"), "utf8");
  const texts = readFileSync(join(dirname(dirname(js)), "tests", "data", "reference", "texts.txt"), "utf8").trimEnd().split("\n");
  for (const [name, dtype] of [["MINILM", "f32"], ["MINILM_INT8", "int8"], ["MINILM_INT8_FAST", "int8-fast"]]) {
    const [, bits] = source.match(new RegExp(`${name}: u64 = (0x[0-9a-f_]+);`));
    for (const size of [1, 32]) {
      const embedder = await load({ model: { dtype }, session: { deterministicCompute: true }, batching: { maxBatchSize: size, maxBatchTokens: 1 << 14 } });
      const hash = fnv(await embedder.embed(texts));
      assert.equal(`0x${hash.toString(16)}`, bits.replaceAll("_", ""), `${dtype}, ${size} texts at once`);
      await embedder.dispose();
    }
  }
});

test("the first examples find what they say that they find", { skip }, async () => {
  const embedder = await load({});
  for (const name of ["README.md", "docs/getting-started.md", "bindings/js/README.md"]) {
    const text = readFileSync(join(dirname(dirname(js)), name), "utf8");
    const [example] = /^const passages = [^]*?^```$/m.exec(text);
    const passages = [.../passages = \[([^]*?)\];/.exec(example)[1].matchAll(/"(.*?)"/g)].map(([, passage]) => passage);
    const [, query] = /embedQuery\("(.*?)"\)/.exec(example);
    const hits = (await embedder.embedPassages(passages)).searchOne(await embedder.embedQuery(query), passages.length);
    const said = [...example.matchAll(/\/\/ (0\.\d+) (.*)$/gm)].map(([, score, passage]) => [score, passage]);
    assert.ok(said.length > 0, `${name} says what it prints`);
    assert.deepEqual(said, said.map(([score], rank) => [hits[rank].score.toFixed(score.length - 2), passages[hits[rank].index]]), name);
    const [first, second] = hits;
    // By far: an example that is nearly wrong convinces nobody.
    assert.ok(first.score > 3 * second.score, `${name}: ${first.score} and ${second.score}`);
  }
  await embedder.dispose();
});

/** FNV-1a over the bits of all vectors, as `bits.rs` computes it. */
function fnv(vectors) {
  let state = 0xcbf29ce484222325n;
  for (const row of vectors) {
    for (const byte of new Uint8Array(row.buffer, row.byteOffset, row.byteLength)) {
      state = BigInt.asUintN(64, (state ^ BigInt(byte)) * 0x100000001b3n);
    }
  }
  return state;
}
