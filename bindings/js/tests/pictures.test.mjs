// Pictures become vectors: in node and in headless Chromium, those of an implementation at float64 on the seeded CLIP, and
// a text finds a picture. Run by `cargo xtask test npm`, or `npm test` after `npm run build`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { Embedder, Embeddings, ImageEmbedder } from "../dist/index.js";
import { refused } from "./refused.mjs";
import { FILES, HEADERS, WAY, data, js, launch, page as empty, send, serve, tiny } from "./site.mjs";

/** The largest difference of a component, and the largest L2 distance, of a unit vector. */
const [COMPONENT, L2] = WAY.webgpu ? [2e-6, 1e-5] : [1e-6, 5e-6];

const folder = join(data, "tiny-clip");
const NAMES = ["config.json", "model.safetensors", "preprocessor_config.json", "tokenizer.json"];
const { pictures, texts } = JSON.parse(readFileSync(join(folder, "reference.json"), "utf8"));
const bin = join(js, "../../input/image/tests/data/pictures.bin");
const bytes = new Uint8Array(readFileSync(bin));
const all = pictures.map(({ at, bytes: length }) => bytes.slice(at, at + length));
const broken = () => all[0].slice(0, 40);

function files(change = {}) {
  const files = new Map(NAMES.map((name) => [name, new Uint8Array(readFileSync(join(folder, name)))]));
  for (const [name, json] of Object.entries(change)) json === null ? files.delete(name) : files.set(name, new TextEncoder().encode(JSON.stringify(json)));
  return files;
}
const preprocessor = JSON.parse(new TextDecoder().decode(files().get("preprocessor_config.json")));

function near(vector, wanted, what) {
  assert.equal(vector.length, wanted.length, what);
  const apart = Array.from(vector, (component, at) => Math.abs(component - wanted[at]));
  assert.ok(Math.max(...apart) <= COMPONENT, `${what}: a component is ${Math.max(...apart)} off`);
  assert.ok(Math.hypot(...apart) <= L2, `${what}: ${Math.hypot(...apart)} apart`);
}

const embedder = await ImageEmbedder.load(files());
after(() => embedder.dispose());

test("vectors are the references, on every way in", async () => {
  const set = await embedder.embed(all);
  assert.deepEqual([set.length, set.dimension, embedder.dimension], [all.length, 20, 20]);
  // More than a window at once, each kind of a file's bytes, and calls side by side.
  const forms = [(file) => file, (file) => file.slice().buffer, (file) => new Blob([file]), (file) => new File([file], "a picture")];
  const many = await embedder.embed(forms.flatMap((form) => all.map(form)));
  const side = await Promise.all(all.map((file) => embedder.embedOne(file)));
  for (const [at, { name, vector }] of pictures.entries()) {
    near(set.row(at), vector, name);
    near(side[at], vector, name);
    for (const form of forms.keys()) assert.deepEqual(many.row(form * all.length + at), set.row(at), name);
  }
  assert.equal((await embedder.embed([])).length, 0);
  const halved = await embedder.embed(all.slice(0, 1), { dimension: 8 });
  assert.equal(halved.dimension, 8);
});

test("a text finds a picture, and other vectors are not compared", async () => {
  const words = await Embedder.load(files());
  const set = await embedder.embed(all);
  for (const { text, vector } of texts) {
    const query = await words.embedQuery(text);
    near(query.row(0), vector, text);
    const dot = (other) => other.reduce((sum, component, at) => sum + component * vector[at], 0);
    const hits = set.searchOne(query, all.length);
    for (const { index, score } of hits) assert.ok(Math.abs(score - dot(pictures[index].vector)) < 1e-5, `${text}: ${score}`);
  }
  // So it is the other way round, and a set that was saved is in the same space still.
  assert.equal((await words.embed(["a cat"])).searchOne(await embedder.embed(all.slice(0, 1)), 1).length, 1);
  const again = await Embeddings.load(set.save());
  again.searchOne(await words.embedQuery("a cat"), 1);
  const white = await ImageEmbedder.load(files(), { pixels: { alpha: "white" } });
  const other = await white.embed(all.slice(0, 1));
  assert.throws(() => set.searchOne(other, 1), refused("IncompatibleIndex", "pixels"));
  await white.dispose();
  await words.dispose();
});

