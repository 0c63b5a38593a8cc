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

/** The Rust `EmbeddingConfig`, by the names that `docs/configuration.md` lists. */
export interface Config {
  model?: ModelConfig;
  [part: string]: unknown;
}
