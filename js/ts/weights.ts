/** Where a model's weights may lie, the first that is there. */
export const WEIGHTS = ["model.safetensors", "onnx/model.onnx", "model.onnx"] as const;

/**
 * Where exporters publish a model in 16-bit floats (Rust: `HALF_ONNX_FILE`). Files with quantised
 * activations are not looked for: their vectors are too far from the model's.
 */
export const HALF = "onnx/model_fp16.onnx";

/** What a file's source states of it. */
export interface Stated {
  sha256: string;
  bytes: number;
}

/** The files that `config.json` of an exported folder lists, and what it states of them; nothing where it is another's. */
export function listed(config: Uint8Array | undefined): ReadonlyMap<string, Stated> | undefined {
  try {
    const { isovec } = JSON.parse(new TextDecoder().decode(config)) as { isovec?: { files?: Record<string, Partial<Stated>> } };
    const files = Object.entries(isovec?.files ?? {});
    const sound = files.every(([, { bytes, sha256 }]) => Number.isSafeInteger(bytes) && /^[0-9a-f]{64}$/.test(String(sha256)));
    return files.length > 0 && sound ? new Map(files as [string, Stated][]) : undefined;
  } catch {
    return undefined; // The SDK names what is wrong with the file.
  }
}