test("pixels are pictures too", async () => {
  const [width, height] = [5, 4];
  const rgba = Uint8ClampedArray.from({ length: 4 * width * height }, (_, at) => (at * 37) % 251);
  const one = await embedder.embedOne({ data: rgba, width, height });
  const two = await embedder.embedOne({ data: new Uint8Array(rgba), width, height });
  assert.deepEqual(one, two);
  const less = { data: rgba.slice(4), width, height };
  await assert.rejects(embedder.embed([all[0], less]), refused("Picture", "picture 1", "80 bytes", "76"));
  for (const wrong of [null, 7, "a.png", {}, { data: [1], width: 1, height: 1 }, { data: rgba, width: 0, height: 20 }, { data: rgba, width: 2.5, height: 8 }]) {
    await assert.rejects(embedder.embed([wrong]), refused("Picture", "picture 0", "a picture is"));
  }
  await assert.rejects(embedder.embed(all[0]), refused("Picture", "array"));
});

test("a picture that cannot be read says so, and the others are unharmed", async () => {
  const side = embedder.embed(all);
  const many = [...Array.from({ length: 17 }, () => all[0]), broken(), all[1]];
  await assert.rejects(embedder.embed(many), refused("Picture", "picture 17", "JPEG", "damaged"));
  await assert.rejects(embedder.embed([new Uint8Array(0)]), refused("Picture", "picture 0", "0 bytes"));
  await assert.rejects(embedder.embed([new TextEncoder().encode("<svg xmlns='http://www.w3.org/2000/svg'/>")]), refused("Picture", "no picture"));
  near((await side).row(1), pictures[1].vector, "a call beside");

  const mixed = [all[0], broken(), null, ...all, new Uint8Array(3)];
  const places = [];
  for await (const { index, vector, error } of embedder.embedStream(mixed)) {
    places.push(index);
    const at = index === 0 ? 0 : index - 3;
    if ([1, 2, mixed.length - 1].includes(index)) refused("Picture", `picture ${index}`)(error);
    else near(vector, pictures[at].vector, `place ${index}`);
  }
  assert.deepEqual(places, Array.from(mixed.keys()));
  // What is not taken is not read.
  let taken = 0;
  const endless = function* () {
    for (;;) {
      taken++;
      yield all[taken % all.length];
    }
  };
  for await (const { index } of embedder.embedStream(endless())) if (index === 3) break;
  assert.ok(taken <= 64, `${taken} were taken`);
});

test("limits are heeded, and calls end with the signal's reason", async () => {
  const small = await ImageEmbedder.load(files(), { pixels: { maxPixels: 29_999, maxBytes: 100_000 } });
  const large = all[pictures.findIndex(({ name }) => name === "resize/200x150")];
  await assert.rejects(small.embed([large]), refused("Picture", "200 x 150", "29999"));
  const long = new Uint8Array(100_001);
  long.set(large);
  await assert.rejects(small.embed([long]), refused("Picture", "100001"));
  assert.equal((await small.embed([all[0]])).length, 1);
  await small.dispose();
  await assert.rejects(small.embed(all), refused("Disposed"));

  const reason = new Error("enough");
  const ending = new AbortController();
  const call = embedder.embed(Array.from({ length: 64 }, () => large), { signal: ending.signal });
  ending.abort(reason);
  await assert.rejects(call, (error) => error === reason);
});

test("models and options that do not fit are refused by name", async () => {
  const load = (change, options) => ImageEmbedder.load(files(change), options);
  await assert.rejects(load({ "preprocessor_config.json": null }), refused("MissingFile", "preprocessor_config.json"));
  await assert.rejects(load({ "preprocessor_config.json": { ...preprocessor, size: { height: 16, width: 16 } } }), refused("Preprocessor", "16 x 16", "24 x 16"));
  await assert.rejects(load({ "preprocessor_config.json": { ...preprocessor, do_magic: true } }), refused("Preprocessor", "do_magic"));
  await assert.rejects(load({}, { pixels: { reference: "opencv" } }), refused("Config", "pixels.reference", "torchvision"));
  await assert.rejects(load({}, { pixels: { alpha: "black" } }), refused("Config", "pixels.alpha", "white"));
  await assert.rejects(load({}, { pixels: { turn: 1 } }), refused("Config", "pixels.turn"));
  await assert.rejects(load({}, { pixels: { maxPixels: 0 } }), refused("Config", "pixels.maxPixels"));
  // A model of texts, and a model of pictures taken for one of texts.
  const bert = new Map(["config.json", "tokenizer.json", "model.safetensors"].map((name) => [name, new Uint8Array(readFileSync(join(tiny, name)))]));
  bert.set("preprocessor_config.json", files().get("preprocessor_config.json"));
  await assert.rejects(ImageEmbedder.load(bert, { config: { text: { pooling: "mean" } } }), refused("UnsupportedModel", "no pictures"));
  await assert.rejects(embedder.countTokens("a text"), refused("Config", "no texts"));
});

