// The packages as users install them, in an empty folder: isovec and the add-on's, in node and in Bun. Run by
// `cargo xtask test node`, which builds them.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { assertVectors, texts } from "../../js/tests/everywhere/page.mjs";
import { js, tiny } from "../../js/tests/site.mjs";

const packages = join(dirname(dirname(fileURLToPath(import.meta.url))), "npm");
const [name] = readdirSync(packages);
const { version } = JSON.parse(readFileSync(join(js, "package.json"), "utf8"));
const windows = process.platform === "win32";
const folder = mkdtempSync(join(tmpdir(), "isovec-node-package-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const npm = (args, cwd) => execFileSync(windows ? "npm.cmd" : "npm", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], shell: windows });

/** What `npm pack` makes of a package: its files, and where it lies. */
function packed(from) {
  const [{ filename, files }] = Object.values(JSON.parse(npm(["pack", "--json", "--ignore-scripts", "--pack-destination", folder], from)));
  return { path: join(folder, filename), files: files.map(({ path }) => path).sort() };
}

const PROGRAM = `
import { Embedder } from "isovec";
const embedder = await Embedder.load(process.argv[2]);
const vectors = await embedder.embed(JSON.parse(process.argv[3]));
console.log(JSON.stringify({ build: embedder.build, why: embedder.effectiveConfig().find(({ name }) => name === "build")?.why, rows: Array.from(vectors, (row) => Array.from(row)) }));
`;
writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
writeFileSync(join(folder, "main.js"), PROGRAM);
// Nothing but the installed packages says where the add-on is.
const env = { ...process.env, ISOVEC_NATIVE: "", ISOVEC_REQUIRE_NATIVE: "" };
const run = (runtime, args = []) => JSON.parse(execFileSync(runtime, [...args, "main.js", tiny, JSON.stringify(texts)], { cwd: folder, env, encoding: "utf8" }));
const install = (...tarballs) => npm(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", ...tarballs], folder);
const isovec = packed(js);
const addon = packed(join(packages, name));

test("the add-on's package has what it says, and the version of isovec", () => {
  assert.deepEqual(addon.files, ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "THIRD-PARTY-NOTICES", "isovec.node", "package.json"]);
  const manifest = JSON.parse(readFileSync(join(packages, name, "package.json"), "utf8"));
  assert.deepEqual([manifest.version, manifest.os, manifest.cpu], [version, [process.platform], [process.arch]]);
});

test("isovec alone computes by wasm, and says what would be faster", () => {
  install(isovec.path);
  const { build, why, rows } = run(process.execPath);
  assert.ok(["relaxed", "simd128"].includes(build) && why.includes(`@isovec/${name} is not installed`), `${build}: ${why}`);
  assertVectors(rows);
});

test("beside the add-on's package it computes natively", () => {
  install(isovec.path, addon.path);
  const { build, why, rows } = run(process.execPath);
  assert.deepEqual([build, why], ["native", undefined]);
  assertVectors(rows);
});

const bun = join(js, "tests", "everywhere", "node_modules", "@oven");
test("Bun computes natively as well", { skip: existsSync(bun) ? false : "Bun is not here" }, () => {
  const [first] = readdirSync(bun);
  const { build, rows } = run(join(bun, first, "bin", windows ? "bun.exe" : "bun"));
  assert.equal(build, "native");
  assertVectors(rows);
});
