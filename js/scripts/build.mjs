// Builds the package: Rust to wasm in several builds, wasm-bindgen's glue for each, TypeScript.
// `cargo xtask` sets the toolchain and puts the pinned wasm-bindgen on the path.
//
// wasm-opt is left out on purpose: what it saves of the module costs more than it saves once the
// module is compressed (measured: a download that is 5 % larger).
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const js = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(js);
const run = (program, args, cwd, env = {}) => execFileSync(program, args, { cwd, stdio: "inherit", env: { ...process.env, ...env } });

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
 * The builds, by the names that js/ts/builds.ts gives them. Other flags than those of .cargo/config.toml have folders of
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

for (const folder of ["pkg", "dist"]) rmSync(join(js, folder), { recursive: true, force: true });
for (const [name, { folder, env, args = [] }] of Object.entries(BUILDS)) {
  run("cargo", [...CARGO, ...args, "--target-dir", folder, "--", "-C", "strip=none"], root, env);
  const out = join(js, "pkg", name);
  mkdirSync(out, { recursive: true });
  run("wasm-bindgen", [...BINDGEN, "--out-dir", out, join(folder, "wasm32-unknown-unknown", "wasm", "isovec_js.wasm")], js);
}
// The advisor is asked by few pages, and by those seldom: a module of its own, which the others do not download.
run("cargo", [...CARGO.map((arg) => (arg === "isovec-js" ? "isovec-js-advisor" : arg)), "--", "-C", "strip=none"], root);
mkdirSync(join(js, "pkg", "advisor"), { recursive: true });
run("wasm-bindgen", [...BINDGEN, "--out-dir", join(js, "pkg", "advisor"), join(target, "wasm32-unknown-unknown", "wasm", "isovec_js_advisor.wasm")], js);
run(process.execPath, [join(js, "node_modules", "typescript", "bin", "tsc")], js);
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
