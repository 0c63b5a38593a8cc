// Programs without a page: node, Deno and Bun.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { FILES, tiny } from "../site.mjs";
import { app, program } from "./app.mjs";
import { assertVectors } from "./page.mjs";

const folder = app("program", "model");
/** Deno keeps its caches in the app's folder, and asks nobody whether there is a newer one. */
const env = { ...process.env, DENO_DIR: join(folder, ".deno"), DENO_NO_UPDATE_CHECK: "1" };
/** Relaxed SIMD came with node 21. */
const own = Number(process.versions.node.split(".")[0]) > 20 ? "relaxed" : "simd128";
const RUNTIMES = {
  node: { command: [process.execPath], build: own },
  Deno: { command: [program("@deno", "deno"), "run", "--allow-read"], build: "relaxed" },
  Bun: { command: [program("@oven", "bin/bun")], build: "relaxed" },
};

for (const [name, { command: [runtime, ...args], build }] of Object.entries(RUNTIMES)) {
  test(`${name} embeds with files from memory and from a folder`, () => {
    const { kept, missing, ...sources } = JSON.parse(execFileSync(runtime, [...args, "main.js", tiny, ...FILES], { cwd: folder, env, encoding: "utf8" }));
    for (const [source, answer] of Object.entries(sources)) {
      assert.equal(answer.build, build, source);
      assertVectors(answer.vectors);
    }
    assert.deepEqual(Object.keys(sources), ["memory", "address", "path"]);
    assert.equal(kept, 0);
    assert.equal(missing.kind, "Hub");
    assert.match(missing.message, /^file:.* does not exist/);
  });
}
