// Builds the package: Rust to wasm in several builds, wasm-bindgen's glue for each, TypeScript.
// `cargo xtask` sets the toolchain and puts the pinned wasm-bindgen on the path.
//
// wasm-opt is left out on purpose: what it saves of the module costs more than it saves once the
// module is compressed (measured: a download that is 5 % larger).
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const js = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(js);
const run = (program, args, cwd, env = {}) => execFileSync(program, args, { cwd, stdio: "inherit", env: { ...process.env, ...env } });

const metadata = execFileSync("cargo", ["metadata", "--no-deps", "--format-version", "1"], { cwd: root, maxBuffer: 1 << 28 });
const target = JSON.parse(metadata).target_directory;
const GETRANDOM = '--cfg getrandom_backend="wasm_js"';

/**
 * The builds, by the names that js/ts/builds.ts gives them. Other flags than those of .cargo/config.toml have folders of
 * their own: in one folder each build would compile everything anew.
 */
const BUILDS = {
  simd128: { folder: target, env: {} },
  relaxed: { folder: join(target, "relaxed"), env: { RUSTFLAGS: `-C target-feature=+simd128,+relaxed-simd ${GETRANDOM}` } },
};

/**
 * Of the library's forms only the one that is shipped: link-time optimisation keeps more where there is another. The
 * section that names the features stays until wasm-bindgen has read it, which writes smaller code for what it then
 * knows of. (Measured, both together: 12 % of the module, 4.6 % of the download.)
 */
const CARGO = ["rustc", "--package", "isovec-js", "--lib", "--crate-type", "cdylib", "--profile", "wasm", "--target", "wasm32-unknown-unknown"];
const BINDGEN = ["--target", "web", "--remove-name-section", "--remove-producers-section"];

for (const folder of ["pkg", "dist"]) rmSync(join(js, folder), { recursive: true, force: true });
for (const [build, { folder, env }] of Object.entries(BUILDS)) {
  run("cargo", [...CARGO, "--target-dir", folder, "--", "-C", "strip=none"], root, env);
  const out = join(js, "pkg", build);
  mkdirSync(out, { recursive: true });
  run("wasm-bindgen", [...BINDGEN, "--out-dir", out, join(folder, "wasm32-unknown-unknown", "wasm", "isovec_js.wasm")], js);
}
run(process.execPath, [join(js, "node_modules", "typescript", "bin", "tsc")], js);
for (const license of ["LICENSE-MIT", "LICENSE-APACHE"]) copyFileSync(join(root, license), join(js, license));
