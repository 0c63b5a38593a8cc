// Builds the package: Rust to wasm, wasm-bindgen's glue, TypeScript. `cargo xtask` sets the
// toolchain and puts the pinned wasm-bindgen on the path.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const js = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(js);
const run = (program, args, cwd) => execFileSync(program, args, { cwd, stdio: "inherit" });

run("cargo", ["build", "--package", "isovec-js", "--profile", "wasm", "--target", "wasm32-unknown-unknown"], root);
const metadata = execFileSync("cargo", ["metadata", "--no-deps", "--format-version", "1"], { cwd: root, maxBuffer: 1 << 28 });
const target = JSON.parse(metadata).target_directory;
const module = join(target, "wasm32-unknown-unknown", "wasm", "isovec_js.wasm");

for (const folder of ["pkg", "dist"]) rmSync(join(js, folder), { recursive: true, force: true });
mkdirSync(join(js, "pkg"));
run("wasm-bindgen", ["--target", "web", "--out-dir", join(js, "pkg"), module], js);
run(process.execPath, [join(js, "node_modules", "typescript", "bin", "tsc")], js);
for (const license of ["LICENSE-MIT", "LICENSE-APACHE"]) copyFileSync(join(root, license), join(js, license));
