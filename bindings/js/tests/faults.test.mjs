// What goes wrong around a page: no room, tabs and workers that end in the middle, storage that is taken away, servers that
// cut and change what they send. What is visible in the cache afterwards is whole, the next load works and gives the same
// vector, and no caller waits for ever. Run by `cargo xtask test npm`.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { PIECE, WEIGHTS, heavy } from "./heavy.mjs";
import { js, launch, page as empty, send, serve, tiny, within } from "./site.mjs";

const weights = heavy();
const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
const original = (name) => (name === WEIGHTS ? weights : readFileSync(join(tiny, name)));

/** How the server treats the weights, and what was asked of it. */
let behaviour, log;
const reset = (given = {}) => ([behaviour, log] = [{ etag: '"one"', content: weights, ...given }, []]);
/** Answers that hang, until somebody breaks them off. */
const hanging = [];
const breakOff = () => hanging.splice(0).forEach((response) => response.destroy());

const origin = await serve((request, response, path) => {
  if (path === "/") return empty(response);
  if (!path.startsWith("/model/")) return send(response, join(js, path));
  const name = path.slice("/model/".length);
  const headers = { "cache-control": "no-store", "content-type": "application/octet-stream" };
  if (name !== WEIGHTS) return send(response, join(tiny, name), headers);
  const { content, etag, cut, hangs, range = "right", shift = 0 } = behaviour;
  const asked = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
  log.push(asked);
  if (asked > 0 && range === "refused") return response.writeHead(416, { ...headers, "content-range": `bytes */${content.length}` }).end();
  const from = range === "ignored" ? 0 : asked;
  const part = content.subarray(from + (from > 0 ? shift : 0));
  const said = range === "silent" ? {} : { "content-range": `bytes ${from + shift}-${content.length - 1}/${content.length}` };
  response.writeHead(from > 0 ? 206 : 200, { ...headers, etag, "content-length": part.length, ...(from > 0 && said) });
  if (cut === undefined || cut <= from) return response.end(part);
  response.write(part.subarray(0, cut - from), () => (hangs ? hanging.push(response) : setImmediate(() => response.destroy())));
});
const browser = await launch();

/** A visitor: what one keeps another does not have. */
async function visitor(t) {
  const context = await browser.newContext();
  t.after(() => context.close());
  return context;
}

async function tab(context) {
  const page = await within("a new tab", context.newPage());
  await within("an empty page", page.goto(origin));
  const script = page.evaluate(async () => {
    globalThis.isovec = await import("/dist/index.js");
    globalThis.load = async (options = {}) => {
      try {
        const embedder = await isovec.Embedder.load("/model/", options);
        const downloaded = await embedder.downloaded();
        const vector = Array.from(await embedder.embedOne("a text"));
        await embedder.dispose();
        return { downloaded, vector };
      } catch (error) {
        return { kind: error.kind ?? error.name, message: error.message };
      }
    };
    // The worker, for those who end it from outside.
    const { Worker } = globalThis;
    globalThis.Worker = class extends Worker {
      constructor(...all) {
        super(...all);
        globalThis.started = this;
      }
    };
  });
  await within("the package's script", script);
  return page;
}

/** A load in a tab of its own. */
async function visit(context, options) {
  const page = await tab(context);
  const seen = await within("a load", page.evaluate((options) => load(options), options));
  await within("the end of a tab", page.close());
  return seen;
}

/** The vector of an undisturbed load. */
let vector;
test("an undisturbed load", async (t) => {
  reset();
  ({ vector } = await visit(await visitor(t)));
  assert.ok(vector.length > 0);
});

/** Whatever can be seen in the cache is a part of the file that it is said to be, and what is said to be whole is. */
async function sound(context, why, versions = [original]) {
  const page = await tab(context);
  const look = page.evaluate(async () => {
    const cache = await caches.open("isovec");
    const entries = [];
    const hash = async (bytes) => Array.from(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)), (byte) => byte.toString(16).padStart(2, "0")).join("");
    for (const { url } of await cache.keys()) {
      const [kind, ...names] = new URL(url).pathname.slice(1).split("/").map(decodeURIComponent);
      const response = await cache.match(url);
      const stamp = response.headers.get("isovec-stamp");
      entries.push(kind === "piece" ? { kind, names, stamp, hash: await hash(await response.arrayBuffer()) } : { kind, names, json: await response.json().catch(() => ({})) });
    }
    return entries;
  });
  const entries = await within(`${why}: what is kept`, look);
  const list = await within(`${why}: the cache's list`, page.evaluate(() => isovec.cache.list()));
  const seen = { entries, list };
  await within("the end of a tab", page.close());
  const nameOf = (url) => new URL(url).pathname.slice("/model/".length);
  const states = new Map(seen.entries.filter(({ kind }) => kind === "file").map(({ names, json }) => [names[0], json]));
  const pieces = (url, stamp) => seen.entries.filter(({ kind, names, stamp: own }) => kind === "piece" && names[0] === url && own === stamp);
  for (const [url, state] of states) {
    // Of one version, all of them.
    const fits = versions.some((contentOf) => pieces(url, state.stamp).every(({ names: [, piece], hash }) => hash === sha256(contentOf(nameOf(url)).subarray(piece * PIECE, (Number(piece) + 1) * PIECE))));
    assert.ok(fits, `${why}: a piece of ${url} is of no version`);
  }
  for (const { json: { files = [] } } of seen.entries.filter(({ kind }) => kind === "model")) {
    for (const { url, stamp, bytes, name } of files) {
      if (states.get(url)?.stamp !== stamp) continue; // It is seen to be another one, and fetched anew.
      const found = pieces(url, stamp).length;
      const listed = seen.list.find(({ file }) => file === name);
      if (listed?.complete) assert.equal(found, Math.ceil(bytes / PIECE), `${why}: ${name} is not whole`);
    }
  }
  return seen;
}

