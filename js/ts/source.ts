import type { ModelConfig } from "./config.js";
import { IsovecError } from "./error.js";
import { HALF, WEIGHTS, listed } from "./weights.js";

/**
 * Where a model comes from: a model id of a hub, the URL of a folder, or its files by their path
 * inside the model (`tokenizer.json`, `1_Pooling/config.json`).
 */
export type ModelSource = string | URL | ReadonlyMap<string, Uint8Array | Blob> | Record<string, Uint8Array | Blob>;

/** How far loading has come. */
export interface Progress {
  /** The file that is under way. */
  file: string;
  /** Its bytes so far. */
  bytes: number;
  /** All its bytes, where the server says. */
  total: number | undefined;
}

/** How files are fetched. */
export interface FetchOptions {
  /** The hub. Default: `https://huggingface.co`. */
  endpoint?: string;
  /** Branch, tag or commit of a model id. Default: `main`. */
  revision?: string;
  /** Sent with every request. */
  headers?: Record<string, string>;
  /** Used instead of the global `fetch`. */
  fetch?: typeof fetch;
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
}

const OPTIONAL = ["sentence_bert_config.json", "config_sentence_transformers.json", "tokenizer_config.json", "special_tokens_map.json"];

/** A source's name for messages. */
export function nameOf(source: ModelSource): string {
  return typeof source === "string" ? source : source instanceof URL ? source.href : "the given files";
}

/** Brings a model's files together: those that are there, or of a folder those that `model` will want. */
export async function gather(source: ModelSource, options: FetchOptions, model: ModelConfig = {}): Promise<Map<string, Uint8Array>> {
  if (typeof source === "string" || source instanceof URL) return download(folderUrl(source, options), options, model);
  const entries = source instanceof Map ? [...source] : Object.entries(source as Record<string, Uint8Array | Blob>);
  const files = new Map<string, Uint8Array>();
  for (const [name, content] of entries) {
    files.set(name, content instanceof Uint8Array ? content : new Uint8Array(await content.arrayBuffer()));
  }
  return files;
}

/** An id is `name` or `owner/name`; whatever is written as a path or URL is a folder of files. */
export function folderUrl(source: string | URL, options: Pick<FetchOptions, "endpoint" | "revision">): string {
  const text = String(source);
  if (source instanceof URL || /^([a-z][a-z0-9+.-]*:)?\/\/|^\.{0,2}\//i.test(text)) return text.endsWith("/") ? text : `${text}/`;
  if (!/^[\w.-]+(\/[\w.-]+)?$/.test(text)) {
    throw new IsovecError("Hub", `${JSON.stringify(text)} is neither a model id (owner/name) nor the URL of a folder (start it with ./, / or https://)`);
  }
  const endpoint = (options.endpoint ?? "https://huggingface.co").replace(/\/+$/, "");
  return `${endpoint}/${text}/resolve/${encodeURIComponent(options.revision ?? "main")}/`;
}

/**
 * Fetches everything side by side. Only `config.json` is waited for: where it lists the folder's
 * files, no other is asked for. The first failure ends the rest.
 */
async function download(folder: string, options: FetchOptions, model: ModelConfig): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  const ending = new AbortController();
  const abort = () => ending.abort(options.signal?.reason);
  options.signal?.addEventListener("abort", abort, { once: true });
  const own = { ...options, signal: ending.signal };
  const take = async (response: Response | undefined, name: string) => {
    if (!response) return undefined;
    const content = await body(response, folder + name, name, own);
    files.set(name, content);
    return content;
  };
  const want = async (name: string, required: boolean) => take(await open(folder + name, required, own), name);
  const list = want("config.json", true).then(listed);
  const has = async (name: string) => (await list)?.has(name) ?? true;
  const wantIfThere = async (name: string) => ((await has(name)) ? want(name, false) : undefined);
  /** The 16-bit file, unless the checkpoint is as small or nobody says how large they are: as natively. */
  const half = async () => {
    const response = (await has(HALF)) ? await open(folder + HALF, false, own) : undefined;
    if (!response) return undefined;
    const checkpoint = await open(folder + WEIGHTS[0], false, own, "HEAD").catch(() => null);
    const smaller = checkpoint ? lengthOf(response) < lengthOf(checkpoint) : checkpoint === undefined;
    if (smaller) return take(response, HALF);
    return void (await response.body?.cancel());
  };
  const weights = async () => {
    if (model.onnx_file !== undefined) return want(model.onnx_file, true);
    if (model.dtype === "auto" && (await half())) return;
    const names = await list;
    // A config.json that was copied from elsewhere lists what another folder has.
    const there = (name: string) => names?.has(name) ?? true;
    const places = [...WEIGHTS.filter(there), ...WEIGHTS.filter((name) => !there(name))];
    for (const [index, name] of places.entries()) {
      if (await want(name, index === places.length - 1)) return;
    }
  };
  const modules = async () => {
    await Promise.all(moduleFolders(await wantIfThere("modules.json")).map((path) => wantIfThere(`${path}/config.json`)));
  };
  try {
    await Promise.all([list, weights(), modules(), want("tokenizer.json", true), ...OPTIONAL.map(wantIfThere)]);
    return files;
  } catch (cause) {
    if (options.signal?.aborted) throw cancelled(options.signal);
    ending.abort(cause);
    throw cause;
  } finally {
    options.signal?.removeEventListener("abort", abort);
  }
}

