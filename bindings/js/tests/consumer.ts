// A program on the packed package, as strict as compilers get: what is wrong here has to be an error for whoever writes
// it, and what is right none. Compiled by pack.test.mjs.
import { Classifier, Embedder, IsovecError, hardware, type Classified, type Config, type Dtype, type ErrorKind, type Hardware } from "isovec";
import { analyze, contextOf, type OptimizationReport, type Rule } from "isovec/advisor";
import { pipeline, type Tensor } from "isovec/compat";
import { Classifier as InlineClassifier, Embedder as Inline } from "isovec/inline";
import module from "isovec/simd128.wasm";

export const config: Config = {
  engine: "portable",
  session: { intraOpThreads: 2, deterministicCompute: true },
  text: { maxLength: 128, pooling: "cls", prompts: { query: "query: " } },
  batching: { maxWait: "5ms" },
  model: { dtype: "int8" satisfies Dtype },
  providers: { executionProviders: ["cpu"], options: { openvino: { device_type: "CPU" } } },
};

export const wrong: Config[] = [
  // @ts-expect-error there is no such group
  { sesion: {} },
  // @ts-expect-error there is no such knob
  { session: { threads: 2 } },
  // @ts-expect-error JavaScript writes maxBatchSize
  { batching: { max_batch_size: 2 } },
  // @ts-expect-error there is no such knob of a provider
  { providers: { cuda: { device: 1 } } },
  // @ts-expect-error there is no such provider
  { providers: { options: { nvidia: {} } } },
  // @ts-expect-error there is no such pooling
  { text: { pooling: "median" } },
  // @ts-expect-error a duration has a unit
  { batching: { maxWait: 5 } },
  // @ts-expect-error a number of tokens is a number
  { text: { maxLength: "128" } },
];

export async function vectors(): Promise<Float32Array> {
  const embedder = await Embedder.load("owner/model", { config });
  return embedder.embedOne("a text");
}

export async function words(signal: AbortSignal): Promise<number> {
  const embedder = await Embedder.load("owner/model", { device: "webgpu", dtype: "int8" });
  // @ts-expect-error there is no such device
  await Embedder.load("owner/model", { device: "gpu" });
  // @ts-expect-error there is no such form of weights
  await Embedder.load("owner/model", { dtype: "q4" });
  const index = await embedder.embedPassages(["a text"], { dimension: 64, normalize: true, signal });
  const queries = await embedder.embedQueries(["a question"], { dimension: 64 });
  const [best] = index.searchOne(queries, 1);
  const { poolHits } = (await embedder.stats()).memoryPool;
  return poolHits + (best?.score ?? 0) + index.similarity(queries).row(0)[0]!;
}

export async function labelled(signal: AbortSignal, lines: AsyncIterable<string>): Promise<string> {
  const classifier = await Classifier.load("owner/model", { device: "auto", dtype: "int8", config, signal });
  const said = await classifier.classify(["a text"], { scores: "sigmoid", signal });
  // @ts-expect-error there are no such scores
  await classifier.classify(["a text"], { scores: "probabilities" });
  // @ts-expect-error labels have no dimension
  await classifier.classify(["a text"], { dimension: 2 });
  // @ts-expect-error a classifier makes no vectors
  await classifier.embed(["a text"]);
  const all: Classified[] = [];
  for await (const one of classifier.classifyStream(lines, { scores: "logits" })) all.push(one);
  const { label, score, index } = said.best(0);
  const [first] = await classifier.classifyOne("a text");
  return `${label} ${score - (first?.score ?? 0)} ${said.scores(0)[index]} ${all[0]?.labels.length} ${classifier.labels.join()}`;
}

export function kindOf(error: unknown): ErrorKind | undefined {
  if (!(error instanceof IsovecError)) return undefined;
  // @ts-expect-error there is no such kind
  if (error.kind === "Aborted") return undefined;
  return error.kind;
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

export function inlineLabels(): Promise<InlineClassifier> {
  return InlineClassifier.load("owner/model", { module });
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
