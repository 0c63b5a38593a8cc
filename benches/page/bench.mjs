// How long a visitor waits for the first vector, isovec against onnxruntime-web, in one run of one
// browser: from the navigation to a page that has nothing yet, to the vector. Run it with
// `cargo xtask bench page`, which builds and installs what it needs.
//
// With `-- --alone --model FOLDER` isovec alone loads another model, such as one of static embeddings, which no peer has in pages.
//
// Every sample has a browser context of its own: no HTTP cache, no compiled code from before, a
// process that ran nothing. What stays warm is the browser itself and the server, which answers
// from memory, over loopback, uncompressed. Both compute on the page's main thread, on that
// thread alone; the browser compiles and downloads on others, for both alike.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { brotliCompressSync } from "node:zlib";
import { LARGEST_DIFFERENCE, OPTIONS, contestantFiles, count, launch, versions } from "./common.mjs";
import { figures, largestDifference, table } from "./report.mjs";
import { folder, serve } from "./server.mjs";
import { text } from "./texts.mjs";

const here = dirname(fileURLToPath(import.meta.url));
/** How many warmed runs are timed in each sample, after as many that are not. */
const WARMED = { short: 20, long: 10 };
/** What the project wants the first vector to take, as a part of onnxruntime-web's time. */
const TARGET = 0.75;

const { values: options } = parseArgs({ options: { ...OPTIONS, samples: { type: "string", default: "9" }, alone: { type: "boolean", default: false } } });
/** Ours first: the others are what it is compared with. */
const CONTESTANTS = options.alone ? ["isovec"] : ["isovec", "onnxruntime-web"];
const samples = count(options.samples);

const inputs = { short: text(options.model, 16), long: text(options.model, 128) };
const page = (name) => `<!doctype html><title>${name}</title>
<script type="application/json" id="inputs">${JSON.stringify(inputs)}</script>
<script src="/page/phases.js"></script>
<script type="module" src="/page/${name}.mjs"></script>`;

const files = new Map([
  ...folder("/page/", join(here, "page")),
  ...contestantFiles(options),
  ...CONTESTANTS.map((name) => [`/${name}.html`, Buffer.from(page(name))]),
]);
const server = await serve(files);
const browser = await launch(options);

/** The least, the median and the most of the first vectors, and the bytes of what a visit fetches, compressed as a web server does. */
function alone(phases) {
  const totals = phases.map(({ total }) => total).sort((a, b) => a - b);
  const first = { least: totals[0], median: totals[totals.length >> 1], most: totals.at(-1) };
  const fetched = [...server.asked].map((path) => brotliCompressSync(files.get(path)).length);
  return { first, transferred: fetched.reduce((sum, bytes) => sum + bytes, 0) };
}

/** One visit by somebody who was never here. */
async function visit(name) {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    // A module that does not load never says so to the page's own scripts.
    const failed = new Promise((_, reject) => page.once("pageerror", reject));
    failed.catch(() => {});
    await page.goto(`${server.origin}/${name}.html`, { waitUntil: "domcontentloaded" });
    const { vector, phases } = await Promise.race([page.evaluate(() => globalThis.first), failed]);
    const warmed = {};
    for (const [input, rounds] of Object.entries(WARMED)) warmed[input] = await page.evaluate(([input, rounds]) => globalThis.warmed(input, rounds), [input, rounds]);
    return { phases, vectors: { first: vector, short: warmed.short.vector, long: warmed.long.vector }, warmed };
  } finally {
    await context.close();
  }
}

try {
  const phases = Object.fromEntries(CONTESTANTS.map((name) => [name, []]));
  const warmed = Object.fromEntries(CONTESTANTS.map((name) => [name, { "1x16": [], "1x128": [] }]));
  let difference = 0;
  // Round 0 does not count: the browser's own first page, the server's code.
  for (let round = 0; round <= samples; round++) {
    let ours;
    for (const name of CONTESTANTS) {
      const seen = await visit(name);
      ours ??= seen.vectors;
      for (const [which, vector] of Object.entries(seen.vectors)) difference = Math.max(difference, largestDifference(ours[which], vector));
      process.stderr.write(`${round === 0 ? "not counted" : `${round} of ${samples}`}  ${name.padEnd(16)} ${seen.phases.total.toFixed(0)} ms\n`);
      if (round === 0) continue;
      phases[name].push(seen.phases);
      warmed[name]["1x16"].push(...seen.warmed.short.times);
      warmed[name]["1x128"].push(...seen.warmed.long.times);
    }
  }
  const result = {
    versions: versions(browser),
    samples,
    largestDifference: difference,
    target: TARGET,
    ...(!options.alone && figures(phases, warmed)),
  };
  if (options.alone) {
    const { first, transferred } = alone(phases.isovec);
    console.log(`Chromium ${result.versions.chromium}, ${samples} samples: the first vector ${first.median.toFixed(0)} ms after the navigation (${first.least.toFixed(0)} to ${first.most.toFixed(0)}); what was fetched takes ${(transferred / 1e6).toFixed(2)} MB by brotli`);
  } else if (options.json) console.log(JSON.stringify(result, null, 2));
  else {
    console.log(`Chromium ${result.versions.chromium}, onnxruntime-web ${result.versions["onnxruntime-web"]}, ${samples} samples each, in turn; largest difference of a component ${difference.toExponential(1)}\n`);
    console.log(table(result));
    const met = result.ratios["onnxruntime-web"].first <= TARGET;
    console.log(`target for the first vector: at most ${TARGET}x, ${met ? "met" : "MISSED"}`);
  }
  if (!(difference <= LARGEST_DIFFERENCE)) {
    console.error(`the vectors differ by ${difference}, more than ${LARGEST_DIFFERENCE}: one of them is wrong, and no time counts`);
    process.exitCode = 1;
  }
} finally {
  await browser.close();
  server.close();
}
