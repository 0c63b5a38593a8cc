// Memory that stays what it was: over many loads and disposes, in the page and in workers, and over
// many texts. WebAssembly memory never shrinks, so its size is its peak. Run by `cargo xtask test npm`.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { FILES, js, launch, page as empty, send, serve, tiny } from "./site.mjs";

const origin = await serve((request, response, path) => {
  if (path === "/") return empty(response);
  // More than any page has memory for; only its beginning ever comes.
  if (path === "/endless/model.safetensors") return response.setHeader("content-length", String(2 ** 50)).write("a");
  send(response, path.startsWith("/dist/") || path.startsWith("/pkg/") ? join(js, path) : join(tiny, path.slice(path.indexOf("/", 1))));
});
const browser = await launch();

async function open(t) {
  const page = await browser.newPage();
  t.after(() => page.close());
  await page.goto(origin);
  return page;
}

test("500 loads and disposes in one thread leave the module's memory as it was", async (t) => {
  const page = await open(t);
  const sizes = await page.evaluate(async () => {
    const { Embedder } = await import("/dist/index.js");
    const sizes = [];
    for (let round = 0; round < 500; round++) {
      const embedder = await Embedder.load("/model/", { worker: false });
      await embedder.embed([`round ${round}`, "another text"]);
      sizes.push((await embedder.stats()).memory.wasmBytes);
      await embedder.dispose();
    }
    return sizes;
  });
  assert.ok(sizes.at(-1) <= 1.01 * sizes[20], `${sizes[20]} bytes after 20 rounds, ${sizes.at(-1)} after 500`);
});

test("loads and disposes in workers leave the page's heap as it was", async (t) => {
  const page = await open(t);
  const session = await page.context().newCDPSession(page);
  const used = async () => {
    await session.send("HeapProfiler.collectGarbage");
    return (await session.send("Runtime.getHeapUsage")).usedSize;
  };
  const rounds = (count) => page.evaluate(async (count) => {
    const { Embedder } = await import("/dist/index.js");
    for (let round = 0; round < count; round++) {
      const embedder = await Embedder.load("/model/");
      await embedder.embedOne(`round ${round}`);
      await embedder.dispose();
    }
  }, count);
  await rounds(20);
  const before = await used();
  await rounds(60);
  const after = await used();
  // What 60 rounds leave is less than one of them would: the page's side of one takes some 100 kB.
  assert.ok(after - before < 100e3, `${before} bytes before, ${after} after`);
});

test("20,000 texts leave the module's memory as it was", async (t) => {
  const page = await open(t);
  const [warm, end, texts] = await page.evaluate(async () => {
    const { Embedder } = await import("/dist/index.js");
    const embedder = await Embedder.load("/model/");
    function* numbers(count) {
      for (let index = 0; index < count; index++) yield `text number ${index} with ${"some ".repeat(index % 20)}words`;
    }
    const bytes = async () => (await embedder.stats()).memory.wasmBytes;
    for await (const _ of embedder.embedStream(numbers(1000)));
    const warm = await bytes();
    for await (const _ of embedder.embedStream(numbers(20000)));
    return [warm, await bytes(), (await embedder.stats()).calls.texts];
  });
  assert.equal(texts, 21000);
  assert.ok(end <= 1.01 * warm, `${warm} bytes after 1,000 texts, ${end} after 21,000`);
});

test("a model that does not fit is refused before it is fetched or read", async (t) => {
  const page = await open(t);
  const errors = await page.evaluate(async (files) => {
    const { Embedder } = await import("/dist/index.js");
    const given = new Map();
    for (const file of files) given.set(file, await (await fetch(`/model/${file}`)).blob());
    const load = (source, memory, worker) => Embedder.load(source, { worker, config: { memory } }).then(() => "loaded", ({ kind, message }) => `${kind}: ${message}`);
    return Promise.all([true, false].flatMap((worker) => [
      load("/endless/", {}, worker),
      load("/endless/", { memoryLimit: 1 << 30 }, worker),
      load("/model/", { memoryLimit: 100_000 }, worker),
      load(given, { memoryLimit: 100_000 }, worker),
      load("/model/", { memoryLimit: 1 << 20 }, worker),
    ]));
  }, FILES);
  const expected = [/^InputTooLarge: .*are the most/, /^InputTooLarge: .*1073741824/, /^InputTooLarge: .*144640 bytes.*100000/, /^InputTooLarge: model.safetensors.*100000/, /^loaded$/];
  for (const [index, error] of errors.entries()) assert.match(error, expected[index % expected.length]);
});
