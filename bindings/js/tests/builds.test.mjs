// The builds of the module: which of them a browser and node get, and that all give the same
// vectors. Run by `cargo xtask test npm`, or `npm test` after `npm run build`.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { FILES, ISOLATED, NATIVE, STRICT, data, js, launch, page as empty, send, serve, tiny as model } from "./site.mjs";

const repository = dirname(dirname(js));
/** Where `cargo xtask` puts the real one. */
const minilm = process.env.ISOVEC_TEST_MODEL;
const reference = JSON.parse(readFileSync(join(model, "reference.json"), "utf8"));
const texts = reference.texts.map(({ text }) => text);
/** Of the engine; the advisor's module and that of pictures are none. */
const BUILDS = readdirSync(join(js, "pkg")).filter((name) => !["advisor", "image"].includes(name));
/** The bits that every target is held to. */
const bits = (name) => {
  const source = readFileSync(join(repository, "tests", "parity", "src", "bits.rs"), "utf8");
  return BigInt(new RegExp(`${name}: u64 = (0x[0-9a-f_]+)`).exec(source)[1].replaceAll("_", ""));
};
const BITS = bits("TINY");
const EXACT = { session: { deterministicCompute: true } };

/** FNV-1a, as `isovec_parity::bits::hash` has it. */
const hash = (bytes) => bytes.reduce((state, byte) => BigInt.asUintN(64, (state ^ BigInt(byte)) * 0x100000001b3n), 0xcbf29ce484222325n);

/** What the pages are served with besides. */
const HEADERS = { "/": {}, "/strict": STRICT, "/isolated": ISOLATED, "/isolated-strict": { ...ISOLATED, ...STRICT } };
const WORKER = `import { Embedder } from "/dist/index.js";
onmessage = async ({ data }) => {
  const embedder = await Embedder.load("/model", data.options);
  const values = (await embedder.embed(data.texts)).values;
  const { used } = embedder.effectiveConfig().find(({ name }) => name === "session.intraOpThreads");
  postMessage({ build: embedder.build, used, bytes: new Uint8Array(values.buffer) });
};`;
/** A worker that is ended in the middle of its work, as far as the others can see. */
const LOST = `import init, { isovecJoin, isovecLost } from "/pkg/threads/isovec_js.js";
onmessage = async ({ data }) => {
  await init({ module_or_path: data.module, memory: data.memory });
  isovecJoin();
  isovecLost();
  postMessage({});
};`;
const SCRIPTS = { "/worker.js": WORKER, "/lost.js": LOST };

const origin = await serve((request, response, path) => {
  if (HEADERS[path]) return empty(response, HEADERS[path]);
  if (SCRIPTS[path]) return response.writeHead(200, { ...ISOLATED, "content-type": "text/javascript" }).end(SCRIPTS[path]);
  const folder = { model, minilm }[path.split("/")[1]];
  send(response, folder ? join(folder, path.slice(path.indexOf("/", 1))) : join(js, path), ISOLATED);
});
const browser = await launch();

/** A page at a path; `before` runs in it first. */
async function open(t, path, before = () => {}) {
  const page = await browser.newPage();
  t.after(() => page.close());
  await page.goto(origin + path);
  await page.evaluate(before);
  return page;
}

/** Loads and embeds in a page: the build, the provider, the bytes, and the modules that were fetched. */
function embed(page, options, source = "/model", given = texts) {
  return page.evaluate(
    async ({ options, source, given }) => {
      const { Embedder } = await import("/dist/index.js");
      try {
        const embedder = await Embedder.load(source, { worker: false, ...options });
        const values = (await embedder.embed(given)).values;
        const fetched = performance.getEntriesByType("resource").map(({ name }) => new URL(name).pathname);
        return {
          build: embedder.build,
          provider: embedder.provider().provider,
          threads: embedder.effectiveConfig().find(({ name }) => name === "session.intraOpThreads"),
          values: Array.from(values),
          bytes: Array.from(new Uint8Array(values.buffer)),
          modules: fetched.filter((path) => path.endsWith(".wasm")),
        };
      } catch (error) {
        return { kind: error.kind, message: error.message };
      }
    },
    { options, source, given },
  );
}

