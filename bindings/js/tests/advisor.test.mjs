// The advisor of the built package in headless Chromium, on the tiny seeded model.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test } from "node:test";
import { data, js, launch, page as empty, send, serve } from "./site.mjs";

const fetched = [];
const origin = await serve((_, response, path) => {
  fetched.push(path);
  if (path === "/") return empty(response);
  send(response, path.startsWith("/data/") ? join(data, path.slice(6)) : join(js, path));
});
const browser = await launch();
after(() => browser.close());
const page = await browser.newPage();
await page.goto(origin);
await page.evaluate(async () => {
  globalThis.advisor = await import("/dist/advisor.js");
  const { Embedder } = await import("/dist/index.js");
  globalThis.load = (config) => Embedder.load("/data/tiny-bert", { config });
  globalThis.texts = Array.from({ length: 40 }, (_, place) => `text ${place} ${"and so on ".repeat(place % 7)}`);
});

test("nothing of it is fetched before it is asked", () => {
  assert.deepEqual(fetched.filter((path) => path.includes("advisor_bg")), []);
});

test("a page is looked at, and what is wrong with it is named", async () => {
  const { report, markdown, profiled, used, context, json } = await page.evaluate(async () => {
    const embedder = await load();
    const session = await embedder.profile();
    await embedder.embed(texts);
    const profile = await session.finish();
    const context = await advisor.contextOf(embedder, { profile, texts: [...texts, ...texts] });
    const report = await advisor.analyze(context);
    await embedder.dispose();
    return { report, markdown: await advisor.toMarkdown(report), profiled: context.profile, used: context.workload, context, json: advisor.toJson(context) };
  });
  assert.ok(profiled.operators.attention.count > 0 && profiled.stages.run.seconds > 0, JSON.stringify(profiled));
  assert.deepEqual([used.texts, used.distinct], [80, 40]);
  const ids = report.suggestions.map(({ id }) => id);
  // A server without the headers, and texts that come twice.
  assert.deepEqual(ids, ["repeated-texts", "page-not-isolated"]);
  assert.match(markdown, /Cross-Origin-Opener-Policy/);
  // The change and its example are written as this page writes them.
  const [repeated] = report.suggestions;
  assert.ok(repeated.patch.embeddingCache.memory > 0, JSON.stringify(repeated));
  assert.match(repeated.example.typescript, /"embeddingCache"/);
  assert.doesNotMatch(JSON.stringify({ ...repeated, example: repeated.example.typescript }), /embedding_cache/);
  assert.match(repeated.example.rust, /embedding_cache/);
  // What is written down for the program has the names of Rust.
  const written = JSON.parse(json);
  assert.equal(written.stats.memory_pool.pool_hits, context.stats.memoryPool.poolHits);
  assert.equal(written.hardware.cpu.logical_cores, context.hardware.cpu.logicalCores);
  assert.deepEqual(written.model.operators, context.model.operators);
  assert.ok(context.effective.some(({ name }) => name === "session.intraOpThreads") && written.effective.some(({ name }) => name === "session.intra_op_threads"));
  assert.deepEqual(report.failed, []);
  const lacks = new Set(report.notJudged.flatMap(({ lacks }) => lacks));
  assert.deepEqual([...lacks], ["memory"]);
  assert.ok(report.judged > 15, JSON.stringify(report.notJudged));
});

test("a token does not get into a context", async () => {
  const config = await page.evaluate(async () => {
    const embedder = await load();
    const context = await advisor.contextOf(embedder, { config: { hub: { token: "secret", revision: "main" } } });
    await embedder.dispose();
    return context.config;
  });
  assert.deepEqual(config, { hub: { revision: "main" } });
});

test("a context with nothing in it says what is missing", async () => {
  const report = await page.evaluate(() => advisor.analyze({}));
  assert.deepEqual([report.suggestions, report.judged], [[], 0]);
  assert.ok(report.notJudged.length > 20);
});

