// The builds of the module: which of them a browser and node get, and that all give the same
// vectors. Run by `cargo xtask test npm`, or `npm test` after `npm run build`.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { dirname, extname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const js = dirname(dirname(fileURLToPath(import.meta.url)));
const repository = dirname(js);
const model = join(repository, "tests", "data", "tiny-bert");
const reference = JSON.parse(readFileSync(join(model, "reference.json"), "utf8"));
const texts = reference.texts.map(({ text }) => text);
const BUILDS = readdirSync(join(js, "pkg"));
const BITS = BigInt(/TINY: u64 = (0x[0-9a-f_]+)/.exec(readFileSync(join(repository, "tests", "parity", "src", "bits.rs"), "utf8"))[1].replaceAll("_", ""));
const EXACT = { session: { deterministic_compute: true } };

/** FNV-1a, as `isovec_parity::bits::hash` has it. */
const hash = (bytes) => bytes.reduce((state, byte) => BigInt.asUintN(64, (state ^ BigInt(byte)) * 0x100000001b3n), 0xcbf29ce484222325n);

const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm", ".json": "application/json" };
/** What the pages are served with besides. */
const HEADERS = {
  "/": {},
  "/strict": { "content-security-policy": "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; worker-src 'self'" },
};
const WORKER = `import { Embedder } from "/dist/index.js";
onmessage = async ({ data }) => {
  const embedder = await Embedder.load("/model", data.options);
  const values = (await embedder.embed(data.texts)).values;
  postMessage({ build: embedder.build, bytes: new Uint8Array(values.buffer) });
};`;

let server, browser, origin;

