// onnxruntime-web at its best: its smallest build (CPU alone), the graph with pooling and
// normalisation inside, token ids that somebody else made.
import * as ort from "/onnxruntime-web/ort.wasm.bundle.min.mjs";

ort.env.wasm.numThreads = 1;

const tensor = (values) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), [1, values.length]);

await contestant({
  weights: "/model.onnx",
  load: () => ort.InferenceSession.create("/onnx/model.onnx", { executionProviders: ["wasm"] }),
  embed: async (session, { ids }) => {
    const outputs = await session.run({
      input_ids: tensor(ids),
      attention_mask: tensor(ids.map(() => 1)),
      token_type_ids: tensor(ids.map(() => 0)),
    });
    return outputs.sentence_embedding.data;
  },
});
