// OpenAI's own client for JavaScript.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import OpenAI from "openai";

import { start } from "./server.mjs";

const TEXTS = ["the cat sat on a mat", "stocks fell", "rain came over old hills again"];

let server, client;

before(async () => {
  server = await start();
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "any", maxRetries: 0 });
});

after(() => server.stop());

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
  const models = [];
  for await (const model of client.models.list()) models.push(model.id);
  assert.deepEqual(models, ["embeds"]);
  await assert.rejects(client.embeddings.create({ model: "nobody", input: "a" }), (error) => {
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.equal(error.code, "model_not_found");
    return true;
  });
  await assert.rejects(client.embeddings.create({ model: "embeds", input: "" }), OpenAI.BadRequestError);
});
