/**
 * Suggests changes that make an embedder faster or smaller, and tests them. A separate module, some 180 KB
 * compressed, that is fetched when something here is called.
 *
 * @example
 * import { analyze, contextOf } from "isovec/advisor";
 * const report = await analyze(await contextOf(embedder, { texts }));
 * for (const { title, expected } of report.suggestions) console.log(title, expected.improvement);
 *
 * @module
 */
import * as glue from "../pkg/advisor/isovec_js_advisor.js";
import type { Config } from "./config.js";
import type { BaseEmbedder as Embedder } from "./embedder.js";
import { IsovecError, typed } from "./error.js";
import { hardware } from "./hardware.js";
import { camelCased, snakeCased, snakeName, spokenWithin } from "./names.js";
import { nativeConfig } from "./native.js";
import { readFile } from "./node.js";
import { checkTexts } from "./texts.js";
import type { AnalysisContext, FailedRule, Goal, OptimizationReport, Rule, Suggestion, TrialOptions, TrialReport, Workload } from "./advice.js";
import type { Profile } from "./profile.js";

export type * from "./advice.js";

let module: Promise<typeof glue> | undefined;

/** The advisor's module, fetched once. */
function ready(): Promise<typeof glue> {
  module ??= start().catch((cause: unknown) => {
    // Another call may try again.
    module = undefined;
    throw new IsovecError("EngineUnavailable", `isovec's advisor cannot be loaded: ${String(cause)}`, { cause });
  });
  return module;
}

async function start(): Promise<typeof glue> {
  // Written so that bundlers find the file and take it along.
  const url = new URL("../pkg/advisor/isovec_js_advisor_bg.wasm", import.meta.url);
  const file = readFile(url);
  await glue.default({ module_or_path: file ? await WebAssembly.compile(await file()) : url });
  return glue;
}

/** What the module answers, under the names of JavaScript. */
async function ask<T>(question: (module: typeof glue) => string): Promise<T> {
  const module = await ready();
  try {
    return camelCased(JSON.parse(question(module)));
  } catch (cause) {
    throw typed(cause);
  }
}

/** Facts to add to those of the embedder. */
export interface Looking {
  /** A profile of embedding. */
  profile?: Profile;
  /** Texts like those that are embedded. */
  texts?: readonly string[];
  /** The configuration that the embedder was loaded under. */
  config?: Config;
}

/** The known facts about an embedder, its texts, and the page or machine, for the rules. */
export async function contextOf(embedder: Embedder, { profile, texts, config = {} }: Looking = {}): Promise<AnalysisContext> {
  const [stats, machine] = await Promise.all([embedder.stats(), hardware()]);
  const context: AnalysisContext = {
    config: withoutToken(config),
    effective: embedder.effectiveConfig(),
    capabilities: embedder.capabilities(),
    provider: embedder.provider(),
    model: embedder.description(),
    stats,
    hardware: machine,
  };
  if (profile) context.profile = await ask((module) => module.profile(profile.trace));
  if (texts) {
    checkTexts(texts);
    const tokens = await Promise.all(texts.map((text) => embedder.countTokens(text)));
    context.workload = await ask<Workload>((module) => module.workload([...texts], Uint32Array.from(tokens)));
  }
  return context;
}

/** A context as JSON that `isovec advise --context` reads, under the names of Rust. */
export function toJson(context: AnalysisContext): string {
  // A knob's path is a value here, and one that rules look for.
  const effective = context.effective?.map(({ name, ...knob }) => ({ name: snakeName(name), ...knob }));
  return JSON.stringify(snakeCased({ ...context, ...(effective && { effective }) }));
}

/** A context is written down and looked at elsewhere. */
function withoutToken(config: Config): Config {
  if (config.hub?.token === undefined) return config;
  const { token: _, ...hub } = config.hub;
  return { ...config, hub };
}

/**
 * Runs every rule whose parts are in the context, isovec's and those of the page. A rule that throws is in the
 * report's `failed`; the others go on.
 */
export async function analyze(context: AnalysisContext, { rules = [] }: { rules?: readonly Rule[] } = {}): Promise<OptimizationReport> {
  const own: Suggestion[] = [];
  const failed: FailedRule[] = [];
  for (const rule of rules) {
    try {
      const found = await rule.check(context);
      own.push(...[found ?? []].flat().map((suggestion) => whole(rule.id, suggestion)));
    } catch (cause) {
      failed.push({ rule: rule.id, message: String(cause) });
    }
  }
  const json = (value: unknown) => JSON.stringify(snakeCased(value));
  const report = await ask<OptimizationReport>((module) => module.analyze(toJson(context), json(own), json(failed)));
  // The example in Rust keeps the names of Rust.
  return { ...report, suggestions: report.suggestions.map(({ example, ...suggestion }) => ({ ...spokenWithin(suggestion), example })) };
}

