// What `isovec optimize` made, beside its original in a page: headless Chromium, the npm package, one thread, both models in one page and
// in turns, as its report times them natively. The median quotient counts, and the least and the greatest stand beside it.
//
//   node benches/techniques/page.mjs ORIGINAL MADE... --texts others.txt
//   node benches/techniques/page.mjs ORIGINAL MADE... --images PHOTOS
//
// after `cargo xtask build`, and `npm ci` in benches/page, whose packages drive the browser. What the package refuses is a row that says why.
// Times are of a text or a picture: with each in a call of its own, and with all in one call.
import { readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { OPTIONS, count, js, launch, versions } from "../page/common.mjs";
import { folder, serve } from "../page/server.mjs";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { chrome: OPTIONS.chrome, json: OPTIONS.json, texts: { type: "string" }, images: { type: "string" }, turns: { type: "string", default: "7" } },
});
const [original, ...made] = positionals.map((path) => resolve(path));
if (made.length === 0 || !options.texts === !options.images) throw new Error("name the original, folders that were made of it, and --texts or --images");

const files = new Map([
  ["/page.html", Buffer.from("<!doctype html><title>techniques</title>")],
  ...folder("/isovec/dist/", join(js, "dist"), (name) => name.endsWith(".js")),
  ...folder("/isovec/pkg/", join(js, "pkg"), (name) => /\.(js|wasm)$/.test(name)),
  ...[original, ...made].flatMap((path, at) => [...folder(`/models/${at}/`, path)]),
  ...(options.images ? folder("/images/", resolve(options.images), (name) => /\.(png|jpe?g)$/i.test(name)) : []),
]);
const texts = options.texts && readFileSync(options.texts, "utf8").split("\n").filter((line) => line.trim());
const images = [...files.keys()].filter((path) => path.startsWith("/images/"));

/** Runs in the page. */
async function measure({ texts, images, turns, at }) {
  /** The time of a turn in ms, as a report's. */
  const TURN = 250;
  /** Before turns count: the first runs choose their kernels by the clock. */
  const WARM = 1500;
  const { Embedder, ImageClassifier, ImageEmbedder } = await import("/isovec/dist/index.js");
  const bytes = async (path) => new Uint8Array(await (await fetch(path)).arrayBuffer());
  const items = texts ?? (await Promise.all(images.map(bytes)));
  const median = (all) => all.toSorted((one, other) => one - other)[all.length >> 1];

  /** A model, by what it gives of a call's items: rows. */
  const load = async (kind, at) => {
    const model = await kind.load(`/models/${at}/`, { worker: false, cache: "off", config: { session: { intraOpThreads: 1 } } });
    const rows = async (items) => {
      const set = kind === ImageClassifier ? await model.classify(items, { scores: "logits" }) : await model.embed(items);
      return items.map((_, at) => (kind === ImageClassifier ? set.scores(at) : set.row(at)));
    };
    return { build: model.build, rows };
  };
  const both = async (kind) => {
    const after = await load(kind, at);
    await after.rows(items.slice(0, 1));
    return [await load(kind, 0), after];
  };
  let before, after;
  try {
    // A classifier is compared by its logits, as the report compares it. What gives vectors is none.
    [before, after] = texts ? await both(Embedder) : await both(ImageClassifier).catch(() => both(ImageEmbedder));
  } catch (error) {
    return { refused: error.message };
  }

  const since = async (work) => {
    const began = performance.now();
    await work();
    return performance.now() - began;
  };
  const alone = async ({ rows }, items) => {
    for (const item of items) await rows([item]);
  };
  const together = ({ rows }, items) => rows(items);
  const compared = async (call) => {
    for (const model of [before, after]) for (let spent = 0; spent < WARM; ) spent += await since(() => call(model, items.slice(0, 8)));
    // As many as fit into a turn of the original.
    const first = items.slice(0, 8);
    const fit = Math.floor((TURN * first.length) / (await since(() => call(before, first))));
    const some = items.slice(0, Math.max(1, fit));
    const turn = async (model) => {
      let [spent, calls] = [0, 0];
      for (; spent < TURN / 10 || calls === 0; calls++) spent += await since(() => call(model, some));
      return spent / calls / some.length;
    };
    const times = { before: [], after: [] };
    for (let round = 0; round < turns; round++) {
      if (round % 2) times.after.push(await turn(after));
      times.before.push(await turn(before));
      if (round % 2 === 0) times.after.push(await turn(after));
    }
    const quotients = times.before.map((before, round) => before / times.after[round]);
    return { items: some.length, before: median(times.before), after: median(times.after), times: median(quotients), between: [Math.min(...quotients), Math.max(...quotients)] };
  };
  /** The least and the mean cosine. A static model has another space, mostly of another dimension. */
  const cosines = async () => {
    const some = items.slice(0, 32);
    const [one, other] = [await before.rows(some), await after.rows(some)];
    if (one[0].length !== other[0].length) return null;
    const dot = (a, b) => a.reduce((sum, value, at) => sum + value * b[at], 0);
    const all = one.map((row, at) => dot(row, other[at]) / Math.sqrt(dot(row, row) * dot(other[at], other[at])));
    return { worst: Math.min(...all), mean: all.reduce((sum, cosine) => sum + cosine) / all.length };
  };
  return { build: after.build, of: before.build, alone: await compared(alone), together: await compared(together), cosine: await cosines() };
}

/** The columns of a row, with Markdown's bars between them. */
function columns({ refused, build, of, alone, together, cosine }) {
  if (refused) return `refused: ${refused} | | |`;
  const ms = (time) => time.toPrecision(3);
  const cell = ({ before, after, times, between }) => `${ms(before)} to ${ms(after)} ms, ${times.toFixed(2)} (${between.map((time) => time.toFixed(2)).join(" to ")})`;
  return `${of === build ? build : `${of} to ${build}`} | ${cell(alone)} | ${cell(together)} | ${cosine ? `${cosine.worst.toFixed(4)}, ${cosine.mean.toFixed(4)}` : ""} |`;
}

const server = await serve(files);
const browser = await launch(options);
try {
  const results = [];
  if (!options.json) {
    console.log(`Chromium ${versions(browser).chromium}, one thread\n`);
    console.log(`| ${basename(original)} | build | alone | in one call | cosine, worst and mean |\n|---|---|---|---|---|`);
  }
  for (const [index, path] of made.entries()) {
    const page = await browser.newPage();
    await page.goto(`${server.origin}/page.html`);
    const result = await page.evaluate(measure, { texts, images, turns: count(options.turns), at: index + 1 });
    results.push({ path, ...result });
    if (!options.json) console.log(`| ${basename(path)} | ${columns(result)}`);
    await page.close();
  }
  if (options.json) console.log(JSON.stringify({ chromium: versions(browser).chromium, results }, null, 2));
} finally {
  await browser.close();
  server.close();
}
