// Builds the package: Rust to wasm in several builds, wasm-bindgen's glue for each, TypeScript.
// `cargo xtask` sets the toolchain and puts the pinned wasm-bindgen on the path.
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

import { nameByOrder, shortImports } from "./smaller.mjs";

const js = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(dirname(js));
const children = new Set();

/** Runs a program with its output shown; a failure ends what runs beside it. */
function run(program, args, cwd, env = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, stdio: "inherit", env: { ...process.env, ...env } });
    children.add(child);
    child.on("error", reject);
    child.on("close", (code, signal) => {
      children.delete(child);
      if (code === 0) return resolve();
      for (const other of children) other.kill();
      reject(new Error(`${program} ${args.join(" ")} ended with ${code ?? signal}`));
    });
  });
}

const metadata = execFileSync("cargo", ["metadata", "--no-deps", "--format-version", "1"], { cwd: root, maxBuffer: 1 << 28 });
const target = JSON.parse(metadata).target_directory;
const sysroot = execFileSync("rustc", ["--print", "sysroot"], { cwd: root, encoding: "utf8" }).trim();

/** What else a module says of files names crates, not the folders of whoever built the package. */
const UNNAMED = [
  [join(process.env.CARGO_HOME ?? join(homedir(), ".cargo"), "registry", "src"), "crates"],
  [join(sysroot, "lib", "rustlib", "src", "rust"), "rust"],
].map(([from, to]) => `--remap-path-prefix=${from}=${to}`);
/**
 * Of every build, in place of the flags of .cargo/config.toml. A panic's message and line are enough to find it; with
 * files and columns the download is 1 % larger.
 */
const EVERY = ['--cfg=getrandom_backend="wasm_js"', "-Zlocation-detail=line", ...UNNAMED];

/**
 * What is derived as `Debug` says its type or variant alone: a download that is 3 % smaller. So nothing that reaches a user,
 * a cache or a fingerprint in these builds may be made of the fields that derived `Debug` shows.
 */
const SHALLOW = "-Zfmt-debug=shallow";
const SIMD = ["-Ctarget-feature=+simd128"];
/** One memory for all threads, which JavaScript makes, and what wasm-bindgen needs to give each its stack. */
const THREADS = [
  "-Ctarget-feature=+atomics,+bulk-memory,+mutable-globals,+simd128,+relaxed-simd",
  SHALLOW,
  ...["--shared-memory", "--import-memory", `--max-memory=${2 ** 32}`].map((arg) => `-Clink-arg=${arg}`),
  ...["__wasm_init_tls", "__tls_size", "__tls_align", "__tls_base"].map((name) => `-Clink-arg=--export=${name}`),
];

/**
 * The standard library is built here from its source, by options of cargo that are still called unstable: no toolchain
 * ships one that knows of threads, or one that is made for size (a download that is 2 % smaller).
 */
const STANDARD = ["-Zbuild-std=std,panic_abort", "-Zbuild-std-features=optimize_for_size"];

/**
 * The builds, by the names that bindings/js/ts/builds.ts gives them. Other flags have folders of their own: in one folder
 * each build would compile everything anew.
 */
const BUILDS = {
  simd128: { folder: target, flags: [...SIMD, SHALLOW] },
  // Most pages compute on the processor: they do not download what drives a GPU.
  relaxed: { folder: join(target, "relaxed"), flags: ["-Ctarget-feature=+simd128,+relaxed-simd", SHALLOW], args: ["--no-default-features"] },
  threads: { folder: join(target, "threads"), flags: THREADS },
  // For models that the others' programs do not take. It lies beside simd128, with which it shares most of what is compiled.
  tract: { folder: target, flags: [...SIMD, SHALLOW], args: ["--features", "tract"] },
  // The advisor is asked by few pages, and by those seldom: a module of its own, which the others do not download.
  advisor: { folder: join(target, "apart"), flags: SIMD, crate: "isovec-js-advisor", module: "isovec_js_advisor" },
  // Files of pictures become a model's values in a module that is fetched for the first model of pictures.
  image: { folder: join(target, "apart"), flags: SIMD, crate: "isovec-js-image", module: "isovec_js_image" },
};

/**
 * The section that names the features stays until wasm-bindgen has read it, which writes smaller code for what it then
 * knows of.
 *
 * Not with `--crate-type cdylib`: the crates below are then optimised by the level of the last one alone, and kernels for
 * size. (Measured: a download that is 4.6 % smaller, and runs that take 1.5 times as long.)
 */
const CARGO = ["rustc", "--package", "isovec-js", "--lib", "--profile", "wasm", "--target", "wasm32-unknown-unknown"];
const BINDGEN = ["--target", "web", "--remove-name-section", "--remove-producers-section"];

/**
 * What wasm-opt does at its first level, parameters and writes that nothing reads, and functions that are there twice make
 * the compressed module 3 % smaller; its higher levels make the module smaller and the compressed one larger (`-Oz`: by
 * 4 %). Functions in another order make it 4 % smaller. The features are those that the builds have between them: at this
 * level it uses none that a module does not use already.
 */
const FEATURES = ["simd", "relaxed-simd", "threads", "bulk-memory", "bulk-memory-opt", "sign-ext", "mutable-globals", "nontrapping-float-to-int", "reference-types", "multivalue"];
const SMALLER = ["-O1", "-s", "1", "--dae-optimizing", "--rse", "--vacuum", "--duplicate-function-elimination"];
const KNOWN = FEATURES.map((feature) => `--enable-${feature}`);
const wasmOpt = (wasm, passes) => run(process.execPath, [join(js, "node_modules", "binaryen", "bin", "wasm-opt"), ...KNOWN, ...passes, wasm, "-o", wasm], js);

