// WebGPU, where the browser has it and where it has none: what computes by default, and what asking for it comes to. Run by
// `cargo xtask test npm`, in every way of ways.mjs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { HEADERS, WAY, js, launch, page as empty, send, serve, tiny } from "./site.mjs";

const origin = await serve((request, response, path) => {
  if (path === "/") return empty(response, HEADERS);
  if (path.startsWith("/real/")) return send(response, join(real, path.slice(6)), HEADERS);
  send(response, path.startsWith("/model/") ? join(tiny, path.slice(7)) : join(js, path), HEADERS);
});
/** all-MiniLM-L6-v2, in the way that the other tests of the real model have it. */
const real = process.env.ISOVEC_TEST_MODEL;
const browser = await launch();
const page = await browser.newPage();
await page.goto(origin);

/** Loads the model and embeds a text: the vector and who computed it, or how that failed. */
const embed = (providers, worker) =>
  page.evaluate(async ({ providers, worker }) => {
    const { Embedder } = await import("/dist/index.js");
    try {
      const embedder = await Embedder.load("/model/", { worker, config: { providers } });
      const vector = Array.from(await embedder.embedOne("a text"));
      const { fallbacks } = (await embedder.stats()).provider;
      const provider = embedder.provider();
      await embedder.dispose();
      return { vector, provider, fallbacks, build: embedder.build };
    } catch ({ kind, message }) {
      return { kind, message };
    }
  }, { providers, worker });

test("the browser is the one that these tests are told to start", async () => {
  const [software, isolated] = await page.evaluate(async () => [(await navigator.gpu?.requestAdapter())?.info.isFallbackAdapter, crossOriginIsolated]);
  // A software adapter where there is one at all.
  assert.deepEqual([software, isolated], [WAY.webgpu ? true : undefined, WAY.isolated]);
});

test("what drives a GPU is downloaded where one may compute, and nowhere else", async () => {
  const chain = { executionProviders: ["webgpu", "cpu"] };
  const software = { ...chain, webgpu: { softwareAdapter: true } };
  const [without, having] = WAY.isolated ? ["threads", "threads"] : ["relaxed", "simd128"];
  const expected = [[{}, without], [chain, without], [{ providerAutoSelection: true }, without], [software, WAY.webgpu ? having : without]];
  for (const worker of [true, false]) {
    for (const [providers, build] of expected) {
      // Modules are kept by the page that fetched them.
      const fresh = await browser.newPage();
      await fresh.goto(origin);
      const seen = await fresh.evaluate(async ({ providers, worker }) => {
        const { Embedder } = await import("/dist/index.js");
        const embedder = await Embedder.load("/model/", { worker, config: { providers } });
        const fetched = performance.getEntriesByType("resource").map(({ name }) => new URL(name).pathname);
        return { build: embedder.build, modules: fetched.filter((path) => path.endsWith(".wasm")), fallbacks: (await embedder.stats()).provider.fallbacks };
      }, { providers, worker });
      assert.deepEqual([seen.build, seen.modules], [build, [`/pkg/${build}/isovec_js_bg.wasm`]], JSON.stringify(providers));
      if (providers === chain && build === "relaxed") assert.match(seen.fallbacks[0].cause, /`simd128` and `threads` have/);
      await fresh.close();
    }
  }
});

