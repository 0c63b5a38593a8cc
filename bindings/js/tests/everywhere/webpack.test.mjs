// An app on webpack 5, without a word of configuration for isovec.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import webpack from "webpack";
import { ISOLATED, launch } from "../site.mjs";
import { app, served } from "./app.mjs";
import { flow } from "./page.mjs";

const folder = app("page", "dist/model");
const browser = await launch();

test("what webpack builds works, isolated and not", async () => {
  const output = { path: join(folder, "dist") };
  const stats = await promisify(webpack)({ context: folder, entry: "./main.js", output, mode: "production", performance: { hints: false } });
  assert.ok(!stats.hasErrors() && !stats.hasWarnings(), stats.toString());
  writeFileSync(join(folder, "dist", "index.html"), '<!doctype html><script defer src="main.js"></script>');
  for (const [headers, expected] of [[{}, "relaxed"], [ISOLATED, "threads"]]) {
    const page = await browser.newPage();
    const { build, threads } = await flow(page, await served(join(folder, "dist"), headers));
    assert.deepEqual([build, threads], [expected, expected === "threads" ? "2" : "1"]);
  }
});
