// An app on Vite in Firefox.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "vite";
import { ISOLATED } from "../site.mjs";
import { app, served } from "./app.mjs";
import { firefox } from "./browsers.mjs";
import { flow, recovers, shares } from "./page.mjs";

const root = app("page", "public/model");
const page = await firefox();

test("the same works in Firefox, isolated and not", async () => {
  await build({ root, logLevel: "warn" });
  for (const [headers, expected] of [[{}, "relaxed"], [ISOLATED, "threads"]]) {
    const address = await served(join(root, "dist"), headers);
    const { build, threads } = await flow(page, address);
    assert.deepEqual([build, threads], [expected, expected === "threads" ? "2" : "1"]);
    await recovers(page);
    await shares(page, address);
  }
});
