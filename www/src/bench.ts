import { announce, byId, download, tableRow } from "./dom.js";
import { engine } from "./engine.js";
import { isCancelled, showError } from "./errors.js";
import { count, ms } from "./format.js";
import { PageError } from "./page-error.js";
import { shapes } from "./shapes.js";

const WARM_UP = 3;
const go = byId<HTMLButtonElement>("bench-go");
const save = byId<HTMLButtonElement>("bench-save");
const progress = byId("bench-state");
let ending: AbortController | undefined;

interface Result {
  name: string;
  texts: number;
  tokens: number;
  /** Milliseconds of each repeat, in order. */
  milliseconds: number[];
  median: number;
}

/** Makes the part work that measures this browser. */
export function startBench(): void {
  go.onclick = async () => {
    if (ending) return ending.abort();
    ending = new AbortController();
    const failure = byId("bench-error");
    showError(failure);
    go.textContent = "Stop";
    save.hidden = true;
    try {
      await measure(ending.signal);
    } catch (error) {
      progress.textContent = isCancelled(error) ? "Stopped." : "";
      showError(failure, error);
    } finally {
      ending = undefined;
      go.textContent = "Measure";
    }
  };
}

async function measure(signal: AbortSignal): Promise<void> {
  const state = engine.value;
  if (state.kind !== "ready") throw new PageError("The model is not there yet.", "Start it above, then measure.");
  const { embedder, threads } = state;
  const rows = byId("bench-rows");
  rows.replaceChildren();
  byId("bench-table").hidden = false;
  const results: Result[] = [];
  for (const { name, texts, tokens, repeats } of await shapes(embedder)) {
    const milliseconds: number[] = [];
    for (let turn = -WARM_UP; turn < repeats; turn++) {
      progress.textContent = `${name}: ${turn < 0 ? "warming up" : `${turn + 1} of ${repeats}`}`;
      const started = performance.now();
      await embedder.embed(texts, { signal });
      if (turn >= 0) milliseconds.push(performance.now() - started);
    }
    const sorted = milliseconds.toSorted((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)]!;
    results.push({ name, texts: texts.length, tokens, milliseconds, median });
    const range = `${ms(sorted[0]!)} – ${ms(sorted.at(-1)!)}`;
    rows.append(tableRow(true, name, ms(median), range, count((tokens / median) * 1000), count((texts.length / median) * 1000)));
  }
  const { build, worker } = embedder;
  const figures = {
    isovec: embedder.provider(), build, worker, precision: embedder.fingerprint().precision, threads,
    processors: navigator.hardwareConcurrency, isolated: crossOriginIsolated, browser: navigator.userAgent,
    at: new Date().toISOString(), warmUp: WARM_UP, results,
  };
  save.hidden = false;
  save.onclick = () => download("isovec-bench.json", JSON.stringify(figures, null, 2));
  progress.textContent = "Done. A quiet machine gives the truest figures.";
  announce("The measurement is done.");
}