/** The next load works, gives the same vector, and keeps the model; the one after it asks for nothing. */
async function mended(context, why) {
  reset();
  const next = await visit(context);
  assert.deepEqual([next.vector, next.downloaded?.store], [vector, "Cache API"], `${why}: ${next.message}`);
  const { list } = await sound(context, why);
  assert.ok(list.length > 0 && list.every(({ complete }) => complete), `${why}: ${JSON.stringify(list)}`);
  const [asked] = [log.length];
  const again = await visit(context);
  assert.deepEqual([again.vector, again.downloaded?.bytes, log.length], [vector, 0, asked], why);
}

test("where the browser has no more room, a model is loaded all the same, and kept when there is room again", async (t) => {
  for (const quota of [1, 1000, 100_000, PIECE + 100_000, 2 * PIECE + 500_000, weights.length]) {
    const context = await visitor(t);
    const page = await tab(context);
    const session = await context.newCDPSession(page);
    await session.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: quota });
    reset();
    const seen = await page.evaluate(() => load());
    assert.deepEqual([seen.vector, seen.downloaded?.store], [vector, "none"], `${quota}: ${seen.message}`);
    assert.match(seen.downloaded.problem, /[Qq]uota/, String(quota));
    const { list } = await sound(context, `${quota} bytes of room`);
// A file that fits is kept, for the next load to go on with; a part of one only takes the room of others.
    assert.ok(list.every(({ complete }) => complete), `${quota}: ${JSON.stringify(list)}`);
    await session.send("Storage.overrideQuotaForOrigin", { origin });
    await mended(context, `${quota} bytes of room`);
  }
});

/** Begins a load, `loading`, and waits until so many bytes of the weights are there and their whole pieces are kept. */
async function begun(page, cut) {
  const work = page.evaluate(async ({ cut, pieces }) => {
    globalThis.abort = new AbortController();
    const arrived = new Promise((resolve) => {
      const onProgress = ({ file, bytes }) => file === "model.safetensors" && bytes >= cut && resolve();
      globalThis.loading = load({ onProgress, signal: abort.signal });
    });
    const ended = loading.then(({ message }) => Promise.reject(new Error(`the load has ended: ${message}`)));
    await Promise.race([arrived, ended]);
    const kept = async () => (await isovec.cache.list()).find(({ file }) => file === "model.safetensors")?.bytes ?? 0;
    while ((await Promise.race([kept(), ended])) < pieces) await new Promise((resolve) => setTimeout(resolve, 10));
  }, { cut, pieces: Math.floor(cut / PIECE) * PIECE });
  await within(`the first ${cut} bytes`, work);
}

/** Waits until a page waits for another tab's download. */
const waits = (page) => within("a tab that waits for another", page.evaluate(async () => {
  const waits = async () => (await navigator.locks.query()).pending.some(({ name }) => name.startsWith("isovec ") && name.includes("/model/"));
  while (!(await waits())) await new Promise((resolve) => setTimeout(resolve, 10));
}));

/** Ways in which a tab may end. */
const ENDS = {
  close: (page) => within("the end of a tab", page.close()),
  async crash(page) {
    const session = await page.context().newCDPSession(page);
    const crashed = new Promise((resolve) => page.once("crash", resolve));
    session.send("Page.crash").catch(() => {});
    await within("a crash", crashed);
    await within("the end of a crashed tab", page.close());
  },
};

test("a tab may end in the middle of any piece", async (t) => {
  for (const [how, end] of Object.entries(ENDS)) {
    for (const cut of [1, PIECE - 1, PIECE, 2 * PIECE + 1000, weights.length - 1]) {
      const context = await visitor(t);
      const page = await tab(context);
      reset({ cut, hangs: true });
      await begun(page, cut);
      await end(page);
      await sound(context, `${how} after ${cut} bytes`);
      await mended(context, `${how} after ${cut} bytes`);
    }
  }
});