/** The folders that sentence-transformers' `modules.json` names. */
function moduleFolders(json: Uint8Array | undefined): string[] {
  if (!json) return [];
  try {
    const modules: unknown = JSON.parse(new TextDecoder().decode(json));
    const paths = Array.isArray(modules) ? modules.map((module) => (module as { path?: unknown }).path) : [];
    return paths.filter((path): path is string => typeof path === "string" && /^[\w-]+$/.test(path));
  } catch {
    return []; // The SDK names what is wrong with the file.
  }
}

/** Asks for a file. Nothing where it is not there and need not be. */
async function open(url: string, required: boolean, options: FetchOptions, method = "GET"): Promise<Response | undefined> {
  let response: Response;
  try {
    const init: RequestInit = { method, headers: options.headers ?? {} };
    if (options.signal) init.signal = options.signal;
    response = await (options.fetch ?? fetch)(url, init);
  } catch (cause) {
    if (options.signal?.aborted) throw cancelled(options.signal);
    throw failed(url, `cannot be reached (${String(cause)}); check the address, the network, and the server's CORS headers`, cause);
  }
  // A page instead of a file is what many static hosts answer for a file that is not there.
  const isPage = response.headers.get("content-type")?.startsWith("text/html") ?? false;
  if (response.ok && !isPage) return response;
  await response.body?.cancel();
  if (!required && (isPage || response.status === 404)) return undefined;
  throw failed(url, isPage ? "is a web page and no model file; check the address" : `the server answered ${response.status}; check the model's name, the revision, and that it is public`);
}

/** The file that an answer brings. */
async function body(response: Response, url: string, name: string, options: FetchOptions): Promise<Uint8Array> {
  try {
    return await read(response, name, options);
  } catch (cause) {
    if (options.signal?.aborted) throw cancelled(options.signal);
    throw cause instanceof IsovecError ? cause : failed(url, `broke off (${String(cause)}); try again`, cause);
  }
}

function failed(url: string, detail: string, cause?: unknown): IsovecError {
  return new IsovecError("Hub", `${url}: ${detail}`, { cause });
}

/** Bytes of the file that an answer brings; NaN, which is less than nothing, where it does not say. */
function lengthOf({ headers }: Response): number {
  return headers.has("content-encoding") ? NaN : Number(headers.get("content-length") ?? NaN);
}

/** Reads a body into one array of the right size, so that it is not held twice. */
async function read(response: Response, name: string, options: FetchOptions): Promise<Uint8Array> {
  const length = lengthOf(response);
  const total = Number.isFinite(length) ? length : undefined;
  // In one piece the browser puts it together by itself, in less than half of the time.
  if (!options.onProgress || !response.body) {
    const content = new Uint8Array(await response.arrayBuffer());
    complete(response, content.length, total);
    return content;
  }
  let content = new Uint8Array(total ?? 1 << 16);
  let bytes = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    if (bytes + value.length > content.length) {
      const larger = new Uint8Array(Math.max(content.length * 2, bytes + value.length));
      larger.set(content.subarray(0, bytes));
      content = larger;
    }
    content.set(value, bytes);
    bytes += value.length;
    options.onProgress({ file: name, bytes, total });
  }
  complete(response, bytes, total);
  return bytes === content.length ? content : content.slice(0, bytes);
}

function complete(response: Response, bytes: number, total: number | undefined): void {
  if (total !== undefined && bytes !== total) {
    throw new IsovecError("Hub", `${response.url}: ${bytes} of ${total} bytes arrived; try again`);
  }
}

/** The error of an aborted signal. */
export function cancelled(signal: AbortSignal): IsovecError {
  return new IsovecError("Cancelled", "cancelled", { cause: signal.reason });
}
