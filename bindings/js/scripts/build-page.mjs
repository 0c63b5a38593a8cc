// Builds the page: what is in www/, and the npm package beside it under isovec/.
//
// `cargo xtask build --page` names what native isovec made for it: ISOVEC_PAGE_INDEX, the index of the sample, and
// ISOVEC_PAGE_MODEL, the folder of an exported model. Without a model the page takes it from the hub.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const js = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(dirname(js));
const www = join(root, "www");
const dist = join(www, "dist");
const { ISOVEC_PAGE_INDEX: index, ISOVEC_PAGE_MODEL: model } = process.env;
if (!index || !existsSync(index)) throw new Error("ISOVEC_PAGE_INDEX names no index of the sample; `cargo xtask build --page` makes one");

/** All files of a folder, by their paths in it. */
const list = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath ?? entry.path, entry.name)).split(sep).join("/"))
    .sort();
const isCode = (path) => /\.(js|wasm)$/.test(path);
const isLarge = (path) => path.endsWith(".wasm");
const size = (path) => statSync(join(dist, path)).size;

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
for (const project of [www, join(www, "src", "sw")]) {
  execFileSync(process.execPath, [join(js, "node_modules", "typescript", "bin", "tsc"), "--project", project], { stdio: "inherit" });
}
// The page is written as a package's user would write it; a browser knows the package by its place.
const bundle = (entryPoints, more) =>
  esbuild.build({
    absWorkingDir: join(www, "src"), entryPoints, outdir: dist,
    bundle: true, format: "esm", target: "es2022", minify: true, sourcemap: true,
    alias: { isovec: "./isovec/dist/index.js" }, external: ["./isovec/*"], ...more,
  });
await bundle({ main: "main.ts", map: "map/worker.ts", style: "style.css" });
for (const file of ["index.html", "icon.svg"]) copyFileSync(join(www, "src", file), join(dist, file));
// The page asks for no advice.
const isAdvice = (path) => path.startsWith("advisor");
for (const folder of ["dist", "pkg"]) {
  for (const path of list(join(js, folder)).filter((path) => isCode(path) && !isAdvice(path))) cpSync(join(js, folder, path), join(dist, "isovec", folder, path));
}
mkdirSync(join(dist, "sample"));
copyFileSync(index, join(dist, "sample", "sample.safetensors"));
cpSync(join(root, "tests", "data", "reference"), join(dist, "reference"), { recursive: true, filter: (path) => !path.endsWith(".md") });

// The page's own model is an encoder: it never fetches the build that is for others.
const builds = readdirSync(join(js, "pkg")).filter((build) => !isAdvice(build) && !["tract", "image"].includes(build));
const engine = Object.fromEntries(builds.map((build) => [build, size(`isovec/pkg/${build}/isovec_js_bg.wasm`)]));
const models = model ? list(model) : [];
// A version is named by what it is made of, so that a service worker knows its own files from another's.
const files = list(dist).filter((path) => !path.endsWith(".map"));
const hash = createHash("sha256");
for (const path of files) hash.update(path).update(readFileSync(join(dist, path)));
hash.update(readFileSync(join(www, "src", "sw", "sw.ts")));
for (const path of models) hash.update(path).update(readFileSync(join(model, path)));
const about = { hash: hash.digest("hex").slice(0, 16), model: models.length > 0, engine };
writeFileSync(join(dist, "build.json"), JSON.stringify(about));
const kept = [...files, "build.json"];
const BUILD = { hash: about.hash, files: kept.filter((path) => !isLarge(path)), large: kept.filter(isLarge) };
await bundle({ sw: "sw/sw.ts" }, { format: "iife", define: { BUILD: JSON.stringify(BUILD) } });
if (models.length > 0) cpSync(model, join(dist, "model"), { recursive: true });
