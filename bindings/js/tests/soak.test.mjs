// Random work in a page, for so long: loads, embeds that are given up, streams that are left, disposes. Vectors are compared with
// those of plain calls, and the memory of the page stays what it was. Run by `cargo xtask test npm` for a few rounds, without a
// clock, and by `cargo xtask soak`, which sets ISOVEC_SOAK_MINUTES and ISOVEC_SOAK_SEED.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { js, launch, page as empty, send, serve, tiny } from "./site.mjs";

const MINUTES = Number(process.env.ISOVEC_SOAK_MINUTES ?? 0);
const SEED = Number(process.env.ISOVEC_SOAK_SEED ?? 17);
/** Without a clock. */
const ROUNDS = 12;
/** Loads of a round, each with some work. */
const LOADS = 10;
/** How much more may be taken at the end, and what may come on top in the JavaScript heap, which is small. */
const MOST = 1.02;
const HEAP = 250e3;

const origin = await serve((request, response, path) => {
  if (path === "/") return empty(response);
  send(response, path.startsWith("/dist/") || path.startsWith("/pkg/") ? join(js, path) : join(tiny, path.slice(path.indexOf("/", 1))));
});
const browser = await launch();

/** Works in the page: `loads` embedders, one after another, with what follows from `seed`. Says what is wrong, and what was done. */
async function round({ seed, loads }) {
  const { Embedder } = await import("/dist/index.js");
  let state = seed >>> 0;
  // Steele, Lea and Flood's SplitMix, with 32 bits.
  const below = (limit) => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) % limit;
  };
  const words = ["the", "cat", "sat", "on", "a", "mat", "and", "stocks", "fell", "while"];
  const texts = Array.from({ length: 64 }, (_, at) => words.map((word, place) => ((at >> place % 6) & 1 ? word : "over")).slice(0, 1 + (at % words.length)).join(" "));
  // Once in a page, by a plain call of an embedder that does nothing else.
  globalThis.expected ??= await (async () => {
    const embedder = await Embedder.load("/model/", { worker: false });
    const expected = [...(await embedder.embed(texts))].map((vector) => Array.from(vector));
    await embedder.dispose();
    return expected;
  })();
  const done = { vectors: 0, givenUp: 0, loads: 0, faults: [], wasm: 0 };
  const compare = (picked, vectors) => {
    if (vectors.length !== picked.length) return done.faults.push(`${vectors.length} vectors of ${picked.length} texts`);
    for (const [at, vector] of vectors.entries()) {
      const wanted = globalThis.expected[picked[at]];
      const apart = Math.max(...wanted.map((value, place) => Math.abs(value - vector[place])));
      if (!(apart <= 2e-6)) done.faults.push(`text ${picked[at]}: ${apart} apart`);
    }
    done.vectors += vectors.length;
  };
  const pick = (most) => Array.from({ length: below(most) }, () => below(texts.length));
  const of = (picked) => picked.map((at) => texts[at]);
  for (let load = 0; load < loads; load++) {
    const worker = below(4) === 0;
    const embedder = await Embedder.load("/model/", { worker });
    done.loads++;
    const calls = Array.from({ length: 1 + below(6) }, async () => {
      const picked = pick(20);
      const kind = below(4);
      if (kind === 0) {
        const stop = new AbortController();
        const call = embedder.embed(of(picked), { signal: stop.signal });
        if (below(2)) await new Promise((resolve) => setTimeout(resolve));
        stop.abort();
        return call.then((vectors) => compare(picked, [...vectors]), (error) => {
          done.givenUp++;
          if (error.name !== "AbortError") done.faults.push(`${error.kind}: ${error.message}`);
        });
      }
      if (kind === 1) {
        const wanted = below(picked.length + 1);
        const taken = [];
        for await (const { vector } of embedder.embedStream(of(picked))) {
          taken.push(vector);
          if (taken.length >= wanted) break;
        }
        if (taken.length < Math.min(wanted, picked.length)) done.faults.push(`a stream ended after ${taken.length} of ${picked.length}`);
        return compare(picked.slice(0, taken.length), taken);
      }
      return compare(picked, [...(await embedder.embed(of(picked)))]);
    });
    for (const ended of await Promise.allSettled(calls)) {
      if (ended.status === "rejected") done.faults.push(`${ended.reason?.kind}: ${ended.reason?.message ?? ended.reason}`);
    }
    const stats = await embedder.stats();
    const { sessions, memoryPool: pool } = stats;
    if (sessions.inUse || sessions.waiting || pool.lentMemoryBytes) done.faults.push(`at rest: ${JSON.stringify({ sessions, pool })}`);
    if (!worker) done.wasm = stats.memory.wasmBytes;
    await embedder.dispose();
  }
  return done;
}

test("random work leaves the memory of a page as it was, and no vector wrong", { timeout: 60_000 * MINUTES + 300_000 }, async (t) => {
  t.diagnostic(`seed ${SEED}`);
  const page = await browser.newPage();
  t.after(() => page.close());
  await page.goto(origin);
  const session = await page.context().newCDPSession(page);
  const heap = async () => {
    await session.send("HeapProfiler.collectGarbage");
    return (await session.send("Runtime.getHeapUsage")).usedSize;
  };
  const total = { vectors: 0, givenUp: 0, loads: 0 };
  const started = Date.now();
  const minutes = () => (Date.now() - started) / 60_000;
  const isOver = (at) => (MINUTES ? minutes() >= MINUTES : at >= ROUNDS);
  const isWarm = (at) => (MINUTES ? minutes() >= Math.min(10, MINUTES / 10) : at >= ROUNDS / 3);
  let warm;
  let wasm = 0;
  for (let at = 0; !isOver(at) || warm === undefined; at++) {
    const done = await page.evaluate(round, { seed: SEED * 7919 + at, loads: LOADS });
    assert.deepEqual(done.faults, [], `round ${at} with seed ${SEED}`);
    for (const key of Object.keys(total)) total[key] += done[key];
    wasm = Math.max(wasm, done.wasm);
    if (warm === undefined && wasm > 0 && isWarm(at)) warm = { wasm, heap: await heap() };
  }
  const end = { wasm, heap: await heap() };
  t.diagnostic(JSON.stringify({ ...total, warm, end }));
  assert.ok(total.vectors > 100 && total.givenUp > 0, JSON.stringify(total));
  assert.ok(end.wasm <= MOST * warm.wasm, `the module took ${warm.wasm} bytes after the warm-up, and ${end.wasm} at the end`);
  assert.ok(end.heap <= MOST * warm.heap + HEAP, `the page's heap took ${warm.heap} bytes after the warm-up, and ${end.heap} at the end`);
});
