// What it costs that a worker gives its event loop a turn every 20 ms, and what that buys: how long after an abort the next
// request begins. Run it with `cargo xtask bench turns`, which builds and installs what it needs.
//
// The cost is measured twice. Runs with turns and runs without take turns: the engine gives none while its clock stands
// (page/worker.js). And in the runs with turns it is counted how long each one took to come.
import { loadavg } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { OPTIONS, count, js, launch } from "../page/common.mjs";
import { median } from "../page/report.mjs";
import { folder, serve } from "../page/server.mjs";
import { text } from "../page/texts.mjs";

const here = dirname(fileURLToPath(import.meta.url));
/** Texts of a run that is measured, and those of a round, which are so many runs. */
const RUN = 100;
const ROUND = 1000;
/** Tokens of a text that is embedded while an abort comes. */
const LENGTHS = [16, 256];
/** What the project wants: parts of a run's time, and milliseconds. */
const TARGETS = { cost: 0.01, next: 50 };

const { values: options } = parseArgs({ options: { ...OPTIONS, samples: { type: "string", default: "15" } } });
const samples = count(options.samples);
const progress = (line) => process.stderr.write(`${line}\n`);

const load = [loadavg()[0]];
const server = await serve(
  new Map([
    ...folder("/page/", join(here, "page")),
    ...folder("/isovec/dist/", join(js, "dist"), (name) => name.endsWith(".js")),
    ...folder("/isovec/pkg/", join(js, "pkg"), (name) => /\.(js|wasm)$/.test(name)),
    ...folder("/model/", options.model, (name) => /\.(json|safetensors)$/.test(name)),
    ["/turns.html", Buffer.from("<!doctype html><title>turns</title>")],
  ]),
);
const browser = await launch(options);
try {
  const short = text(options.model, 16).text;
  const cost = await costs(Array(RUN).fill(short));
  const next = {};
  for (const tokens of LENGTHS) next[tokens] = await aborts(Array(ROUND).fill(text(options.model, tokens).text), short);
  load.push(loadavg()[0]);
  const result = { chromium: browser.version(), samples, load, targets: TARGETS, cost, next };
  console.log(options.json ? JSON.stringify(result, null, 2) : lines(result).join("\n"));
} finally {
  await browser.close();
  server.close();
}

/** A page of its own, with the model loaded by a script of `page/`. */
async function open(script) {
  const page = await browser.newPage();
  await page.goto(`${server.origin}/turns.html`);
  await page.evaluate((script) => import(`/page/${script}.js`), script);
  await page.evaluate((origin) => globalThis.load(`${origin}/model/`), server.origin);
  return page;
}

/**
 * Runs with turns and without, one after another, and which of them is the first changes. Runs are short, so that what else the
 * machine does falls on both of a pair.
 */
async function costs(texts) {
  const page = await open("runs");
  const run = (turns) => page.evaluate(([texts, turns]) => globalThis.run(texts, turns), [texts, turns]);
  const seen = [];
  // Round 0 does not count: the kernels are still being chosen, by the clock.
  for (let at = 0; at < ROUND / RUN; at++) await run(true);
  for (let round = 1; round <= samples; round++) {
    const pairs = [];
    while (pairs.length < ROUND / RUN) {
      const pair = {};
      for (const turns of pairs.length % 2 ? [true, false] : [false, true]) pair[turns ? "with" : "without"] = await run(turns);
      pairs.push(pair);
    }
    const sum = (which) => pairs.reduce((sum, pair) => sum + pair[which].ms, 0).toFixed(0);
    progress(`${round} of ${samples}  with turns ${sum("with")} ms, without ${sum("without")} ms`);
    seen.push(...pairs);
  }
  await page.close();
  return seen;
}

/** Milliseconds from an abort in the middle of a run of `texts` to the vector of `next`, and what that takes alone. */
async function aborts(texts, next) {
  const page = await open("aborts");
  const seen = await page.evaluate(([texts, next, rounds]) => globalThis.measure(texts, next, rounds), [texts, next, 4 * samples]);
  await page.close();
  return seen;
}

function lines({ chromium, cost, next }) {
  /** The middle, and where the middle half lies. */
  const middle = (values, digits) => {
    const sorted = [...values].sort((a, b) => a - b);
    const [low, high] = [0.25, 0.75].map((part) => sorted[Math.floor(part * (sorted.length - 1))]);
    return `${median(sorted).toFixed(digits)} (${low.toFixed(digits)} to ${high.toFixed(digits)})`;
  };
  const most = (values) => Math.max(...values).toFixed(1);
  const of = (which, what) => cost.map((pair) => pair[which][what]);
  const waited = cost.map((pair) => (100 * pair.with.waited) / pair.with.ms);
  const paired = cost.map((pair) => 100 * (pair.with.ms / pair.without.ms - 1));
  const each = cost.map((pair) => pair.with.waited / pair.with.turns);
  return [
    `Chromium ${chromium}, f32, one thread of a worker, texts of 16 tokens; medians (the middle half); load average ${load.map((one) => one.toFixed(1)).join(" before, ")} after`,
    `${RUN} texts with turns  ${middle(of("with", "ms"), 0)} ms, ${median(of("with", "turns"))} turns, each of which took ${middle(each, 3)} ms to come`,
    `${RUN} texts without     ${middle(of("without", "ms"), 0)} ms, ${median(of("without", "turns"))} turns`,
    `until turns came     ${middle(waited, 2)} % of the time; of ${cost.length} pairs ${middle(paired, 2)} %; target at most ${100 * TARGETS.cost} %`,
    ...Object.entries(next).map(([tokens, { next, alone }]) => {
      const begins = next.map((one) => one - median(alone));
      return `abort among texts of ${tokens} tokens, ${next.length} times: the next request begins after ${middle(begins, 1)} ms, at most ${most(begins)}; its vector is there after ${middle(next, 1)}, without an abort before it after ${middle(alone, 1)}; target at most ${TARGETS.next} ms`;
    }),
  ];
}
