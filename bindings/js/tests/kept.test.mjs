// Vectors that are kept by their text: in memory in node and in a page, and by the browser for the next visit. Run by
// `cargo xtask test npm`, or `npm test` after `npm run build`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Embedder } from "../dist/index.js";
import { FILES, HEADERS, NATIVE, js, launch, page as empty, send, serve, tiny } from "./site.mjs";

const origin = await serve((request, response, path) => {
  if (path === "/") return empty(response, HEADERS);
  send(response, path.startsWith("/model/") ? join(tiny, path.slice(7)) : join(js, path), HEADERS);
});
const browser = await launch();
/** A site of its own, on which nothing was kept yet. */
async function fresh() {
  const page = await (await browser.newContext()).newPage();
  await page.goto(origin);
  await page.evaluate(async () => {
    Object.assign(globalThis, await import("/dist/index.js"));
    /** Embeds in a new embedder, as a later visit would; several calls one after another. */
    globalThis.visit = async (embeddingCache, calls, config = {}) => {
      const embedder = await Embedder.load("/model/", { config: { ...config, embeddingCache } });
      const rows = [];
      for (const texts of calls) rows.push(Array.from((await embedder.embed(texts)).values));
      const knobs = embedder.effectiveConfig().filter(({ name }) => name.startsWith("embeddingCache"));
      const { embeddingCache: kept, calls: counts } = await embedder.stats();
      await embedder.dispose();
      return { rows, kept, tokenised: counts.texts, knobs };
    };
    globalThis.entries = async () => (await (await caches.open("isovec")).keys()).map(({ url }) => url).filter((url) => url.includes("/kept/embeddings/"));
  });
  return page;
}
const visit = (page, ...given) => page.evaluate((given) => visit(...given), given);

const files = () => new Map(FILES.map((file) => [file, readFileSync(join(tiny, file))]));

test("node: what was computed once is not computed again", async () => {
  const plain = await Embedder.load(files(), { worker: false });
  const keeping = await Embedder.load(files(), { worker: false, config: { embeddingCache: { memory: 1 << 20, disk: 1 << 20 } } });
  const texts = ["a cat", "the end", "a cat"];
  const expected = await plain.embed(texts);
  for (let call = 0; call < 2; call++) assert.deepEqual((await keeping.embed(texts)).values, expected.values);
  assert.deepEqual((await keeping.embedQuery("a cat")).values.length, expected.dimension);
  const stats = await keeping.stats();
  assert.deepEqual([stats.embeddingCache.hits, stats.embeddingCache.misses, stats.embeddingCache.entries, stats.calls.texts], [5, 2, 2, 2]);
  assert.equal((await plain.stats()).embeddingCache, undefined);
  // By wasm, node has nothing to keep them in, and says so.
  const disk = keeping.effectiveConfig().find(({ name }) => name === "embeddingCache.disk");
  assert.deepEqual([disk.used, disk.honoured], NATIVE ? ["1048576", true] : ["none", false]);
  if (!NATIVE) assert.match(disk.why, /Cache API/);
  await assert.rejects(Embedder.load(files(), { worker: false, config: { embeddingCache: { memory: 10 } } }), { kind: "Config", message: /one vector of this model/ });
  await plain.dispose();
  await keeping.dispose();
});

test("calls at the same time, and streams, get their own vectors", async () => {
  const plain = await Embedder.load(files(), { worker: false });
  const keeping = await Embedder.load(files(), { worker: false, config: { embeddingCache: { memory: 4000 } } });
  const texts = Array.from({ length: 40 }, (_, at) => `cat ${at % 17}`);
  const expected = await plain.embed(texts);
  const rows = await Promise.all(texts.map((text) => keeping.embedOne(text)));
  for (const [at, row] of rows.entries()) assert.deepEqual(row, expected.row(at));
  for await (const { index, vector } of keeping.embedStream(texts)) assert.deepEqual(vector, expected.row(index));
  const { embeddingCache: kept } = await keeping.stats();
  assert.equal(kept.hits + kept.misses, 80);
  assert.ok(kept.bytes <= 4000 && kept.evictions > 0, JSON.stringify(kept));
  await plain.dispose();
  await keeping.dispose();
});

test("the next visit computes nothing, and no other model's vector is taken", async () => {
  const page = await fresh();
  const [texts, all] = [["a cat", "the end"], { memory: 1 << 20, disk: 1 << 20 }];
  const plain = await visit(page, {}, [texts]);
  assert.equal(plain.kept, undefined);
  assert.deepEqual(await page.evaluate("entries()"), []);
  const first = await visit(page, all, [texts, texts]);
  assert.deepEqual(first.rows, [plain.rows[0], plain.rows[0]]);
  assert.deepEqual([first.kept.misses, first.kept.diskEntries, first.tokenised], [2, 2, 2]);
  const second = await visit(page, all, [texts]);
  assert.deepEqual(second.rows, plain.rows);
  assert.deepEqual([second.kept.diskHits, second.kept.misses, second.kept.diskFailures, second.tokenised], [2, 0, 0, 0]);
  for (const config of [{ text: { dimension: 8 } }, { text: { pooling: "cls" } }, { model: { dtype: "int8" } }, { text: { maxLength: 3 } }]) {
    const [other, kept] = [await visit(page, {}, [texts], config), await visit(page, all, [texts], config)];
    assert.deepEqual(kept.rows, other.rows, JSON.stringify(config));
    assert.deepEqual([kept.kept.diskHits, kept.kept.misses], [0, 2], JSON.stringify(config));
  }
  // All that the site keeps goes at once.
  await page.evaluate("cache.delete()");
  assert.deepEqual(await page.evaluate("entries()"), []);
  assert.equal((await visit(page, all, [texts])).kept.misses, 2);
});

test("what is damaged is computed anew, and the bound is kept by what was used last", async () => {
  const page = await fresh();
  const disk = { disk: 1 << 20 };
  const texts = ["a", "cat", "the", "end"];
  const first = await visit(page, disk, texts.map((text) => [text]));
  await page.evaluate(async () => {
    const kept = await caches.open("isovec");
    for (const url of (await entries()).slice(0, 2)) {
      const bytes = new Uint8Array(await (await kept.match(url)).arrayBuffer());
      bytes[bytes.length - 1] ^= 1;
      await kept.put(url, new Response(bytes));
    }
  });
  const second = await visit(page, disk, [...texts.map((text) => [text]), texts]);
  assert.deepEqual(second.rows.slice(0, 4), first.rows);
  assert.deepEqual([second.kept.diskRejected, second.kept.misses], [2, 2]);
  // Room for five vectors of 32 components: "a" is read, and what is written then takes the place of others.
  const room = { disk: 5 * (4 * 32 + 512) };
  const third = await visit(page, room, [["a"], ["of"], ["a man"], ["men"]]);
  assert.ok(third.kept.diskEvictions > 0 && third.kept.diskBytes <= room.disk, JSON.stringify(third.kept));
  assert.equal((await page.evaluate("entries()")).length, third.kept.diskEntries);
  const fourth = await visit(page, room, [["a"]]);
  assert.deepEqual(fourth.rows, [first.rows[0]]);
  assert.equal(fourth.kept.misses, 0, "it was used last");
});

test("a folder is not for pages, which is said", async () => {
  const page = await fresh();
  const { knobs } = await visit(page, { disk: 1 << 20, folder: "kept" }, [["a"]]);
  const folder = knobs.find(({ name }) => name === "embeddingCache.folder");
  assert.deepEqual([folder.used, folder.honoured, folder.why], ["the browser's Cache API", false, "a page has no folders"]);
});
