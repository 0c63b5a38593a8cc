// Embeds with the engine's turns of the event loop and without them. The engine asks for a turn when so much time has gone by
// on its clock; while the clock stands, it asks for none. What it does between two looks at the clock stays the same.
const now = performance.now.bind(performance);
let standing;
performance.now = () => standing ?? now();

/** How many turns the engine asked for, and the milliseconds until they came. */
let turns = 0;
let waited = 0;
globalThis.MessageChannel = class extends MessageChannel {
  constructor() {
    super();
    let asked;
    const post = this.port2.postMessage.bind(this.port2);
    this.port2.postMessage = (message) => {
      turns++;
      asked = now();
      post(message);
    };
    this.port1.addEventListener("message", () => (waited += now() - asked));
  }
};

let embedder;
onmessage = async ({ data: { model, texts, turns: wanted } }) => {
  try {
    if (model) {
      const { Embedder } = await import("/isovec/dist/index.js");
      // Batches whose sizes no clock has a say in: with one that stands they would grow.
      const config = { session: { intraOpThreads: 1 }, batching: { maxBatchTokens: 256, dynamicBatching: false } };
      embedder = await Embedder.load(model, { worker: false, cache: "off", config });
      return postMessage({});
    }
    [turns, waited] = [0, 0];
    const from = now();
    if (!wanted) standing = from;
    await embedder.embed(texts);
    standing = undefined;
    postMessage({ ms: now() - from, turns, waited });
  } catch (error) {
    postMessage({ error: String(error?.stack ?? error) });
  }
};
