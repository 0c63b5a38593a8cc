// What a server says of a file's length is not believed: bytes are counted as they come, what is too much is refused, and
// nobody reads on. Run by `cargo xtask test npm`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createGzip, gzipSync } from "node:zlib";
import { Embedder } from "../dist/index.js";
import { FILES, js, launch, page as empty, send, serve, tiny } from "./site.mjs";

const LIMIT = 1 << 20;
const SIDE = 64 << 20;
const WEIGHTS = "model.safetensors";
const folder = "https://model.invalid/";
const memory = { memoryLimit: LIMIT };

/** A `fetch` that answers with the tiny model, and with `body` for `name`. */
function answering(name, body, headers = {}) {
  return async (url, { signal } = {}) => {
    const file = url.slice(folder.length);
    signal?.throwIfAborted();
    if (file === name) return new Response(body(), { headers });
    if (!FILES.includes(file)) return new Response(null, { status: 404 });
    return new Response(readFileSync(join(tiny, file)));
  };
}

/** An endless body that counts what is taken of it, and says how it ended. */
function endless(chunk) {
  const seen = { bytes: 0, cancelled: false };
  const pull = (controller) => {
    seen.bytes += chunk;
    controller.enqueue(new Uint8Array(chunk));
  };
  const body = () => new ReadableStream({ pull, cancel: () => void (seen.cancelled = true) }, { highWaterMark: 0 });
  return { seen, body };
}

