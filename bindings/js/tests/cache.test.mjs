// What a site keeps of a model: the next visit downloads nothing, a download that broke goes on where
// it ended, two tabs download once, and nothing wrong is ever kept. Run by `cargo xtask test npm`.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { PIECE, WEIGHTS, heavy as make } from "./heavy.mjs";
import { js, launch, page as empty, send, serve, tiny, within } from "./site.mjs";

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

const heavy = make();

/** How the server treats the weights, and what was asked of it. */
let behaviour, log;
const reset = (given = {}) => ([behaviour, log] = [{ etag: '"one"', ranges: true, content: heavy, ...given }, []]);

const hub = async (request, response, path) => {
  const headers = { "access-control-allow-origin": "*", "access-control-expose-headers": behaviour.exposed ?? "ETag, Content-Range" };
  // Else the browser asks for ranges by itself, of what its own cache has.
  headers["cache-control"] = "no-store";
  // Ranges of the form `bytes=N-` are sent without being asked for leave; who asks gets a refusal.
  if (request.method === "OPTIONS") return response.writeHead(403).end();
  const [, kind, ...rest] = /^\/(model|owner\/name\/(?:resolve|raw)\/main)\/(.*)$/.exec(path) ?? [];
  const name = rest.join("/");
  if (kind === undefined) return send(response, join(js, path));
  log.push({ name, range: request.headers.range, raw: kind.includes("/raw/"), authorization: request.headers.authorization });
  if (kind.includes("/raw/")) {
    if (name !== WEIGHTS || !behaviour.pointer) return response.writeHead(404, headers).end();
    return response.writeHead(200, { ...headers, "content-type": "text/plain" }).end(`version https://git-lfs.github.com/spec/v1\noid sha256:${behaviour.pointer}\nsize ${behaviour.content.length}\n`);
  }
  if (behaviour.redirect && !request.url.includes("?moved")) return response.writeHead(302, { ...headers, location: `${other}${request.url}?moved` }).end();
  if (name !== WEIGHTS) return send(response, join(tiny, name), headers);
  const from = behaviour.ranges ? Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0) : 0;
  const part = behaviour.content.subarray(from);
  Object.assign(headers, { "content-length": part.length, "content-type": "application/octet-stream", ...(behaviour.etag && { etag: behaviour.etag }) });
  if (from > 0) headers["content-range"] = `bytes ${from}-${behaviour.content.length - 1}/${behaviour.content.length}`;
  response.writeHead(from > 0 ? 206 : 200, headers);
  if (behaviour.breaks === undefined || from > 0) return response.end(part);
  // The first two pieces, and not another byte.
  response.write(part.subarray(0, behaviour.breaks));
  if (!behaviour.hangs) setTimeout(300).then(() => response.destroy());
};
const origin = await serve((request, response, path) => (path === "/" ? empty(response) : hub(request, response, path)));
const other = await serve(hub);
const browser = await launch();

/** A visitor: what one keeps another does not have. */
async function visitor(t) {
  const context = await browser.newContext();
  t.after(() => context.close());
  return context;
}

/** A new tab on the site. */
async function tab(context) {
  const page = await within("a new tab", context.newPage());
  await within("an empty page", page.goto(origin));
  return page;
}

/** Waits until the first two pieces of the weights are kept, and no more. */
async function twoPieces(page) {
  const list = () => page.evaluate(async () => (await import("/dist/index.js")).cache.list());
  const until = Date.now() + 60_000;
  for (;;) {
    const kept = await within("a list of what is kept", list());
    if (kept.some(({ file, bytes }) => file === WEIGHTS && bytes === 2 * PIECE)) return;
    assert.ok(Date.now() < until, `two pieces in a minute: ${JSON.stringify({ kept, log })}`);
    await setTimeout(10);
  }
}

