// The portable engine in a browser and in node against its peers there: warmed runs, exact token
// counts, one thread, and several where the package has a build with threads; then where the time
// of a run goes. Run it with `cargo xtask bench wasm`, which builds and installs what it needs.
//
// Every contestant has a process of its own, and all take turns within the same seconds: what else
// the machine does falls on all alike. Times are taken inside the process, around the call.
import { readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { LARGEST_DIFFERENCE, OPTIONS, contestantFiles, count, launch, versions } from "../page/common.mjs";
import { ISOLATED, folder, serve } from "../page/server.mjs";
import { cases as allCases, flops } from "./cases.mjs";
import { SHAPES, profileTable } from "./profile.mjs";
import { figures, table, worst } from "./report.mjs";
import { rounds } from "./rounds.mjs";
import { buildOf, inBrowser, inNode } from "./seats.mjs";
import { unpacked } from "./unpacked.mjs";

/** What node computes: enough to see whether the browser's figures hold there. */
const IN_NODE = ["1x16", "1x128"];

const { values: options } = parseArgs({
  options: {
    ...OPTIONS,
    samples: { type: "string", default: "15" },
    // One build of the package, where it has several; otherwise all of them are measured.
    build: { type: "string" },
    // Of the build with threads, and of the peer beside it.
    threads: { type: "string", default: "2" },
    // Modules that xtask builds. What is not named is left out.
    ceiling: { type: "string", default: process.env.ISOVEC_CEILING },
    "relaxed-ceiling": { type: "string", default: process.env.ISOVEC_RELAXED_CEILING },
    rten: { type: "string", default: process.env.ISOVEC_RTEN },
    profile: { type: "string", default: process.env.ISOVEC_PROFILE },
  },
});
const samples = count(options.samples);
const threads = count(options.threads);
const progress = (line) => process.stderr.write(`${line}\n`);

const files = new Map([
  ...folder("/wasm/", dirname(fileURLToPath(import.meta.url)), (name) => name.endsWith(".mjs")),
  ...contestantFiles(options),
  ["/seat.html", Buffer.from("<!doctype html><title>seat</title>")],
]);
const ceilings = { "relaxed-simd": options["relaxed-ceiling"], simd128: options.ceiling };
for (const [name, path] of Object.entries(ceilings)) {
  if (path) files.set(`/ceiling/${name}.wasm`, readFileSync(path));
  else delete ceilings[name];
}
if (options.profile) files.set("/profile.wasm", readFileSync(options.profile));
if (options.rten) {
  files.set("/rten.wasm", readFileSync(options.rten));
  files.set("/onnx/unpacked.onnx", unpacked(files.get("/onnx/model.onnx")));
}

/** The contestants on one thread and on several, ours first: the others are what it is compared with. */
function contestants() {
  // The build tract runs an encoder as simd128 does.
  const builds = [...files.keys()].filter((path) => path.startsWith("/isovec/pkg/") && path.endsWith("_bg.wasm")).map(buildOf).filter((build) => build !== "tract");
  const chosen = builds.filter((build) => !options.build || build === options.build);
  if (!chosen.length) throw new Error(`the package has no build ${options.build}; it has ${builds.join(", ")}`);
  const alone = chosen.filter((build) => build !== "threads");
  const peer = { name: "onnxruntime-web", module: "onnxruntime-web" };
  const together = (one) => ({ ...one, name: `${one.name}, ${threads} threads`, threads });
  return [
    ...alone.map((build) => ({ name: `isovec ${build}`, module: "isovec", build, worker: false, threads: 1 })),
    ...(alone.length ? [{ ...peer, threads: 1 }] : []),
    ...(alone.length && options.rten ? [{ name: "rten", module: "rten", threads: 1 }] : []),
    ...(chosen.length > alone.length ? [together({ name: "isovec", module: "isovec", build: "threads", worker: false }), together(peer)] : []),
  ];
}

/** Everybody takes a seat, and the rounds are run. Peers that cannot are left out with a word. */
async function run(sit, contestants, cases, where) {
  const seats = [];
  let limits;
  try {
    for (const { name, module, ...place } of contestants) {
      try {
        seats.push({ name, threads: place.threads, ...(await sit({ module, ...place })) });
      } catch (error) {
        if (module === "isovec") throw error;
        progress(`${name} is left out, ${where}: ${error.message}`);
      }
    }
    const names = Object.keys(ceilings);
    if (names.length) limits = await sit({ ceilings: names });
    const seen = await rounds({ seats, ceiling: limits, cases, samples, progress: (line) => progress(`${where}  ${line}`) });
    return figures(seen, cases.map((one) => flops(options.model, one)));
  } finally {
    for (const { leave } of seats) await leave();
    await limits?.leave();
  }
}

/** Where the time goes, shape by shape, on one thread with relaxed SIMD. */
async function profile(sit) {
  if (!options.profile) return [];
  const { turn, leave } = await sit({ module: "profile" });
  try {
    const shapes = [];
    for (const shape of SHAPES) shapes.push(await turn(shape));
    return shapes;
  } finally {
    await leave();
  }
}

const { cases, corpus } = allCases(options.model);
const load = [loadavg()[0]];
const server = await serve(files, ISOLATED);
try {
  const browser = await launch(options);
  let inPage;
  let profileInPage;
  try {
    inPage = await run(inBrowser(browser, server.origin, cases), contestants(), cases, "browser");
    profileInPage = await profile(inBrowser(browser, server.origin, cases));
  } finally {
    await browser.close();
  }
  const small = cases.filter(({ name }) => IN_NODE.includes(name));
  // Node has no workers that a page has.
  const inOne = contestants().filter(({ threads }) => threads === 1);
  const node = inOne.length ? await run(inNode(server.origin, small), inOne, small, "node") : [];
  const profileInNode = await profile(inNode(server.origin, small));
  load.push(loadavg()[0]);
  const result = {
    versions: { ...versions(browser), node: process.versions.node },
    samples,
    load,
    mixed: { from: corpus, tokens: cases.at(-1).ids.map((ids) => ids.length) },
    browser: inPage,
    node,
    profiles: { browser: profileInPage, node: profileInNode },
  };
  if (options.json) console.log(JSON.stringify(result, null, 2));
  else print(result);
  const difference = Math.max(worst(inPage), worst(node));
  if (!(difference <= LARGEST_DIFFERENCE)) {
    console.error(`the vectors differ by ${difference}, more than ${LARGEST_DIFFERENCE}: one of them is wrong, and no time counts`);
    process.exitCode = 1;
  }
} finally {
  server.close();
}

function print({ versions, samples, load, mixed, browser, node, profiles }) {
  const tokens = mixed.tokens.reduce((sum, one) => sum + one, 0);
  console.log(`isovec ${versions.isovec}, onnxruntime-web ${versions["onnxruntime-web"]}; one thread each where nothing else is said, in turn, ${samples} rounds; load average ${load.map((one) => one.toFixed(1)).join(" before, ")} after`);
  console.log(`mixed: ${mixed.tokens.length} texts of ${Math.min(...mixed.tokens)} to ${Math.max(...mixed.tokens)} tokens, ${tokens} in all, from ${mixed.from}`);
  console.log(`\nChromium ${versions.chromium}\n${table(browser)}`);
  if (node.length) console.log(`\nnode ${versions.node}\n${table(node)}`);
  const ceiling = browser[0]?.ceilings["relaxed-simd"];
  for (const [where, shapes] of Object.entries(profiles)) {
    for (const shape of shapes) console.log(`\nwhere the time goes, ${where}: ${profileTable(shape, ceiling)}`);
  }
}
