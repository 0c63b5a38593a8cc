// What a page feels of either package: how long it stands still, what the way into the worker costs,
// what many callers get, how soon a long run makes room for the next call.
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** Milliseconds of a call. */
async function timed(call) {
  const from = performance.now();
  await call();
  return performance.now() - from;
}

/** The longest that the page's event loop did not turn while `call` went on. */
async function blocked(call) {
  const { port1, port2 } = new MessageChannel();
  let [last, longest, running] = [performance.now(), 0, true];
  port1.onmessage = () => {
    const now = performance.now();
    [longest, last] = [Math.max(longest, now - last), now];
    if (running) port2.postMessage(null);
  };
  port2.postMessage(null);
  await call();
  running = false;
  longest = Math.max(longest, performance.now() - last);
  port1.close();
  return longest;
}

/** `callers` that each embed their share of the texts, one after another, as request handlers do. */
const shared = (texts, callers, embed) => Promise.all(Array.from({ length: callers }, async (_, caller) => {
  for (let at = caller; at < texts.length; at += callers) await embed(texts[at]);
}));

globalThis.measure = async ({ isovec, origin, short, many, samples, ...place }) => {
  const { Embedder } = await import(isovec);
  const load = (worker) => Embedder.load(`${origin}/int8/`, { worker, config: { session: { intraOpThreads: 1 } } });
  const [ours, direct] = [await load(true), await load(false)];
  const { open } = await import("/wasm/contestants/transformers.mjs");
  const { "one batch": run } = await open({ origin, ...place });
  const theirs = (texts) => run({ texts });

  const one = [short];
  const warm = async (call) => { for (const from = performance.now(); performance.now() - from < 1500; ) await call(); };
  for (const call of [() => ours.embed(one), () => direct.embed(one), () => theirs(one)]) await warm(call);

  const result = { through: [], without: [], callers: { ours: [], theirs: [] }, blocked: { ours: [], theirs: [] }, next: [] };
  // In blocks: call by call each would find the caches full of the other's weights.
  for (let round = 0; round < samples; round++) {
    for (let call = 0; call < 100; call++) result.through.push(await timed(() => ours.embed(one)));
    for (let call = 0; call < 100; call++) result.without.push(await timed(() => direct.embed(one)));
  }
  for (let round = 0; round < samples; round++) {
    result.callers.ours.push(await timed(() => shared(many, 50, (text) => ours.embedOne(text))));
    result.callers.theirs.push(await timed(() => shared(many, 50, (text) => theirs([text]))));
    result.blocked.ours.push(await blocked(() => ours.embed(many)));
    result.blocked.theirs.push(await blocked(() => theirs(many.slice(0, 100))));
  }
  const long = Array.from({ length: 20 }, () => many).flat();
  for (let round = 0; round < samples; round++) {
    const abort = new AbortController();
    const run = ours.embed(long, { signal: abort.signal }).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 300));
    result.next.push(await timed(async () => {
      abort.abort();
      await ours.embed(one);
    }));
    await run;
  }
  return { ...result, overhead: median(result.through) - median(result.without) };
};