/** Loads the model in a new tab. */
async function visit(context, options = {}, source = "/model/", stay = false) {
  const page = await tab(context);
  const seen = page.evaluate(
    async ({ source, options }) => {
      const { Embedder, cache } = await import("/dist/index.js");
      try {
        const progress = [];
        const embedder = await Embedder.load(source, { onProgress: (step) => progress.push(step), ...options });
        const downloaded = await embedder.downloaded();
        const vector = Array.from(await embedder.embedOne("a text"));
        await embedder.dispose();
        return { downloaded, vector, cached: progress.map(({ cached }) => cached), list: await cache.list() };
      } catch (error) {
        return { kind: error.kind, message: error.message, list: await cache.list() };
      }
    },
    { source, options },
  );
  if (stay) {
    seen.catch(() => {}); // The tab is closed before.
    return page;
  }
  const result = await within("a load", seen);
  await within("the end of a tab", page.close());
  return result;
}

const asked = (name = WEIGHTS) => log.filter((one) => one.name === name && !one.raw);

test("the second visit downloads nothing, and works offline", async (t) => {
  const context = await visitor(t);
  reset();
  const first = await visit(context);
  assert.equal(first.downloaded.store, "Cache API", JSON.stringify(first));
  assert.ok(first.downloaded.bytes > heavy.length && first.cached.every((mark) => !mark));
  assert.ok(first.list.every(({ complete }) => complete) && first.list.find(({ file }) => file === WEIGHTS)?.bytes === heavy.length, JSON.stringify(first.list));
  reset();
  for (const options of [{}, { offline: true }]) {
    const again = await visit(context, options);
    assert.deepEqual([again.downloaded.bytes, again.vector, log], [0, first.vector, []], again.message);
    assert.ok(again.cached.every(Boolean));
  }
  await visit(context, { cache: "reload" });
  assert.equal(asked().length, 1);
  reset();
  const off = await visit(context, { cache: "off" });
  assert.deepEqual([asked().length, off.downloaded.store], [1, "none"]);
});

test("offline without a cache says what to do", async (t) => {
  reset();
  const seen = await visit(await visitor(t), { offline: true });
  assert.equal(seen.kind, "Hub");
  assert.match(seen.message, /offline.*not in the cache/);
  assert.deepEqual(log, []);
});

test("a download that broke goes on where it ended", async (t) => {
  const context = await visitor(t);
  reset({ breaks: 2 * PIECE + 1000 });
  const broken = await visit(context);
  assert.equal(broken.kind, "Hub");
  assert.match(broken.message, /broke off/);
  const kept = broken.list.find(({ file }) => file === WEIGHTS);
  assert.deepEqual([kept?.bytes, kept?.complete], [2 * PIECE, false]);
  reset();
  const whole = await visit(context);
  assert.deepEqual(asked().map(({ range }) => range), [`bytes=${2 * PIECE}-`], whole.message);
  assert.ok(whole.downloaded.bytes < heavy.length);
  assert.equal(whole.vector.length > 0, true);
  reset();
  assert.deepEqual([(await visit(context)).vector, log], [whole.vector, []]);
});

test("a tab that is closed in the middle leaves what the next one goes on from", async (t) => {
  const context = await visitor(t);
  reset({ breaks: 2 * PIECE + 1000, hangs: true });
  const page = await visit(context, {}, "/model/", true);
  await twoPieces(page);
  await within("the end of a tab", page.close());
  reset();
  const whole = await visit(context);
  assert.deepEqual(asked().map(({ range }) => range), [`bytes=${2 * PIECE}-`], whole.message);
});

test("a worker that is ended in the middle leaves what the next one goes on from", async (t) => {
  const page = await tab(await visitor(t));
  reset({ breaks: 2 * PIECE + 1000, hangs: true });
  const begun = page.evaluate(async () => {
    const { Embedder } = await import("/dist/index.js");
    const { Worker } = globalThis;
    globalThis.Worker = class extends Worker {
      constructor(...all) {
        super(...all);
        globalThis.started = this;
      }
    };
    void Embedder.load("/model/");
  });
  await within("the package's script", begun);
  await twoPieces(page);
  await page.evaluate(() => globalThis.started.terminate());
  reset();
  const again = page.evaluate(async () => {
    const { Embedder } = await import("/dist/index.js");
    return (await (await Embedder.load("/model/")).embed(["a text"])).length;
  });
  const vectors = await within("a load after the end of a worker", again);
  assert.equal(vectors, 1);
  assert.deepEqual(asked().map(({ range }) => range), [`bytes=${2 * PIECE}-`]);
});

