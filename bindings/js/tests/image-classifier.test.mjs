// Pictures get labels: in node and in headless Chromium, the logits of an implementation at float64 on the seeded convolutional
// network, which the build `tract` runs; and its features. Run by `cargo xtask test npm`, or `npm test` after `npm run build`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { ImageClassifier, ImageEmbedder } from "../dist/index.js";
import { refused } from "./refused.mjs";
import { HEADERS, NATIVE, data, js, launch, page as empty, send, serve } from "./site.mjs";

const folder = join(data, "tiny-network");
const NAMES = ["config.json", "model.onnx", "preprocessor_config.json"];
const { pictures } = JSON.parse(readFileSync(join(folder, "reference.json"), "utf8"));
const { id2label } = JSON.parse(readFileSync(join(folder, "config.json"), "utf8"));
const LABELS = Object.values(id2label);
const bin = join(js, "../../input/image/tests/data/pictures.bin");
const bytes = new Uint8Array(readFileSync(bin));
const all = pictures.map(({ at, bytes: length }) => bytes.slice(at, at + length));
const broken = () => all[0].slice(0, 40);

function files(change = {}) {
  const files = new Map(NAMES.map((name) => [name, new Uint8Array(readFileSync(join(folder, name)))]));
  for (const [name, json] of Object.entries(change)) files.set(name, new TextEncoder().encode(JSON.stringify(json)));
  return files;
}

function near(scores, wanted, what, most = 2e-6 * Math.max(1, ...wanted.map(Math.abs))) {
  assert.equal(scores.length, wanted.length, what);
  const apart = Math.max(...Array.from(scores, (score, at) => Math.abs(score - wanted[at])));
  assert.ok(apart <= most, `${what}: ${apart} off`);
}

const softmax = (logits) => {
  const powers = logits.map((logit) => Math.exp(logit));
  return powers.map((power) => power / powers.reduce((sum, power) => sum + power));
};
const unit = (values) => values.map((value) => value / Math.hypot(...values));

const classifier = await ImageClassifier.load(files());
after(() => classifier.dispose());

test("scores are the references, on every way in", async () => {
  assert.deepEqual([...classifier.labels], LABELS);
  assert.equal(classifier.build, NATIVE ? "native" : "tract");
  const said = await classifier.classify(all);
  assert.equal(said.length, all.length);
  // More than a window at once.
  const many = await classifier.classify([...all, ...all, ...all, ...all], { scores: "logits" });
  assert.equal(many.tokenCounts.length, 4 * all.length);
  for (const [at, { name, logits }] of pictures.entries()) {
    near(said.scores(at), softmax(logits), name);
    near(many.scores(at), logits, name);
    assert.deepEqual(many.scores(3 * all.length + at), many.scores(at), name);
    const best = LABELS[logits.indexOf(Math.max(...logits))];
    assert.equal(said.best(at).label, best);
    assert.deepEqual((await classifier.classifyOne(all[at])).map(({ label }) => label), said.ranked(at).map(({ label }) => label));
  }
  assert.equal((await classifier.classify([])).length, 0);
});

test("a picture that cannot be read says so, and the others are unharmed", async () => {
  const side = classifier.classify(all);
  await assert.rejects(classifier.classify([all[0], broken()]), refused("Picture", "picture 1", "JPEG"));
  near((await side).scores(2), softmax(pictures[2].logits), "a call beside");
  const places = [];
  for await (const { index, labels, error } of classifier.classifyStream([all[0], null, broken(), all[1]], { scores: "logits" })) {
    places.push(index);
    if (index === 1 || index === 2) refused("Picture", `picture ${index}`)(error);
    else near(labels.toSorted((a, b) => a.index - b.index).map(({ score }) => score), pictures[index && 1].logits, `place ${index}`);
  }
  assert.deepEqual(places, [0, 1, 2, 3]);
  await assert.rejects(classifier.classify(all, { scores: "odds" }), refused("Config", "odds"));
  const controller = new AbortController();
  const stopped = classifier.classify(all, { signal: controller.signal });
  controller.abort(new Error("enough"));
  await assert.rejects(stopped, /enough/);
});

test("the layers before the last give features", async () => {
  const embedder = await ImageEmbedder.load(files());
  const set = await embedder.embed(all);
  for (const [at, { name, features }] of pictures.entries()) near(set.row(at), unit(features), name);
  await embedder.dispose();
});

test("what does not fit is refused", async () => {
  const preprocessor = JSON.parse(new TextDecoder().decode(files().get("preprocessor_config.json")));
  const other = files({ "preprocessor_config.json": { ...preprocessor, size: { height: 40, width: 24 } } });
  await assert.rejects(ImageClassifier.load(other), refused("Preprocessor", "24 x 40", "24 x 16"));
  await assert.rejects(ImageClassifier.load(files({ "config.json": { id2label: { 0: "one" } } })), refused("InvalidModel", "id2label"));
  const clip = new Map(["config.json", "model.safetensors", "preprocessor_config.json"].map((name) => [name, new Uint8Array(readFileSync(join(data, "tiny-clip", name)))]));
  await assert.rejects(ImageClassifier.load(clip), refused("UnsupportedModel", "logits"));
});

test("a page says the same, in its worker and in its thread", async () => {
  const answer = (request, response, path) => {
    if (path === "/") return empty(response, HEADERS);
    if (path === "/pictures.bin") return send(response, bin, HEADERS);
    if (path.startsWith("/network/")) return send(response, join(folder, path.slice("/network/".length)), HEADERS);
    return send(response, join(js, path), HEADERS);
  };
  const page = await (await launch()).newPage();
  await page.goto(await serve(answer));
  const found = await page.evaluate(async (pictures) => {
    const { ImageClassifier } = await import("/dist/index.js");
    const whole = new Uint8Array(await (await fetch("/pictures.bin")).arrayBuffer());
    const files = pictures.map(({ at, bytes }) => new Blob([whole.slice(at, at + bytes)]));
    const out = {};
    for (const worker of [true, false]) {
      const classifier = await ImageClassifier.load(new URL("/network/", location.href), { worker });
      const said = await classifier.classify(files, { scores: "logits" });
      out[worker] = { rows: files.map((_, at) => Array.from(said.scores(at))), build: classifier.build, isWorker: classifier.worker };
      await classifier.dispose();
    }
    return out;
  }, pictures);
  for (const [worker, { rows, build, isWorker }] of Object.entries(found)) {
    assert.deepEqual([build, String(isWorker)], ["tract", worker]);
    for (const [at, { name, logits }] of pictures.entries()) near(rows[at], logits, name);
  }
});
