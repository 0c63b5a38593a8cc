import type { Matrix } from "./pca.js";
import { random } from "./random.js";

const ROUNDS = 30;
/** Words that may stand in any text, and name nothing. */
const VAGUE = new Set(
  ("again almost always another away back become before begin better between both came carry come comes days does during " +
  "each enough even ever every everybody everything falls find first found from gave give gives good half hold itself " +
  "keep keeps kept know last later left less let long look made make makes many mean might move much must need needs " +
  "never nobody often once open people place rather really right said same side small somebody something soon still take " +
  "takes tell than thing things think through time today told took turn turned turns under until used ways well went " +
  "whether whose without work world year years yet").split(" "));

/** The cluster of each row, by k-means from centres that are drawn far apart (k-means++). */
export function clusters({ values, rows, columns }: Matrix, k: number): Uint8Array {
  const next = random(3);
  const centres = new Float32Array(k * columns);
  const copy = (row: number, to: number) => centres.set(values.subarray(row * columns, (row + 1) * columns), to * columns);
  const distance = (row: number, centre: number) => {
    let sum = 0;
    for (let j = 0; j < columns; j++) sum += (values[row * columns + j]! - centres[centre * columns + j]!) ** 2;
    return sum;
  };
  copy(Math.floor(next() * rows), 0);
  const nearest = new Float32Array(rows).fill(Infinity);
  for (let centre = 1; centre < k; centre++) {
    let all = 0;
    for (let row = 0; row < rows; row++) all += nearest[row] = Math.min(nearest[row]!, distance(row, centre - 1));
    let left = next() * all;
    let row = 0;
    while (row < rows - 1 && (left -= nearest[row]!) > 0) row++;
    copy(row, centre);
  }
  const of = new Uint8Array(rows);
  for (let round = 0; round < ROUNDS; round++) {
    let moved = 0;
    for (let row = 0; row < rows; row++) {
      let best = 0;
      let least = Infinity;
      for (let centre = 0; centre < k; centre++) {
        const one = distance(row, centre);
        if (one < least) [best, least] = [centre, one];
      }
      if (of[row] !== best) moved++;
      of[row] = best;
    }
    if (round > 0 && moved === 0) break;
    const sizes = new Uint32Array(k);
    for (const centre of of) sizes[centre]!++;
    // A cluster that lost its last row keeps its centre.
    for (let i = 0; i < centres.length; i++) if (sizes[Math.floor(i / columns)]! > 0) centres[i] = 0;
    for (let row = 0; row < rows; row++) {
      for (let j = 0; j < columns; j++) centres[of[row]! * columns + j]! += values[row * columns + j]! / sizes[of[row]!]!;
    }
  }
  return of;
}

/** Two words for each cluster: those that are frequent in it and rare in the whole. */
export function names(passages: readonly string[][], of: Uint8Array, k: number): string[] {
  const everywhere = new Map<string, number>();
  const inside = Array.from({ length: k }, () => new Map<string, number>());
  for (const [row, words] of passages.entries()) {
    for (const word of new Set(words)) {
      if (word.length < 4 || VAGUE.has(word)) continue;
      everywhere.set(word, (everywhere.get(word) ?? 0) + 1);
      const own = inside[of[row]!]!;
      own.set(word, (own.get(word) ?? 0) + 1);
    }
  }
  return inside.map((own) => {
    const scored = [...own].map(([word, times]) => ({ word, score: times * Math.log(passages.length / everywhere.get(word)!) }));
    return scored.sort((a, b) => b.score - a.score).slice(0, 2).map(({ word }) => word).join(", ") || "others";
  });
}
