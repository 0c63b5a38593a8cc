// The script of a worker that holds one model, and answers the calls of the page that started it.
import { decodes } from "./decode.js";
import type { Host, Progress, ReadingHost } from "./host.js";
import { openReader } from "./local-reader.js";
import { open } from "./local.js";
import { failure, type Call, type FromWorker, type ToWorker } from "./messages.js";
import { Pixels } from "./pixels.js";
import { tract } from "./tract.js";
import { ready } from "./wasm.js";

let host: Host | undefined;
let reader: ReadingHost | undefined;
let give!: (module: WebAssembly.Module) => void;
const module = new Promise<WebAssembly.Module>((resolve) => (give = resolve));
/** Calls that are under way. */
const running = new Map<number, AbortController>();

const say = (message: FromWorker, transfer: Transferable[] = []) => postMessage(message, { transfer });

onmessage = async ({ data }: MessageEvent<ToWorker>) => {
  if (data.call === "cancel") return running.get(data.id)?.abort();
  if (data.call === "module") return give(data.module);
  const { id } = data;
  const controller = new AbortController();
  running.set(id, controller);
  try {
    const { value, transfer } = await answer(data, controller.signal);
    say({ id, value }, transfer);
  } catch (thrown) {
    say({ id, error: failure(thrown) });
  } finally {
    running.delete(id);
  }
};

async function answer(call: Call, signal: AbortSignal): Promise<{ value: unknown; transfer?: Transferable[] }> {
  if (call.call === "load") {
    const { request, build, glue: at } = call;
    const onProgress = request.fetching.progress ? (progress: Progress) => say({ progress }) : undefined;
    const [listening, loading] = [{ signal, onProgress }, ready(request, { build, module, at })];
    if (request.reading) reader = await openReader(request, listening, loading, { decode: decodes() });
    else host = await open(request, listening, loading, { tract, pixels: Pixels.of });
    return { value: (host ?? reader)!.about };
  }
  if (reader) {
    switch (call.call) {
      case "read": return { value: await reader.read(call.picture, call.at, signal) };
      case "downloaded": return { value: await reader.downloaded() };
      case "dispose": return { value: await reader.dispose() };
    }
  }
  if (!host || call.call === "read") throw new Error(`no model is loaded that could ${call.call}`);
  switch (call.call) {
    case "run": {
      const rows = await host.run(call.items, call.asked, signal);
      const { values, tokenCounts, truncated, offsets, indices } = rows;
      const arrays = [values, tokenCounts, truncated, offsets, indices];
      return { value: rows, transfer: arrays.flatMap((array) => (array ? [array.buffer] : [])) };
    }
    case "countTokens": return { value: await host.countTokens(call.text) };
    case "tokens": return { value: await host.tokens(call.ids) };
    case "stats": return { value: await host.stats() };
    case "startProfile": return { value: await host.startProfile(call.options) };
    case "finishProfile": return { value: await host.finishProfile() };
    case "downloaded": return { value: await host.downloaded() };
    case "dispose": return { value: await host.dispose() };
  }
}

say({ ready: true });
// Nobody tells a page that a worker was ended. A lock that the worker holds is free when it is gone.
if (globalThis.navigator?.locks && crypto.randomUUID) {
  const lives = `isovec worker ${crypto.randomUUID()}`;
  const hold = () => new Promise<never>(() => say({ lives }));
  navigator.locks.request(lives, hold).catch(() => {}); // Refused in frames of other sites.
}
