/**
 * Text embeddings in the browser, the same vectors as on the server.
 *
 * @example
 * import { Embedder } from "isovec";
 * const embedder = await Embedder.load("sentence-transformers/all-MiniLM-L6-v2");
 * const vectors = await embedder.embed(["a text", "another"]);
 *
 * @module
 */
export type { Build } from "./builds.js";
export type { Config, Dtype, ModelConfig, SessionConfig } from "./config.js";
export { Embedder, type EmbedOptions, type Knob, type LoadOptions, type ProviderInfo } from "./embedder.js";
export { Embeddings, similarity, type Fingerprint, type Hit } from "./embeddings.js";
export { IsovecError } from "./error.js";
export type { Fallback, Latency, Stats } from "./stats.js";
export type { FetchOptions, ModelSource, Progress } from "./source.js";
