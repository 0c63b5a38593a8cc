/** Where a model's weights may lie, the first that is there. */
export const WEIGHTS = ["model.safetensors", "onnx/model.onnx", "model.onnx"] as const;

/**
 * Where exporters publish a model in 16-bit floats (Rust: `HALF_ONNX_FILE`). Files with quantised
 * activations are not looked for: their vectors are too far from the model's.
 */
export const HALF = "onnx/model_fp16.onnx";

/** The files that `config.json` of an exported folder lists; nothing where it is another's. */
export function listed(config: Uint8Array | undefined): ReadonlySet<string> | undefined {
  try {
    const { isovec } = JSON.parse(new TextDecoder().decode(config)) as { isovec?: { files?: unknown } };
    const files = isovec?.files;
    return Array.isArray(files) ? new Set(files.filter((name) => typeof name === "string")) : undefined;
  } catch {
    return undefined; // The SDK names what is wrong with the file.
  }
}
