// `isovec/compat` in headless Chromium: the calls of transformers.js, against the reference vectors. Run by `cargo xtask
// test npm`, which says where the real model is, or `npm test` after `npm run build`.
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { FILES, data, js, launch, page as blank, send, serve, tiny } from "./site.mjs";

const model = process.env.ISOVEC_TEST_MODEL;
const reference = JSON.parse(readFileSync(join(tiny, "reference.json"), "utf8"));
const texts = reference.texts.map(({ text }) => text);

const url = await serve((request, response, path) => {
  if (path === "/") return blank(response);
  if (path.startsWith("/model/")) return send(response, model && join(model, path.slice(7)));
  return send(response, path.startsWith("/data/") ? join(data, path.slice(6)) : join(js, path));
});
const page = await (await launch()).newPage();
await page.goto(url);
await page.evaluate(async () => {
  globalThis.compat = await import("/dist/compat.js");
  globalThis.isovec = await import("/dist/index.js");
  globalThis.failure = async (call) => {
    try {
      await call();
      return { message: "nothing failed" };
    } catch (error) {
      return { kind: error.kind, typed: error instanceof isovec.IsovecError, message: error.message };
    }
  };
  globalThis.extractor = await compat.pipeline("feature-extraction", "/data/tiny-bert/");
});

/** Holds vectors to others, component by component. */
function close(vectors, expected, name) {
  assert.equal(vectors.length, expected.length, name);
  for (const [index, row] of vectors.entries()) {
    assert.equal(row.length, expected[index].length, `${name}, ${index}`);
    for (const [at, value] of row.entries()) assert.ok(Math.abs(value - expected[index][at]) <= 1e-6, `${name}, ${index}, component ${at}: ${value}, and ${expected[index][at]} is right`);
  }
}

test("vectors are those of the reference, in a tensor", async () => {
  const seen = await page.evaluate(async (texts) => {
    const output = await extractor(texts, { pooling: "mean", normalize: true });
    const one = await extractor(texts[0], { pooling: "mean", normalize: true });
    return {
      list: output.tolist(), rows: Array.from(output, (row) => [row.dims, row.size, row.type, Array.from(row)]),
      data: Array.from(output.data), dims: output.dims, size: output.size, type: output.type, first: output[0].tolist(),
      beyond: (await failure(() => output[output.dims[0]])).message,
      one: [one.dims, one.tolist()], task: extractor.task,
    };
  }, texts);
  close(seen.list, reference.texts.map(({ vector }) => vector), "the list");
  assert.deepEqual(seen.data, seen.list.flat());
  assert.deepEqual([seen.dims, seen.size, seen.type, seen.task], [[24, 32], 24 * 32, "float32", "feature-extraction"]);
  assert.deepEqual(seen.rows, seen.list.map((row) => [[32], 32, "float32", row]));
  assert.deepEqual(seen.first, seen.list[0]);
  assert.match(seen.beyond, /row 24 of 24/);
  assert.deepEqual(seen.one[0], [1, 32]);
  close(seen.one[1], [seen.list[0]], "one text");
});

test("every pooling and normalisation is the one that was asked for", async () => {
  const own = (pooling, normalize) => page.evaluate(async ([texts, pooling, normalize]) => {
    const embedder = await isovec.Embedder.load("/data/tiny-bert/", { config: { text: { pooling, normalize } } });
    const rows = Array.from(await embedder.embed(texts), (row) => Array.from(row));
    await embedder.dispose();
    return rows;
  }, [texts, pooling, normalize]);
  const compat = (options) => page.evaluate(async ([texts, options]) => (await extractor(texts, options)).tolist(), [texts, options]);
  const seen = new Map();
  for (const [options, pooling] of [[{ pooling: "mean" }, "mean"], [{ pooling: "cls" }, "cls"], [{ pooling: "first_token" }, "cls"], [{ pooling: "last_token" }, "last_token"], [{ pooling: "eos" }, "last_token"]]) {
    const expected = await own(pooling, false);
    close(await compat(options), expected, JSON.stringify(options));
    const lengths = expected.map((row) => Math.hypot(...row));
    close(await compat({ ...options, normalize: true }), expected.map((row, index) => row.map((value) => value / lengths[index])), `${JSON.stringify(options)}, normalised`);
    seen.set(pooling, JSON.stringify(expected));
    assert.ok(lengths.some((length) => Math.abs(length - 1) > 0.01), "without normalising, lengths differ");
  }
  assert.equal(new Set(seen.values()).size, 3, "poolings differ");
});

