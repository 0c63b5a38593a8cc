/** How a model's weights are stored. */
export type Dtype = "auto" | "f32" | "f16" | "int8";

/** Which form of a model is taken, and how its weights are stored. */
export interface ModelConfig {
  /**
   * `auto`: the 16-bit file that was published, if it is smaller than the checkpoint. `f16`, `int8`:
   * the published weights, stored smaller at load; a folder that `isovec export --dtype` wrote is
   * the smaller download. Default: as the file that is fetched has them.
   */
  dtype?: Dtype;
  /** This ONNX file of the model instead of the one that isovec prefers. */
  onnx_file?: string;
}

/** How a model is run. */
export interface SessionConfig {
  /** Threads of one operator, the calling one included. Default: half of the processors, 2 to 4; 1 in a page that shares no memory with workers. */
  intra_op_threads?: number;
  /** Whether vectors are the same to the last bit in every build and on every processor. Default: `false`. */
  deterministic_compute?: boolean;
  [knob: string]: unknown;
}

/** The Rust `EmbeddingConfig`, by the names that `docs/configuration.md` lists. */
export interface Config {
  model?: ModelConfig;
  session?: SessionConfig;
  [part: string]: unknown;
}
