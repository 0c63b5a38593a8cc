/** The embeddings file (docs/embeddings-format.md): a safetensors file, written and read here and in Rust alike. */
import { faultOf, widthOf, type Codes } from "./codes.js";
import type { CompactParts } from "./compact.js";
import type { Fingerprint, Parts } from "./embeddings.js";
import { IsovecError } from "./error.js";
import type { Similarity } from "./similarity.js";
import { isWellFormed } from "./texts.js";

const KEY = "isovec.embeddings";
/** The version of files with vectors in f32. */
const PLAIN = 1;
/** The version of files with vectors in a compact form. */
const COMPACT = 2;
/** The version of files with the vectors of texts' tokens. */
export const TOKENS = 3;
/** The version of files with sparse vectors, the newest that is read. */
export const SPARSE = 4;
/** What opens the files of each version. */
const OPENS = new Map([[PLAIN, "Embeddings.load"], [COMPACT, "CompactEmbeddings.load"], [TOKENS, "MultiVectorEmbeddings.load"], [SPARSE, "SparseEmbeddings.load"]]);
/** The longest header that is read: the limit of the format's reference implementation. */
const MAX_HEADER = 100_000_000;
const SIMILARITIES: readonly string[] = ["cosine", "dot", "euclidean", "manhattan"];
const PRECISIONS: readonly string[] = ["f32", "f16", "bf16", "int8", "int8-fast"];
/** A map, because names out of a file must not find what every object has. */
const WIDTH: ReadonlyMap<string, number> = new Map([["F32", 4], ["U32", 4], ["U8", 1], ["I8", 1]]);
const LITTLE = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