test("texts are cut where the tokenizer says, and no prompt is put before them", async () => {
  const seen = await page.evaluate(async (names) => {
    const contents = names.map(async (name) => [name, new Uint8Array(await (await fetch(`/data/tiny-bert/${name}`)).arrayBuffer())]);
    const map = new Map(await Promise.all(contents));
    const json = (value) => new TextEncoder().encode(JSON.stringify(value));
    map.set("tokenizer_config.json", json({ model_max_length: 12 }));
    map.set("config_sentence_transformers.json", json({ prompts: { query: "query: " }, default_prompt_name: "query" }));
    const text = "the dog is an animal ".repeat(5);
    const compatible = await compat.pipeline("embeddings", map);
    const cut = await compatible(text, { pooling: "mean", normalize: true });
    const own = await isovec.Embedder.load(map, { config: { text: { maxLength: 12, prompts: { query: "" } } } });
    const [other] = (await own.embed([text])).truncated;
    const expected = await own.embedOne(text);
    const usual = await (await isovec.Embedder.load(map)).embedOne(text);
    return { cut: cut.tolist(), expected: Array.from(expected), usual: Array.from(usual), other, left: map.size };
  }, FILES);
  assert.equal(seen.other, true);
  close(seen.cut, [seen.expected], "cut to 12 tokens");
  assert.ok(seen.usual.some((value, index) => Math.abs(value - seen.expected[index]) > 1e-3), "the prompt and 64 tokens make a difference");
  assert.equal(seen.left, 8, "the given files are left as they are");
});

test("progress is told in the words of transformers.js", async () => {
  const events = await page.evaluate(async () => {
    const events = [];
    const own = await compat.pipeline("feature-extraction", "/data/tiny-bert/", { progress_callback: (event) => events.push(event) });
    await own.dispose();
    return events;
  });
  assert.deepEqual(events.at(-1), { status: "ready", task: "feature-extraction", model: "/data/tiny-bert/" });
  const bytes = statSync(join(tiny, "model.safetensors")).size;
  const weights = events.filter(({ file }) => file === "model.safetensors");
  assert.deepEqual(weights.map(({ status }) => status).filter((status, index, all) => status !== all[index - 1]), ["initiate", "download", "progress", "done"]);
  assert.deepEqual(weights.filter(({ status }) => status === "progress").at(-1), { status: "progress", name: "/data/tiny-bert/", file: "model.safetensors", progress: 100, loaded: bytes, total: bytes });
  const of = (status) => events.filter((event) => event.status === status).map(({ file }) => file).sort();
  assert.ok(of("initiate").includes("tokenizer.json"));
  assert.deepEqual(of("done"), of("initiate"));
});

