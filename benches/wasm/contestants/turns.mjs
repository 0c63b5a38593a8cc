// What a contestant does when it is its turn; the same in a page and in node.
import { ceiling, timed } from "../measure.mjs";
import { profiler } from "../profile.mjs";
import { batch } from "./batches.mjs";

/** Opens whatever has this seat. */
export const seat = ({ module, place, ceilings, cases }) =>
  ceilings ? measured(place, ceilings) : module === "profile" ? profiled(place) : contestant(module, place, cases);

/** Opens a contestant, and gives the function that answers each turn; without a turn, the names of its ways. */
async function contestant(name, place, cases) {
  const { open } = await import(`./${name}.mjs`);
  const ways = await open(place);
  const inputs = new Map(
    cases.map(({ name, texts, ids }) => [name, { texts, batch: batch(ids), rows: ids.map((one) => batch([one])) }]),
  );
  return async (turn) => {
    if (!turn) return Object.keys(ways);
    const input = inputs.get(turn.case);
    const times = [];
    let vectors;
    for (let call = 0; call < turn.calls; call++) {
      const from = performance.now();
      vectors = await ways[turn.way](input);
      times.push(performance.now() - from);
    }
    return { times, vectors: turn.vectors ? Array.from(vectors) : undefined };
  };
}

/** The same for the most that the machine does without memory: each turn gives GFLOP/s by the module's name. */
async function measured(place, names) {
  const all = [];
  for (const name of names) {
    const bytes = await (await fetch(`${place.origin}/ceiling/${name}.wasm`)).arrayBuffer();
    const { instance } = await WebAssembly.instantiate(bytes, {});
    all.push([name, ceiling(instance.exports, true)]);
  }
  return async () => Object.fromEntries(all.map(([name, state]) => [name, timed(state)]));
}

/** The same for a profile: each turn gives that of one shape. */
async function profiled(place) {
  const paths = ["/profile.wasm", "/model/config.json", "/model/model.safetensors"];
  const files = await Promise.all(paths.map(async (path) => new Uint8Array(await (await fetch(place.origin + path)).arrayBuffer())));
  const profile = await profiler(...files);
  return async (shape) => profile(...shape);
}
