// isovec with int8 weights against transformers.js at its default (q8), and against itself in f32: what
// is downloaded, the first vector, warmed runs, and how far the vectors are from the model's. Run it
// with `cargo xtask bench transformers`, which builds and installs what it needs.
//
// Everybody computes on one thread. Warmed runs: contestants take turns, each in a process of its own
// (../wasm/rounds.mjs). First vectors: visits of one browser with an empty profile, then again with what
// the browser kept (visits.mjs). What a page feels: tab.mjs.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { OPTIONS, count, js, launch, versions } from "../page/common.mjs";
import { folder } from "../page/server.mjs";
import { median } from "../page/report.mjs";
import { cases as allCases } from "../wasm/cases.mjs";
import { rounds } from "../wasm/rounds.mjs";
import { inBrowser, inNode } from "../wasm/seats.mjs";
import { inFirefox } from "./firefox.mjs";
import { models } from "./models.mjs";
import { quality, reference } from "./quality.mjs";
import { table } from "./report.mjs";
import { serve } from "./server.mjs";
import { lines, tab } from "./tab.mjs";
import { visit } from "./visits.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const packages = join(here, "node_modules");
/** The module that transformers.js takes by default where there is no GPU. */
const ONNXRUNTIME = "ort-wasm-simd-threaded.asyncify";
const CASES = ["1x16", "1x128", "32 mixed"];
/** Models, profiles and what node keeps; gone when the bench ends. */
const scratch = mkdtempSync(join(tmpdir(), "isovec-transformers-"));
/** Ours first: the others are what it is compared with. `place`: what the contestant is told. */
const CONTESTANTS = [
  { name: "isovec int8", module: "isovec", place: { folder: "/int8/", threads: 1 } },
  { name: "isovec f32", module: "isovec", place: { folder: "/model/", threads: 1 } },
  {
    name: "transformers.js q8",
    module: "transformers",
    place: { transformers: "/transformers/transformers.min.js", onnxruntime: `/onnxruntime/${ONNXRUNTIME}` },
    inNode: { transformers: pathToFileURL(join(packages, "@huggingface/transformers/dist/transformers.node.mjs")).href, onnxruntime: undefined, cache: join(scratch, "hub") },
  },
];

const { values: options } = parseArgs({
  options: { ...OPTIONS, firefox: { type: "string", default: process.env.FIREFOX ?? "firefox-esr" }, samples: { type: "string", default: "9" }, python: { type: "string", default: process.env.PYTHON ?? "python3" } },
});
const samples = count(options.samples);
const progress = (line) => process.stderr.write(`${line}\n`);

const load = [loadavg()[0]];
let server, browser;
try {
  server = await serve(
    new Map([
      ...folder("/page/", join(here, "page")),
      ...folder("/wasm/", join(here, "..", "wasm"), (name) => name.endsWith(".mjs")),
      ...folder("/isovec/dist/", join(js, "dist"), (name) => name.endsWith(".js")),
      ...folder("/isovec/pkg/", join(js, "pkg"), (name) => /\.(js|wasm)$/.test(name)),
      ...folder("/transformers/", join(packages, "@huggingface/transformers/dist"), (name) => name === "transformers.min.js"),
      ...folder("/onnxruntime/", join(packages, "onnxruntime-web/dist"), (name) => name.startsWith(ONNXRUNTIME)),
      ...models(options, scratch),
      ["/seat.html", Buffer.from("<!doctype html><title>seat</title>")],
    ]),
  );
  const { origin } = server;
  const first = {};
  for (let round = 0; round <= samples; round++) {
    for (const { name, module, place } of CONTESTANTS) {
      const seen = await visit(options, join(scratch, "profile"), server, { module, place });
      progress(`${round === 0 ? "not counted" : `${round} of ${samples}`}  ${name.padEnd(20)} ${seen.cold.ms.toFixed(0)} ms, again ${seen.warm.ms.toFixed(0)} ms`);
      // Round 0 is the server's and the disk's.
      if (round > 0) (first[name] ??= []).push(seen);
    }
  }

  const chosen = allCases(options.model).cases.filter(({ name }) => CASES.includes(name));
  const texts = reference();
  const all = [...chosen, { name: "quality", calls: 1, texts: texts.texts, ids: texts.texts.map(() => [0]) }];
  const run = async (sit, where) => {
    const seats = [];
    try {
      for (const { name, module, place, inNode } of CONTESTANTS) {
        seats.push({ name, ...(await sit({ module, ...place, ...(where === "node" ? inNode : {}) })) });
      }
      const vectors = {};
      for (const { name, turn } of seats) {
        // Each text alone, where there is a choice: kindest to those whose texts share a scale.
        const way = (await turn()).at(-1);
        vectors[name] = quality(texts, (await turn({ case: "quality", way, calls: 1, vectors: true })).vectors);
      }
      const seen = await rounds({ seats, cases: chosen, samples, progress: (line) => progress(`${where}  ${line}`) });
      return { vectors, seen: seen.map(({ entries, ...rest }) => ({ ...rest, entries: entries.map(({ vectors, ...entry }) => entry) })) };
    } finally {
      for (const { leave } of seats) await leave();
    }
  };
  browser = await launch(options);
  const page = await run(inBrowser(browser, origin, all), "browser");
  progress("what a page feels");
  const felt = await tab(browser, origin, { model: options.model, samples, place: CONTESTANTS.at(-1).place });
  const transformers = JSON.parse(readFileSync(join(packages, "@huggingface/transformers/package.json"), "utf8")).version;
  const known = { ...versions(browser), transformers };
  await browser.close();
  const node = await run(inNode(origin, all), "node");
  const other = await inFirefox(options.firefox, scratch, server, { contestants: CONTESTANTS, cases: chosen, texts: texts.texts, samples, progress });
  for (const [name, found] of Object.entries(other.vectors)) other.vectors[name] = quality(texts, found);
  load.push(loadavg()[0]);
  const result = { versions: { ...known, node: process.versions.node }, samples, load, first, page, felt, node, firefox: other };
  if (options.json) console.log(JSON.stringify(result, null, 2));
  else console.log([table(result, median), "", ...lines(felt, median)].join("\n"));
} finally {
  await browser?.close();
  server?.close();
  rmSync(scratch, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}
