// What the benches in a browser have in common: where things lie, the files that are served, the
// browser. The packages beside this file are theirs as well.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { folder } from "./server.mjs";

const here = dirname(fileURLToPath(import.meta.url));
/** The folder of the npm package. */
export const js = join(here, "..", "..", "bindings", "js");
/** The folder of the peer's modules. */
export const onnxruntimeWeb = join(here, "node_modules", "onnxruntime-web", "dist");

/** No component may differ by more: the project's bound for fp32. */
export const LARGEST_DIFFERENCE = 2e-6;

/** Where set-up puts things (as `isovec::cache_dir`). */
export function cache() {
  if (process.env.ISOVEC_CACHE) return process.env.ISOVEC_CACHE;
  if (process.platform === "win32") return join(process.env.LOCALAPPDATA ?? "", "isovec");
  if (process.platform === "darwin") return join(homedir(), "Library", "Caches", "isovec");
  return join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "isovec");
}

/** The options that every bench takes, for `parseArgs`. */
export const OPTIONS = {
  model: { type: "string", default: process.env.ISOVEC_TEST_MODEL ?? join(cache(), "models", "all-MiniLM-L6-v2") },
  isovec: { type: "string", default: process.env.ISOVEC_PROGRAM ?? "isovec" },
  chrome: { type: "string", default: process.env.CHROME ?? "/usr/bin/chromium" },
  json: { type: "boolean", default: false },
};

/** `--samples` as a number. */
export function count(samples) {
  const number = Number(samples);
  if (!Number.isInteger(number) || number < 1) throw new Error(`--samples takes a whole number from 1, not ${samples}`);
  return number;
}

/** The same model as ONNX, pooling and normalisation inside, as `isovec export` writes it. */
function exported({ isovec, model }) {
  const out = mkdtempSync(join(tmpdir(), "isovec-page-"));
  try {
    execFileSync(isovec, ["export", "--model", model, "--out", out, "--json"], { stdio: ["ignore", "ignore", "inherit"] });
    return readFileSync(join(out, "model.onnx"));
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

/** Both packages and the model for each of them, by the paths under which pages find them. */
export function contestantFiles(options) {
  return new Map([
    ...folder("/isovec/dist/", join(js, "dist"), (name) => name.endsWith(".js")),
    ...folder("/isovec/pkg/", join(js, "pkg"), (name) => /\.(js|wasm)$/.test(name)),
    ...folder("/onnxruntime-web/", onnxruntimeWeb, (name) => /^ort(\.wasm\.bundle\.min|-wasm-simd-threaded)\.(mjs|wasm)$/.test(name)),
    ...folder("/model/", options.model, (name) => /\.(json|safetensors)$/.test(name)),
    ...(options.alone ? [] : [["/onnx/model.onnx", exported(options)]]),
  ]);
}

const ARGS = ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"];

/** A browser that does nothing of its own accord, with `more` on its command line. */
export function launch({ chrome }, ...more) {
  return chromium.launch({ executablePath: chrome, args: [...ARGS, ...more] });
}

/** The same with a profile on disk, and room there for a whole model: on a small disk it would take less. */
export function launchProfile({ chrome }, profile) {
  return chromium.launchPersistentContext(profile, { executablePath: chrome, args: [...ARGS, "--disk-cache-size=2000000000"] });
}

/** What was measured, and where. */
export function versions(browser) {
  const version = (path) => JSON.parse(readFileSync(path, "utf8")).version;
  return {
    chromium: browser.version(),
    "onnxruntime-web": version(join(onnxruntimeWeb, "..", "package.json")),
    isovec: version(join(js, "package.json")),
  };
}