test("the fingerprint and the identity of pixels are those of the files and the options", async () => {
  const { identity } = embedder.fingerprint();
  const native = (name) => JSON.parse(readFileSync(join(data, "identity", `${name}.json`), "utf8"));
  assert.deepEqual(identity, native("tiny-clip"));
  const words = await Embedder.load(new Map([...FILES, "config_sentence_transformers.json"].map((name) => [name, new Uint8Array(readFileSync(join(tiny, name)))])));
  assert.deepEqual(words.fingerprint().identity, native("tiny-bert"));
  await words.dispose();
  const stored = await ImageEmbedder.load(files(), { pixels: { turn: false, reference: "torchvision" } });
  assert.match(stored.fingerprint().identity.pixels, /^as stored; Torchvision; /);
  const { space, pixels, ...rest } = identity;
  const { pixels: other, ...same } = stored.fingerprint().identity;
  assert.deepEqual(same, { space, ...rest });
  assert.notEqual(pixels, other);
  await stored.dispose();
  const { batches, direct } = (await embedder.stats()).queue;
  assert.ok(batches + direct > 0, "the embedder's calls are counted");
});

test("in a page: in its worker and in its thread, from files and from pixels", async () => {
  const answer = (request, response, path) => {
    if (path === "/") return empty(response, HEADERS);
    if (path === "/pictures.bin") return send(response, bin, HEADERS);
    if (path.startsWith("/clip/")) return send(response, join(folder, path.slice("/clip/".length)), HEADERS);
    return send(response, join(js, path), HEADERS);
  };
  const page = await (await launch()).newPage();
  await page.goto(await serve(answer));
  const found = await page.evaluate(
    async ({ pictures, webgpu, broken }) => {
      const { Embedder, ImageEmbedder } = await import("/dist/index.js");
      const whole = new Uint8Array(await (await fetch("/pictures.bin")).arrayBuffer());
      const files = pictures.map(({ at, bytes }) => whole.slice(at, at + bytes));
      const device = webgpu ? "webgpu" : "cpu";
      const out = {};
      for (const worker of [true, false]) {
        const embedder = await ImageEmbedder.load(new URL("/clip/", location.href), { worker, device });
        const set = await embedder.embed(files.map((file) => new Blob([file])));
        const bad = await embedder.embed([files[0], Uint8Array.from(broken)]).catch(({ kind, message }) => ({ kind, message }));
        // Pixels of a bitmap and of a frame, which are opaque here, and those of an ImageData.
        const png = pictures.findIndex(({ name }) => name === "resize/200x150");
        const bitmap = await createImageBitmap(new Blob([files[png]]), { colorSpaceConversion: "none" });
        const frame = new VideoFrame(bitmap, { timestamp: 0 });
        const pixels = new Uint8ClampedArray(4 * bitmap.width * bitmap.height);
        await frame.copyTo(pixels, { format: "RGBA" });
        const given = [bitmap, frame, new ImageData(pixels, bitmap.width, bitmap.height)];
        const raw = await embedder.embed(given);
        const open = bitmap.width > 0 && frame.codedWidth > 0;
        frame.close();
        const closed = await embedder.embed([frame]).catch(({ kind, message }) => ({ kind, message }));
        const texts = await Embedder.load(new URL("/clip/", location.href), { worker, device });
        const hits = set.searchOne(await texts.embedQuery("the end of the cat"), 3);
        out[worker] = { rows: Array.from(set, (row) => Array.from(row)), bad, raw: Array.from(raw, (row) => Array.from(row)), png, open, closed, hits, provider: embedder.provider().provider, isWorker: embedder.worker };
        await Promise.all([embedder.dispose(), texts.dispose()]);
      }
      return out;
    },
    { pictures, webgpu: WAY.webgpu, broken: Array.from(broken()) },
  );
  for (const [worker, { rows, bad, raw, png, open, closed, hits, isWorker }] of Object.entries(found)) {
    for (const [at, { name, vector }] of pictures.entries()) near(rows[at], vector, name);
    assert.equal(bad.kind, "Picture");
    assert.match(bad.message, /^picture 1: JPEG/);
    assert.deepEqual(raw[0], raw[2]);
    assert.deepEqual(raw[1], raw[2]);
    near(raw[0], pictures[png].vector, "a bitmap of what has no color space");
    assert.ok(open, "what was given stays open");
    assert.equal(closed.kind, "Picture");
    assert.equal(hits.length, 3);
    assert.equal(String(isWorker), worker);
  }
});