before(async () => {
  server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const headers = HEADERS[pathname];
    if (headers) return void response.writeHead(200, { ...headers, "content-type": "text/html" }).end("<!doctype html><title>isovec</title>");
    if (pathname === "/worker.js") return void response.writeHead(200, { "content-type": "text/javascript" }).end(WORKER);
    const path = pathname.startsWith("/model/") ? join(model, pathname.slice(7)) : join(js, pathname);
    const content = await readFile(path).catch(() => undefined);
    response.writeHead(content ? 200 : 404, { "content-type": TYPES[extname(path)] ?? "application/octet-stream" }).end(content);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${server.address().port}`;
  browser = await chromium.launch({
    executablePath: process.env.CHROME ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
});

after(async () => {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
});

/** A page at a path; `before` runs in it first. */
async function open(t, path, before = () => {}) {
  const page = await browser.newPage();
  t.after(() => page.close());
  await page.goto(origin + path);
  await page.evaluate(before);
  return page;
}

/** Loads and embeds in a page: the build, the provider, the bytes, and the modules that were fetched. */
function embed(page, options) {
  return page.evaluate(
    async ({ options, texts }) => {
      const { Embedder } = await import("/dist/index.js");
      try {
        const embedder = await Embedder.load("/model", options);
        const values = (await embedder.embed(texts)).values;
        const fetched = performance.getEntriesByType("resource").map(({ name }) => new URL(name).pathname);
        return {
          build: embedder.build,
          provider: embedder.provider().provider,
          values: Array.from(values),
          bytes: Array.from(new Uint8Array(values.buffer)),
          modules: fetched.filter((path) => path.endsWith(".wasm")),
        };
      } catch (error) {
        return { kind: error.kind, message: error.message };
      }
    },
    { options, texts },
  );
}

const PROVIDERS = { simd128: "wasm simd128", relaxed: "wasm relaxed-simd" };

test("a page gets the fastest build, and downloads no other", async (t) => {
  const seen = await embed(await open(t, "/"), {});
  assert.equal(seen.build, "relaxed");
  assert.equal(seen.provider, PROVIDERS.relaxed);
  assert.deepEqual(seen.modules, ["/pkg/relaxed/isovec_js_bg.wasm"]);
});

test("every build gives the vectors of the reference, and the same bits where that is asked for", async (t) => {
  assert.deepEqual(BUILDS.toSorted(), Object.keys(PROVIDERS).toSorted());
  for (const build of BUILDS) {
    const page = await open(t, "/");
    const { values, provider } = await embed(page, { build });
    assert.equal(provider, PROVIDERS[build]);
    const dimension = reference.texts[0].vector.length;
    for (const [at, value] of values.entries()) {
      assert.ok(Math.abs(value - reference.texts[Math.floor(at / dimension)].vector[at % dimension]) <= 1e-6, `${build}, value ${at}`);
    }
    const exact = await embed(page, { build, config: EXACT });
    assert.equal(hash(exact.bytes), BITS, build);
  }
});

test("a browser without relaxed SIMD gets the build without it, and is told when that was asked for", async (t) => {
  const old = () => {
    // The last instruction before the end of what is tried: f32x4.relaxed_madd.
    const { validate } = WebAssembly;
    WebAssembly.validate = (bytes) => !(bytes.at(-3) === 0x85 && bytes.at(-2) === 0x02) && validate(bytes);
  };
  const page = await open(t, "/", old);
  const seen = await embed(page, {});
  assert.deepEqual([seen.build, seen.modules], ["simd128", ["/pkg/simd128/isovec_js_bg.wasm"]]);
  const refused = await embed(page, { build: "relaxed" });
  assert.equal(refused.kind, "EngineUnavailable");
  assert.match(refused.message, /no relaxed SIMD/);
});

test("what is no build, and a browser without SIMD, are named", async (t) => {
  const unknown = await embed(await open(t, "/"), { build: "toString" });
  assert.equal(unknown.kind, "EngineUnavailable");
  assert.match(unknown.message, /no such build; there are simd128/);
  const none = await embed(await open(t, "/", () => (WebAssembly.validate = () => false)), {});
  assert.equal(none.kind, "EngineUnavailable");
  assert.match(none.message, /no SIMD/);
});

test("sets of vectors of different builds are searched together", async (t) => {
  const page = await open(t, "/");
  const hits = await page.evaluate(async (texts) => {
    const { Embedder } = await import("/dist/index.js");
    const [one, other] = await Promise.all(["simd128", "relaxed"].map((build) => Embedder.load("/model", { build })));
    return (await one.embed(texts)).search(await other.embed([texts[1]]), 1);
  }, texts);
  assert.equal(hits[0][0].index, 1);
});

test("a strict policy and a worker are no hindrance", async (t) => {
  const page = await open(t, "/strict");
  assert.equal((await embed(page, {})).build, "relaxed");
  const seen = await page.evaluate(
    ({ texts, options }) =>
      new Promise((resolve, reject) => {
        const worker = new Worker("/worker.js", { type: "module" });
        worker.onmessage = ({ data }) => resolve({ ...data, bytes: Array.from(data.bytes) });
        worker.onerror = ({ message }) => reject(new Error(message));
        worker.postMessage({ texts, options });
      }),
    { texts, options: { config: EXACT } },
  );
  assert.equal(seen.build, "relaxed");
  assert.equal(hash(seen.bytes), BITS);
});

test("node gets what its version can run, without a word", async (t) => {
  const { fetch } = globalThis;
  t.after(() => (globalThis.fetch = fetch));
  // Node fetches no files.
  globalThis.fetch = async (url) => new Response(await readFile(url), { headers: { "content-type": "application/wasm" } });
  const said = t.mock.method(console, "warn");
  const { Embedder } = await import("../dist/index.js");
  const names = ["config.json", "tokenizer.json", "modules.json", "sentence_bert_config.json", "1_Pooling/config.json", "model.safetensors"];
  const files = new Map(names.map((name) => [name, new Uint8Array(readFileSync(join(model, name)))]));
  const embedder = await Embedder.load(files, { config: EXACT });
  // Relaxed SIMD came with V8 11.4; before, it is behind a flag.
  const flag = process.execArgv.includes("--experimental-wasm-relaxed-simd");
  assert.equal(embedder.build, Number(process.versions.node.split(".")[0]) > 20 || flag ? "relaxed" : "simd128");
  assert.equal(hash(new Uint8Array((await embedder.embed(texts)).values.buffer)), BITS);
  assert.equal(said.mock.callCount(), 0);
});
