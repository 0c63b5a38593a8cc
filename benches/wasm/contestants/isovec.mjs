// isovec as its README shows it: the model's published files, or a `folder` of others; texts in,
// vectors out.

/** Loads the package's `build`, or the only one, for `ways` to embed a case's texts. */
export async function open(place) {
  const { Embedder } = await import(place.isovec);
  const embedder = await Embedder.load(place.origin + (place.folder ?? "/model/"), place.build ? { build: place.build } : {});
  return { "one call": async ({ texts }) => (await embedder.embed(texts)).values };
}
