/** What all entries of the package have in common. */
export type * from "./config.js";
export type { Device, DtypeWord } from "./words.js";
export { Classifications, type Label } from "./classifications.js";
export type { Classified, ClassifyOptions } from "./classifier.js";
export type { EmbedOptions, Embedded, StreamOptions } from "./embedder.js";
export { Embeddings, type Fingerprint } from "./embeddings.js";
export { IsovecError } from "./error.js";
export { hardware, type Hardware, type HardwareAdapter, type HardwareGpu } from "./hardware.js";
export type { EmbeddedPicture } from "./image.js";
export type { Picture, PixelOptions, RawPicture } from "./pictures.js";
export type { Capabilities, Downloaded, Knob, ModelDescription, Progress, ProviderInfo, Role, ScoreForm } from "./host.js";
export type { ErrorKind } from "./kinds.js";
export { Profile, ProfileSession, type ProfileOptions, type TraceEvent } from "./profile.js";
export { Scores, cosine, topK, type Hit, type Similarity } from "./similarity.js";
export type { FetchOptions, FileContent, ModelSource } from "./source.js";
export type { Fallback, Latency, Stats } from "./stats.js";
export type { CachedFile } from "./store.js";
export type { Streamed } from "./stream.js";
