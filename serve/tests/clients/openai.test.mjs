// OpenAI's own client for JavaScript, against a real server on loopback.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";

import OpenAI from "openai";

const TEXTS = ["the cat sat on a mat", "stocks fell", "rain came over old hills again"];
const tiny = fileURLToPath(new URL("../../../tests/data/tiny-bert", import.meta.url));

let server, client;

before(async () => {
  const options = ["serve", "--model", tiny, "--name", "embeds", "--engine", "portable", "--port", "0", "--log", "json"];
  server = spawn(process.env.ISOVEC_TEST_PROGRAM, options, { stdio: ["ignore", "ignore", "pipe"] });
  const lines = createInterface({ input: server.stderr });
  let address;
  for await (const line of lines) {
    const fields = line.startsWith("{") ? JSON.parse(line).fields : {};
    address = fields.address ?? address;
    if (address && fields.message === "the model is loaded") break;
  }
  assert.ok(address, "the server listens");
  // A pipe that nobody reads would stop the server at last.
  server.stderr.resume();
  client = new OpenAI({ baseURL: `http://${address}/v1`, apiKey: "any", maxRetries: 0 });
});

after(async () => {
  server.kill("SIGTERM");
  const [code] = await once(server, "exit");
  assert.equal(code, 0);
});

test("vectors are the same in base64 as in numbers", async () => {
  // Without a word the client asks for base64.
  const coded = await client.embeddings.create({ model: "embeds", input: TEXTS });
  const plain = await client.embeddings.create({ model: "embeds", input: TEXTS, encoding_format: "float" });
  const numbers = ({ data }) => data.map((row) => [...new Float32Array(row.embedding)]);
  assert.deepEqual(numbers(coded), numbers(plain));
  assert.equal(coded.data.length, 3);
  assert.ok(coded.usage.total_tokens > 0);
});

test("token ids and fewer dimensions", async () => {
  const { data } = await client.embeddings.create({ model: "embeds", input: [[7, 8], [9]], dimensions: 8 });
  assert.deepEqual(data.map((row) => row.embedding.length), [8, 8]);
});

test("the model is listed, and no other is taken", async () => {
  const models = await Array.fromAsync(client.models.list());
  assert.deepEqual(models.map((model) => model.id), ["embeds"]);
  await assert.rejects(client.embeddings.create({ model: "nobody", input: "a" }), (error) => {
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.equal(error.code, "model_not_found");
    return true;
  });
  await assert.rejects(client.embeddings.create({ model: "embeds", input: "" }), OpenAI.BadRequestError);
});
