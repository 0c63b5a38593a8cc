// Builds the package: Rust to wasm in several builds, wasm-bindgen's glue for each, TypeScript.
// `cargo xtask` sets the toolchain and puts the pinned wasm-bindgen on the path.
//
// wasm-opt is left out on purpose: what it saves of the module costs more than it saves once the
// module is compressed (measured: a download that is 5 % larger).
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

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
const GETRANDOM = '--cfg getrandom_backend="wasm_js"';

/** One memory for all threads, which JavaScript makes, and what wasm-bindgen needs to give each its stack. */
const THREADS = [
  "-C target-feature=+atomics,+bulk-memory,+mutable-globals,+simd128,+relaxed-simd",
  ...["--shared-memory", "--import-memory", `--max-memory=${2 ** 32}`].map((arg) => `-C link-arg=${arg}`),
  ...["__wasm_init_tls", "__tls_size", "__tls_align", "__tls_base"].map((name) => `-C link-arg=--export=${name}`),
];

/**
 * The builds, by the names that bindings/js/ts/builds.ts gives them. Other flags than those of .cargo/config.toml have folders of
 * their own: in one folder each build would compile everything anew.
 */
const BUILDS = {
  simd128: { folder: target, env: {} },
  relaxed: { folder: join(target, "relaxed"), env: { RUSTFLAGS: `-C target-feature=+simd128,+relaxed-simd ${GETRANDOM}` } },
  // Threads need a standard library that knows of them, which no toolchain ships: it is built here from its source, by
  // options of cargo that are still called unstable.
  threads: {
    folder: join(target, "threads"),
    env: { RUSTC_BOOTSTRAP: "1", RUSTFLAGS: `${THREADS.join(" ")} ${GETRANDOM}` },
    args: ["-Zbuild-std=std,panic_abort"],
  },
  // For models that the others' programs do not take. It lies beside simd128, with which it shares most of what is compiled.
  tract: { folder: target, env: {}, args: ["--features", "tract"] },
  // The advisor is asked by few pages, and by those seldom: a module of its own, which the others do not download.
  advisor: { folder: target, env: {}, crate: "isovec-js-advisor", module: "isovec_js_advisor" },
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

async function make(name) {
  const { folder, env, args = [], crate = "isovec-js", module = "isovec_js" } = BUILDS[name];
  const cargo = CARGO.map((arg) => (arg === "isovec-js" ? crate : arg));
  await run("cargo", [...cargo, ...args, "--target-dir", folder, "--", "-C", "strip=none"], root, env);
  const out = join(js, "pkg", name);
  mkdirSync(out, { recursive: true });
  await run("wasm-bindgen", [...BINDGEN, "--out-dir", out, join(folder, "wasm32-unknown-unknown", "wasm", `${module}.wasm`)], js);
}

for (const folder of ["pkg", "dist"]) rmSync(join(js, folder), { recursive: true, force: true });
// Two folders at a time: a build ends in minutes of optimising the whole on one core. In one folder they wait for each other.
const lanes = new Map(Object.values(BUILDS).map(({ folder }) => [folder, []]));
for (const [name, { folder }] of Object.entries(BUILDS)) lanes.get(folder).push(name);
const waiting = [...lanes.values()];
const worker = async () => {
  for (let lane = waiting.shift(); lane; lane = waiting.shift()) for (const name of lane) await make(name);
};
await Promise.all([worker(), worker()]);
await run(process.execPath, [join(js, "node_modules", "typescript", "bin", "tsc")], js);
// A file for each entry and worker, and what they share: without a bundler every module would be a request, one after
// another. The glue stays where it lies, beside its module. In one folder, because addresses are relative to the file.
await build({
  entryPoints: ["index", "inline", "compat", "advisor", "worker", "thread"].map((entry) => join(js, "ts", `${entry}.ts`)),
  outdir: join(js, "dist"),
  bundle: true,
  splitting: true,
  chunkNames: "chunk-[hash]",
  format: "esm",
  target: "es2022",
  sourcemap: true,
  external: ["../pkg/*"],
});
for (const license of ["LICENSE-MIT", "LICENSE-APACHE"]) copyFileSync(join(root, license), join(js, license));
