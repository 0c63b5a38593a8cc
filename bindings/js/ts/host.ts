import type { Address } from "./address.js";
import type { Build, Gpu } from "./builds.js";
import type { Fingerprint } from "./embeddings.js";
import type { PictureText } from "./picture-text.js";
import type { PixelOptions, Portable } from "./pictures.js";
import type { ProfileOptions, RawProfile } from "./profile.js";
import type { Similarity } from "./similarity.js";
import type { Stats } from "./stats.js";

/** What a model makes: vectors, a score for each label, the relevance of pairs, weights of words, vectors of tokens, or the text of pictures. */
export type Output = "vectors" | "labels" | "relevance" | "words" | "tokens" | "text";

/** What a model is loaded for. */
export interface Task {
  output: Output;
  /** Of pictures, or of texts. */
  pictures: boolean;
}

/** The prompt that is put before a text. */
export type Role = "default" | "query" | "passage";
export const ROLES: readonly Role[] = ["default", "query", "passage"];

/**
 * The form of scores.
 *
 * - `softmax`: probabilities that add up to 1; one label is right.
 * - `sigmoid`: a probability for each label by itself; several may be right.
 * - `logits`: the model's own numbers.
 */
export type ScoreForm = "softmax" | "sigmoid" | "logits";
export const SCORE_FORMS: readonly ScoreForm[] = ["softmax", "sigmoid", "logits"];

/** The provider that really computes. */
export interface ProviderInfo {
  engine: string;
  provider: string;
  version: string;
}

/** The capabilities of the engine with the model. */
export interface Capabilities {
  /** Whether rows are run at their own length, without padding. */
  ragged: boolean;
  maxBatchTokens: number | null;
  /** Runs that make progress at the same time. */
  concurrentRuns: number;
  /** Threads that work on one operator. */
  intraOpThreads: number;
  /** Threads that all runs share; `null`: each has `intraOpThreads` of its own. */
  sharedThreads: number | null;
  cancelsRunning: boolean;
  deterministic: boolean;
}

/** The model's graph. */
export interface ModelDescription {
  inputs: readonly { name: string; dtype: string | null; dims: readonly (number | string)[] | null }[];
  outputs: ModelDescription["inputs"];
  opset: number;
  producer: string;
  weightsBytes: number;
  parameters: number;
  /** How often each operator occurs. */
  operators: Readonly<Record<string, number>>;
}

/** One knob of the configuration: the requested value, the value in effect, and the reason. */
export interface Knob {
  /** Its path in the configuration: `session.intraOpThreads`. */
  name: string;
  asked: string | null;
  used: string;
  why: string;
  honoured: boolean;
}

/** The files that loading a model fetched, and their source. */
export interface Downloaded {
  files: readonly { name: string; bytes: number; cached: boolean }[];
  /** Bytes that were fetched this time. */
  bytes: number;
  /** Where the files are cached for the next time. */
  store: "Cache API" | "none";
  /** Why they are not cached although they should be. */
  problem?: string;
  /** Files whose hash was compared with what their source states. */
  verified: number;
}

/** What is known of everything that is loaded. */
export interface Facts {
  build: Build;
  model: string;
  provider: ProviderInfo;
  effectiveConfig: readonly Knob[];
}

/** The known facts about a loaded model. */
export interface About extends Facts {
  /** Numbers of a row. */
  dimension: number;
  maxLength: number;
  fingerprint: Fingerprint;
  metric: Similarity;
  /** The names of the labels, where the model was loaded for them. */
  labels: readonly string[];
  capabilities: Capabilities;
  description: ModelDescription;
  /** Height and width of the pictures that the model reads, where it was loaded for them. */
  pixels: readonly [number, number] | null;
}

/** A picture that could not be read. */
export interface Unread {
  /** Its place among those that were handed over. */
  at: number;
  message: string;
}

/** Vectors, or scores of labels, as the engine gives them. */
export interface Rows {
  values: Float32Array<ArrayBuffer>;
  tokenCounts: Uint32Array<ArrayBuffer>;
  /** 1 for each text of which the model saw only a part. */
  truncated: Uint8Array<ArrayBuffer>;
  /** The name of the prompt that was put before the texts. */
  prompt: string | null;
  /** Numbers of a row. */
  dimension: number;
  fingerprint: Fingerprint;
  /** Of weights of words, and of tokens' vectors: where each text's begin, and at last where they end. */
  offsets?: Uint32Array<ArrayBuffer>;
  /** Of weights of words: the ids of the tokens that `values` are the weights of. */
  indices?: Uint32Array<ArrayBuffer>;
  /** The pictures that there are no rows of. */
  unread?: readonly Unread[];
}

