// The script of the status page, on what a real server's /metrics says.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { parse, quantile, sum, view } from "../../src/status/page.mjs";
import { start } from "./server.mjs";

let server;

before(async () => {
  server = await start();
});

after(() => server.stop());

const look = async () => parse(await (await fetch(`${server.url}/metrics`)).text());

test("the page shows what happened between two looks", async () => {
  const first = await look();
  for (let request = 0; request < 5; request++) {
    const body = JSON.stringify({ inputs: ["a text", "another"] });
    const answer = await fetch(`${server.url}/embed`, { method: "POST", body, headers: { "content-type": "application/json" } });
    assert.equal(answer.status, 200);
  }
  const { requests, models } = view(first, await look(), 2);
  assert.equal(requests["in work"], 0);
  // The look before is an answer as well.
  assert.equal(requests["answers a second"], 6 / 2);
  assert.ok(requests.p50 > 0 && requests.p50 <= requests.p95);
  const [model] = models;
  assert.deepEqual([models.length, model.model, model.task, model.rate, model.queued], [1, "embeds", "embed", 5, 0]);
  assert.ok(model.p50 > 0 && model.p50 <= model.p95);
  const idle = await look();
  assert.equal(view(idle, idle, 2).models[0].p50, undefined);
});

test("samples and quantiles are read as OpenMetrics has them", () => {
  const page = '# HELP a b\na_total{model="x \\"y\\\\",end="z"} 3\na_total{model="w"} 4\nb 1.5\n# EOF\n';
  const samples = parse(page);
  assert.deepEqual(samples[0], { name: "a_total", labels: { model: 'x "y\\', end: "z" }, value: 3 });
  assert.equal(sum(samples, "a_total"), 7);
  assert.equal(sum(samples, "a_total", { model: "w" }), 4);
  const bucket = (le, value) => ({ name: "t_bucket", labels: { le }, value });
  const before = [bucket("1.0", 10), bucket("2.0", 10), bucket("+Inf", 10)];
  const now = [bucket("1.0", 10), bucket("2.0", 14), bucket("+Inf", 20)];
  // Ten more, four of them between 1 and 2, the others above.
  assert.equal(quantile(before, now, "t", {}, 0.2), 1.5);
  assert.equal(quantile(before, now, "t", {}, 0.9), 2);
  assert.equal(quantile(before, before, "t", {}, 0.5), undefined);
});
