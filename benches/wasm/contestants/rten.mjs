// rten 0.27 with relaxed SIMD and weights packed at load, behind the plain exports of `rten/`.
import { rowByRow } from "./batches.mjs";

/** Loads the model, for `ways` to embed a case's ids. */
export async function open(place) {
  const bytes = async (path) => new Uint8Array(await (await fetch(place.origin + path)).arrayBuffer());
  const { instance } = await WebAssembly.instantiate(await bytes("/rten.wasm"), {});
  const rten = instance.exports;
  const failed = () => new Error(`rten: ${new TextDecoder().decode(new Uint8Array(rten.memory.buffer, rten.failure(), rten.failure_len()))}`);

  const model = await bytes("/onnx/unpacked.onnx");
  // The room first: making it may move the memory.
  const room = rten.model_room(model.length);
  new Uint8Array(rten.memory.buffer, room, model.length).set(model);
  if (!rten.load()) throw failed();

  const run = ({ ids, mask, rows, columns }) => {
    const room = rten.input_room(ids.length);
    const input = new Int32Array(rten.memory.buffer, room, 2 * ids.length);
    input.set(ids);
    input.set(mask, ids.length);
    const length = rten.embed(rows, columns);
    if (!length) throw failed();
    return new Float32Array(rten.memory.buffer, rten.output(), length).slice();
  };
  return {
    "one batch": async ({ batch }) => run(batch),
    "one by one": ({ rows }) => rowByRow(rows, async (row) => run(row)),
  };
}
