/** The codes of vectors in compact forms: a quarter or a thirty-second of their bytes. They are those of the Rust SDK (src/embeddings/compact). */
import { IsovecError } from "./error.js";

/**
 * How a compact set holds its vectors: `int8`, 8-bit whole numbers and a scale for each vector; `binary`, the sign of each
 * component. What is found with `binary` should be scored again (`rescored`).
 */
export type CompactForm = "int8" | "binary";

/** Vectors in a compact form. */
export interface Codes {
  form: CompactForm;
  /** Vector by vector. */
  codes: Uint8Array<ArrayBuffer>;
  /** Of `int8` one for each vector, with which its codes are multiplied to get it back. */
  scales: Float32Array<ArrayBuffer>;
}

/** Bytes of a vector's codes. */
export const widthOf = (form: CompactForm, dimension: number): number => (form === "int8" ? dimension : Math.ceil(dimension / 8));

/** The codes of vectors that are one after another. */
export function coded(values: Float32Array, dimension: number, form: CompactForm): Codes {
  if (form !== "int8" && form !== "binary") throw new IsovecError("Config", `a compact form is "int8" or "binary", not ${JSON.stringify(form)}`);
  const [many, width] = [values.length / dimension, widthOf(form, dimension)];
  const codes = new Uint8Array(many * width);
  const scales = new Float32Array(form === "int8" ? many : 0);
  for (let at = 0; at < many; at++) {
    const [row, into] = [values.subarray(at * dimension, (at + 1) * dimension), codes.subarray(at * width, (at + 1) * width)];
    if (form === "int8") scales[at] = int8(row, into);
    else signs(row, into);
  }
  return { form, codes, scales };
}

/** The vectors from `start` to `end` that codes stand for; those of signs have unit length. */
export function decoded({ form, codes, scales }: Codes, dimension: number, start: number, end: number): Float32Array<ArrayBuffer> {
  const values = new Float32Array((end - start) * dimension);
  const one = Math.fround(1 / Math.sqrt(dimension));
  const signed = new Int8Array(codes.buffer, codes.byteOffset, codes.length);
  const width = widthOf(form, dimension);
  for (let vector = start, at = 0; vector < end; vector++) {
    const from = vector * width;
    for (let i = 0; i < dimension; i++, at++) values[at] = form === "int8" ? signed[from + i]! * scales[vector]! : isAbove(codes, from, i) ? one : -one;
  }
  return values;
}

/** Whether the component of a row of signs, which begins at byte `start`, is above 0. */
export const isAbove = (codes: Uint8Array, start: number, component: number): boolean => ((codes[start + (component >> 3)]! << (component & 7)) & 0x80) !== 0;

/** What is wrong with codes, of which there are `many`; nothing where they are sound. */
export function faultOf({ form, codes, scales }: Codes, dimension: number, many: number): string | undefined {
  if (form === "int8") {
    if (scales.length !== many) return `\`scales\` does not have ${many} entries`;
    const at = scales.findIndex((scale) => !(Number.isFinite(scale) && scale >= 0));
    return at < 0 ? undefined : `entry ${at} of \`scales\` is no scale`;
  }
  // They would count as signs that differ.
  const width = widthOf(form, dimension);
  for (let end = width; dimension % 8 !== 0 && end <= codes.length; end += width) if (((codes[end - 1]! << dimension % 8) & 0xff) !== 0) return "a row has bits behind its last component";
  return undefined;
}

/** A row as whole numbers of 8 bits; gives the number with which they are multiplied to get the row back. */
function int8(row: Float32Array, codes: Uint8Array): number {
  const largest = row.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const scale = Math.fround(largest / 127);
  // A row of zeros, or of numbers so small that the divisor is none.
  if (scale === 0) return 0;
  for (let at = 0; at < row.length; at++) {
    const value = Math.fround(row[at]! / scale);
    // Halves away from zero.
    codes[at] = Math.sign(value) * Math.min(127, Math.round(Math.abs(value)));
  }
  return scale;
}

/** A row's signs: a bit for each component, 1 where it is above 0, the first in the highest bit of the first byte. */
export function signs(row: Float32Array, codes: Uint8Array): void {
  for (let at = 0; at < row.length; at++) if (row[at]! > 0) codes[at >> 3]! |= 0x80 >> (at & 7);
}
