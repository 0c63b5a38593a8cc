// Embeds the texts of a model's folder with its files from memory and from the folder, and says what came of it.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { Embedder, cache } from "isovec";

const [folder, ...files] = globalThis.Deno?.args ?? process.argv.slice(2);
const { texts } = JSON.parse(readFileSync(`${folder}/reference.json`, "utf8"));
const sources = {
  memory: Object.fromEntries(files.map((name) => [name, readFileSync(`${folder}/${name}`)])),
  address: pathToFileURL(folder),
  path: folder,
};

const answer = {};
for (const [name, source] of Object.entries(sources)) {
  const embedder = await Embedder.load(source);
  const vectors = await embedder.embed(texts.map(({ text }) => text));
  answer[name] = { build: embedder.build, vectors: Array.from(vectors, (row) => Array.from(row)) };
  await embedder.dispose();
}
// A folder of this machine is there already, and may change.
answer.kept = (await cache.list()).length;
answer.missing = await Embedder.load(`${folder}/nothing`).catch(({ kind, message }) => ({ kind, message }));
console.log(JSON.stringify(answer));
