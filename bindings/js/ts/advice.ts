import type { Config } from "./config.js";
import type { Hardware } from "./hardware.js";
import type { Capabilities, Knob, ModelDescription, ProviderInfo } from "./host.js";
import type { Stats } from "./stats.js";

/** The input of the rules: Rust's `AnalysisContext` in camel case. Any part may be missing; the report lists the missing parts. */
export interface AnalysisContext {
  config?: Config;
  effective?: readonly Knob[];
  capabilities?: Capabilities;
  provider?: ProviderInfo;
  model?: ModelDescription;
  stats?: Stats;
  profile?: ProfileSummary;
  hardware?: Hardware;
  workload?: Workload;
  memory?: { currentBytes: number; peakBytes: number };
  /** Whether suggestions are tried afterwards, as `isovec advise --verify` does. Then one that costs much is made on less evidence. */
  trials?: boolean;
}

/** A profile in few numbers. */
export interface ProfileSummary {
  seconds: number;
  dropped: number;
  stages: Record<string, { count: number; seconds: number }>;
  operators: Record<string, { count: number; seconds: number }>;
}

/** A description of texts. */
export interface Workload {
  texts: number;
  distinct: number;
  tokens: number;
  p50Tokens: number;
  p99Tokens: number;
  maxTokens: number;
}

/** The category of a suggestion. */
export type Category = "provider" | "threads" | "batching" | "memory" | "precision" | "graph" | "cache" | "browser" | "other";
/** How much a change is expected to bring: some percent, a tenth, a third, twice as fast or something that does not work. */
export type Impact = "low" | "medium" | "high" | "critical";
/** How hard a change is: a knob, some lines, another model or deployment. */
export type Difficulty = "easy" | "medium" | "hard";

/** One change that the evidence speaks for. */
export interface Suggestion {
  /** The rule's name, stable. */
  id: string;
  title: string;
  category: Category;
  impact: Impact;
  difficulty: Difficulty;
  /** The expected improvement, before it is measured. */
  expected: { improvement: string; reason: string; speedup?: number };
  /** The evidence. */
  evidence: { what: string; value: string }[];
  steps: string[];
  example: { rust: string; typescript: string };
  warnings: string[];
  /** The effect on the vectors: none, another precision, or different vectors, which need a new index. */
  vectors: "none" | "precision" | "identity";
  /** The change of the configuration, where it is one: a JSON merge patch (RFC 7396) of a `Config`. */
  patch?: Record<string, unknown>;
  /** The model to make with `isovec optimize`, where it is another model: its options. */
  recipe?: { int8?: "static" | "dynamic" };
  /** The result of its trial. */
  verified?: TrialReport;
  /** In a report of `isovec advise --verify`: how vectors before and after compare, where the change is to change them. */
  quality?: VectorQuality;
  /** In such a report: bytes of the model before and after, where one was made for the trial. */
  sizes?: { before: number; after: number };
}

/** How vectors before and after a change compare that changes them by design. */
export interface VectorQuality {
  texts: number;
  /** Cosine of each text's two vectors, on average and at the least; `null` where they have not the same components. */
  cosineMean: number | null;
  cosineWorst: number | null;
  /** Of the ten texts nearest to each text, the share that is the same; `null` for 10 texts or fewer. */
  recallAt10: number | null;
}

/** A rule of the page. Missing fields of its suggestions default to low impact, easy, no patch. */
export interface Rule {
  id: string;
  check(context: AnalysisContext): Partial<Suggestion> | readonly Partial<Suggestion>[] | undefined | Promise<Partial<Suggestion> | readonly Partial<Suggestion>[] | undefined>;
}

/** A rule that threw, and its error. */
export interface FailedRule {
  rule: string;
  message: string;
}

/** The findings of the rules. */
export interface OptimizationReport {
  /** Those that promise most first. */
  suggestions: Suggestion[];
  /** Rules that could not judge, and the parts of the context that they lacked. */
  notJudged: { rule: string; lacks: (keyof AnalysisContext)[] }[];
  failed: FailedRule[];
  /** Rules that looked at everything they look at. */
  judged: number;
  /** In a report of `isovec advise --min-impact`: suggestions that matter less. */
  leftOut?: number;
}

/** Texts a second with all of them in one call, or the time of a call with one text. */
export type Goal = "throughput" | "latency";

/** How two embedders are compared. */
export interface TrialOptions {
  /** Default: `throughput`. */
  goal?: Goal;
  /** Pairs of turns, at least 6. Default: 12. */
  rounds?: number;
  /** How sure a verdict has to be. Default: 0.95. */
  confidence?: number;
  /** By how much it has to be faster to be worth it. Default: 0.01. */
  worth?: number;
  /** The largest L2 distance of two vectors of a text that still counts as the same. Default: 1e-4. */
  tolerance?: number;
  signal?: AbortSignal;
}

/** The result of a trial. */
export interface TrialReport {
  verdict: "better" | "worse" | "no_difference" | "other_vectors";
  goal: Goal;
  /** How many times as fast as the baseline the candidate is, and the interval that this is in with `confidence`. */
  speedup: number;
  low: number | null;
  high: number | null;
  confidence: number;
  rounds: number;
  /** Seconds of the turns, in pairs. */
  baseline: number[];
  candidate: number[];
  texts: number;
  /** The largest L2 distance of two vectors of a text. */
  distance: number | null;
  /** Whether an index of the one may be searched with vectors of the other. */
  compatible: boolean;
}
