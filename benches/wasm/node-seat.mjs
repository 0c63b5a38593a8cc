// A seat in node: opens what the first message names, then answers turns.
import { readFile } from "node:fs/promises";
import { ceilings, contestant } from "./contestants/turns.mjs";

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
    if ("turn" in message || turn) process.send({ answer: await turn(message.turn) });
    else {
      const { module, place, names, cases } = message;
      turn = names ? await ceilings(place, names) : await contestant(module, place, cases);
      process.send({});
    }
  } catch (error) {
    process.send({ error: String(error?.stack ?? error) });
  }
});
