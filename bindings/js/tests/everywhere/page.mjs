// What every browser has to do in an app that hands `Embedder` and `cache` to the tests.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { tiny } from "../site.mjs";

const reference = JSON.parse(readFileSync(join(tiny, "reference.json"), "utf8")).texts;

/** The texts whose vectors are known. */
export const texts = reference.map(({ text }) => text);

/** Holds vectors of `texts` to those that the Rust SDK's tests are held to. */
export function assertVectors(vectors) {
  assert.equal(vectors.length, reference.length);
  for (const [index, { vector }] of reference.entries()) {
    assert.equal(vectors[index].length, vector.length);
    for (const [at, value] of vector.entries()) assert.ok(Math.abs(vectors[index][at] - value) <= 1e-6, `text ${index}, component ${at}`);
  }
}

/** Opens a page and waits until its script has run. `page` is playwright's, or one of browsers.mjs. */
export async function open(page, address) {
  await page.goto(address);
  const there = await page.evaluate(async () => {
    for (let turn = 0; !globalThis.Embedder && turn < 1000; turn++) await new Promise((next) => setTimeout(next, 10));
    return "Embedder" in globalThis;
  });
  assert.ok(there, `the script of ${address} did not run`);
}

/** Loads the app's model and embeds: the vectors are right, and it is said how they were computed. */
export async function embeds(page, options = {}) {
  const { vectors, ...how } = await page.evaluate(
    async ({ texts, options }) => {
      const embedder = await Embedder.load("/model/", { config: { session: { intraOpThreads: 2 } }, ...options });
      const vectors = Array.from(await embedder.embed(texts), (row) => Array.from(row));
      const { files, bytes } = await embedder.downloaded();
      const threads = embedder.effectiveConfig().find(({ name }) => name === "session.intraOpThreads").used;
      const { build, worker } = embedder;
      await embedder.dispose();
      return { vectors, build, worker, threads, files: files.length, bytes };
    },
    { texts, options },
  );
  assertVectors(vectors);
  return how;
}

/** The app embeds in a worker, and a call that is given up ends and harms no other. */
export async function computes(page) {
  const how = await embeds(page, { cache: "reload" });
  assert.ok(how.worker && how.bytes > 0, JSON.stringify(how));
  const aborted = await page.evaluate(async () => {
    const embedder = await Embedder.load("/model/");
    const giveUp = new AbortController();
    const run = embedder.embed(Array.from({ length: 4000 }, (_, index) => `text ${index}`), { signal: giveUp.signal });
    // A turn of the event loop, in which the call reaches the worker.
    await new Promise((turn) => setTimeout(turn));
    giveUp.abort();
    const name = await run.then(() => "nothing failed", ({ name }) => name);
    const after = (await embedder.embed(["still works"])).length;
    await embedder.dispose();
    return { name, after };
  });
  assert.deepEqual(aborted, { name: "AbortError", after: 1 });
  return how;
}

/** The next visit makes no request, until the model is taken away. `how` it was computed is what `computes` said. */
export async function keeps(page, how) {
  assert.deepEqual(await embeds(page, { offline: true }), { ...how, bytes: 0 });
  const left = await page.evaluate(async () => {
    const before = await cache.size();
    await cache.delete("/model/");
    return { before, after: await cache.size(), refused: await Embedder.load("/model/", { offline: true }).catch(({ kind }) => kind) };
  });
  assert.deepEqual(left, { before: how.bytes, after: 0, refused: "Hub" });
}

/**
 * A crash ends the call that waits, and the next one starts anew; a worker that ends in the middle of a download harms nothing.
 * In apps whose workers are modules.
 */
export async function recovers(page) {
  const seen = await page.evaluate(async () => {
    const { Worker } = window;
    const workers = [];
    window.Worker = class extends Worker {
      constructor(address, options) {
        const script = `import ${JSON.stringify(String(address))};
          const crash = (event) => {
            if (event.data !== "crash") return;
            event.stopImmediatePropagation();
            throw new WebAssembly.RuntimeError("unreachable executed in isovec_js");
          };
          addEventListener("message", crash, { capture: true });`;
        super(URL.createObjectURL(new Blob([script], { type: "text/javascript" })), options);
        workers.push(this);
      }
    };
    const embedder = await Embedder.load("/model/");
    const waiting = embedder.embed(Array.from({ length: 40000 }, (_, index) => `a text that waits, number ${index}`));
    // Behind the call, on the same way: the worker meets it at its first turn.
    await new Promise((turn) => setTimeout(turn));
    workers[0].postMessage("crash");
    const kind = await waiting.then(() => "nothing failed", ({ kind }) => kind);
    const after = (await embedder.embed(["again"])).length;
    await embedder.dispose();
    // The first bytes of the model have come.
    await new Promise((begun) => {
      const onProgress = ({ file }) => file === "model.safetensors" && begun();
      void Embedder.load("/model/", { cache: "reload", onProgress });
    });
    workers.at(-1).terminate();
    window.Worker = Worker;
    return { kind, after, workers: workers.length };
  });
  assert.deepEqual(seen, { kind: "EnginePoisoned", after: 1, workers: 3 });
  await embeds(page);
}

/** Two tabs that want the model at once fetch it once. */
export async function shares(page, address) {
  await page.evaluate(() => cache.delete("/model/"));
  const other = await page.context().newPage();
  await open(other, address);
  await page.evaluate(() => void (window.first = Embedder.load("/model/")));
  const load = async () => {
    const embedder = await (window.first ?? Embedder.load("/model/"));
    const { bytes } = await embedder.downloaded();
    await embedder.dispose();
    return bytes;
  };
  const bytes = [await other.evaluate(load), await page.evaluate(load)].sort((a, b) => a - b);
  await other.close();
  assert.ok(bytes[0] === 0 && bytes[1] > 0, bytes.join());
}

/** All of it, in a browser that keeps what a page stores. */
export async function flow(page, address) {
  await open(page, address);
  const how = await computes(page);
  await open(page, address);
  await keeps(page, how);
  return how;
}
