// The service worker of an extension (Manifest V3), which may start no worker and import nothing later: `isovec/inline`,
// as it lies in the package, and the model among the extension's files.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { chromium } from "playwright-core";
import { FLAGS } from "../site.mjs";
import { app } from "./app.mjs";
import { embeds } from "./page.mjs";

const folder = app("extension", "model");
const args = [...FLAGS, `--disable-extensions-except=${folder}`, `--load-extension=${folder}`, "--disable-features=DisableLoadExtensionCommandLineSwitch"];
const context = await chromium.launchPersistentContext("", { executablePath: process.env.CHROME ?? "/usr/bin/chromium", ignoreDefaultArgs: ["--disable-extensions"], args });
after(() => context.close());

test("an extension's service worker embeds, and keeps no copy of the extension's own files", async () => {
  const worker = context.serviceWorkers()[0] ?? (await context.waitForEvent("serviceworker"));
  const { build, files } = await embeds(worker);
  assert.deepEqual([build, files], ["relaxed", 7]);
  assert.equal(await worker.evaluate(() => caches.has("isovec")), false);
});
