/**
 * How alike two vectors are, and the most alike of many. Sums are taken as the Rust SDK takes them (src/similarity.rs):
 * in f64, component `i` in lane `i % 8`, the lanes added in pairs. So a score is the same number on every target.
 */
import { IsovecError } from "./error.js";

/** A found vector: its row, and its score (larger is more alike). */
export interface Hit {
  index: number;
  score: number;
}

/** How a model means its vectors to be compared. */
export type Similarity = "cosine" | "dot" | "euclidean" | "manhattan";

/** The scores of two sets of vectors, a row for each vector of the first and a column for each of the second. */
export class Scores implements Iterable<Float32Array> {
  constructor(
    /** All scores, row after row. */
    readonly values: Float32Array<ArrayBuffer>,
    readonly rows: number,
    readonly columns: number,
  ) {}

  /** The scores of one vector of the first set; a view, no copy. */
  row(index: number): Float32Array<ArrayBuffer> {
    if (!Number.isInteger(index) || index < 0 || index >= this.rows) throw new RangeError(`row ${index} of ${this.rows}`);
    return this.values.subarray(index * this.columns, (index + 1) * this.columns);
  }

  *[Symbol.iterator](): Iterator<Float32Array<ArrayBuffer>> {
    for (let index = 0; index < this.rows; index++) yield this.row(index);
  }
}

/** Adds eight lanes in pairs. */
export const total = ([a, b, c, d, e, f, g, h]: Float64Array) => a! + b! + (c! + d!) + (e! + f! + (g! + h!));

/** The inner product. Written out, and not by the function below: a search spends its time here, its first one in an interpreter. */
export function product(a: Float32Array, b: Float32Array): number {
  let s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
  const whole = a.length - (a.length % 8);
  for (let i = 0; i < whole; i += 8) {
    s0 += a[i]! * b[i]!;
    s1 += a[i + 1]! * b[i + 1]!;
    s2 += a[i + 2]! * b[i + 2]!;
    s3 += a[i + 3]! * b[i + 3]!;
    s4 += a[i + 4]! * b[i + 4]!;
    s5 += a[i + 5]! * b[i + 5]!;
    s6 += a[i + 6]! * b[i + 6]!;
    s7 += a[i + 7]! * b[i + 7]!;
  }
  if (whole === a.length) return s0 + s1 + (s2 + s3) + (s4 + s5 + (s6 + s7));
  const lanes = Float64Array.of(s0, s1, s2, s3, s4, s5, s6, s7);
  for (let i = whole; i < a.length; i++) lanes[i - whole]! += a[i]! * b[i]!;
  return total(lanes);
}

/** The sum of a term of both components. */
function sum(a: Float32Array, b: Float32Array, term: (x: number, y: number) => number): number {
  const lanes = new Float64Array(8);
  for (let i = 0; i < a.length; i++) lanes[i % 8]! += term(a[i]!, b[i]!);
  return total(lanes);
}

/** The square of a vector's length. */
export const squared = (a: Float32Array): number => product(a, a);

/** The cosine from the product of the two squared lengths, 0 where one has no length. */
function cosineOf(a: Float32Array, b: Float32Array, lengths: number): number {
  const norms = Math.sqrt(lengths);
  return norms === 0 ? 0 : Math.fround(product(a, b) / norms);
}

/** The score of rows against one query; `lengthOf` gives a row's squared length, which a set knows already. */
export function scorer(kind: Similarity, query: Float32Array): (row: Float32Array, lengthOf: () => number) => number {
  switch (kind) {
    case "dot": return (row) => Math.fround(product(query, row));
    case "euclidean": return (row) => Math.fround(-Math.sqrt(sum(query, row, (x, y) => (x - y) * (x - y))));
    case "manhattan": return (row) => Math.fround(-sum(query, row, (x, y) => Math.abs(x - y)));
    case "cosine": {
      const own = squared(query);
      return (row, lengthOf) => cosineOf(query, row, own * lengthOf());
    }
  }
}

/** The cosine of the angle between two vectors. */
export function cosine(a: Float32Array, b: Float32Array): number {
  sameLength(a, b);
  return cosineOf(a, b, squared(a) * squared(b));
}

/** The `k` rows that are most alike to a query by cosine, best first. */
export function topK(query: Float32Array, rows: Iterable<Float32Array>, k: number): Hit[] {
  const score = scorer("cosine", query);
  const scores: number[] = [];
  for (const row of rows) {
    sameLength(query, row);
    scores.push(score(row, () => squared(row)));
  }
  return best(scores, k);
}

/** The `k` largest scores, best first; equal ones in the order of their rows, NaN last. */
export function best(scores: ArrayLike<number>, k: number): Hit[] {
  if (!Number.isInteger(k) || k < 0) throw new RangeError(`k has to be a whole number of hits, not ${k}`);
  const hits: Hit[] = [];
  const before = (a: number, b: number) => a > b || (Number.isNaN(b) && !Number.isNaN(a));
  for (let index = 0; index < scores.length && k > 0; index++) {
    const score = scores[index]!;
    if (hits.length === k && !before(score, hits[k - 1]!.score)) continue;
    // The first place whose score is worse: equal ones that came before stay before.
    let low = 0, high = hits.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (before(score, hits[middle]!.score)) high = middle;
      else low = middle + 1;
    }
    if (hits.length === k) hits.pop();
    hits.splice(low, 0, { index, score });
  }
  return hits;
}

/** The `k` best of hits by other scores of the same rows, of which there are `rows`. */
export function again(hits: readonly Hit[], k: number, rows: number, score: (index: number) => number): Hit[] {
  const far = hits.find(({ index }) => !Number.isInteger(index) || index < 0 || index >= rows);
  if (far) throw new IsovecError("InvalidEmbeddings", `a hit is row ${far.index}, and this set has ${rows} rows; take hits of a set of the same rows`);
  const places = hits.map(({ index }) => index).sort((a, b) => a - b);
  return best(places.map(score), k).map(({ index, score }) => ({ index: places[index]!, score }));
}

/**
 * The `k` best rows of several rankings of the same rows, best first, by reciprocal rank fusion: a row's score is the sum of
 * `1 / (60 + rank)` over the rankings that have it, the first rank being 1. Only the order of a ranking counts, so scores of
 * different kinds, such as those of dense and of sparse vectors, need not be alike.
 */
export function fuse(rankings: Iterable<readonly Hit[]>, k: number): Hit[] {
  // Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods", SIGIR 2009.
  const scores = new Map<number, number>();
  for (const ranking of rankings) for (const [before, { index }] of ranking.entries()) scores.set(index, (scores.get(index) ?? 0) + 1 / (60 + 1 + before));
  const rows = [...scores.keys()].sort((a, b) => a - b);
  return best(rows.map((row) => Math.fround(scores.get(row)!)), k).map(({ index, score }) => ({ index: rows[index]!, score }));
}

function sameLength(a: Float32Array, b: Float32Array): void {
  if (a.length !== b.length) throw new IsovecError("IncompatibleIndex", `vectors of ${a.length} and ${b.length} components cannot be compared; they come from different models`);
}
