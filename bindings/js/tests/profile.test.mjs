// Profiles of the built package in headless Chromium, on the tiny seeded model: in a worker, in the page's own thread, and
// in the page's performance timeline.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { data, js, launch, page as empty, send, serve } from "./site.mjs";

const origin = await serve((_, response, path) => {
  if (path === "/") return empty(response);
  send(response, path.startsWith("/data/") ? join(data, path.slice(6)) : join(js, path));
});
const browser = await launch();
const page = await browser.newPage();
await page.goto(origin);
await page.evaluate(async () => {
  const { Embedder } = await import("/dist/index.js");
  globalThis.load = (worker) => Embedder.load("/data/tiny-bert", { worker });
});

for (const worker of [true, false]) {
  const where = worker ? "a worker" : "the page";

  test(`what ${where} does is seen, request by request`, async () => {
    const { trace, span, measures, counted } = await page.evaluate(async (worker) => {
      const embedder = await load(worker);
      const session = await embedder.profile();
      const from = performance.now();
      await Promise.all([embedder.embed(["a text", "and another one"]), embedder.embed(["a third"])]);
      const span = [from, performance.now()];
      const profile = await session.finish();
      const counted = profile.toTimeline();
      const measures = performance.getEntriesByType("measure").map(({ name, startTime, duration, detail }) => ({ name, startTime, duration, track: detail.devtools.track }));
      performance.clearMeasures();
      await embedder.dispose();
      return { trace: profile.trace, span, measures, counted };
    }, worker);
    const events = JSON.parse(trace).traceEvents;
    const of = (stage) => events.filter(({ cat, ph }) => cat === stage && ph === "X");
    assert.deepEqual(of("request").map(({ args }) => [args.texts, args.ended]).sort(), [[1, "well"], [2, "well"]]);
    assert.equal(of("tokenize").length, 2);
    const ids = of("request").map(({ args }) => args.request);
    const served = of("batch").flatMap(({ args }) => args.requests);
    assert.deepEqual([...new Set(served)].sort(), ids.sort());
    assert.ok(of("run").length > 0 && of("operator").some(({ name }) => name === "attention"));
    for (const operator of of("operator")) {
      const run = of("run").find(({ args }) => args.batch === operator.args.batch);
      assert.ok(run && operator.ts >= run.ts - 0.01 && operator.ts + operator.dur <= run.ts + run.dur + 0.01, JSON.stringify({ operator, run }));
    }

    assert.equal(measures.length, counted);
    assert.equal(counted, events.filter(({ ph }) => ph === "X").length);
    const requests = measures.filter(({ name }) => name === "isovec: request");
    assert.equal(requests.length, 2);
    for (const { startTime, duration, track } of requests) {
      // The page's own look at the clock lies around it; clocks of workers are told to a tenth of a millisecond.
      assert.ok(startTime >= span[0] - 1 && startTime + duration <= span[1] + 1, `${startTime} + ${duration} in ${span}`);
      assert.match(track, /^requests \d+$/);
    }
  });

  test(`one profile at a time in ${where}, and what is wrong with it is said`, async () => {
    const kinds = await page.evaluate(async (worker) => {
      const embedder = await load(worker);
      const kind = (promise) => promise.then(() => "nothing", (error) => error.kind);
      const session = await embedder.profile({ capacity: 3, operators: false });
      const kinds = [await kind(embedder.profile())];
      await embedder.embed(["a text"]);
      const profile = await session.finish();
      kinds.push(profile.events().filter(({ ph }) => ph === "X").length);
      kinds.push(await kind(session.finish()), await kind(embedder.profile({ capacity: 0 })), await kind(embedder.profile({ capacity: 1.5 })));
      kinds.push(await kind((await embedder.profile()).finish()));
      const last = await embedder.profile();
      await embedder.dispose();
      kinds.push(await kind(last.finish()));
      return kinds;
    }, worker);
    assert.deepEqual(kinds, ["AlreadyProfiled", 3, "Config", "Config", "Config", "nothing", "Disposed"]);
  });
}