// Before the first test: what is begun after the last one that is known has ended would be ended with it.
/** Bytes of zeros, compressed, which take a thousandth on the way. */
const zeros = (bytes) => {
  const gzip = createGzip();
  const part = Buffer.alloc(1 << 20);
  let left = bytes / part.length;
  const more = () => {
    while (left-- > 0) if (!gzip.write(part)) return void gzip.once("drain", more);
    gzip.end();
  };
  more();
  return gzip;
};
const compressed = gzipSync(readFileSync(join(tiny, WEIGHTS)));
const bomb = gzipSync(Buffer.alloc(16 << 20));
const closed = [];
const model = (request, response, path) => {
  const [, kind, name] = /^\/(\w+)\/(.*)$/.exec(path);
  const headers = { "access-control-allow-origin": "*", "cache-control": "no-store", "content-type": "application/octet-stream" };
  if (name !== WEIGHTS) return send(response, join(tiny, name), headers);
  response.on("close", () => closed.push(kind));
  const gzip = { ...headers, "content-encoding": "gzip" };
  if (kind === "bomb") return zeros(2 ** 36).pipe(response.writeHead(200, gzip));
  if (kind === "stated") return response.writeHead(200, { ...gzip, "content-length": bomb.length }).end(bomb);
  if (kind === "silent") return response.writeHead(200, { ...headers, "content-length": compressed.length }).flushHeaders();
  if (kind === "honest") return response.writeHead(200, { ...gzip, "content-length": compressed.length }).end(compressed);
  const forever = () => {
    while (!response.destroyed) if (!response.write(Buffer.alloc(1 << 16))) return void response.once("drain", forever);
  };
  response.writeHead(200, headers);
  forever();
};
const other = await serve(model);
const origin = await serve((request, response, path) => {
  if (path === "/") return empty(response);
  if (/^\/(dist|pkg)\//.test(path)) return send(response, join(js, path));
  model(request, response, path);
});
const browser = await launch();

test("an endless body is read as far as is allowed, and cancelled", async () => {
  const chunk = 1 << 16;
  const most = { [WEIGHTS]: LIMIT, "tokenizer.json": SIDE, "config.json": SIDE };
  for (const name of Object.keys(most)) {
    // Without a length, with one that is wrong, and with one that cannot be read.
    for (const headers of [{}, { "content-length": "10" }, { "content-length": "many" }, { "content-encoding": "gzip", "content-length": "10" }]) {
      const { seen, body } = endless(chunk);
      const config = name === WEIGHTS ? { memory } : {};
      const stated = headers["content-length"] === "10" && !headers["content-encoding"];
      await assert.rejects(Embedder.load(folder, { fetch: answering(name, body, headers), config }), { kind: stated ? "Hub" : "InputTooLarge" }, JSON.stringify(headers));
      assert.ok(seen.cancelled, `${name} ${JSON.stringify(headers)}`);
      assert.ok(seen.bytes <= (stated ? 10 : most[name]) + chunk, `${seen.bytes} bytes were taken of ${name}`);
    }
  }
});

test("a body that is stated to be too large is not read, and not left open", async () => {
  for (const length of [LIMIT + 1, 2 ** 50]) {
    for (const limit of length > 2 ** 32 ? [memory, {}] : [memory]) {
      const { seen, body } = endless(1 << 16);
      await assert.rejects(Embedder.load(folder, { fetch: answering(WEIGHTS, body, { "content-length": String(length) }), config: { memory: limit } }), { kind: "InputTooLarge" });
      assert.deepEqual(seen, { bytes: 0, cancelled: true });
    }
  }
});

test("less than what is stated is no file, nor is a part that nobody asked for", async () => {
  const whole = readFileSync(join(tiny, WEIGHTS));
  const load = (body, init) => Embedder.load(folder, { fetch: async (url, given) => (url.endsWith(WEIGHTS) ? new Response(body, init) : answering("", undefined)(url, given)) });
  await assert.rejects(load(whole.subarray(0, 1000), { headers: { "content-length": String(whole.length) } }), { kind: "Hub", message: /1000 of \d+ bytes/ });
  await assert.rejects(load(whole.subarray(0, 1000), { status: 206, headers: { "content-range": `bytes 0-999/${whole.length}` } }), { kind: "Hub", message: /206/ });
  await assert.rejects(load(null, { status: 204 }), { kind: "Hub", message: /204/ });
  const embedder = await load(whole, { headers: { "content-length": String(whole.length) } });
  assert.equal((await embedder.embed(["a"])).length, 1);
});

test("a list of modules is no list of requests without end", async () => {
  const asked = [];
  const modules = JSON.stringify(Array.from({ length: 10000 }, (_, index) => ({ idx: index, path: `${index % 5000}_Module`, type: "x" })));
  const inner = answering("modules.json", () => modules);
  await assert.rejects(Embedder.load(folder, { fetch: (url, init) => (asked.push(url), inner(url, init)) }));
  assert.ok(asked.length < 100, `${asked.length} requests`);
});

test("a compressed body is counted as what it becomes, from here and from elsewhere", async (t) => {
  const page = await browser.newPage();
  t.after(() => page.close());
  await page.goto(origin);
  const seen = await page.evaluate(async ({ origins, memory }) => {
    const { Embedder, cache } = await import("/dist/index.js");
    const seen = {};
    for (const [where, origin] of Object.entries(origins)) {
      for (const worker of [true, false]) {
        for (const kept of ["use", "off"]) {
          const load = async (kind) => {
            const embedder = await Embedder.load(`${origin}/${kind}/`, { worker, cache: kept, config: { memory } });
            await embedder.downloaded();
            const vectors = (await embedder.embed(["a"])).length;
            await embedder.dispose();
            return vectors;
          };
          for (const kind of ["bomb", "stated", "honest", "endless"]) {
            seen[`${where} ${kind} worker=${worker} cache=${kept}`] = await load(kind).catch(({ kind, message }) => `${kind}: ${message}`);
          }
        }
      }
    }
    return { seen, list: (await cache.list()).filter(({ file }) => file === "model.safetensors") };
  }, { origins: { here: origin, elsewhere: other }, memory });
  for (const [way, found] of Object.entries(seen.seen)) {
    if (way.includes("honest")) assert.equal(found, 1, way);
    else assert.match(String(found), /^InputTooLarge: .*memoryLimit allows 1048576/, way);
  }
  // What was refused is not kept, and what was compressed is kept as what it is.
  const whole = readFileSync(join(tiny, WEIGHTS)).length;
  assert.deepEqual(seen.list.map(({ bytes, complete }) => [bytes, complete]), [[whole, true], [whole, true]]);
  // Each of them was hung up on: else this test would not end.
  while (closed.length < 2 * 2 * 2 * 4 - 2) await new Promise((resolve) => setTimeout(resolve, 10));
});

/** A clock that goes on when it is told to, and the timers by it, which know nothing of the seconds that everything is `held` up. */
function clock(t) {
  let now = 0;
  t.mock.method(Date, "now", () => now);
  t.mock.timers.enable({ apis: ["setInterval"] });
  return (seconds, held = 0) => {
    now += (seconds + held) * 1000;
    t.mock.timers.tick(seconds * 1000);
  };
}

test("a server that sends too little in a minute is given up, and hung up on", async (t) => {
  const tick = clock(t);
  const whole = readFileSync(join(tiny, WEIGHTS));
  /** The weights, so many bytes in ten seconds; `held` adds seconds to each ten. */
  const load = (chunk, stated, held = 0) => {
    const seen = { cancelled: false };
    let at = 0;
    const pull = (controller) => {
      if (at >= whole.length) return controller.close();
      tick(10, held);
      controller.enqueue(whole.subarray(at, (at += chunk)));
    };
    const body = () => new ReadableStream({ pull, cancel: () => void (seen.cancelled = true) }, { highWaterMark: 0 });
    const headers = stated ? { "content-length": String(whole.length) } : {};
    return { seen, embedder: Embedder.load(folder, { fetch: answering(WEIGHTS, body, headers) }) };
  };
  for (const stated of [true, false]) {
    const slow = load(8 << 10, stated);
    await assert.rejects(slow.embedder, { kind: "Hub", message: /sends less than 61440 bytes in 60 seconds/ });
    assert.ok(slow.seen.cancelled);
    // Enough, and too little where the time is somebody else's.
    for (const [chunk, held] of [[14 << 10, 0], [8 << 10, 60]]) {
      const enough = await load(chunk, stated, held).embedder;
      assert.equal((await enough.embed(["a"])).length, 1);
    }
  }
});

test("a server that says nothing after its headers is given up, where the browser puts the file together", async (t) => {
  const tick = clock(t);
  let settled = false;
  const load = Embedder.load(`${origin}/silent/`).finally(() => (settled = true));
  const outcome = assert.rejects(load, { kind: "Hub", message: /sends less than 61440 bytes in 60 seconds/ });
  while (!settled) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    tick(60);
  }
  await outcome;
});
