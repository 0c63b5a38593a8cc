// Computes the map beside the page, which stays free to answer.
import { clusters, names } from "./clusters.js";
import { neighbours, settle, start } from "./layout.js";
import { principalComponents, type Matrix } from "./pca.js";

/** What the page asks for. */
export interface MapRequest {
  vectors: Matrix;
  /** The words of each passage. */
  words: string[][];
}

/** What it gets: points as they settle, and once their clusters. */
export interface MapAnswer {
  points: Float32Array;
  /** From 0 to 1. */
  settled: number;
  clusters?: { of: Uint8Array; names: string[] };
  milliseconds: number;
}

const COMPONENTS = 16;
const MOST_CLUSTERS = 10;

onmessage = ({ data: { vectors, words } }: MessageEvent<MapRequest>) => {
  const started = performance.now();
  const answer = (settled: number, points: Float32Array, found?: MapAnswer["clusters"]) =>
    postMessage({ points, settled, milliseconds: performance.now() - started, ...(found && { clusters: found }) } satisfies MapAnswer);
  const components = principalComponents(vectors, COMPONENTS);
  const k = Math.max(1, Math.min(MOST_CLUSTERS, Math.round(Math.sqrt(vectors.rows / 4))));
  const of = clusters(components, k);
  const points = start(components);
  answer(0, points, { of, names: names(words, of, k) });
  for (const settled of settle(points, neighbours(components))) answer(settled, points);
};