test("options are those of the model that is loaded", async () => {
  const seen = await page.evaluate(async (text) => {
    const extract = async (options) => (await (await compat.pipeline("feature-extraction", "/data/tiny-bert/", options))(text, { pooling: "mean", normalize: true })).tolist()[0];
    return {
      plain: await extract({}), f32: await extract({ dtype: "fp32", device: "wasm", session_options: {} }), gpu: await extract({ device: "webgpu" }), int8: await extract({ dtype: { model: "q8" } }),
      knob: (await failure(() => extract({ isovec: { config: { session: { intraOpThreads: 0 } } } }))).kind,
      revision: (await failure(() => compat.pipeline("feature-extraction", "owner/model", { revision: "v2", isovec: { endpoint: "/data" } }))).message,
    };
  }, texts[0]);
  close([seen.f32], [seen.plain], "fp32");
  // Where the browser has no GPU that is believed, the processor computes.
  close([seen.gpu], [seen.plain], "webgpu");
  const apart = Math.max(...seen.int8.map((value, index) => Math.abs(value - seen.plain[index])));
  assert.ok(apart > 1e-6 && apart < 0.05, `q8 differs by ${apart}`);
  assert.equal(seen.knob, "Config");
  assert.match(seen.revision, /\/data\/owner\/model\/resolve\/v2\//);
});

test("what isovec cannot do is said, with what to do", async () => {
  for (const [call, words] of [
    [() => compat.pipeline("text-classification", "/data/tiny-bert/"), /no task "text-classification"/],
    [() => compat.pipeline("feature-extraction", null), /name one/],
    [() => compat.pipeline("feature-extraction", "/data/tiny-bert/", { dtype: "q4" }), /"q4".*`q8`/],
    [() => compat.pipeline("feature-extraction", "/data/tiny-bert/", { device: "cuda" }), /"cuda"/],
    [() => compat.pipeline("feature-extraction", "/data/tiny-bert/", { session_options: { executionMode: "parallel" } }), /session_options.*isovec\.config/],
    [() => compat.pipeline("feature-extraction", "/data/tiny-bert/", { model_file_name: "other" }), /model_file_name.*onnxFile/],
    [() => extractor("a"), /pooling: "mean"/],
    [() => extractor("a", { pooling: "none" }), /pooling: "mean"/],
    [() => extractor("a", { pooling: "median" }), /"median".*mean/],
    [() => extractor("a", { pooling: "mean", quantize: true }), /quantize/],
  ]) {
    const error = await page.evaluate(`failure(${call})`);
    assert.deepEqual([error.kind, error.typed], ["Unsupported", true], `${call}: ${error.message}`);
    assert.match(error.message, words);
  }
  assert.equal((await page.evaluate(() => failure(() => extractor([1], { pooling: "mean" })))).kind, "InvalidText");
});

test("a model that nobody used makes room for the one that is wanted", async () => {
  const seen = await page.evaluate(async () => {
    const { terminate } = Worker.prototype;
    let ended = 0;
    Worker.prototype.terminate = function () {
      ended++;
      return terminate.call(this);
    };
    const own = await compat.pipeline("feature-extraction", "/data/tiny-bert/");
    const counts = [ended];
    for (const pooling of ["cls", "mean", "cls"]) {
      await own("a", { pooling, normalize: true });
      counts.push(ended);
    }
    await own.dispose();
    Worker.prototype.terminate = terminate;
    return [...counts, ended];
  });
  assert.deepEqual(seen, [0, 1, 1, 1, 3]);
});

test("a disposed pipeline says so, under every head", async () => {
  const kinds = await page.evaluate(async () => {
    const own = await compat.pipeline("feature-extraction", "/data/tiny-bert/");
    await own("a", { pooling: "mean", normalize: true });
    await own.dispose();
    return [(await failure(() => own("a", { pooling: "mean", normalize: true }))).kind, (await failure(() => own("a", { pooling: "cls" }))).kind];
  });
  assert.deepEqual(kinds, ["Disposed", "Disposed"]);
});

test("vectors of the real model are those of the reference", { skip: model ? false : "ISOVEC_TEST_MODEL does not name all-MiniLM-L6-v2" }, async () => {
  const lines = readFileSync(join(data, "reference", "texts.txt"), "utf8").replace(/\n$/, "").split("\n");
  const file = readFileSync(join(data, "reference", "vectors.npy"));
  const from = 10 + file.readUInt16LE(8);
  const values = new Float32Array(file.buffer.slice(file.byteOffset + from, file.byteOffset + file.length));
  const { vectors, whole } = await page.evaluate(async (texts) => {
    const embedder = await isovec.Embedder.load("/model/");
    const whole = (await embedder.embed(texts)).truncated.map((cut) => !cut);
    await embedder.dispose();
    const extractor = await compat.pipeline("feature-extraction", "/model/");
    const vectors = (await extractor(texts, { pooling: "mean", normalize: true })).tolist();
    await extractor.dispose();
    return { vectors, whole };
  }, lines);
  // The reference saw 256 tokens of each text, as sentence-transformers does, and this sees 512, as transformers.js does.
  const same = lines.map((_, index) => index).filter((index) => whole[index]);
  assert.ok(same.length > 100 && same.length < lines.length, `${same.length} of ${lines.length}`);
  close(same.map((index) => vectors[index]), same.map((index) => Array.from(values.subarray(index * 384, (index + 1) * 384))), "the real model");
});
