/** The weights that most models have; which they are, the rules say. Guessed, so that they are under way before those are loaded. */
const LIKELY = ["model.safetensors", "model.onnx", "onnx/model.onnx"] as const;
const HALF = "onnx/model_fp16.onnx";

/** What is likely to be taken of these files, or of whatever there is. */
export function likely(onnxFile: string | undefined, smallest: boolean, list: ReadonlyMap<string, unknown> | undefined): { path: string; need: "taken" | "likely" } {
  if (onnxFile !== undefined) return { path: onnxFile, need: "taken" };
  if (smallest && (list?.has(HALF) ?? true)) return { path: HALF, need: "likely" };
  return { path: LIKELY.find((name) => list?.has(name) ?? true) ?? LIKELY[0], need: "taken" };
}

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
