// Token ids as engines read them; made once, before anything is timed.

/** Texts of different lengths, padded to the longest: as i32, and as i64 (`long`). */
export function batch(texts) {
  const [rows, columns] = [texts.length, Math.max(...texts.map((ids) => ids.length))];
  const ids = new Int32Array(rows * columns);
  const mask = new Int32Array(rows * columns);
  for (const [row, text] of texts.entries()) {
    ids.set(text, row * columns);
    mask.fill(1, row * columns, row * columns + text.length);
  }
  const long = (values) => BigInt64Array.from(values, BigInt);
  return { rows, columns, ids, mask, long: { rows, columns, ids: long(ids), mask: long(mask) } };
}

/** The vectors of texts that are run alone, in one array. */
export async function rowByRow(rows, run) {
  const vectors = [];
  for (const row of rows) vectors.push(await run(row));
  const all = new Float32Array(vectors.length * vectors[0].length);
  for (const [at, vector] of vectors.entries()) all.set(vector, at * vector.length);
  return all;
}
