// Both contestants in one page and on one adapter, taking turns.
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** What a visitor waits for the first vector, and whether the check of the adapter went by an earlier visit's. */
globalThis.visit = async ({ text, software, origin }) => {
  const from = performance.now();
  const { Embedder } = await import("/isovec/dist/index.js");
  const providers = { executionProviders: ["webgpu"], webgpu: { softwareAdapter: software } };
  const embedder = await Embedder.load(`${origin}/model/`, { config: { providers } });
  await embedder.embedOne(text);
  const waited = performance.now() - from;
  const { gpu } = await embedder.stats();
  return { waited, recalled: gpu.checkRecalled };
};

globalThis.measure = async ({ text, samples, software, transformers, onnxruntime, origin }) => {
  const adapter = await navigator.gpu?.requestAdapter();
  if (!adapter) throw new Error("the browser has no WebGPU adapter");
  const { Embedder } = await import("/isovec/dist/index.js");
  const timed = async (call) => {
    const from = performance.now();
    const result = await call();
    return [performance.now() - from, result];
  };
  const providers = { executionProviders: ["webgpu"], webgpu: { softwareAdapter: software } };
  const [ourLoad, embedder] = await timed(() => Embedder.load(`${origin}/model/`, { config: { providers } }));
  const { env, pipeline } = await import(transformers);
  Object.assign(env, { allowLocalModels: false, remoteHost: origin, remotePathTemplate: "{model}/" });
  env.backends.onnx.wasm.wasmPaths = { mjs: `${onnxruntime}.mjs`, wasm: `${onnxruntime}.wasm` };
  const [theirLoad, extract] = await timed(() => pipeline("feature-extraction", "plain", { device: "webgpu", dtype: "fp32", revision: "main" }));
  const ours = async () => Array.from(await embedder.embedOne(text));
  const theirs = async () => Array.from((await extract([text], { pooling: "mean", normalize: true })).data);

  // The first run of each compiles what the others find compiled.
  const first = [(await timed(ours))[0], (await timed(theirs))[0]];
  const rounds = { ours: [], theirs: [] };
  let apart = 0;
  for (let round = 0; round < samples; round++) {
    const [a, our] = await timed(ours);
    const [b, their] = await timed(theirs);
    rounds.ours.push(a);
    rounds.theirs.push(b);
    apart = Math.max(apart, ...our.map((value, at) => Math.abs(value - their[at])));
  }
  const { gpu, ioBinding: io } = await embedder.stats();
  return {
    adapter: adapter.info.description || adapter.info.vendor || "without a name",
    software: adapter.info.isFallbackAdapter ?? false,
    load: { ours: ourLoad, theirs: theirLoad },
    first: { ours: first[0], theirs: first[1] },
    median: { ours: median(rounds.ours), theirs: median(rounds.theirs) },
    rounds,
    apart,
    tokens: embedder.countTokens ? await embedder.countTokens(text) : undefined,
    gpu,
    bytes: { up: io.toDeviceBytes, down: io.fromDeviceBytes },
  };
};