test("what may be of another state is fetched whole", async (t) => {
  const changed = Buffer.from(heavy);
  changed[changed.length - 1] ^= 1;
  const now = [{ etag: '"two"', content: changed }, { ranges: false }, { etag: undefined }, { content: changed.subarray(0, -1) }];
  for (const after of now) {
    const context = await visitor(t);
    reset({ breaks: 2 * PIECE + 1000, ...(after.etag === undefined && "etag" in after && { etag: undefined }) });
    assert.equal((await visit(context)).kind, "Hub");
    reset(after);
    const seen = await visit(context);
    assert.equal(asked().at(-1).range, undefined, JSON.stringify(after.etag));
    // The last cuts the ballast, which the reader of the weights notices.
    assert.equal(seen.kind, after.content?.length === heavy.length - 1 ? "InvalidModel" : undefined, seen.message);
  }
});

test("two tabs download once", async (t) => {
  const context = await visitor(t);
  reset();
  const [one, two] = await Promise.all([visit(context), visit(context)]);
  assert.deepEqual(one.vector, two.vector);
  assert.equal(asked().length, 1);
});

test("a model that is not whole any more is fetched anew, all of it", async (t) => {
  const context = await visitor(t);
  reset();
  await visit(context);
  const page = await tab(context);
  await page.evaluate(async () => {
    const cache = await caches.open("isovec");
    const gone = (await cache.keys()).find(({ url }) => url.includes("/piece/") && url.includes("tokenizer.json"));
    await cache.delete(gone);
  });
  reset();
  await visit(context);
  assert.deepEqual([asked().length, asked("tokenizer.json").length, asked("config.json").length], [1, 1, 1]);
  const left = await page.evaluate(async () => {
    const { cache } = await import("/dist/index.js");
    const before = await cache.size();
    await cache.delete("/model/");
    return [cache.name, before, await cache.size(), await cache.list(), (await (await caches.open("isovec")).keys()).length];
  });
  assert.ok(left[1] > heavy.length);
  assert.deepEqual([left[0], ...left.slice(2)], ["isovec", 0, [], 0]);
});

test("a hub's hashes are checked, across a redirect to another origin, and damage is not kept", async (t) => {
  const context = await visitor(t);
  const options = { endpoint: other, headers: {} };
  reset({ pointer: sha256(heavy), redirect: true, exposed: "" });
  const seen = await visit(context, options, "owner/name");
  assert.deepEqual([seen.downloaded?.verified, seen.downloaded?.store], [1, "Cache API"], seen.message);

  const stranger = await visitor(t);
  reset({ pointer: sha256(heavy), redirect: true, exposed: "", breaks: 2 * PIECE });
  await visit(stranger, options, "owner/name");
  reset({ pointer: sha256(heavy), redirect: true, exposed: "" });
  const resumed = await visit(stranger, options, "owner/name");
  assert.equal(resumed.downloaded?.verified, 1, resumed.message);
  assert.ok(asked().every(({ range }) => range !== undefined));

  const damaged = Buffer.from(heavy);
  damaged[damaged.length - 5] ^= 1;
  const third = await visitor(t);
  reset({ pointer: sha256(heavy), content: damaged });
  const refused = await visit(third, options, "owner/name");
  assert.equal(refused.kind, "Hub");
  assert.match(refused.message, /is damaged/);
  assert.ok(!refused.list.some(({ file }) => file === WEIGHTS), JSON.stringify(refused.list));
});

test("where the browser keeps no more, the model is loaded all the same, and the reason is told", async (t) => {
  const context = await visitor(t);
  reset();
  const page = await context.newPage();
  const words = [];
  page.on("console", (message) => words.push(message.text()));
  await page.goto(origin);
  const seen = await page.evaluate(async () => {
    Cache.prototype.put = async () => {
      throw new DOMException("there is no room", "QuotaExceededError");
    };
    const { Embedder } = await import("/dist/index.js");
    const embedder = await Embedder.load("/model/", { worker: false });
    return { downloaded: await embedder.downloaded(), vectors: (await embedder.embed(["a"])).length };
  });
  assert.deepEqual([seen.downloaded.store, seen.vectors], ["none", 1]);
  assert.match(seen.downloaded.problem, /no room/);
  assert.match(words.join(), /keeps nothing of this model.*no room/);
});
