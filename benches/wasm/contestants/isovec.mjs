// isovec as its README shows it: the model's published files, or a `folder` of others; texts in,
// vectors out.

/** Loads one of the package's builds, for `ways` to embed a case's texts. */
export async function open(place) {
  const { Embedder } = await import(place.isovec);
  const session = { intraOpThreads: place.threads };
  const embedder = await Embedder.load(place.origin + (place.folder ?? "/model/"), { build: place.build, worker: place.worker, config: { session } });
  const { used } = embedder.effectiveConfig().find(({ name }) => name === "session.intraOpThreads");
  if (used !== String(place.threads)) throw new Error(`${place.threads} threads were asked for, and ${used} compute`);
  return { "one call": async ({ texts }) => (await embedder.embed(texts)).values };
}
