// How soon the next request begins when a long one is given up: the package as pages have it, in its own worker.
let embedder;
globalThis.load = async (model) => {
  const { Embedder } = await import("/isovec/dist/index.js");
  embedder = await Embedder.load(model, { cache: "off", config: { session: { intraOpThreads: 1 } } });
};

/** The milliseconds of an embedded text, from `begin` on. */
async function timed(text, begin = () => {}) {
  const from = performance.now();
  begin();
  await embedder.embedOne(text);
  return performance.now() - from;
}

globalThis.measure = async (texts, next, rounds) => {
  const seen = { next: [], alone: [] };
  for (const from = performance.now(); performance.now() - from < 1500; ) await timed(next);
  for (let round = 0; round < rounds; round++) {
    const abort = new AbortController();
    const run = embedder.embed(texts, { signal: abort.signal }).then(() => "ended", ({ kind }) => kind);
    // Somewhere in a slice, and not always at the same place.
    await new Promise((resolve) => setTimeout(resolve, 200 + ((7 * round) % 40)));
    seen.next.push(await timed(next, () => abort.abort()));
    const kind = await run;
    if (kind !== "Cancelled") throw new Error(`the run that was to be given up: ${kind}`);
    seen.alone.push(await timed(next));
  }
  return seen;
};