interface Info {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

interface Metadata {
  format_version: number;
  model: string;
  fingerprint: Fingerprint;
  similarity: Similarity;
  prompt: string | null;
  /** Components of a vector, where the shape does not say it: bits fill whole bytes. */
  dimension?: number;
}

export function invalid(detail: string, cause?: unknown): IsovecError {
  return new IsovecError("InvalidEmbeddings", `this file is no set of embeddings: ${detail}`, { cause });
}

/** Opens a file's bytes. Vectors are viewed where they lie, if they lie at a multiple of four. */
export function read(file: Uint8Array<ArrayBuffer>): Parts {
  const { metadata, take, only, labels } = opened(file, PLAIN);
  const embeddings = take("embeddings", "F32", 2);
  const [rows, dimension] = embeddings.shape as [number, number];
  if (dimension < 1) throw invalid("its vectors have no components");
  const values = words(embeddings.bytes, Float32Array);
  const at = values.findIndex((value) => !Number.isFinite(value));
  if (at >= 0) throw invalid(`value ${at % dimension} of vector ${Math.floor(at / dimension)} is not finite`);
  const tokenCounts = words(take("token_counts", "U32", 1).bytes, Uint32Array);
  const truncated = take("truncated", "U8", 1).bytes;
  if (tokenCounts.length !== rows || truncated.length !== rows) throw invalid(`\`token_counts\` or \`truncated\` does not have ${rows} entries`);
  const odd = truncated.find((mark) => mark > 1);
  if (odd !== undefined) throw invalid(`\`truncated\` holds ${odd}, which is neither 0 nor 1`);
  only(["embeddings", "token_counts", "truncated", "label_ends", "label_text"]);
  return { ...about(metadata), values, dimension, tokenCounts, truncated, labels: labels(rows) };
}

/** Opens the bytes of a file whose vectors are in a compact form. */
export function readCompact(file: Uint8Array<ArrayBuffer>): CompactParts {
  const { metadata, take, has, only, labels } = opened(file, COMPACT);
  const { dimension } = metadata;
  if (!dimension) throw invalid("it does not say how many components a vector has");
  const form = has("scales") ? "int8" : "binary";
  const { many, ...codes } = takeCodes(take, form, dimension);
  only(["embeddings", "scales", "label_ends", "label_text"]);
  return { ...about(metadata), ...codes, dimension, rows: many, labels: labels(many) };
}

/** Vectors in a compact form, and how many there are. */
export function takeCodes(take: ReturnType<typeof opened>["take"], form: Codes["form"], dimension: number): Codes & { many: number } {
  const { bytes, shape } = take("embeddings", form === "int8" ? "I8" : "U8", 2);
  const [many, row] = shape as [number, number];
  if (row !== widthOf(form, dimension)) throw invalid(`\`embeddings\` is [${shape.join(", ")}], and ${dimension} components take ${widthOf(form, dimension)} bytes in ${form}`);
  const codes = { form, codes: bytes, scales: form === "int8" ? words(take("scales", "F32", 1).bytes, Float32Array) : new Float32Array() };
  const fault = faultOf(codes, dimension, many);
  if (fault !== undefined) throw invalid(fault);
  return { ...codes, many };
}

/** The tensors of vectors in a compact form: those of four bytes, and those of one. */
export function tensorsOf({ form, codes, scales }: Codes, dimension: number): [Tensor[], Tensor] {
  const width = widthOf(form, dimension);
  return [form === "int8" ? [["scales", "F32", [scales.length], [bytes(scales)]]] : [], ["embeddings", form === "int8" ? "I8" : "U8", [codes.length / width, width], [codes]]];
}

/** The header of a file of this version, and what takes its tensors. */
export function opened(file: Uint8Array<ArrayBuffer>, version: number) {
  if (!LITTLE) throw invalid("this machine keeps numbers the other way round, which is not supported");
  const { tensors, metadata, data } = header(file);
  // Files of the first version may say an older one.
  const found = Math.max(metadata.format_version, PLAIN);
  if (found !== version) throw invalid(`it holds vectors of another kind; open it with ${OPENS.get(found)}`);
  const has = (name: string) => tensors.has(name);
  const dtype = (name: string) => tensors.get(name)?.dtype;
  const take = (name: string, dtype: string, rank: number): { bytes: Uint8Array<ArrayBuffer>; shape: number[] } => {
    const info = tensors.get(name);
    if (!info) throw invalid(`it has no tensor \`${name}\``);
    if (info.dtype !== dtype || info.shape.length !== rank) throw invalid(`\`${name}\` is ${info.dtype} [${info.shape.join(", ")}], not ${dtype} of rank ${rank}`);
    return { bytes: data.subarray(...info.data_offsets), shape: info.shape };
  };
  // A damaged name must not make a part of the set vanish; new parts raise the version.
  const only = (names: string[]) => {
    const unknown = [...tensors.keys()].find((name) => !names.includes(name));
    if (unknown !== undefined) throw invalid(`it holds \`${unknown}\`, which this version does not know`);
  };
  const labels = (rows: number): string[] | undefined => {
    if (!has("label_ends") && !has("label_text")) return undefined;
    const labels = cut(take("label_text", "U8", 1).bytes, words(take("label_ends", "U32", 1).bytes, Uint32Array));
    if (labels.length !== rows) throw invalid(`it has ${labels.length} labels for ${rows} vectors`);
    return labels;
  };
  return { metadata, has, dtype, take, only, labels };
}

/** What made the vectors. */
export const about = ({ model, fingerprint, similarity, prompt }: Metadata) => ({ model, fingerprint, metric: similarity, prompt });

/** Four-byte numbers, viewed where they lie if they lie at a multiple of four. */
export function words<T>(bytes: Uint8Array<ArrayBuffer>, kind: new (buffer: ArrayBuffer, offset: number, length: number) => T): T {
  const aligned = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
  return new kind(aligned.buffer, aligned.byteOffset, bytes.length / 4);
}

function cut(text: Uint8Array, ends: Uint32Array): string[] {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let start = 0;
  const labels = Array.from(ends, (end, index) => {
    if (end < start || end > text.length) throw invalid(`\`label_ends\` cuts ${start}..${end} out of ${text.length} bytes of text`);
    try {
      return decoder.decode(text.subarray(start, end));
    } catch (cause) {
      throw invalid(`label ${index} is not UTF-8`, cause);
    } finally {
      start = end;
    }
  });
  if (start !== text.length) throw invalid(`${text.length - start} bytes of \`label_text\` belong to no label`);
  return labels;
}

function header(file: Uint8Array<ArrayBuffer>): { tensors: Map<string, Info>; metadata: Metadata; data: Uint8Array<ArrayBuffer> } {
  if (file.length < 8) throw invalid(`${file.length} bytes are too few`);
  const length = Number(new DataView(file.buffer, file.byteOffset).getBigUint64(0, true));
  if (length > MAX_HEADER) throw invalid(`its header is said to take ${length} bytes, and ${MAX_HEADER} are the most`);
  if (length > file.length - 8) throw invalid(`its header is said to take ${length} of ${file.length} bytes; it was cut short or is something else`);
  let parsed: Record<string, unknown>;
  try {
    // A mark of the byte order is no part of JSON, and is not to be passed over.
    parsed = objectOf(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(file.subarray(8, 8 + length)));
  } catch (cause) {
    throw invalid(`its header cannot be read (${String(cause)})`, cause);
  }
  const { __metadata__: entries, ...rest } = parsed;
  const data = file.subarray(8 + length);
  const tensors = new Map(Object.entries(rest).map(([name, info]) => [name, checked(name, info)]));
  // One after another, without gaps and to the end: what lies between would be read by nobody.
  let end = 0;
  for (const [name, info] of [...tensors].sort(([, a], [, b]) => a.data_offsets[0] - b.data_offsets[0] || a.data_offsets[1] - b.data_offsets[1])) {
    if (info.data_offsets[0] !== end) throw invalid(`\`${name}\` begins at byte ${info.data_offsets[0]}, not at ${end}`);
    end = info.data_offsets[1];
  }
  if (end !== data.length) throw invalid(`its tensors take ${end} of ${data.length} bytes; it was cut short or something was added`);
  const own = isObject(entries) ? entries : {};
  if (!Object.entries(own).flat().every(isText)) throw invalid("its `__metadata__` holds a value that is not text");
  const json = own[KEY];
  if (typeof json !== "string") throw invalid(`its header has no \`${KEY}\`; it is a safetensors file that isovec did not write`);
  return { tensors, metadata: metadataOf(json), data };
}

function checked(name: string, value: unknown): Info {
  const whole = (value: unknown): value is number => typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && !Object.is(value, -0);
  const { dtype, shape, data_offsets: offsets } = isObject(value) ? value : {};
  const sound = typeof dtype === "string" && Array.isArray(shape) && shape.every(whole) && Array.isArray(offsets) && offsets.length === 2 && offsets.every(whole);
  if (!sound) throw invalid(`its header does not say what \`${name}\` is`);
  const info = { dtype, shape, data_offsets: offsets as [number, number] };
  const [from, to] = info.data_offsets;
  const width = WIDTH.get(dtype);
  if (width !== undefined && to - from !== shape.reduce((product, extent) => product * extent, width)) throw invalid(`\`${name}\` of [${shape.join(", ")}] does not take ${to - from} bytes`);
  return info;
}

function metadataOf(json: string): Metadata {
  let value: Record<string, unknown>;
  try {
    value = objectOf(json);
  } catch (cause) {
    throw invalid(`\`${KEY}\` cannot be read (${String(cause)})`, cause);
  }
  const { format_version: version, model, fingerprint, similarity, prompt = null, dimension } = value;
  if (typeof version !== "number" || !Number.isInteger(version) || version < 0 || version >= 2 ** 32) throw invalid(`\`${KEY}\` names no version`);
  if (version > SPARSE) throw invalid(`it has format version ${version}, and this isovec reads up to ${SPARSE}; update isovec`);
  const { identity, precision, claimed } = isObject(fingerprint) ? fingerprint : {};
  const sound =
    isText(model) &&
    areTexts(identity) && (claimed === undefined || areTexts(claimed)) &&
    typeof precision === "string" && PRECISIONS.includes(precision) &&
    typeof similarity === "string" && SIMILARITIES.includes(similarity) &&
    (prompt === null || isText(prompt)) &&
    (dimension === undefined || dimension === null || (typeof dimension === "number" && Number.isSafeInteger(dimension) && dimension >= 0));
  if (!sound) throw invalid(`\`${KEY}\` does not say what made the vectors`);
  // What this version does not know is ignored, and not carried on.
  return { format_version: version, model, fingerprint: { identity, precision, ...(claimed && { claimed }) }, similarity: similarity as Similarity, prompt, ...(typeof dimension === "number" && { dimension }) };
}

/** An object of JSON, in which no name stands twice: which of the two is meant nobody could tell. */
function objectOf(json: string): Record<string, unknown> {
  const value: unknown = JSON.parse(json);
  if (!isObject(value)) throw new Error("it is not an object");
  let members = 0;
  const open: unknown[] = [value];
  while (open.length > 0) {
    const inner = open.pop();
    if (typeof inner !== "object" || inner === null) continue;
    const values: unknown[] = Object.values(inner);
    if (!Array.isArray(inner)) members += values.length;
    for (const value of values) open.push(value);
  }
  if (members !== colons(json)) throw new Error("it has a name twice");
  return value;
}

/** Colons outside of strings: as many as there are members. */
function colons(json: string): number {
  let count = 0;
  for (let at = 0, inside = false; at < json.length; at++) {
    const one = json.charCodeAt(at);
    if (one === 0x22) inside = !inside;
    else if (inside && one === 0x5c) at++;
    else if (!inside && one === 0x3a) count++;
  }
  return count;
}

/** Texts by names that are texts. */
function areTexts(value: unknown): value is Record<string, string> {
  return isObject(value) && Object.entries(value).flat().every(isText);
}

/** A text that UTF-8 can say: JSON's escapes can also name half of a character. */
function isText(value: unknown): value is string {
  return typeof value === "string" && isWellFormed(value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The file of a set. */
export function write(parts: Parts): Uint8Array<ArrayBuffer> {
  const rows = parts.tokenCounts.length;
  const labels = ofLabels(parts.labels);
  // Four-byte tensors before one-byte ones, so that they lie at multiples of four.
  const tensors: Tensor[] = [["embeddings", "F32", [rows, parts.dimension], [bytes(parts.values)]], ["token_counts", "U32", [rows], [bytes(parts.tokenCounts)]], ...labels, ["truncated", "U8", [rows], [parts.truncated]]];
  return written(tensors, { format_version: PLAIN, ...described(parts) });
}

/** The file of a compact set. */
export function writeCompact(parts: CompactParts): Uint8Array<ArrayBuffer> {
  const { dimension } = parts;
  const [ends, text] = ofLabels(parts.labels);
  const [tensors, codes] = tensorsOf(parts, dimension);
  if (ends) tensors.push(ends);
  tensors.push(codes);
  if (text) tensors.push(text);
  return written(tensors, { format_version: COMPACT, ...described(parts), dimension });
}

export type Tensor = [name: string, dtype: string, shape: number[], content: Uint8Array[]];

export const bytes = (array: Float32Array<ArrayBuffer> | Uint32Array<ArrayBuffer>) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

export const described = ({ model, fingerprint, metric, prompt }: Pick<Parts, "model" | "fingerprint" | "metric" | "prompt">) => ({ model, fingerprint, similarity: metric, prompt });

/** Where each label ends, and the labels one after another; nothing where there are none. */
function ofLabels(labels: readonly string[] | undefined): Tensor[] {
  if (!labels) return [];
  const encoded = labels.map((label) => new TextEncoder().encode(label));
  let end = 0;
  const ends = Uint32Array.from(encoded, (label) => (end += label.length));
  if (end >= 2 ** 32) throw new IsovecError("InvalidEmbeddings", "the labels take 4 GiB or more; store them elsewhere");
  return [["label_ends", "U32", [labels.length], [bytes(ends)]], ["label_text", "U8", [end], encoded]];
}

export function written(tensors: Tensor[], metadata: Metadata): Uint8Array<ArrayBuffer> {
  const infos: Record<string, unknown> = { __metadata__: { [KEY]: JSON.stringify(metadata) } };
  let offset = 0;
  for (const [name, dtype, shape, content] of tensors) {
    const length = content.reduce((sum, part) => sum + part.length, 0);
    infos[name] = { dtype, shape, data_offsets: [offset, (offset += length)] };
  }
  const text = new TextEncoder().encode(JSON.stringify(infos));
  const padded = Math.ceil(text.length / 8) * 8;
  const file = new Uint8Array(8 + padded + offset);
  new DataView(file.buffer).setBigUint64(0, BigInt(padded), true);
  file.set(text, 8);
  file.fill(0x20, 8 + text.length, 8 + padded);
  let at = 8 + padded;
  for (const part of tensors.flatMap(([, , , content]) => content)) {
    file.set(part, at);
    at += part.length;
  }
  return file;
}
