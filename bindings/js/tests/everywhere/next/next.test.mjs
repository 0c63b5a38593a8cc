// An app on Next.js: rendered on the server, where there is nothing of a browser, and embedding in the browser; and one
// that embeds on the server too. Next.js takes some 340 MB, so this is a check of its own: `cargo xtask test next`.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ISOLATED, launch } from "../../site.mjs";
import { app, served } from "../app.mjs";
import { assertVectors, flow, open } from "../page.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const folder = app("next", "public/model", here);
const browser = await launch();

/** Builds the app as a folder of static files. */
function build(variables) {
  rmSync(join(folder, ".next"), { recursive: true, force: true });
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: "1", ...variables };
  execFileSync(process.execPath, [join(here, "node_modules", "next", "dist", "bin", "next"), "build"], { cwd: folder, env, stdio: "inherit" });
  return join(folder, "out");
}

test("a client component embeds, isolated and not", async () => {
  const out = build({});
  for (const [headers, expected] of [[{}, "relaxed"], [ISOLATED, "threads"]]) {
    const page = await browser.newPage();
    const { build, threads } = await flow(page, await served(out, headers));
    assert.deepEqual([build, threads], [expected, expected === "threads" ? "2" : "1"]);
  }
});

test("the server embeds while it renders", async () => {
  const page = await browser.newPage();
  await open(page, await served(build({ ON_SERVER: "1" })));
  assertVectors(JSON.parse(await page.textContent("#vectors")));
});