test("rules of the page's stand among the others, and one that throws is named", async () => {
  const { report, changed, kinds } = await page.evaluate(async () => {
    const rules = [
      { id: "mine", check: ({ provider }) => ({ title: `leave ${provider.engine}`, impact: "critical", patch: { batching: { maxBatchTokens: 64 } } }) },
      { id: "silent", check: () => undefined },
      {
        id: "broken",
        check: () => {
          throw new Error("no idea");
        },
      },
      { id: "rusty", check: () => ({ patch: { batching: { max_batch_tokens: 64 } } }) },
    ];
    const report = await advisor.analyze({ provider: { engine: "portable", provider: "wasm simd128", version: "0" } }, { rules });
    const [mine] = report.suggestions;
    const changed = await advisor.apply(mine, { text: { maxLength: 8 }, hub: { token: "secret" } });
    const kind = (promise) => promise.then(() => "nothing", ({ kind, name }) => kind ?? name);
    const kinds = [
      await kind(advisor.apply({ ...mine, patch: undefined })),
      await kind(advisor.apply({ ...mine, patch: { batching: { maxBatchTokens: 0 } } })),
      await kind(advisor.analyze({ stats: 7 })),
      await kind(advisor.analyze({}, { rules: [{ id: "odd", check: () => ({ impact: "enormous" }) }] })),
    ];
    return { report, changed, kinds };
  });
  assert.deepEqual(report.suggestions.map(({ id, title }) => [id, title]), [["mine", "leave portable"]]);
  const [broken, rusty] = report.failed;
  assert.deepEqual(broken, { rule: "broken", message: "Error: no idea" });
  assert.equal(rusty.rule, "rusty");
  assert.match(rusty.message, /`batching\.max_batch_tokens`.*`batching\.maxBatchTokens`/);
  assert.deepEqual(changed, { text: { maxLength: 8 }, batching: { maxBatchTokens: 64 }, hub: { token: "secret" } });
  assert.deepEqual(kinds, ["Config", "Config", "Config", "Config"]);
});

test("two embedders are compared, and other vectors are never better", async () => {
  const { same, other, kinds } = await page.evaluate(async () => {
    const [baseline, cut] = [await load(), await load({ text: { maxLength: 4 } })];
    const options = { rounds: 6 };
    const same = await advisor.trial(baseline, baseline, texts, options);
    const other = await advisor.trial(baseline, cut, texts.slice(0, 4), { ...options, goal: "latency" });
    const kind = (promise) => promise.then(() => "nothing", ({ kind, name }) => kind ?? name);
    const kinds = [await kind(advisor.trial(baseline, cut, [])), await kind(advisor.trial(baseline, cut, ["a"], { rounds: 2 })), await kind(advisor.trial(baseline, cut, ["a"], { signal: AbortSignal.abort() }))];
    const keeps = await load({ embeddingCache: { memory: 1 << 20 } });
    kinds.push(await kind(advisor.trial(baseline, keeps, texts)));
    await keeps.dispose();
    // Refused before anything runs.
    const calls = async () => (await baseline.stats()).calls.embedded;
    const before = await calls();
    kinds.push(await kind(advisor.trial(baseline, baseline, texts, { confidence: 95 })), (await calls()) - before);
    await baseline.dispose();
    await cut.dispose();
    return { same, other, kinds };
  });
  assert.ok(same.verdict !== "other_vectors" && same.distance === 0 && same.compatible, JSON.stringify(same));
  assert.deepEqual([same.baseline.length, same.candidate.length, same.texts], [6, 6, 40]);
  assert.ok(same.low <= same.speedup && same.speedup <= same.high, JSON.stringify(same));
  assert.deepEqual([other.verdict, other.compatible, other.goal], ["other_vectors", false, "latency"]);
  assert.deepEqual(kinds, ["Config", "Config", "AbortError", "Config", "Config", 0]);
});
