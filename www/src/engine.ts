import { Embedder, type Config, type Downloaded } from "isovec";
import { byId } from "./dom.js";
import { isCancelled } from "./errors.js";
import { configuration, wantGpu } from "./gpu.js";
import { findSource, type Source } from "./model-source.js";
import { goesOn, isolate } from "./offline.js";
import { Signal } from "./signal.js";
import { note } from "./state.js";

/** Where loading the model stands. */
export type EngineState =
  | { kind: "looking" }
  | { kind: "absent"; source: Source; error?: unknown }
  | { kind: "loading"; source: Source; bytes: number; total: number | undefined; cancel: () => void }
  | { kind: "ready"; source: Source; embedder: Embedder; threads: number };

/** Where it stands now. */
export const engine = new Signal<EngineState>({ kind: "looking" });

/** What the model's download brought, once it is known what is kept of it. */
export const downloaded = new Signal<Downloaded | undefined>(undefined);

/** The latest search's milliseconds, for the badge. */
export const latency = new Signal<number | undefined>(undefined);

/** The embedder, where it is ready. */
export function ready(): Embedder | undefined {
  return engine.value.kind === "ready" ? engine.value.embedder : undefined;
}

/** Looks for the model, and loads it where that takes no download. */
export async function findEngine(): Promise<void> {
  const source = await findSource();
  engine.value = { kind: "absent", source };
  const query = goesOn();
  if (query !== undefined) byId<HTMLInputElement>("query").value = query;
  if (source.cached || query !== undefined) await loadEngine();
}

/** Loads the model; its files are fetched where the browser does not keep them. */
export async function loadEngine(): Promise<void> {
  await load(configuration());
}

async function load(config: Config): Promise<void> {
  if (engine.value.kind !== "absent") return;
  const { source } = engine.value;
  const ending = new AbortController();
  const files = new Map<string, { bytes: number; total: number | undefined }>();
  const progress = () => {
    const all = [...files.values()];
    const bytes = all.reduce((sum, file) => sum + file.bytes, 0);
    const known = all.every(({ total }) => total !== undefined);
    const total = source.bytes ?? (known ? all.reduce((sum, { total }) => sum + total!, 0) : undefined);
    engine.value = { kind: "loading", source, bytes, total, cancel: () => ending.abort() };
  };
  progress();
  const started = performance.now();
  let embedder: Embedder;
  try {
    await isolate(byId<HTMLInputElement>("query").value);
    embedder = await Embedder.load(source.source, {
      config,
      signal: ending.signal,
      onProgress: ({ file, bytes, total }) => {
        files.set(file, { bytes, total });
        progress();
      },
    });
  } catch (error) {
    if (!isCancelled(error)) note(`Loading failed: ${String(error)}`);
    engine.value = { kind: "absent", source, error };
    return;
  }
  const seconds = (performance.now() - started) / 1000;
  const { engine: name, provider, version } = embedder.provider();
  note(`${name} ${version} computes on ${provider}, build ${embedder.build}`);
  note(`The model was loaded in ${seconds.toFixed(2)} s`);
  const threads = Number(embedder.effectiveConfig().find(({ name }) => name === "session.intraOpThreads")?.used);
  engine.value = { kind: "ready", source, embedder, threads };
  downloaded.value = await embedder.downloaded();
  if (downloaded.value.problem) note(`The model is not kept for the next visit: ${downloaded.value.problem}`);
}

/** Loads the model anew, with the GPU or without. */
export async function useGpu(wanted: boolean): Promise<void> {
  wantGpu(wanted);
  if (engine.value.kind !== "ready") return;
  const { source, embedder } = engine.value;
  engine.value = { kind: "absent", source };
  await embedder.dispose();
  await load(configuration(wanted));
}
