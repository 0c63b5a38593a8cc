// The npm package in node, with its add-on, against transformers.js there, which runs ONNX Runtime natively. Run it with
// `cargo xtask bench node`, which builds and installs what it needs.
//
// Each contestant has a process of its own, and takes as many threads as it takes by itself unless `--threads` says how many.
// They take turns case by case, so that all see the same machine; a ratio is of two turns that follow one another.
import { execFileSync, fork } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { OPTIONS, count, js } from "../page/common.mjs";
import { median } from "../page/report.mjs";
import { cases as allCases } from "../wasm/cases.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const addon = join(js, "..", "node");
const CASES = ["1x16", "1x128", "32 mixed"];
/** How long a case is run before anything counts. */
const WARM_UP_MS = 1500;
/** Pairs of contestants by what they are told, ours first: the other is what it is compared with. */
const PAIRS = [
  ["f32", { kind: "isovec", dtype: "f32", engine: "portable" }, { kind: "transformers", dtype: "fp32" }],
  ["f32 on ONNX Runtime", { kind: "isovec", dtype: "f32", engine: "onnxruntime" }, { kind: "transformers", dtype: "fp32" }],
  ["int8 to q8", { kind: "isovec", dtype: "int8", engine: "portable" }, { kind: "transformers", dtype: "q8" }],
  ["int8-fast to q8", { kind: "isovec", dtype: "int8-fast", engine: "portable" }, { kind: "transformers", dtype: "q8" }],
];

const { values: options } = parseArgs({
  options: { ...OPTIONS, samples: { type: "string", default: "9" }, threads: { type: "string" }, python: { type: "string", default: process.env.PYTHON ?? "python3" } },
});

/** The model as transformers.js takes it from a folder: in f32, and in q8 as its own conversion makes it (../transformers/quantize.py). */
function converted(scratch) {
  const run = (program, ...args) => execFileSync(program, args, { stdio: ["ignore", "ignore", "inherit"] });
  const [plain, folder] = ["plain", join("models", "model")].map((name) => join(scratch, name));
  run(options.isovec, "export", "--model", options.model, "--no-head", "--out", plain);
  mkdirSync(join(folder, "onnx"), { recursive: true });
  cpSync(options.model, folder, { recursive: true, filter: (path) => !path.endsWith(".safetensors") });
  cpSync(join(plain, "model.onnx"), join(folder, "onnx", "model.onnx"));
  run(options.python, join(here, "..", "transformers", "quantize.py"), join(plain, "model.onnx"), join(folder, "onnx", "model_quantized.onnx"));
  return dirname(folder);
}

/** The add-on, built as it is published. */
function native() {
  execFileSync(process.execPath, [join(addon, "scripts", "build.mjs")], { stdio: ["ignore", "ignore", "inherit"] });
  return join(addon, "npm", readdirSync(join(addon, "npm"))[0], "isovec.node");
}

/** A contestant in a process of its own: a function that gives the times of a turn, or its vectors. */
async function seat(place, env) {
  const child = fork(join(here, "seat.mjs"), { env });
  const answer = (message) =>
    new Promise((resolve, reject) => {
      child.once("message", ({ error, value }) => (error ? reject(new Error(error)) : resolve(value)));
      child.send(message);
    });
  await answer(place);
  return { turn: answer, end: () => child.kill() };
}

/** The largest difference of two lists of numbers. */
const apart = (one, other) => Math.max(...one.map((value, at) => Math.abs(value - other[at])));

const scratch = mkdtempSync(join(tmpdir(), "isovec-bench-node-"));
try {
  const samples = count(options.samples);
  const env = { ...process.env, ISOVEC_NATIVE: process.env.ISOVEC_NATIVE ?? native(), ISOVEC_REQUIRE_NATIVE: "1" };
  const shared = { model: options.model, models: converted(scratch), threads: options.threads && count(options.threads) };
  const cases = allCases(options.model).cases.filter(({ name }) => CASES.includes(name));
  const rows = [];
  const load = [loadavg()[0]];
  for (const [name, ...places] of PAIRS) {
    const [ours, theirs] = await Promise.all(places.map((place) => seat({ ...shared, ...place }, env)));
    for (const { name: length, texts, calls } of cases) {
      const vectors = [];
      for (const { turn } of [ours, theirs]) {
        for (const from = performance.now(); performance.now() - from < WARM_UP_MS; ) await turn({ texts, calls });
        vectors.push(await turn({ texts }));
      }
      const times = { ours: [], theirs: [], ratios: [] };
      for (let round = 0; round < samples; round++) {
        const [own, other] = [await ours.turn({ texts, calls }), await theirs.turn({ texts, calls })];
        times.ours.push(own);
        times.theirs.push(other);
        times.ratios.push(other / own);
      }
      rows.push({ name, length, ours: median(times.ours), theirs: median(times.theirs), ratio: median(times.ratios), difference: apart(...vectors) });
    }
    ours.end();
    theirs.end();
  }
  load.push(loadavg()[0]);
  if (options.json) console.log(JSON.stringify({ node: process.versions.node, threads: options.threads ?? "default", samples, load, rows }));
  else {
    console.log(`node ${process.versions.node}, ${options.threads ?? "default"} threads, median of ${samples} rounds, load ${load.map((one) => one.toFixed(1)).join(" to ")}`);
    console.log("| | case | isovec, ms | transformers.js, ms | times as fast | largest difference |\n|---|---|---|---|---|---|");
    for (const { name, length, ours, theirs, ratio, difference } of rows) console.log(`| ${name} | ${length} | ${ours.toFixed(2)} | ${theirs.toFixed(2)} | ${ratio.toFixed(2)} | ${difference.toExponential(1)} |`);
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
