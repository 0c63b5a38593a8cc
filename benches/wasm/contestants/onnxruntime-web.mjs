// onnxruntime-web at its best: the build for the CPU alone (none of its builds has relaxed SIMD in
// f32, and those for GPUs have no other kernels for the CPU), the graph with pooling and
// normalisation inside, token ids that were made before.
import { rowByRow } from "./batches.mjs";

/** Loads the model, for `ways` to embed a case's ids. */
export async function open(place) {
  const ort = await import(place.onnxruntimeWeb);
  ort.env.wasm.numThreads = place.threads;
  const model = new Uint8Array(await (await fetch(place.origin + "/onnx/model.onnx")).arrayBuffer());
  const session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"] });
  const run = async ({ ids, mask, rows, columns }) => {
    const tensor = (values) => new ort.Tensor("int64", values, [rows, columns]);
    const outputs = await session.run({
      input_ids: tensor(ids),
      attention_mask: tensor(mask),
      token_type_ids: tensor(new BigInt64Array(rows * columns)),
    });
    return outputs.sentence_embedding.data;
  };
  return {
    "one batch": ({ batch }) => run(batch.long),
    "one by one": ({ rows }) => rowByRow(rows, ({ long }) => run(long)),
  };
}