test("who waits for another tab's download goes on with it when that tab ends", async (t) => {
  for (const [how, end] of Object.entries(ENDS)) {
    const context = await visitor(t);
    // Tabs of one site may share a process, which a crash would end for both.
    const [first, second] = [await tab(context), await tab(context)];
    reset({ cut: 2 * PIECE + 1000, hangs: true });
    await begun(first, behaviour.cut);
    const waiting = second.evaluate(() => load()).catch((error) => ({ gone: String(error) }));
    await waits(second);
    reset();
    await end(first);
    const seen = await waiting;
    if (!seen.gone) assert.deepEqual([seen.vector, log], [vector, [2 * PIECE]], `${how}: ${seen.message}`);
    await sound(context, how);
    await mended(context, how);
  }
});

test("two tabs that load at once download once, also where one of them gives up", async (t) => {
  const context = await visitor(t);
  const [first, second] = [await tab(context), await tab(context)];
  reset();
  const both = await Promise.all([first, second].map((page) => page.evaluate(() => load())));
  assert.deepEqual([both.map(({ vector }) => vector), log], [[vector, vector], [0]]);
  await sound(context, "two tabs");
  const other = await visitor(t);
  const [quitter, stayer] = [await tab(other), await tab(other)];
  reset({ cut: 2 * PIECE + 1000, hangs: true });
  await begun(quitter, behaviour.cut);
  const stayed = stayer.evaluate(() => load());
  await waits(stayer);
  reset();
  assert.equal((await quitter.evaluate(() => (abort.abort(), loading))).kind, "AbortError");
  assert.deepEqual([(await stayed).vector, log], [vector, [2 * PIECE]]);
  await sound(other, "one that gave up");
  await mended(other, "one that gave up");
});

/** Ways in which a worker may end that isovec did not think of. */
const KILLS = {
  terminate: (page) => page.evaluate(() => started.terminate()),
  close: (page) => page.workers()[0].evaluate(() => close()),
};

test("a worker that somebody ends in the middle of loading ends the load, and the next one works", async (t) => {
  for (const [how, kill] of Object.entries(KILLS)) {
    for (const cut of [1, 2 * PIECE + 1000]) {
      const context = await visitor(t);
      const page = await tab(context);
      reset({ cut, hangs: true });
      await begun(page, cut);
      await kill(page);
      assert.equal((await page.evaluate(() => loading)).kind, "EnginePoisoned", `${how} after ${cut} bytes`);
      await sound(context, `${how} after ${cut} bytes`);
      await mended(context, `${how} after ${cut} bytes`);
    }
  }
});

test("a worker that somebody ends in the middle of embedding ends the calls, and the next one loads anew", async (t) => {
  const context = await visitor(t);
  const page = await tab(context);
  reset();
  await page.evaluate(async () => {
    globalThis.embedder = await isovec.Embedder.load("/model/");
    await embedder.downloaded();
    globalThis.failure = (promise) => promise.then(() => "nothing failed", ({ kind }) => kind);
  });
  for (const [how, kill] of Object.entries(KILLS)) {
    await page.evaluate(async () => {
      const many = Array.from({ length: 40000 }, (_, index) => `a text that waits, number ${index}`);
      globalThis.waiting = [failure(embedder.embed(many)), failure(embedder.embed(many)), failure((async () => { for await (const _ of embedder.embedStream(many)); })())];
      // The worker is at it when it answers in between.
      await embedder.countTokens("a text");
    });
    await kill(page);
    assert.deepEqual(await page.evaluate(() => Promise.all(waiting)), Array(3).fill("EnginePoisoned"), how);
    const again = await page.evaluate(async () => Array.from(await embedder.embedOne("a text")));
    assert.deepEqual(again, vector, how);
  }
  // While nobody waits, too: the next call notices, or the one after it.
  await KILLS.terminate(page);
  const kinds = await page.evaluate(async () => [await failure(embedder.embedOne("a text")), await failure(embedder.embedOne("a text"))]);
  assert.ok(["EnginePoisoned", "nothing failed"].includes(kinds[0]) && kinds[1] === "nothing failed", String(kinds));
  await page.evaluate(() => embedder.dispose());
  assert.deepEqual(log, [0]);
  await sound(context, "killed workers");
});

