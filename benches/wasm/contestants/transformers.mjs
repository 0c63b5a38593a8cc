// transformers.js as its documentation shows it for sentence embeddings: text in, pooled and
// normalised vectors out. In a page its defaults: q8 on the CPU, the module that it takes of
// onnxruntime-web (here from the same server). In node it runs ONNX Runtime natively, by default in
// fp32; there q8 is asked for, and one thread, as everybody has.
import { rowByRow } from "./batches.mjs";

/** Loads the pipeline, for `ways` to embed a case's texts. */
export async function open(place) {
  const { env, pipeline } = await import(place.transformers);
  env.allowLocalModels = false;
  env.remoteHost = place.origin;
  env.remotePathTemplate = "{model}/";
  const options = { revision: "main" };
  if (place.onnxruntime) {
    env.backends.onnx.wasm.wasmPaths = { mjs: `${place.onnxruntime}.mjs`, wasm: `${place.onnxruntime}.wasm` };
    env.backends.onnx.wasm.numThreads = 1;
  } else {
    env.cacheDir = place.cache;
    Object.assign(options, { dtype: "q8", session_options: { intraOpNumThreads: 1, interOpNumThreads: 1 } });
  }
  const extract = await pipeline("feature-extraction", "q8", options);
  const run = async (texts) => (await extract(texts, { pooling: "mean", normalize: true })).data;
  return {
    "one batch": ({ texts }) => run(texts),
    "one by one": ({ texts }) => rowByRow(texts, run),
  };
}
