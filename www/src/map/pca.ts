import { random } from "./random.js";

/** Vectors one after another. */
export interface Matrix {
  values: Float32Array;
  rows: number;
  columns: number;
}

const ROUNDS = 12;

/**
 * The first principal components of rows, by power iteration of a block: all directions are multiplied with the
 * covariance at once, which is never written down, and made orthogonal again after each round.
 */
export function principalComponents({ values, rows, columns }: Matrix, wanted: number): Matrix {
  const kept = Math.min(wanted, columns, rows);
  const next = random(1);
  const mean = new Float64Array(columns);
  for (let i = 0; i < values.length; i++) mean[i % columns]! += values[i]! / rows;
  const centred = values.map((value, i) => value - mean[i % columns]!);
  let directions = Array.from({ length: kept }, () => Float64Array.from({ length: columns }, () => next() - 0.5));
  orthogonalise(directions);
  for (let round = 0; round < ROUNDS; round++) {
    const image = directions.map(() => new Float64Array(columns));
    for (let row = 0; row < rows; row++) {
      const at = row * columns;
      for (const [k, direction] of directions.entries()) {
        const scale = dot(centred, at, direction);
        const sum = image[k]!;
        for (let j = 0; j < columns; j++) sum[j]! += scale * centred[at + j]!;
      }
    }
    directions = image;
    orthogonalise(directions);
  }
  const projected = new Float32Array(rows * kept);
  for (let row = 0; row < rows; row++) {
    for (let k = 0; k < kept; k++) projected[row * kept + k] = dot(centred, row * columns, directions[k]!);
  }
  return { values: projected, rows, columns: kept };
}

function dot(values: Float32Array, at: number, direction: Float64Array): number {
  let sum = 0;
  for (let j = 0; j < direction.length; j++) sum += values[at + j]! * direction[j]!;
  return sum;
}

/** Gram and Schmidt's, in place; a direction that the others span becomes zero. */
function orthogonalise(directions: Float64Array[]): void {
  for (const [k, one] of directions.entries()) {
    for (const other of directions.slice(0, k)) {
      const shared = one.reduce((sum, value, j) => sum + value * other[j]!, 0);
      for (let j = 0; j < one.length; j++) one[j]! -= shared * other[j]!;
    }
    const length = Math.hypot(...one);
    for (let j = 0; j < one.length; j++) one[j] = length > 1e-9 ? one[j]! / length : 0;
  }
}
