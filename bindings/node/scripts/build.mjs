// Builds the add-on for this machine as a package of npm: bindings/node/npm/<platform>-<arch>. It needs Rust and node.
// `cargo xtask build --node` runs it and adds the notices of what is compiled in.
// `node scripts/build.mjs`, or `node scripts/build.mjs --profile dev` for an add-on that is built sooner and runs slower.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const own = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(dirname(own));
const { profile } = parseArgs({ options: { profile: { type: "string", default: "release" } } }).values;

/** Linux has packages for its two C libraries: node says which one it was built with. */
const isMusl = process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
const name = `${process.platform}-${process.arch}${isMusl ? "-musl" : ""}`;
const LIBRARIES = { darwin: "libisovec_node.dylib", win32: "isovec_node.dll" };

execFileSync("cargo", ["build", "--package", "isovec-node", "--profile", profile], { cwd: root, stdio: "inherit" });
const metadata = JSON.parse(execFileSync("cargo", ["metadata", "--no-deps", "--format-version", "1"], { cwd: root, maxBuffer: 1 << 28 }));
const built = join(metadata.target_directory, profile === "dev" ? "debug" : profile, LIBRARIES[process.platform] ?? "libisovec_node.so");

const folder = join(own, "npm", name);
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
copyFileSync(built, join(folder, "isovec.node"));
for (const file of ["LICENSE-MIT", "LICENSE-APACHE"]) copyFileSync(join(root, file), join(folder, file));
copyFileSync(join(own, "README.md"), join(folder, "README.md"));
const { version, license, repository } = JSON.parse(readFileSync(join(root, "bindings", "js", "package.json"), "utf8"));
const manifest = {
  name: `@isovec/${name}`,
  version,
  description: `The npm package isovec at native speed: its add-on for ${name}.`,
  license,
  repository: { ...repository, directory: "bindings/node" },
  main: "isovec.node",
  files: ["isovec.node", "LICENSE-*", "THIRD-PARTY-NOTICES"],
  // No loader of the system opens a file within an archive.
  preferUnplugged: true,
  engines: { node: ">=20" },
  os: [process.platform],
  cpu: [process.arch],
  // An installer takes the package that fits.
  ...(process.platform === "linux" && { libc: [isMusl ? "musl" : "glibc"] }),
};
writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
console.log(folder);
