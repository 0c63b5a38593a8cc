// The text of pictures: in node and in headless Chromium, the boxes and strings that rapidocr reads of the same pages
// (`tests/data/pages`). Run by `cargo xtask test npm`, or `npm test` after `npm run build`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { TextReader, hocr, plain } from "../dist/index.js";
import { refused } from "./refused.mjs";
import { HEADERS, NATIVE, STRICT, data, js, launch, page as empty, send, serve } from "./site.mjs";

/** Where `cargo xtask` puts the networks. */
const networks = process.env.ISOVEC_TEST_OCR;
const DETECTOR = "ch_PP-OCRv4_det_infer.onnx";
const FILES = [DETECTOR, "ch_ppocr_mobile_v2.0_cls_infer.onnx", "ch_PP-OCRv4_rec_infer.onnx"];
/** How far a corner may be, in pixels, and a score. */
const [NEAR, SURE] = [1, 1e-3];

const folder = join(data, "pages");
const peer = JSON.parse(readFileSync(join(folder, "rapidocr.json"), "utf8"));
const file = (place) => new Uint8Array(readFileSync(join(folder, peer[place].file)));
/** The page with the fewest pixels that has text, one that is turned, and one of several lines. */
const PAGES = [6, 5];

const files = (...without) => new Map(FILES.filter((name) => !without.includes(name)).map((name) => [name, new Uint8Array(readFileSync(join(networks, name)))]));

function near({ width, height, lines }, { size, lines: wanted, file }) {
  assert.deepEqual([width, height], size, file);
  assert.deepEqual(lines.map(({ text }) => text), wanted.map(({ text }) => text), file);
  for (const [at, { score, corners }] of lines.entries()) {
    assert.ok(Math.abs(score - wanted[at].score) <= SURE, `${file}, line ${at}: ${score} for ${wanted[at].score}`);
    const apart = corners.flat().map((side, place) => Math.abs(side - wanted[at].corners.flat()[place]));
    assert.ok(Math.max(...apart) <= NEAR, `${file}, line ${at}: ${Math.max(...apart)} pixels off`);
  }
}

test("pages become the document that Rust writes", () => {
  const read = (name) => readFileSync(join(data, "hocr", name), "utf8");
  const { version } = JSON.parse(readFileSync(join(js, "package.json"), "utf8"));
  const pages = JSON.parse(read("pages.json"));
  assert.equal(hocr(pages), read("pages.html").replace("VERSION", version));
  assert.equal(hocr(new Map(pages)), hocr(pages));
  assert.equal(plain(pages[2][1]), "总计 12.80\n");
  assert.equal(plain(pages[1][1]), "");
});

test("what is asked wrongly is refused before anything is fetched", async () => {
  const load = (options) => TextReader.load("/nowhere/", options);
  await assert.rejects(load({ minScore: 1.5, offline: true, cache: "off" }), refused("Config", "minScore"));
  await assert.rejects(load({ detector: "" }), refused("Config", "`detector`"));
  await assert.rejects(load({ orientation: true }), refused("Config", "`orientation`"));
  await assert.rejects(load({ build: "relaxed" }), refused("EngineUnavailable", "reads no text of pictures"));
  await assert.rejects(load({ pixels: { maxPixels: 0 } }), refused("Config", "maxPixels"));
});

const there = { skip: networks ? false : "PP-OCR's networks are not there: `cargo xtask setup ocr`, and their folder in ISOVEC_TEST_OCR" };

