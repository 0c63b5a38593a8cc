import type { Downloaded, Embedder, Stats } from "isovec";
import { Chart } from "./chart.js";
import { byId, make, tableRow } from "./dom.js";
import { downloaded, engine, latency, ready, useGpu, type EngineState } from "./engine.js";
import { bytes, count, ms, plural } from "./format.js";
import { hasGpu, wantsGpu } from "./gpu.js";
import { events, note } from "./state.js";
import { onTab, open, show } from "./tabs.js";

const EVERY_MS = 1000;
const badge = byId<HTMLButtonElement>("badge");
const charts = {
  latency: new Chart("A call takes", ms, ["median", "90 of 100", "99 of 100"]),
  rate: new Chart("Tokens a second", count),
  queue: new Chart("Queue", count, ["texts waiting", "batches running"]),
  pool: new Chart("Pooled buffers", bytes),
  reused: new Chart("Buffers that were reused", (value) => `${Math.round(value * 100)} %`),
  memory: new Chart("WebAssembly memory", bytes),
};
let looking = false;
let last: { at: number; tokens: number } | undefined;
let fallbacks = 0;

/** Makes the badge and what is behind it. */
export function startEnginePanel(): void {
  byId("charts").append(...Object.values(charts).map(({ element }) => element));
  badge.onclick = () => {
    show("engine");
    byId("panel-engine").focus();
  };
  const gpu = byId<HTMLInputElement>("gpu");
  gpu.checked = wantsGpu();
  gpu.onchange = () => void useGpu(gpu.checked);
  void hasGpu().then((has) => (byId("gpu-choice").hidden = !has));
  engine.watch((state) => {
    showBadge();
    gpu.disabled = state.kind === "loading" || state.kind === "looking";
    byId("engine-none").hidden = state.kind === "ready";
    byId("engine-some").hidden = state.kind !== "ready";
    if (state.kind === "ready") describe(state);
  });
  downloaded.watch((now) => now && describeDownload(now));
  latency.watch(showBadge);
  events.watch((all) => {
    const time = (at: Date) => make("time", { dateTime: at.toISOString() }, at.toLocaleTimeString());
    byId("events").replaceChildren(...all.toReversed().map(({ at, what }) => make("li", {}, time(at), " ", what)));
  });
  onTab((name) => name === "engine" && void look());
  setInterval(() => open === "engine" && !document.hidden && void look(), EVERY_MS);
}

function showBadge(): void {
  const state = engine.value;
  const words = state.kind === "ready"
    ? onGpu(state.embedder) ? "WebGPU" : `${state.embedder.build}${state.threads > 1 ? ` × ${state.threads}` : ""}`
    : { looking: "…", absent: "not loaded", loading: "loading" }[state.kind];
  badge.dataset.kind = state.kind;
  byId("badge-engine").textContent = words;
  byId("badge-latency").textContent = latency.value === undefined ? "" : ms(latency.value);
}

/** Whether a GPU computes. */
const onGpu = (embedder: Embedder) => embedder.provider().engine === "gpu";

function describe({ embedder, threads }: EngineState & { kind: "ready" }): void {
  const { engine: name, provider, version } = embedder.provider();
  const { precision } = embedder.fingerprint();
  const facts: [string, string][] = [
    ["Engine", `${name} ${version} on ${provider}`],
    ["WebAssembly build", embedder.build],
    ["Threads", String(threads)],
    ["Runs in", embedder.worker ? "a worker of its own" : "the page's own thread"],
    ["Precision of the weights", precision],
    ["Vectors", `${embedder.dimension} components, compared by ${embedder.metric}`],
    ["Longest text", `${embedder.maxLength} tokens`],
    ["Cross-origin isolated", crossOriginIsolated ? "yes: threads share memory" : "no: one thread"],
  ];
  byId("facts").replaceChildren(...facts.map(fact));
  byId("config").replaceChildren(...embedder.effectiveConfig().map(({ name, asked, used, why, honoured }) =>
    tableRow(true, name, asked ?? "–", honoured ? used : `${used} (not as asked)`, why)));
}

function fact([term, value]: [string, string]): HTMLElement {
  return make("div", {}, make("dt", {}, term), make("dd", {}, value));
}

function describeDownload({ files, bytes: fetched, verified, store, problem }: Downloaded): void {
  const all = bytes(files.reduce((sum, file) => sum + file.bytes, 0));
  const came = fetched === 0 ? "kept here from an earlier visit" : `${bytes(fetched)} came over the network`;
  const checked = verified > 0 ? `, ${plural(verified, "file")} checked against their hash` : "";
  const kept = store === "none" ? `; not kept for the next visit${problem ? `: ${problem}` : ""}` : "";
  byId("facts").append(fact(["Model files", `${all}; ${came}${checked}${kept}`]));
}

/** One look at the counters. */
async function look(): Promise<void> {
  const embedder = ready();
  if (!embedder || looking) return;
  looking = true;
  try {
    plot(await embedder.stats());
  } catch (error) {
    note(`The counters cannot be read: ${String(error)}`);
  } finally {
    looking = false;
  }
}

function plot(stats: Stats): void {
  const now = performance.now();
  const tokens = stats.tokens.real;
  const { p50, p90, p99 } = stats.stages.embed;
  charts.latency.add(p50 * 1000, p90 * 1000, p99 * 1000);
  charts.rate.add(last ? (Math.max(0, tokens - last.tokens) / (now - last.at)) * 1000 : 0);
  charts.queue.add(stats.queue.texts, stats.sessions.inUse);
  const pool = stats.memoryPool;
  charts.pool.add(pool.currentMemoryBytes);
  charts.reused.add(pool.poolHits / Math.max(1, pool.requests));
  charts.memory.add(stats.memory.wasmBytes);
  last = { at: now, tokens };
  for (const { from, to, cause } of stats.provider.fallbacks.slice(fallbacks)) note(`Fallback from ${from} to ${to}: ${cause}`);
  fallbacks = stats.provider.fallbacks.length;
  const { calls } = stats;
  const padding = count(stats.tokens.padding);
  byId("calls").textContent =
    `Texts: ${count(calls.texts)}. Batches: ${count(calls.batches)}. Tokens: ${count(tokens)}, and ${padding} of padding. ` +
    `Calls that failed: ${count(calls.failed)}, that were cancelled: ${count(calls.cancelled)}.`;
}