/** What is handed over in a call. */
export type Items = readonly string[] | readonly Portable[];

/** The options of a call for vectors. */
export interface AskedVectors {
  /** The prompt, as `told` writes it. */
  lead: string;
  dimension?: number | undefined;
  normalize?: boolean | undefined;
}

/** What is asked of a call for weights of words. */
export interface AskedWords {
  /** The prompt, as `told` writes it. */
  lead: string;
  topK: number | undefined;
}

/** What is asked of a call for vectors of tokens. */
export interface AskedTokens {
  /** The prompt: what the texts are. */
  lead: Role;
  tokens: true;
}

/** What is asked of a call for labels. */
export interface AskedLabels {
  scores: ScoreForm | undefined;
}

/** What is asked of a call with pairs of texts, whose first texts are its items. */
export interface AskedPairs extends AskedLabels {
  /** The second texts, as many as there are first ones. */
  seconds: readonly string[];
  /** The prompt, as `told` writes it. */
  lead: string;
}

/** What is asked of a call with pictures. */
export interface AskedPictures {
  /** The place of the first picture, for messages. */
  first: number;
  /** Whether pictures that cannot be read are left out, and do not end the call. */
  skip: boolean;
}

/** What is asked of a call for the vectors of pictures. */
export interface AskedPictureVectors extends AskedPictures {
  dimension: number | undefined;
  normalize: boolean | undefined;
}

/** What is asked of a call for the labels of pictures. */
export interface AskedPictureLabels extends AskedPictures, AskedLabels {}

/** What is asked of a call; all of it can be handed to a worker. */
export type Asked = AskedVectors | AskedWords | AskedTokens | AskedLabels | AskedPairs | AskedPictureVectors | AskedPictureLabels;

/** How far loading has come. */
export interface Progress {
  /** The file that is under way. */
  file: string;
  /** Its bytes so far. */
  bytes: number;
  /** Its size in bytes, if the server states it. */
  total: number | undefined;
  /** Whether it was there from an earlier visit. */
  cached: boolean;
}

/** A folder of files that are fetched one by one, or the files themselves. */
export type Files = Address | { contents: ReadonlyMap<string, Uint8Array | Blob> };

/** How files are fetched; all of it can be handed to a worker. */
export interface Fetching {
  headers: Record<string, string>;
  offline: boolean;
  cache: "use" | "reload" | "off";
  /** Whether progress is reported. */
  progress: boolean;
}

export const CACHING: readonly Fetching["cache"][] = ["use", "reload", "off"];

/** The options of loading; all of them can be passed to a worker. */
export interface Request {
  output: Output;
  /** The source's name for messages. */
  name: string;
  files: Files;
  fetching: Fetching;
  /** The configuration as JSON that Rust reads. */
  config: string;
  build: Build | undefined;
  /** Threads that are wanted. */
  threads: number;
  /** What is said of GPUs, where one may compute. */
  gpu: Gpu | undefined;
  /** How pictures are read, where the model is loaded for them. */
  pixels: PixelOptions | undefined;
  /** What is asked of a reader of text. */
  reading: AskedReading | undefined;
}

/** What is asked of a reader of text: the files of its networks, and the least score of a line. */
export interface AskedReading {
  detector: string;
  orientation: string | undefined;
  recognizer: string;
  minScore: number;
}

/** The options that stay with the caller. */
export interface Listening {
  onProgress?: ((progress: Progress) => void) | undefined;
  fetch?: typeof fetch | undefined;
  signal?: AbortSignal | undefined;
}

/** What is loaded, in this thread or in a worker. */
export interface Living {
  readonly about: Facts;
  readonly worker: boolean;
  /** The error that ended it for good, if any. */
  readonly ended: Error | undefined;
  downloaded(): Promise<Downloaded>;
  dispose(): Promise<void>;
}

/** A loaded model. */
export interface Host extends Living {
  readonly about: About;
  run(items: Items, asked: Asked, signal: AbortSignal | undefined): Promise<Rows>;
  countTokens(text: string): Promise<number>;
  /** The tokens of ids. */
  tokens(ids: Uint32Array): Promise<readonly string[]>;
  stats(): Promise<Stats>;
  startProfile(options: ProfileOptions): Promise<void>;
  finishProfile(): Promise<RawProfile>;
}

/** A loaded reader of the text of pictures. */
export interface ReadingHost extends Living {
  /** The text of a picture, whose place among the caller's is `at`. */
  read(picture: Portable, at: number, signal: AbortSignal | undefined): Promise<PictureText>;
}
