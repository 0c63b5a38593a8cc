/** Files of texts that have as many values as they have words or tokens (docs/embeddings-format.md). */
import { SPARSE, TOKENS, about, bytes, described, invalid, opened, takeCodes, tensorsOf, words, written, type Tensor } from "./file.js";
import type { SaidOfTokens } from "./multi-vector-embeddings.js";
import type { Weighed } from "./sparse-embeddings.js";
import type { Said } from "./text-sets.js";

/** Opens a file of sparse vectors. */
export function readSparse(file: Uint8Array<ArrayBuffer>): Weighed {
  const { metadata, take, only } = opened(file, SPARSE);
  const { dimension } = metadata;
  if (dimension === undefined) throw invalid("it does not say how many words there are");
  const texts = ofTexts(take, "word_counts");
  const values = words(take("values", "F32", 1).bytes, Float32Array);
  const indices = words(take("indices", "U32", 1).bytes, Uint32Array);
  const many = texts.offsets.at(-1)!;
  if (values.length !== many || indices.length !== many) throw invalid(`\`values\` or \`indices\` does not have ${many} entries`);
  const odd = values.findIndex((value) => !(Number.isFinite(value) && value > 0));
  if (odd >= 0) throw invalid(`entry ${odd} of \`values\` is no weight`);
  for (let text = 0; text + 1 < texts.offsets.length; text++) {
    for (let at = texts.offsets[text]!, last = -1; at < texts.offsets[text + 1]!; at++) {
      if (indices[at]! <= last || indices[at]! >= dimension) throw invalid(`entry ${at} of \`indices\` is ${indices[at]}, behind ${last} of ${dimension} words`);
      last = indices[at]!;
    }
  }
  only(["values", "indices", "word_counts", "token_counts", "truncated"]);
  return { ...made(metadata), ...texts, values, indices, dimension };
}

/** Opens a file of the vectors of texts' tokens. */
export function readTokens(file: Uint8Array<ArrayBuffer>): SaidOfTokens {
  const { metadata, take, has, dtype, only } = opened(file, TOKENS);
  const { dimension } = metadata;
  if (!dimension) throw invalid("it does not say how many components a vector has");
  const texts = ofTexts(take, "vector_counts");
  const many = texts.offsets.at(-1)!;
  const stored = dtype("embeddings");
  if (stored !== "I8" && has("scales")) throw invalid("it holds `scales`, which only 8-bit vectors have");
  const found = stored === "F32" ? takeFloats(take, dimension) : takeCodes(take, stored === "I8" ? "int8" : "binary", dimension);
  if (found.many !== many) throw invalid(`\`embeddings\` has ${found.many} vectors, and \`vector_counts\` adds up to ${many}`);
  only(["embeddings", "scales", "vector_counts", "token_counts", "truncated"]);
  return { ...made(metadata), ...texts, dimension, vectors: "codes" in found ? found : found.values };
}

/** Vectors in f32, and how many there are. */
function takeFloats(take: ReturnType<typeof opened>["take"], dimension: number) {
  const { bytes, shape } = take("embeddings", "F32", 2);
  if (shape[1] !== dimension) throw invalid(`\`embeddings\` is [${shape.join(", ")}], and its vectors have ${dimension} components`);
  const values = words(bytes, Float32Array);
  const odd = values.findIndex((value) => !Number.isFinite(value));
  if (odd >= 0) throw invalid(`value ${odd} of \`embeddings\` is not finite`);
  return { values, many: shape[0]! };
}

/** The file of sparse vectors. */
export function writeSparse(said: Weighed): Uint8Array<ArrayBuffer> {
  const many = [said.values.length];
  return ofSet(said, SPARSE, [["values", "F32", many, [bytes(said.values)]], ["indices", "U32", many, [bytes(said.indices)]], counts("word_counts", said)]);
}

/** The file of the vectors of texts' tokens. */
export function writeTokens(said: SaidOfTokens): Uint8Array<ArrayBuffer> {
  const { vectors, dimension } = said;
  const counted = counts("vector_counts", said);
  if (vectors instanceof Float32Array) return ofSet(said, TOKENS, [["embeddings", "F32", [said.offsets.at(-1)!, dimension], [bytes(vectors)]], counted]);
  const [scales, codes] = tensorsOf(vectors, dimension);
  return ofSet(said, TOKENS, [...scales, counted], [codes]);
}

/** Four-byte tensors before one-byte ones, so that they lie at multiples of four. */
function ofSet(said: Said, version: number, words: Tensor[], codes: Tensor[] = []): Uint8Array<ArrayBuffer> {
  const rows = [said.tokenCounts.length];
  const tensors: Tensor[] = [...words, ["token_counts", "U32", rows, [bytes(said.tokenCounts)]], ...codes, ["truncated", "U8", rows, [said.truncated]]];
  return written(tensors, { format_version: version, ...described({ ...said, metric: "dot" }), dimension: said.dimension });
}

/** How many values each text has. */
function counts(name: string, { offsets }: Said): Tensor {
  const each = offsets.slice(1).map((end, text) => end - offsets[text]!);
  return [name, "U32", [each.length], [bytes(each)]];
}

/** What a file says of each text. */
function ofTexts(take: ReturnType<typeof opened>["take"], name: string) {
  const each = words(take(name, "U32", 1).bytes, Uint32Array);
  const offsets = new Uint32Array(each.length + 1);
  let end = 0;
  for (const [text, count] of each.entries()) {
    end += count;
    if (end >= 2 ** 32) throw invalid(`\`${name}\` adds up to more than a file holds`);
    offsets[text + 1] = end;
  }
  const tokenCounts = words(take("token_counts", "U32", 1).bytes, Uint32Array);
  const truncated = take("truncated", "U8", 1).bytes;
  if (tokenCounts.length !== each.length || truncated.length !== each.length) throw invalid(`\`token_counts\` or \`truncated\` does not have ${each.length} entries`);
  const odd = truncated.find((mark) => mark > 1);
  if (odd !== undefined) throw invalid(`\`truncated\` holds ${odd}, which is neither 0 nor 1`);
  return { offsets, tokenCounts, truncated };
}

/** What made the set. */
function made(metadata: Parameters<typeof about>[0]) {
  const { model, fingerprint, prompt } = about(metadata);
  return { model, fingerprint, prompt };
}