const PROVIDERS = { simd128: "wasm simd128", relaxed: "wasm relaxed-simd", threads: "wasm relaxed-simd, threads", tract: "wasm simd128" };
/** A configuration for so many threads. */
const on = (threads, session = {}) => ({ session: { ...session, intraOpThreads: threads } });

test("a page gets the fastest build, and downloads no other", async (t) => {
  const seen = await embed(await open(t, "/"), {});
  assert.equal(seen.build, "relaxed");
  assert.equal(seen.provider, PROVIDERS.relaxed);
  assert.deepEqual(seen.modules, ["/pkg/relaxed/isovec_js_bg.wasm"]);
});

test("an isolated page gets the threads that it asks for, one that is not gets none", async (t) => {
  const page = await open(t, "/isolated");
  const seen = await embed(page, { config: on(2) });
  assert.deepEqual([seen.build, seen.provider, seen.threads.used], ["threads", PROVIDERS.threads, "2"]);
  assert.deepEqual(seen.modules, ["/pkg/threads/isovec_js_bg.wasm"]);
  assert.equal((await embed(page, { config: on(3) })).threads.used, "3");
  assert.equal((await embed(await open(t, "/isolated"), { config: on(1) })).build, "relaxed");
  // By default as many as the processors are good for.
  const processors = await page.evaluate(() => navigator.hardwareConcurrency);
  const usual = await embed(await open(t, "/isolated"), {});
  assert.equal(usual.threads.used, String(Math.min(processors, 4, Math.max(2, Math.ceil(processors / 2)))));

  const alone = await open(t, "/");
  const single = await embed(alone, { config: on(2) });
  assert.deepEqual([single.build, single.threads.used, single.threads.honoured], ["relaxed", "1", false]);
  const refused = await embed(alone, { build: "threads" });
  assert.equal(refused.kind, "EngineUnavailable");
  assert.match(refused.message, /Cross-Origin-Embedder-Policy/);
});

test("any number of threads gives the same bits", async (t) => {
  const page = await open(t, "/isolated");
  for (const threads of [2, 1, 3]) {
    const seen = await embed(page, { build: "threads", config: on(threads, EXACT.session) });
    assert.equal(seen.threads.used, String(threads));
    assert.equal(hash(seen.bytes), BITS, `${threads} threads`);
  }
});

test("the real model has the same bits on any number of threads", { skip: !minilm && "ISOVEC_TEST_MODEL names no model" }, async (t) => {
  const lines = readFileSync(join(data, "reference", "texts.txt"), "utf8").trimEnd().split("\n");
  const page = await open(t, "/isolated");
  for (const threads of [1, 2, 3]) {
    const seen = await embed(page, { build: "threads", config: on(threads, EXACT.session) }, "/minilm", lines);
    assert.equal(seen.threads?.used, String(threads), seen.message);
    assert.equal(hash(seen.bytes), bits("MINILM"), `${threads} threads`);
  }
});

test("a run on threads ends when its signal is aborted, and the next one runs", async (t) => {
  const page = await open(t, "/isolated");
  const seen = await page.evaluate(async () => {
    const { Embedder } = await import("/dist/index.js");
    const embedder = await Embedder.load("/model", { worker: false, build: "threads", config: { session: { intraOpThreads: 2 } } });
    const texts = Array.from({ length: 4000 }, (_, index) => `text number ${index} that is long enough to take a moment`);
    const abort = new AbortController();
    const run = embedder.embed(texts, { signal: abort.signal }).then(() => "done", ({ name }) => name);
    // A turn by the way the engine itself gives turns; a timer may come late.
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => abort.abort();
    port2.postMessage(null);
    return [await run, (await embedder.embed(["still works"])).length];
  });
  assert.deepEqual(seen, ["AbortError", 1]);
});

test("where no worker starts, one thread computes, and a word says so", async (t) => {
  const page = await open(t, "/isolated", () => {
    globalThis.Worker = class {
      constructor() {
        throw new Error("none today");
      }
    };
  });
  const words = [];
  page.on("console", (message) => words.push(message.text()));
  const seen = await embed(page, { config: on(2) });
  assert.deepEqual([seen.build, seen.threads.used, seen.threads.honoured], ["threads", "1", false]);
  assert.match(words.join(), /none today/);
});

