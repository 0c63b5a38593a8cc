// The build native in node: which build computes and why, threads, workers of node, and the ends of programs. Run by
// `cargo xtask test node`, which says where the add-on is; other tests of programs are in bindings/js/tests.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { Classifier, Embedder, ImageClassifier } from "../../js/dist/index.js";
import { CLASSIFIER_FILES, FILES, classifier, data, js, tiny } from "../../js/tests/site.mjs";

const addon = process.env.ISOVEC_NATIVE;
const index = pathToFileURL(join(js, "dist", "index.js")).href;
const read = (folder, names) => new Map(names.map((name) => [name, new Uint8Array(readFileSync(join(folder, name)))]));
const load = (options) => Embedder.load(read(tiny, FILES), options);
const built = (embedder) => embedder.effectiveConfig().find(({ name }) => name === "build");
const many = Array.from({ length: 4000 }, (_, at) => `text number ${at} that takes a moment to be embedded`);
const folder = mkdtempSync(join(tmpdir(), "isovec-node-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a program of node, and gives what it printed. It has to end by itself. */
function program(code, env = {}) {
  const file = join(folder, "program.mjs");
  writeFileSync(file, `import { Embedder } from ${JSON.stringify(index)};\nconst folder = ${JSON.stringify(tiny)};\n${code}`);
  const ran = spawnSync(process.execPath, [file], { env: { ...process.env, ISOVEC_REQUIRE_NATIVE: "", ...env }, encoding: "utf8", timeout: 60_000 });
  assert.equal(ran.signal, null, `it did not end\n${ran.stderr}`);
  return ran;
}

test("the add-on computes where it is there, and a build can be asked for", async () => {
  for (const options of [{}, { build: "native" }]) {
    const embedder = await load(options);
    assert.deepEqual([embedder.build, embedder.worker, built(embedder)], ["native", false, undefined]);
    assert.equal(embedder.provider().engine, "portable");
    await embedder.dispose();
  }
  await assert.rejects(load({ build: "native", worker: true }), { kind: "EngineUnavailable" });
  const wasm = await load({ build: "simd128" });
  assert.equal(wasm.build, "simd128");
  const [native, exact] = [await load({ config: { session: { deterministicCompute: true } } }), await load({ build: "simd128", config: { session: { deterministicCompute: true } } })];
  const texts = ["one", "and another text", ""];
  assert.deepEqual((await native.embed(texts)).values, (await exact.embed(texts)).values);
  assert.deepEqual(native.fingerprint().identity, exact.fingerprint().identity);
  for (const one of [wasm, native, exact]) await one.dispose();
});

test("without an add-on that can be used wasm computes, and says why", () => {
  const other = join(folder, "other.cjs");
  writeFileSync(other, 'exports.version = () => "0.0.1";');
  for (const [path, why] of [[join(folder, "none.node"), /none\.node/], [other, /of version 0\.0\.1/]]) {
    const code = `const embedder = await Embedder.load(folder);
console.log(JSON.stringify([embedder.build, embedder.effectiveConfig().find(({ name }) => name === "build").why]));
await Embedder.load(folder, { build: "native" }).catch(({ kind, message }) => console.log(JSON.stringify([kind, message])));`;
    const { stdout, stderr } = program(code, { ISOVEC_NATIVE: path });
    const [[build, said], [kind, message]] = stdout.trim().split("\n").map((line) => JSON.parse(line));
    assert.ok(["relaxed", "simd128"].includes(build) && why.test(said), stdout + stderr);
    assert.ok(kind === "EngineUnavailable" && why.test(message), stdout);
    const required = program("await Embedder.load(folder).catch(({ kind }) => console.log(kind));", { ISOVEC_NATIVE: path, ISOVEC_REQUIRE_NATIVE: "1" });
    assert.equal(required.stdout.trim(), "EngineUnavailable");
  }
});

test("the event loop turns while the add-on computes", async () => {
  const embedder = await load();
  let turns = 0;
  let running = true;
  const turn = () => running && (turns++, setImmediate(turn));
  setImmediate(turn);
  const vectors = await embedder.embed(many);
  running = false;
  assert.equal(vectors.length, many.length);
  assert.ok(turns > 100, `${turns} turns`);
  await embedder.dispose();
});

test("several models compute at the same time, each its own vectors", async () => {
  const texts = ["one", "and another text"];
  const [one, other, labels] = await Promise.all([load(), load({ config: { text: { pooling: "cls" } } }), Classifier.load(read(classifier, CLASSIFIER_FILES))]);
  const [expected, different] = [await one.embed(texts), await other.embed(texts)];
  assert.notDeepEqual(expected.values, different.values);
  const said = await labels.classify(texts);
  const calls = Array.from({ length: 60 }, (_, at) => [one.embed(texts), other.embed(texts), labels.classify(texts)][at % 3]);
  for (const [at, set] of (await Promise.all(calls)).entries()) {
    const wanted = [expected, different, said][at % 3].values;
    assert.ok(set.values.every((value, place) => Math.abs(value - wanted[place]) < 1e-6), `call ${at}`);
  }
  for (const model of [one, other, labels]) await model.dispose();
});

test("nothing of WebAssembly is compiled, for pictures neither", async (t) => {
  const compiled = t.mock.method(WebAssembly, "compile");
  const model = await ImageClassifier.load(read(join(data, "tiny-network"), ["config.json", "model.onnx", "preprocessor_config.json"]));
  const picture = { data: new Uint8Array(4 * 40 * 30).fill(90), width: 40, height: 30 };
  const said = await model.classify(Array(40).fill(picture));
  assert.deepEqual([model.build, said.length, compiled.mock.callCount()], ["native", 40, 0]);
  assert.deepEqual(said.scores(39), said.scores(0));
  await model.dispose();
});

test("a disposed model is an error, its vectors stay, and calls under way end", async () => {
  const embedder = await load();
  const vectors = await embedder.embed(["one"]);
  const before = Array.from(vectors.values);
  const under = embedder.embed(many).then(() => "done", ({ kind }) => kind);
  await new Promise((resolve) => setImmediate(resolve));
  await embedder.dispose();
  assert.ok(["Disposed", "done"].includes(await under));
  await assert.rejects(embedder.embed(["one"]), { name: "IsovecError", kind: "Disposed" });
  await assert.rejects(embedder.stats(), { kind: "Disposed" });
  assert.deepEqual(Array.from(vectors.values), before);
  // What TypeScript keeps from happening is an error there, too.
  const own = createRequire(import.meta.url)(addon);
  const files = read(tiny, FILES);
  const raw = await own.RawModel.load("it", [...files.keys()], [...files.values()], "{}", "vectors", undefined, new own.RawCancel());
  raw.free();
  for (const call of [() => raw.embed(["a"], "default", new own.RawCancel()), () => raw.stats(), () => raw.about(), () => raw.dimension]) assert.throws(call, { kind: "Disposed" });
});

test("what is wrong is the error that wasm gives", async () => {
  const files = read(tiny, FILES);
  const failed = (promise) => promise.then(() => assert.fail("it was loaded"), ({ kind, message }) => ({ kind, message }));
  const damaged = new Map([...files, ["model.safetensors", new Uint8Array(100)]]);
  const without = new Map([...files].filter(([name]) => name !== "tokenizer.json"));
  for (const [source, config] of [[damaged, {}], [without, {}], [files, { batching: { maxBatchSize: 0 } }], [files, { batching: { maxBatch: 3 } }]]) {
    const [native, wasm] = [await failed(Embedder.load(source, { config, build: "native" })), await failed(Embedder.load(source, { config, build: "simd128" }))];
    assert.deepEqual(native, wasm);
  }
});

test("a program ends with a model loaded, and in the middle of a call", () => {
  const ends = {
    'console.log((await (await Embedder.load(folder)).embed(["a"])).length);': [0, "1"],
    'const embedder = await Embedder.load(folder); void embedder.embed(Array(20000).fill("a text that takes a moment")); setTimeout(() => process.exit(3), 20);': [3, ""],
    'const loading = Embedder.load(folder); process.exit(4);': [4, ""],
    'const embedder = await Embedder.load(folder); void embedder.embed(Array(20000).fill("a text that takes a moment")); throw new RangeError("ours");': [1, ""],
  };
  for (const [code, [status, said]] of Object.entries(ends)) {
    const ran = program(code);
    assert.deepEqual([ran.status, ran.stdout.trim()], [status, said], `${code}\n${ran.stderr}`);
  }
});

test("workers of node have models of their own, and may be ended in the middle of a call", async () => {
  const code = `
    import { parentPort, workerData } from "node:worker_threads";
    const { Embedder } = await import(workerData.index);
    const embedder = await Embedder.load(workerData.tiny);
    parentPort.postMessage({ build: embedder.build, values: (await embedder.embed(["a text"])).values });
    for (;;) await embedder.embed(workerData.many);`;
  const start = () => new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`), { workerData: { index, tiny, many } });
  const here = await load();
  const expected = await here.embedOne("a text");
  for (let round = 0; round < 3; round++) {
    const workers = [start(), start()];
    const said = await Promise.all(workers.map((worker) => new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject))));
    for (const { build, values } of said) assert.deepEqual([build, values], ["native", expected]);
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
  assert.deepEqual(await here.embedOne("a text"), expected);
  await here.dispose();
});

test("the vectors are those of the program isovec", { skip: process.env.ISOVEC_TEST_PROGRAM ? false : "ISOVEC_TEST_PROGRAM names no program" }, async () => {
  const texts = ["one", "and another text", "a third that is longer than the others"];
  const [given, out] = [join(folder, "texts.txt"), join(folder, "vectors.jsonl")];
  writeFileSync(given, `${texts.join("\n")}\n`);
  execFileSync(process.env.ISOVEC_TEST_PROGRAM, ["embed", "--engine", "portable", "--model", tiny, "--file", given, "--out", out], { stdio: "ignore" });
  const rows = readFileSync(out, "utf8").trim().split("\n").map((line) => JSON.parse(line));
  const embedder = await load();
  const vectors = await embedder.embed(texts);
  for (const [at, row] of rows.entries()) assert.deepEqual(vectors.row(at), Float32Array.from(Object.values(row).find(Array.isArray)), texts[at]);
  await embedder.dispose();
});

const [networks, onnxruntime] = [process.env.ISOVEC_TEST_OCR, process.env.ISOVEC_TEST_ONNXRUNTIME];

test("the text of pictures is read by ONNX Runtime where it is there", { skip: networks && onnxruntime ? false : "the networks or ONNX Runtime are not there" }, () => {
  const [peer] = JSON.parse(readFileSync(join(data, "pages", "rapidocr.json"), "utf8"));
  const code = `
    import { readFileSync } from "node:fs";
    import { TextReader } from ${JSON.stringify(index)};
    const reader = await TextReader.load(${JSON.stringify(`${pathToFileURL(networks).href}/`)});
    const { lines } = await reader.readOne(readFileSync(${JSON.stringify(join(data, "pages", peer.file))}));
    const broken = await reader.readOne(new Uint8Array(9)).catch(({ kind, message }) => [kind, message]);
    console.log(JSON.stringify({ build: reader.build, engine: reader.provider().engine, texts: lines.map(({ text }) => text), broken }));
    await reader.dispose();
    console.log(await reader.readOne(new Uint8Array(9)).catch(({ kind }) => kind));
  `;
  const { stdout, stderr } = program(code, { ORT_DYLIB_PATH: onnxruntime });
  const [told, disposed] = stdout.trim().split("\n");
  const { build, engine, texts, broken } = JSON.parse(told ?? stderr);
  assert.deepEqual([build, engine, disposed], ["native", "onnxruntime", "Disposed"]);
  assert.deepEqual(texts, peer.lines.map(({ text }) => text));
  assert.equal(broken[0], "Picture");
  assert.match(broken[1], /picture 0/);
});