/** What package.json exports. */
const ENTRIES = ["index", "inline", "compat", "advisor"];

async function make(name) {
  const { folder, flags, args = [], crate = "isovec-js", module = "isovec_js" } = BUILDS[name];
  const cargo = CARGO.map((arg) => (arg === "isovec-js" ? crate : arg));
  await run("cargo", [...cargo, ...STANDARD, ...args, "--target-dir", folder, "--", "-C", "strip=none"], root, {
    RUSTC_BOOTSTRAP: "1",
    // In this form folders may have spaces in their names.
    CARGO_ENCODED_RUSTFLAGS: [...flags, ...EVERY].join("\x1f"),
  });
  const out = join(js, "pkg", name);
  mkdirSync(out, { recursive: true });
  await run("wasm-bindgen", [...BINDGEN, "--out-dir", out, join(folder, "wasm32-unknown-unknown", "wasm", `${module}.wasm`)], js);
  const wasm = join(out, `${module}_bg.wasm`);
  const glue = join(out, `${module}.js`);
  // For tract's it takes minutes, and few pages fetch it.
  if (name !== "tract") {
    await wasmOpt(wasm, SMALLER);
    nameByOrder(wasm);
    await wasmOpt(wasm, ["--reorder-functions-by-name"]);
    shortImports(wasm, glue);
  }
  await build({ entryPoints: [glue], outfile: glue, allowOverwrite: true, format: "esm", target: "es2022", minify: true });
}

/**
 * Writes again what minifying took away: the comment that keeps bundlers from the two imports whose addresses only the
 * page knows. What stands behind them on their line is a few columns further on than its source map says.
 */
function keepOut(dist) {
  let found = 0;
  for (const file of readdirSync(dist).filter((name) => name.endsWith(".js"))) {
    const text = readFileSync(join(dist, file), "utf8");
    const kept = text.replace(/\bimport\((?=[\w$.]+\))/g, () => (found++, "import(/* webpackIgnore: true */ /* @vite-ignore */ "));
    if (kept !== text) writeFileSync(join(dist, file), kept);
  }
  if (found !== 2) throw new Error(`${found} imports of an address that is no text; the package has two`);
}

/**
 * Empties the lines of comments in the sources that debuggers show: types have the words for users, and the tarball is 1 % smaller.
 * Lines keep their numbers.
 */
function withoutComments(dist) {
  const COMMENTS = /^[ \t]*(?:\/\*(?:(?!\*\/)[\s\S])*\*\/|\/\/.*)[ \t]*$/gm;
  for (const file of readdirSync(dist).filter((name) => name.endsWith(".js.map"))) {
    const map = JSON.parse(readFileSync(join(dist, file), "utf8"));
    map.sourcesContent = map.sourcesContent.map((source) => source.replace(COMMENTS, (comment) => comment.replace(/.+/g, "")));
    writeFileSync(join(dist, file), JSON.stringify(map));
  }
}

/** Removes the types that no entry's types name: nobody can import them. */
function dropUnnamedTypes(dist) {
  const named = new Set();
  const walk = (file) => {
    if (named.has(file)) return;
    named.add(file);
    for (const [, address] of readFileSync(file, "utf8").matchAll(/\b(?:from|import)\s*\(?\s*"(\.[^"]+)\.js"/g)) walk(join(dirname(file), `${address}.d.ts`));
  };
  for (const entry of ENTRIES) walk(join(dist, `${entry}.d.ts`));
  for (const name of readdirSync(dist, { recursive: true })) {
    if (name.endsWith(".d.ts") && !named.has(join(dist, name))) rmSync(join(dist, name));
  }
}

for (const name of Object.keys(BUILDS)) if (!process.env.ONLY.split(",").includes(name)) delete BUILDS[name];
// Two folders at a time: a build ends in minutes of optimising the whole on one core. In one folder they wait for each other.
const lanes = new Map(Object.values(BUILDS).map(({ folder }) => [folder, []]));
for (const [name, { folder }] of Object.entries(BUILDS)) lanes.get(folder).push(name);
const waiting = [...lanes.values()];
const worker = async () => {
  for (let lane = waiting.shift(); lane; lane = waiting.shift()) for (const name of lane) await make(name);
};
await Promise.all([worker(), worker()]);
await run(process.execPath, [join(js, "node_modules", "typescript", "bin", "tsc")], js);
dropUnnamedTypes(join(js, "dist"));
// A file for each entry and worker, and what they share: without a bundler every module would be a request, one after
// another. The glue stays where it lies, beside its module. In one folder, because addresses are relative to the file.
await build({
  entryPoints: [...ENTRIES, "worker", "thread"].map((entry) => join(js, "ts", `${entry}.ts`)),
  outdir: join(js, "dist"),
  bundle: true,
  splitting: true,
  chunkNames: "chunk-[hash]",
  format: "esm",
  target: "es2022",
  minify: true,
  sourcemap: true,
  external: ["../pkg/*"],
  // The add-on for node is of the same version, or it is not used.
  define: { ISOVEC_VERSION: JSON.stringify(JSON.parse(readFileSync(join(js, "package.json"), "utf8")).version) },
});
keepOut(join(js, "dist"));
withoutComments(join(js, "dist"));
for (const license of ["LICENSE-MIT", "LICENSE-APACHE"]) copyFileSync(join(root, license), join(js, license));