test("where shared memory is refused, another build computes, unless this one was asked for", async (t) => {
  const page = await open(t, "/isolated", () => {
    WebAssembly.Memory = class {
      constructor() {
        throw new RangeError("not so much");
      }
    };
  });
  const words = [];
  page.on("console", (message) => words.push(message.text()));
  assert.equal((await embed(page, { config: on(2) })).build, "relaxed");
  assert.match(words.join(), /one thread.*not so much/);
  const refused = await embed(page, { build: "threads" });
  assert.equal(refused.kind, "EngineUnavailable");
  assert.match(refused.message, /not so much/);
});

test("a model that takes more memory than the browser gives is refused", async (t) => {
  const page = await open(t, "/isolated", () => {
    const { Memory } = WebAssembly;
    // 10 MB more than what the module begins with.
    WebAssembly.Memory = class extends Memory {
      constructor({ initial, ...rest }) {
        super({ ...rest, initial, maximum: initial + 160 });
      }
    };
  });
  const seen = await page.evaluate(async (names) => {
    const { Embedder } = await import("/dist/index.js");
    const files = new Map();
    for (const name of names) files.set(name, new Uint8Array(await (await fetch(`/model/${name}`)).arrayBuffer()));
    files.set("more", new Uint8Array(64 << 20));
    const load = (source) => Embedder.load(source, { worker: false, build: "threads", config: { session: { intraOpThreads: 1 } } });
    const refused = await load(files).then(() => ({}), ({ kind, message }) => ({ kind, message }));
    return { refused, after: (await (await load("/model/")).embed(["fits"])).length };
  }, FILES);
  assert.equal(seen.refused.kind, "InputTooLarge");
  assert.match(seen.refused.message, /64 MB of memory.*int8/);
  assert.equal(seen.after, 1);
});

test("a worker that is lost ends the run, and what it leaves is not used", async (t) => {
  const page = await open(t, "/isolated", () => {
    const { Worker } = globalThis;
    globalThis.Worker = class extends Worker {
      constructor(_, options) {
        super("/lost.js", options);
      }
    };
  });
  for (const config of [on(2), on(1)]) {
    const seen = await embed(page, { build: "threads", config });
    assert.equal(seen.kind, "EnginePoisoned");
    assert.match(seen.message, /a thread was ended in the middle of its work/);
  }
});

test("every build gives the vectors of the reference, and the same bits where that is asked for", async (t) => {
  assert.deepEqual(BUILDS.toSorted(), Object.keys(PROVIDERS).toSorted());
  for (const build of BUILDS) {
    const page = await open(t, "/isolated");
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
  for (const [path, build] of [["/strict", "relaxed"], ["/isolated-strict", "threads"]]) {
    const page = await open(t, path);
    const config = on(2, EXACT.session);
    assert.equal((await embed(page, { config })).build, build);
    const seen = await page.evaluate(
      ({ texts, options }) =>
        new Promise((resolve, reject) => {
          const worker = new Worker("/worker.js", { type: "module" });
          worker.onmessage = ({ data }) => resolve({ ...data, bytes: Array.from(data.bytes) });
          worker.onerror = ({ message }) => reject(new Error(message));
          worker.postMessage({ texts, options });
        }),
      { texts, options: { config } },
    );
    assert.deepEqual([seen.build, seen.used], [build, build === "threads" ? "2" : "1"]);
    assert.equal(hash(seen.bytes), BITS);
  }
});

test("node gets what its version can run, without a word", async (t) => {
  const said = t.mock.method(console, "warn");
  const { Embedder } = await import("../dist/index.js");
  const files = new Map(FILES.map((name) => [name, new Uint8Array(readFileSync(join(model, name)))]));
  const embedder = await Embedder.load(files, { config: EXACT });
  // Relaxed SIMD came with V8 11.4; before, it is behind a flag.
  const flag = process.execArgv.includes("--experimental-wasm-relaxed-simd");
  assert.equal(embedder.build, NATIVE ? "native" : Number(process.versions.node.split(".")[0]) > 20 || flag ? "relaxed" : "simd128");
  assert.equal(hash(new Uint8Array((await embedder.embed(texts)).values.buffer)), BITS);
  assert.equal(said.mock.callCount(), 0);
});
