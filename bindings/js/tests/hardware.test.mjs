// What a page, a worker and node are told of the hardware. Run by `cargo xtask test npm`, in every way of ways.mjs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { HEADERS, WAY, data, js, launch, page as empty, send, serve } from "./site.mjs";
import { hardware } from "../dist/index.js";

const requests = [];
const origin = await serve((request, response, path) => {
  if (path === "/") return empty(response, HEADERS);
  requests.push(path);
  if (path === "/asks.js") return response.writeHead(200, { ...HEADERS, "content-type": "text/javascript" }).end('import { hardware } from "/dist/index.js"; postMessage(await hardware());');
  send(response, join(js, path), HEADERS);
});
const browser = await launch();
const page = await browser.newPage();
await page.goto(origin);
const inPage = await page.evaluate(async () => (await import("/dist/index.js")).hardware());

/** The names of all values, nested ones behind a dot. */
const names = (of, before = "") =>
  Object.entries(of).flatMap(([name, value]) => {
    const items = Array.isArray(value) ? value : [value];
    return items.flatMap((item) => (item !== null && typeof item === "object" ? names(item, `${before}${name}.`) : [before + name]));
  });
const camel = (name) => name.replace(/_([a-z0-9])/g, (_, letter) => letter.toUpperCase());
const KEPT = readFileSync(join(data, "hardware-keys.txt"), "utf8").trim().split("\n").map(camel);

test("the names are Rust's, in camel case", async () => {
  for (const found of [inPage, await hardware()]) {
    const own = new Set(names(found));
    const there = (name) => (name.startsWith("adapters.") ? found.adapters.length > 0 : !name.startsWith("gpus.") || found.gpus.length > 0);
    const empty = [found.adapters.length ? [] : ["adapters"], found.gpus.length ? [] : ["gpus"]].flat();
    for (const name of empty) assert.ok(!own.has(name));
    assert.deepEqual([...own].sort(), KEPT.filter(there).sort());
  }
});

test("a page is told what its browser tells, and nothing is guessed", async () => {
  const told = await page.evaluate(async () => {
    const adapter = await navigator.gpu?.requestAdapter();
    return {
      cores: navigator.hardwareConcurrency, memory: navigator.deviceMemory ?? null, isolated: crossOriginIsolated, shared: "SharedArrayBuffer" in globalThis, webgpu: "gpu" in navigator,
      adapter: adapter && { buffer: adapter.limits.maxBufferSize, binding: adapter.limits.maxStorageBufferBindingSize, f16: adapter.features.has("shader-f16"), software: adapter.info.isFallbackAdapter },
    };
  });
  const { cpu, memory, adapters, gpus, page: own, os } = inPage;
  assert.deepEqual([cpu.logicalCores, own.deviceMemoryGib, own.crossOriginIsolated, own.sharedMemory, own.webgpu], [told.cores, told.memory, told.isolated, told.shared, told.webgpu]);
  assert.deepEqual([os, cpu.model, cpu.physicalCores, memory.totalBytes], [null, null, null, null]);
  assert.equal(own.threads, WAY.isolated);
  assert.deepEqual([own.simd, own.relaxedSimd, cpu.kernels], [true, true, "relaxed-simd"]);
  assert.equal(adapters.length, WAY.webgpu ? 1 : 0);
  for (const adapter of adapters) {
    assert.deepEqual([adapter.maxBufferBytes, adapter.maxBindingBytes, adapter.shaderF16, adapter.kind], [told.adapter.buffer, told.adapter.binding, told.adapter.f16, told.adapter.software ? "cpu" : null]);
  }
  // A processor that plays a GPU is none.
  assert.deepEqual(gpus, []);
});

test("asking downloads no module, and a worker is told the same", async () => {
  assert.ok(!requests.some((path) => path.endsWith(".wasm")), requests.join());
  const inWorker = await page.evaluate(() => new Promise((resolve, reject) => {
    const worker = new Worker("/asks.js", { type: "module" });
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message));
  }));
  assert.deepEqual(inWorker.cpu, inPage.cpu);
  assert.deepEqual(inWorker.page.threads, inPage.page.threads);
});

test("node is no page", async () => {
  const { page: own, adapters, cpu } = await hardware();
  assert.deepEqual([own.crossOriginIsolated, own.threads, own.simd, adapters], [null, false, true, []]);
  assert.equal(cpu.logicalCores, globalThis.navigator?.hardwareConcurrency ?? null);
});
