// The runtime of Cloudflare's workers, which takes WebAssembly only as a module of the program: `isovec/inline` with
// `isovec/simd128.wasm`, bundled by esbuild.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, test } from "node:test";
import { build } from "esbuild";
import { app, program } from "./app.mjs";
import { assertVectors, texts } from "./page.mjs";

const folder = app("worker", "model");
await build({ absWorkingDir: folder, entryPoints: ["worker.js"], bundle: true, format: "esm", outfile: "bundled.js", external: ["*.wasm", "./model/*"] });
const server = spawn(program("@cloudflare", "bin/workerd"), ["serve", "--control-fd=3", "config.capnp"], { cwd: folder, stdio: ["ignore", "inherit", "inherit", "pipe"] });
after(() => server.kill());
const [said] = await once(server.stdio[3], "data");
const { port } = JSON.parse(said);

const ask = async (given) => (await fetch(`http://127.0.0.1:${port}`, { method: "POST", body: JSON.stringify(given) })).json();

test("a worker embeds for every request, of those too that come at once", async () => {
  const { build, vectors } = await ask(texts);
  assert.equal(build, "simd128");
  assertVectors(vectors);
  for (const { vectors } of await Promise.all([ask(texts), ask(texts), ask(texts)])) assertVectors(vectors);
});
