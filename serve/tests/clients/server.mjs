// A real server on a free port of loopback.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const tiny = fileURLToPath(new URL("../../../tests/data/tiny-bert", import.meta.url));

/** Starts it with one model, `embeds`: its URL, and what stops it. */
export async function start() {
  const options = ["serve", "--model", tiny, "--name", "embeds", "--engine", "portable", "--port", "0", "--log", "json"];
  const server = spawn(process.env.ISOVEC_TEST_PROGRAM, options, { stdio: ["ignore", "ignore", "pipe"] });
  let address;
  const lines = createInterface({ input: server.stderr });
  await new Promise((resolve) => {
    lines.on("close", resolve);
    // Lines are read to the end: a pipe that nobody reads would stop the server at last.
    lines.on("line", (line) => {
      const said = line.startsWith("{") ? JSON.parse(line) : {};
      address = said.address ?? address;
      if (address && said.message === "the model is loaded") resolve();
    });
  });
  assert.ok(address, "the server listens");
  return {
    url: `http://${address}`,
    async stop() {
      server.kill("SIGTERM");
      const [code] = await once(server, "exit");
      assert.equal(code, 0);
    },
  };
}
