import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Embedder } from "isovec";
import { InBrowser } from "./in-browser";

/** The vectors that the server computes while it renders. */
async function onServer() {
  const folder = join(process.cwd(), "public", "model");
  const { texts } = JSON.parse(await readFile(join(folder, "reference.json"), "utf8"));
  const embedder = await Embedder.load(folder);
  const vectors = await embedder.embed(texts.map(({ text }) => text));
  await embedder.dispose();
  return Array.from(vectors, (row) => Array.from(row));
}

export default async function Page() {
  const vectors = process.env.ON_SERVER ? await onServer() : [];
  return (
    <main>
      <pre id="vectors">{JSON.stringify(vectors)}</pre>
      <InBrowser />
    </main>
  );
}