test("in a program, lines are rapidocr's, and what cannot be read is named by its place", there, async () => {
  const reader = await TextReader.load(files());
  assert.equal(reader.worker, false);
  const texts = await reader.read(PAGES.map(file));
  for (const [at, place] of PAGES.entries()) near(texts[at], peer[place]);
  assert.deepEqual(await reader.read([]), []);
  // Pixels are what their file is, and a picture without text has no lines.
  const white = { data: new Uint8Array(4 * 40 * 30).fill(255), width: 40, height: 30 };
  assert.deepEqual(await reader.readOne(white), { width: 40, height: 30, lines: [] });
  assert.equal(reader.build, NATIVE ? "native" : "tract");
  assert.equal(reader.provider().engine, "portable");
  if (!NATIVE) assert.equal(reader.provider().provider, "wasm simd128");
  assert.equal(reader.effectiveConfig().find(({ name }) => name === "model.onnxFile").used, DETECTOR);

  const broken = new Blob([file(6).slice(0, 60)]);
  await assert.rejects(reader.read([white, broken]), refused("Picture", "picture 1"));
  await assert.rejects(reader.read([white, white, "text"]), refused("Picture", "picture 2"));
  await assert.rejects(reader.read("text"), refused("Picture", "array"));
  const narrow = { data: new Uint8Array(4 * 1999), width: 1, height: 1999 };
  await assert.rejects(reader.read([white, narrow]), refused("Reading", "picture 1"));
  const reason = new Error("enough");
  await assert.rejects(reader.read([file(6)], { signal: AbortSignal.abort(reason) }), reason);
  const late = new AbortController();
  const read = reader.readOne(file(6), { signal: late.signal });
  setTimeout(() => late.abort(reason));
  await assert.rejects(read, reason);
  const last = reader.readOne(file(6));
  await reader.dispose();
  await assert.rejects(last, refused("Disposed"));
  await assert.rejects(reader.readOne(white), refused("Disposed"));
});

test("networks are what they are named for", there, async () => {
  await assert.rejects(TextReader.load(files(DETECTOR)), refused("MissingFile", DETECTOR));
  await assert.rejects(TextReader.load(files(), { detector: FILES[2] }), refused("UnsupportedModel", "detector of text"));
  const bad = files().set(DETECTOR, file(6));
  await assert.rejects(TextReader.load(bad), refused("InvalidModel"));
});

test("in a page a worker reads, with the build that can, and offline at the next visit", there, async (t) => {
  let asked = [];
  const origin = await serve((request, response, path) => {
    asked.push(path);
    if (path === "/") return empty(response, { ...HEADERS, ...STRICT });
    const [, first, ...rest] = path.split("/");
    const from = { networks, pages: folder }[first];
    send(response, from ? join(from, ...rest) : join(js, path), HEADERS);
  });
  const browser = await launch();
  const context = await browser.newContext();
  t.after(() => context.close());
  const visit = async (options) => {
    const page = await context.newPage();
    await page.goto(origin);
    asked = [];
    const seen = await page.evaluate(
      async ({ picture, options }) => {
        const { TextReader } = await import("/dist/index.js");
        const reader = await TextReader.load("/networks/", options);
        const blob = await (await fetch(picture)).blob();
        const text = await reader.readOne(blob);
        const bitmap = await createImageBitmap(blob);
        const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
        const drawn = canvas.getContext("2d");
        drawn.drawImage(bitmap, 0, 0);
        const pixels = await reader.readOne(drawn.getImageData(0, 0, bitmap.width, bitmap.height));
        const { files } = await reader.downloaded();
        const about = { build: reader.build, worker: reader.worker, files, text, same: JSON.stringify(pixels) === JSON.stringify(text) };
        await reader.dispose();
        return about;
      },
      { picture: `/pages/${peer[6].file}`, options },
    );
    await page.close();
    return seen;
  };
  const first = await visit({});
  near(first.text, peer[6]);
  assert.deepEqual([first.build, first.worker, first.same], ["tract", true, true]);
  assert.deepEqual(first.files.map(({ name, cached }) => [name, cached]), FILES.map((name) => [name, false]));
  // Nothing is fetched that is not needed: no other build, and no file of a text model.
  assert.deepEqual(asked.filter((path) => path.endsWith(".wasm")).sort(), ["/pkg/image/isovec_js_image_bg.wasm", "/pkg/tract/isovec_js_bg.wasm"]);
  assert.deepEqual(asked.filter((path) => path.startsWith("/networks/")).sort(), FILES.map((name) => `/networks/${name}`).sort());

  const next = await visit({ offline: true });
  assert.deepEqual(next.text, first.text);
  assert.ok(next.files.every(({ cached }) => cached));
  assert.deepEqual(asked.filter((path) => path.startsWith("/networks/")), []);
  // Without the network of directions it is not asked for.
  await visit({ orientation: false, cache: "off" });
  assert.deepEqual(asked.filter((path) => path.startsWith("/networks/")).sort(), [FILES[0], FILES[2]].map((name) => `/networks/${name}`).sort());
});
