// An app on Vite, without a word of configuration: built, and by the server that developers run. In every way of ../ways.mjs.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { build, createServer } from "vite";
import { HEADERS as headers, WAY, launch } from "../site.mjs";
import { app, served } from "./app.mjs";
import { embeds, flow, open, recovers, shares } from "./page.mjs";

const root = app("page", "public/model");
const browser = await launch();
const expected = WAY.isolated ? { build: "threads", threads: "2" } : { build: "relaxed", threads: "1" };

test("what Vite builds works", async () => {
  await build({ root, logLevel: "warn" });
  const address = await served(join(root, "dist"), headers);
  const page = await (await browser.newContext()).newPage();
  const { build: used, threads } = await flow(page, address);
  assert.deepEqual({ build: used, threads }, expected);
  await recovers(page);
  await shares(page, address);
});

test("what Vite's development server makes of it works", async () => {
  const server = await createServer({ root, logLevel: "warn", server: { host: "127.0.0.1", port: 0, headers } });
  try {
    await server.listen();
    const page = await browser.newPage();
    await open(page, `http://127.0.0.1:${server.httpServer.address().port}`);
    const { worker, build } = await embeds(page);
    assert.deepEqual([worker, build], [true, expected.build]);
  } finally {
    await server.close();
  }
});
