// A contestant of bench.mjs: opens what the first message names, then answers turns: texts, and how many calls are timed; without
// a number of calls it answers with the vectors.
import { Embedder } from "../../bindings/js/dist/index.js";

async function isovec({ model, dtype, engine, threads }) {
  const onnxruntimeLibrary = engine === "onnxruntime" ? await library() : undefined;
  const embedder = await Embedder.load(`${model}/`, { dtype, config: { engine, onnxruntimeLibrary, session: { intraOpThreads: threads } } });
  return async (texts) => (await embedder.embed(texts)).values;
}

/** The library that transformers.js runs. */
async function library() {
  const { createRequire } = await import("node:module");
  const { readdirSync } = await import("node:fs");
  const { dirname, join } = await import("node:path");
  const bin = join(dirname(createRequire(import.meta.url).resolve("onnxruntime-node/package.json")), "bin");
  const isLibrary = (path) => path.includes(join(process.platform, process.arch)) && /(libonnxruntime\.(so|dylib)|onnxruntime\.dll)/.test(path);
  return join(bin, readdirSync(bin, { recursive: true }).find(isLibrary));
}

async function transformers({ models, dtype, threads }) {
  const { env, pipeline } = await import("@huggingface/transformers");
  env.allowRemoteModels = false;
  env.localModelPath = models;
  const session = threads && { intraOpNumThreads: threads, interOpNumThreads: 1 };
  const extract = await pipeline("feature-extraction", "model", { dtype, ...(session && { session_options: session }) });
  return async (texts) => (await extract(texts, { pooling: "mean", normalize: true })).data;
}

let embed;

async function answer({ kind, texts, calls, ...place }) {
  if (!embed) {
    embed = await { isovec, transformers }[kind](place);
    return undefined;
  }
  if (calls === undefined) return Array.from(await embed(texts));
  const from = performance.now();
  for (let call = 0; call < calls; call++) await embed(texts);
  return (performance.now() - from) / calls;
}

process.on("message", (message) => {
  answer(message).then((value) => process.send({ value }), (error) => process.send({ error: String(error?.stack ?? error) }));
});
