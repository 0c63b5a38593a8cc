// A seat in node: opens what the first message names, then answers turns.
import { readFile } from "node:fs/promises";
import { seat } from "./contestants/turns.mjs";

// wasm-bindgen's loader fetches the module that lies beside it, which node does only over HTTP.
const { fetch } = globalThis;
globalThis.fetch = async (resource, init) => {
  const url = new URL(resource instanceof Request ? resource.url : resource);
  if (url.protocol !== "file:") return fetch(resource, init);
  return new Response(await readFile(url), { headers: { "content-type": "application/wasm" } });
};

let turn;
process.on("message", async (message) => {
  try {
    if (turn) return void process.send({ answer: await turn(message.turn) });
    turn = await seat(message);
    process.send({});
  } catch (error) {
    process.send({ error: String(error?.stack ?? error) });
  }
});