/** A report for people, as markdown. */
export async function toMarkdown(report: OptimizationReport): Promise<string> {
  const module = await ready();
  try {
    return module.markdown(JSON.stringify(snakeCased(report)));
  } catch (cause) {
    throw typed(cause);
  }
}

/** The configuration with a suggestion's change in it. */
export async function apply(suggestion: Suggestion, config: Config = {}): Promise<Config> {
  const { id, patch } = suggestion;
  if (!patch) throw new IsovecError("Config", `the suggestion ${id} is no change of the configuration; its steps say what to do`);
  const changed = await ask<Config>((module) => module.apply(nativeConfig(config), nativeConfig(patch)));
  // Rust never writes it down.
  return config.hub?.token === undefined ? changed : { ...changed, hub: { ...changed.hub, token: config.hub.token } };
}

/**
 * Runs two embedders in turns on the same texts: whether the candidate is faster, by how much, and whether their vectors
 * are the same. Other work on the machine hits both. Embedders that keep vectors (`embeddingCache`) are refused: every
 * turn but the first would find them all.
 */
export async function trial(baseline: Embedder, candidate: Embedder, texts: readonly string[], options: TrialOptions = {}): Promise<TrialReport> {
  const { goal = "throughput", rounds = 12, signal, ...judging } = options;
  checkTexts(texts);
  if (texts.length === 0) throw new IsovecError("Config", "a trial needs texts to run with; give it some of those that are embedded");
  for (const embedder of [baseline, candidate]) {
    const keeps = embedder.effectiveConfig().find(({ name, used }) => /^embeddingCache\.(memory|disk)$/.test(name) && used !== "none");
    if (keeps) throw new IsovecError("Config", `a trial measures computing, and an embedder keeps its vectors: load it without ${keeps.name}`);
  }
  const fingerprints = JSON.stringify([baseline.fingerprint(), candidate.fingerprint()]);
  const judge = (texts: number, seconds: ArrayLike<number>, vectors: readonly [Float32Array, Float32Array]) =>
    ask<TrialReport>((module) => module.judge(new module.Turns(JSON.stringify({ goal, ...judging }), texts, Float64Array.from(seconds), fingerprints), ...vectors));
  // What the options are refused for is known before anything runs.
  await judge(1, Array<number>(2 * Math.max(0, Math.trunc(rounds) || 0)).fill(1), [new Float32Array(1), new Float32Array(1)]);
  const run = (embedder: Embedder) => turn(embedder, texts, goal, signal);
  const vectors = [await run(baseline), await run(candidate)] as const;
  const seconds: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    // Whoever goes second finds another cache and another clock speed.
    const order = round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const);
    for (const who of order) seconds[who].push((await run([baseline, candidate][who] as Embedder)).seconds);
  }
  return judge(texts.length, seconds.flat(), [vectors[0].values, vectors[1].values]);
}

/** One turn: its seconds, and the vectors one after another. */
async function turn(embedder: Embedder, texts: readonly string[], goal: Goal, signal: AbortSignal | undefined): Promise<{ seconds: number; values: Float32Array }> {
  const options = signal ? { signal } : {};
  const began = performance.now();
  if (goal === "throughput") {
    const all = await embedder.embed(texts, options);
    return { seconds: (performance.now() - began) / 1e3, values: all.values };
  }
  const values = new Float32Array(texts.length * embedder.dimension);
  for (const [place, text] of texts.entries()) values.set(await embedder.embedOne(text, options), place * embedder.dimension);
  return { seconds: (performance.now() - began) / 1e3, values };
}

/** What a rule of the page's says, with everything else at its mildest. */
function whole(id: string, { expected, ...suggestion }: Partial<Suggestion>): Suggestion {
  // A patch under other names than JavaScript's is refused here, where the rule is known.
  if (suggestion.patch) nativeConfig(suggestion.patch);
  return {
    id,
    title: id,
    category: "other",
    impact: "low",
    difficulty: "easy",
    evidence: [],
    steps: [],
    example: { rust: "", typescript: "" },
    warnings: [],
    vectors: "none",
    ...suggestion,
    expected: { improvement: "", reason: "", ...expected },
  };
}
