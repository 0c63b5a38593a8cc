import type { Matrix } from "./pca.js";
import { random } from "./random.js";

const NEIGHBOURS = 8;
/** Rounds of moving every point. */
export const ROUNDS = 120;
const GRAVITY = 0.1;

/** The nearest rows of each row, nearest first. */
export function neighbours({ values, rows, columns }: Matrix): Int32Array {
  const kept = Math.min(NEIGHBOURS, rows - 1);
  const nearest = new Int32Array(rows * kept);
  const distances = new Float32Array(kept);
  for (let a = 0; a < rows; a++) {
    distances.fill(Infinity);
    const at = a * kept;
    for (let b = 0; b < rows; b++) {
      if (a === b) continue;
      let distance = 0;
      for (let j = 0; j < columns; j++) distance += (values[a * columns + j]! - values[b * columns + j]!) ** 2;
      if (distance >= distances[kept - 1]!) continue;
      let place = kept - 1;
      for (; place > 0 && distances[place - 1]! > distance; place--) {
        distances[place] = distances[place - 1]!;
        nearest[at + place] = nearest[at + place - 1]!;
      }
      distances[place] = distance;
      nearest[at + place] = b;
    }
  }
  return nearest;
}

/** The first two components, scaled to where the layout's forces balance. */
export function start({ values, rows, columns }: Matrix): Float32Array {
  let spread = 0;
  for (let row = 0; row < rows; row++) spread += values[row * columns]! ** 2 + (values[row * columns + 1] ?? 0) ** 2;
  const scale = 4 / Math.sqrt(spread / rows || 1);
  return Float32Array.from({ length: 2 * rows }, (_, i) => (values[(i >> 1) * columns + (i & 1)] ?? 0) * scale);
}

/**
 * Moves points towards their neighbours and away from points that are drawn at random, with forces that fall with the
 * distance. Yields after every few rounds.
 */
export function* settle(points: Float32Array, nearest: Int32Array): Generator<number> {
  const rows = points.length / 2;
  const kept = nearest.length / rows;
  const next = random(2);
  for (let round = 0; round < ROUNDS; round++) {
    const step = 0.5 * (1 - round / ROUNDS);
    for (let a = 0; a < rows; a++) {
      // A little gravity, so that islands do not drift off.
      points[2 * a]! *= 1 - GRAVITY * step;
      points[2 * a + 1]! *= 1 - GRAVITY * step;
      for (let k = 0; k < kept; k++) {
        const near = nearest[a * kept + k]!;
        push(points, a, near, step, (square) => -1 / (1 + square));
        push(points, a, Math.floor(next() * rows), step, (square) => 1 / ((0.1 + square) * (1 + square)));
      }
    }
    if (round % 4 === 3) yield (round + 1) / ROUNDS;
  }
}

/** Moves a point along the line from another by a force of their squared distance. */
function push(points: Float32Array, a: number, b: number, step: number, force: (square: number) => number): void {
  const dx = points[2 * a]! - points[2 * b]!;
  const dy = points[2 * a + 1]! - points[2 * b + 1]!;
  const strength = force(dx * dx + dy * dy);
  points[2 * a]! += step * Math.max(-1, Math.min(1, strength * dx));
  points[2 * a + 1]! += step * Math.max(-1, Math.min(1, strength * dy));
}
