// A program on the packed package, as strict as compilers get: what is wrong here has to be an error for whoever writes
// it, and what is right none. Compiled by pack.test.mjs.
import { Embedder, hardware, type Config, type Dtype, type Hardware } from "isovec";
import { analyze, contextOf, type OptimizationReport, type Rule } from "isovec/advisor";
import { pipeline, type Tensor } from "isovec/compat";
import { Embedder as Inline } from "isovec/inline";
import module from "isovec/simd128.wasm";

export const config: Config = {
  engine: "portable",
  session: { intra_op_threads: 2, deterministic_compute: true },
  text: { max_length: 128, pooling: "cls", prompts: { query: "query: " } },
  batching: { max_wait: "5ms" },
  model: { dtype: "int8" satisfies Dtype },
  providers: { execution_providers: ["cpu"], options: { openvino: { device_type: "CPU" } } },
};

export const wrong: Config[] = [
  // @ts-expect-error there is no such group
  { sesion: {} },
  // @ts-expect-error there is no such knob
  { session: { threads: 2 } },
  // @ts-expect-error there is no such knob of a provider
  { providers: { cuda: { device: 1 } } },
  // @ts-expect-error there is no such provider
  { providers: { options: { nvidia: {} } } },
  // @ts-expect-error there is no such pooling
  { text: { pooling: "median" } },
  // @ts-expect-error a duration has a unit
  { batching: { max_wait: 5 } },
  // @ts-expect-error a number of tokens is a number
  { text: { max_length: "128" } },
];

export async function vectors(): Promise<Float32Array> {
  const embedder = await Embedder.load("owner/model", { config });
  return embedder.embedOne("a text");
}

export async function cores(): Promise<number | null> {
  const { cpu, gpus }: Hardware = await hardware();
  // @ts-expect-error what a browser does not tell is null
  const bytes: number = gpus[0]?.memoryBytes;
  return bytes > 0 ? cpu.logicalCores : null;
}

export function inline(): Promise<Inline> {
  return Inline.load("owner/model", { module });
}

export const loud: Rule = {
  id: "loud",
  // @ts-expect-error there is no such impact
  check: () => ({ title: "no", impact: "enormous" }),
};

export async function advised(embedder: Embedder): Promise<OptimizationReport> {
  const rule: Rule = { id: "mine", check: ({ stats }) => (stats?.calls.failed ? { title: "look at the errors", impact: "high" } : undefined) };
  return analyze(await contextOf(embedder), { rules: [rule] });
}

export async function compatible(): Promise<number[][]> {
  const extractor = await pipeline("feature-extraction", "owner/model", { dtype: "q8", progress_callback: ({ status }) => console.log(status) });
  const output: Tensor = await extractor(["a text"], { pooling: "mean", normalize: true });
  // @ts-expect-error there is no such pooling
  await extractor("a text", { pooling: "median" });
  // @ts-expect-error there is no such task
  await pipeline("text-generation", "owner/model");
  return output.tolist();
}
