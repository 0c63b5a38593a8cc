// What the tests stand on: a server on this machine, browsers, and what they share.
import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join, normalize } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

/** The package's folder, and the project's test data. */
export const js = dirname(dirname(fileURLToPath(import.meta.url)));
export const data = join(dirname(dirname(js)), "tests", "data");
/** A small seeded model, and what an embedder reads of it. */
export const tiny = join(data, "tiny-bert");
export const FILES = ["config.json", "tokenizer.json", "modules.json", "sentence_bert_config.json", "1_Pooling/config.json", "model.safetensors"];
/** The seeded classifier over the same tiny model, and its files. */
export const classifier = join(data, "tiny-classifier");
/** The seeded reranker, which has the same files. */
export const reranker = join(data, "tiny-reranker");
/** The seeded decoder whose answer is the score, and its files. */
export const decoder = join(data, "tiny-decoder-reranker");
export const DECODER_FILES = ["config.json", "tokenizer.json", "model.safetensors", "modules.json", "1_LogitScore/config.json", "config_sentence_transformers.json", "chat_template.jinja"];
/** The seeded model of sparse vectors. */
export const splade = join(data, "tiny-splade");
export const colbert = join(data, "tiny-colbert");
export const CLASSIFIER_FILES = ["config.json", "tokenizer.json", "model.safetensors"];

/** What makes a page isolated. Workers of an isolated page have to be as strict as it is; others do not mind. */
export const ISOLATED = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp", "cross-origin-resource-policy": "cross-origin" };
export const STRICT = { "content-security-policy": "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; worker-src 'self'" };
/** Whether programs of node have to compute by the build `native` (`cargo xtask test node`). */
export const NATIVE = Boolean(process.env.ISOVEC_REQUIRE_NATIVE);
/** How the browser runs the package, which ways.mjs chooses: with WebGPU or without, isolated or not. */
export const WAY = { webgpu: Boolean(process.env.ISOVEC_TEST_WEBGPU), isolated: Boolean(process.env.ISOVEC_TEST_ISOLATED) };
/** What pages and scripts are served with, that way. */
export const HEADERS = WAY.isolated ? ISOLATED : {};
const TYPES = { ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm", ".json": "application/json", ".html": "text/html", ".css": "text/css" };
/** What makes Chromium quiet, and willing to run as root. Its camera is one that it makes up. */
export const FLAGS = ["--use-fake-device-for-media-stream", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
/** WebGPU is the same on every machine: one that the processor computes, or none. */
const WEBGPU = WAY.webgpu ? ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"] : ["--disable-gpu"];

/** The type that a path's name says. */
export const typeOf = (path) => TYPES[extname(path)] ?? "application/octet-stream";

/** An empty page. */
export const page = (response, headers = {}) => response.writeHead(200, { ...headers, "content-type": "text/html" }).end("<!doctype html><title>isovec</title>");

/** A file, or 404. */
export function send(response, file, headers = {}) {
  if (file === undefined || !existsSync(file) || !statSync(file).isFile()) return response.writeHead(404, headers).end();
  response.writeHead(200, { "content-type": typeOf(file), "content-length": statSync(file).size, ...headers });
  createReadStream(file).on("error", () => response.destroy()).pipe(response);
}

/** Serves by `answer(request, response, path)` until the tests are over, and says where. */
export async function serve(answer) {
  const server = createServer((request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://localhost").pathname));
    if (path.includes("..")) return response.writeHead(404).end();
    if (path === "/favicon.ico") return response.writeHead(204).end();
    return answer(request, response, path);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

/** A browser until the tests are over. */
export async function launch() {
  const browser = await chromium.launch({ executablePath: process.env.CHROME ?? "/usr/bin/chromium", args: [...FLAGS, ...WEBGPU] });
  after(() => browser.close());
  return browser;
}

/** What somebody waits for. Without it after a minute, an error says what is missing; a test that runs out of time does not. */
export async function within(what, work) {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`${what}: nothing in a minute`)), 60_000)));
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
