// An app on Vite in WebKit, as far as WebKitGTK is Safari: the same engine and JavaScript, another network.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "vite";
import { ISOLATED } from "../site.mjs";
import { app, served } from "./app.mjs";
import { found, webkit } from "./browsers.mjs";
import { computes, keeps, open } from "./page.mjs";

const there = found("WebKitWebDriver") && (process.env.DISPLAY || found("xvfb-run"));
const skip = there ? false : "there is no WebKitWebDriver with a screen (Debian: webkit2gtk-driver and xvfb)";

test("the same works in WebKit, isolated and not", { skip }, async () => {
  const root = app("page", "public/model");
  await build({ root, logLevel: "warn" });
  const page = await webkit();
  for (const headers of [{}, ISOLATED]) {
    await open(page, await served(join(root, "dist"), headers));
    // A driven WebKit browses privately: what is stored is gone with the last page or worker that opened it.
    await page.evaluate(async () => void (globalThis.held = await caches.open("isovec")));
    const how = await computes(page);
    // WebKit has no relaxed SIMD, without which there are no threads.
    assert.deepEqual([how.build, how.threads], ["simd128", "1"]);
    await keeps(page, how);
  }
});