for (const worker of [true, false]) {
  const where = worker ? "in a worker" : "in the page";
  const wasm = WAY.isolated ? "wasm relaxed-simd, threads" : "wasm relaxed-simd";

  test(`WebAssembly computes where nothing else is asked for, ${where}: a software adapter is never chosen`, async () => {
    for (const providers of [{}, { providerAutoSelection: true }]) {
      const { provider, fallbacks } = await embed(providers, worker);
      assert.deepEqual([provider?.engine, provider?.provider, fallbacks], ["portable", wasm, []]);
    }
  });

  test(`WebGPU is refused where there is none, and a software adapter unless it is asked for, ${where}`, async () => {
    const { kind, message } = await embed({ executionProviders: ["webgpu"] }, worker);
    assert.equal(kind, "ProviderUnavailable");
    assert.match(message, WAY.webgpu ? /softwareAdapter/ : /no adapter/);
    const [plain, chain] = [await embed({}, worker), await embed({ executionProviders: ["webgpu", "cpu"] }, worker)];
    assert.deepEqual([chain.provider, chain.vector], [plain.provider, plain.vector]);
    assert.deepEqual(chain.fallbacks?.map(({ from, to }) => [from, to]), [["webgpu", "cpu"]]);
  });

  if (WAY.webgpu) {
    test(`WebGPU computes the same vectors where it is asked for, ${where}`, async () => {
      const [plain, gpu] = [await embed({}, worker), await embed({ executionProviders: ["webgpu"], webgpu: { softwareAdapter: true } }, worker)];
      assert.deepEqual([gpu.kind, gpu.message], [undefined, undefined]);
      assert.deepEqual([gpu.provider.engine, gpu.provider.provider, gpu.fallbacks], ["gpu", "WebGPU", []]);
      const apart = Math.max(...plain.vector.map((value, at) => Math.abs(value - gpu.vector[at])));
      assert.ok(apart <= 2e-6, `${apart}`);
    });

    test(`16-bit arithmetic is done where the adapter has it, and else said not to be, ${where}`, async () => {
      const seen = await page.evaluate(async (worker) => {
        const { Embedder } = await import("/dist/index.js");
        const load = (f16) =>
          Embedder.load("/model/", { worker, config: { providers: { executionProviders: ["webgpu"], webgpu: { softwareAdapter: true, f16 } } } });
        const [small, large] = [await load(true), await load(false)];
        const knob = small.effectiveConfig().find(({ name }) => name === "providers.webgpu.f16");
        const vectors = [Array.from(await small.embedOne("a text")), Array.from(await large.embedOne("a text"))];
        const has = (await navigator.gpu.requestAdapter()).features.has("shader-f16");
        const { gpu } = await small.stats();
        const { precision } = small.fingerprint();
        await small.dispose();
        await large.dispose();
        return { knob, vectors, has, f16: gpu.f16, precision };
      }, worker);
      assert.deepEqual([seen.f16, seen.knob.honoured, seen.precision], [seen.has, seen.has, seen.has ? "f16" : "f32"]);
      const apart = Math.hypot(...seen.vectors[0].map((value, at) => value - seen.vectors[1][at]));
      if (seen.has) return assert.ok(apart > 0 && apart <= 5e-3, `${apart}`);
      assert.match(seen.knob.why, /shader-f16/);
      assert.equal(apart, 0);
    });

    test(`the next load goes by what this one kept, ${where}`, async () => {
      const recalled = await page.evaluate(async (worker) => {
        const { Embedder, cache } = await import("/dist/index.js");
        await cache.delete();
        const config = { providers: { executionProviders: ["webgpu"], webgpu: { softwareAdapter: true } } };
        const recalled = async (cache) => {
          const embedder = await Embedder.load("/model/", { worker, config, cache });
          const { gpu } = await embedder.stats();
          await embedder.dispose();
          return gpu.checkRecalled;
        };
        const kept = async () => (await (await caches.open(cache.name)).keys()).length;
        return [await recalled("off"), await kept(), await recalled(), await recalled(), await recalled("off"), await cache.delete(), await kept(), await recalled()];
      }, worker);
      assert.deepEqual(recalled, [false, 0, false, true, false, undefined, 0, false]);
    });
  }
}

if (WAY.webgpu && !WAY.isolated) {
  const skip = real ? false : "ISOVEC_TEST_MODEL does not name all-MiniLM-L6-v2";

  test("WebGPU keeps the suite's bounds on the real model, in a worker and in the page", { skip }, async () => {
    const folder = join(dirname(dirname(js)), "tests", "data", "reference");
    const lines = readFileSync(join(folder, "texts.txt"), "utf8").trimEnd().split("\n");
    // A processor that plays a GPU takes some 20 ms for a token.
    const short = lines.map((text, line) => ({ text, line })).sort((a, b) => a.text.length - b.text.length).slice(0, 12);
    const seen = await page.evaluate(async (texts) => {
      const { Embedder } = await import("/dist/index.js");
      const providers = { executionProviders: ["webgpu"], webgpu: { softwareAdapter: true } };
      const seen = [];
      for (const worker of [true, false]) {
        const embedder = await Embedder.load("/real/", { worker, config: { providers } });
        const vectors = await embedder.embed(texts);
        seen.push({ engine: embedder.provider().engine, rows: Array.from(vectors, (row) => Array.from(row)) });
        await embedder.dispose();
      }
      return seen;
    }, short.map(({ text }) => text));
    const exact = reference(join(folder, "vectors.npy"));
    for (const { engine, rows } of seen) {
      assert.equal(engine, "gpu");
      for (const [at, row] of rows.entries()) {
        const apart = row.map((value, column) => value - exact[short[at].line * row.length + column]);
        assert.ok(Math.max(...apart.map(Math.abs)) <= 1e-6 && Math.hypot(...apart) <= 5e-6, `${short[at].text}: ${Math.hypot(...apart)}`);
      }
    }
  });
}

/** The numbers of a NumPy file of float32 in C order (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>, version 1.0). */
function reference(path) {
  const bytes = readFileSync(path);
  const header = bytes.toString("latin1", 10, 10 + bytes.readUInt16LE(8));
  assert.match(header, /'descr': '<f4', 'fortran_order': False/);
  const values = bytes.subarray(10 + header.length);
  return Float32Array.from({ length: values.length / 4 }, (_, at) => values.readFloatLE(at * 4));
}
