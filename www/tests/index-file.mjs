// Reads an index as docs/embeddings-format.md describes it, without isovec, and searches in it.

/** The vectors and labels of an index. */
export function readIndex(file) {
  const length = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(8, 8 + length).toString());
  const bytes = (name) => {
    const [from, to] = header[name].data_offsets;
    return Uint8Array.prototype.slice.call(file, 8 + length + from, 8 + length + to);
  };
  const [rows, dimension] = header.embeddings.shape;
  const values = new Float32Array(bytes("embeddings").buffer);
  const ends = new Uint32Array(bytes("label_ends").buffer);
  const text = Buffer.from(bytes("label_text"));
  const labels = Array.from(ends, (end, at) => text.subarray(ends[at - 1] ?? 0, end).toString());
  return { rows, dimension, values, labels };
}

/** The rows nearest to a row, itself first, by the scalar product of normalised vectors. */
export function nearest({ rows, dimension, values }, row, k) {
  const score = (other) => {
    let sum = 0;
    for (let j = 0; j < dimension; j++) sum += values[row * dimension + j] * values[other * dimension + j];
    return sum;
  };
  const scores = Array.from({ length: rows }, (_, other) => ({ other, score: score(other) }));
  return scores.sort((a, b) => b.score - a.score).slice(0, k).map(({ other }) => other);
}