test("storage may be taken away while a model is loaded, and while it is fetched", async (t) => {
  const context = await visitor(t);
  const page = await tab(context);
  const session = await context.newCDPSession(page);
  const evict = () => session.send("Storage.clearDataForOrigin", { origin, storageTypes: "all" });
  reset();
  await page.evaluate(async () => {
    globalThis.embedder = await isovec.Embedder.load("/model/");
    await embedder.downloaded();
  });
  await evict();
  const seen = await page.evaluate(async () => [Array.from(await embedder.embedOne("a text")), (await isovec.cache.list()).length, await isovec.cache.size()]);
  assert.deepEqual(seen, [vector, 0, 0]);
  assert.deepEqual((await page.evaluate(async () => {
    await embedder.recreate();
    return Array.from(await embedder.embedOne("a text"));
  })), vector);
  await page.evaluate(() => embedder.dispose());
  await mended(context, "evicted while it was loaded");
  for (const cut of [1, PIECE + 1000, weights.length - 1]) {
    const context = await visitor(t);
    const page = await tab(context);
    const session = await context.newCDPSession(page);
    reset({ cut, hangs: true });
    await begun(page, cut);
    await session.send("Storage.clearDataForOrigin", { origin, storageTypes: "all" });
    await sound(context, `evicted after ${cut} bytes`);
    await page.close();
    await mended(context, `evicted after ${cut} bytes`);
  }
});

test("a cache that somebody deletes in the middle is no reason not to load", async (t) => {
  const context = await visitor(t);
  const page = await tab(context);
  reset();
  const seen = await page.evaluate(() => {
    let gone;
    return load({ onProgress: ({ file, bytes }) => file === "model.safetensors" && bytes > 5e6 && (gone ??= caches.delete("isovec")) });
  });
  assert.deepEqual(seen.vector, vector, seen.message);
  await sound(context, "deleted");
  await mended(context, "deleted");
});

test("a server may cut a file anywhere, and change it in between", async (t) => {
  const changed = Buffer.from(weights);
  changed[changed.length - 1] ^= 1;
  const withWeights = (content) => (name) => (name === WEIGHTS ? content : original(name));
  const both = [original, withWeights(changed)];
  const then = {
    "the same": {},
    "cut again": { cut: 2 * PIECE + 5 },
    changed: { content: changed, etag: '"two"' },
    "longer": { content: Buffer.concat([weights, Buffer.alloc(8)]), etag: '"one"' },
    "ranges ignored": { range: "ignored" },
    "ranges refused": { range: "refused" },
    "another range": { shift: 1 },
    "another range, of the right length": { shift: 1, content: Buffer.concat([weights, Buffer.alloc(1)]) },
  };
  // In a first piece nothing is kept; whatever comes then happens after a whole one.
  const cuts = { 1000: ["the same"], [PIECE]: ["changed"], [PIECE + 1]: Object.keys(then), [weights.length - 1]: ["the same", "changed"] };
  for (const [cut, whats] of Object.entries(cuts)) {
    for (const [what, after] of whats.map((what) => [what, then[what]])) {
      const why = `cut at ${cut}, then ${what}`;
      const context = await visitor(t);
      reset({ cut: Number(cut) });
      const broken = await visit(context);
      assert.equal(broken.kind, "Hub", why);
      await sound(context, why, both);
      reset(after);
      const second = await visit(context);
      if (second.kind) assert.ok(["Hub", "InvalidModel"].includes(second.kind), `${why}: ${second.kind}: ${second.message}`);
      else assert.deepEqual(second.vector, vector, why);
      await sound(context, why, [...both, withWeights(after.content ?? weights)]);
      // What is another state now is kept as that, and is not asked for again: whoever wants the new one says so.
      if (after.content && !second.kind) continue;
      await mended(context, why);
    }
  }
});

test("a beginning that cannot be gone on with does not stand in the way for ever", async (t) => {
  const context = await visitor(t);
  // A browser may throw away what it has of an answer that breaks off: this one breaks off when a piece of it is kept.
  const page = await tab(context);
  reset({ cut: PIECE + 1000, hangs: true });
  await begun(page, behaviour.cut);
  breakOff();
  assert.equal((await within("a load that breaks off", page.evaluate(() => loading))).kind, "Hub");
  await page.close();
  const kinds = [];
  for (let turn = 0; turn < 4; turn++) {
    // Each answer to a range ends before it has brought a piece; a whole file is sent whole.
    reset();
    behaviour.cut = PIECE + 2000 + turn;
    const seen = tabbed(context);
    kinds.push((await seen).kind);
  }
  assert.deepEqual(kinds, ["Hub", "Hub", "Hub", undefined]);
  await mended(context, "beginnings");

  async function tabbed(context) {
    const page = await tab(context);
    // The server sends a whole file when it is asked for one.
    await page.route("**/model/model.safetensors", (route) => {
      if (!route.request().headers().range) behaviour.cut = undefined;
      return route.continue();
    });
    const seen = await page.evaluate(() => load({ worker: false }));
    await page.close();
    return seen;
  }
});
