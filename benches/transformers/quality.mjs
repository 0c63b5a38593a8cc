// How far vectors are from the model's own, in float64 (tests/data/reference/README.md).
import { readFileSync } from "node:fs";

const data = new URL("../../tests/data/reference/", import.meta.url);

/**
 * Tokens of a text that the model sees. transformers.js does not read that (`sentence_bert_config.json`)
 * and sees 512, so longer texts would compare limits and no numbers.
 */
const SEEN = 256;

/** The reference's texts, and their vectors: little-endian f32 after NumPy's header. */
export function reference() {
  const texts = readFileSync(new URL("texts.txt", data), "utf8").trimEnd().split("\n");
  const npy = readFileSync(new URL("vectors.npy", data));
  const values = npy.subarray(10 + npy.readUInt16LE(8));
  const dim = values.length / 4 / texts.length;
  const all = texts.map((text, row) => ({ text, vector: Array.from({ length: dim }, (_, at) => values.readFloatLE(4 * (row * dim + at))) }));
  const seen = all.filter(({ text }) => text.split(" ").length <= SEEN);
  return { texts: seen.map(({ text }) => text), vectors: seen.map(({ vector }) => vector) };
}

/** The worst cosine of a text, and the mean. */
export function quality({ vectors }, got) {
  const dim = got.length / vectors.length;
  const cosines = vectors.map((want, row) => cosine(want, got.slice(row * dim, (row + 1) * dim)));
  return { worst: Math.min(...cosines), mean: cosines.reduce((sum, one) => sum + one) / cosines.length };
}

function cosine(a, b) {
  const dot = (a, b) => a.reduce((sum, value, at) => sum + value * b[at], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}
