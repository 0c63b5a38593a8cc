import { IsovecError } from "./error.js";

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

const REQUIRED = ["config.json", "tokenizer.json"];
const OPTIONAL = ["sentence_bert_config.json", "config_sentence_transformers.json", "tokenizer_config.json", "special_tokens_map.json"];
const WEIGHTS = ["model.safetensors", "onnx/model.onnx", "model.onnx"];

/** A source's name for messages. */
export function nameOf(source: ModelSource): string {
  return typeof source === "string" ? source : source instanceof URL ? source.href : "the given files";
}

/** Brings a model's files together. */
export async function gather(source: ModelSource, options: FetchOptions): Promise<Map<string, Uint8Array>> {
  if (typeof source === "string" || source instanceof URL) return download(folderUrl(source, options), options);
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

/** Fetches everything side by side; the weights, nearly all of the bytes, wait for nothing. The first failure ends the rest. */
async function download(folder: string, options: FetchOptions): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  const ending = new AbortController();
  const abort = () => ending.abort(options.signal?.reason);
  options.signal?.addEventListener("abort", abort, { once: true });
  const own = { ...options, signal: ending.signal };
  const want = async (name: string, required: boolean) => {
    const content = await file(folder, name, required, own);
    if (content) files.set(name, content);
    return content;
  };
  const weights = async () => {
    for (const [index, name] of WEIGHTS.entries()) {
      if (await want(name, index === WEIGHTS.length - 1)) return;
    }
  };
  const modules = async () => {
    await Promise.all(moduleFolders(await want("modules.json", false)).map((path) => want(`${path}/config.json`, false)));
  };
  try {
    await Promise.all([weights(), modules(), ...REQUIRED.map((name) => want(name, true)), ...OPTIONAL.map((name) => want(name, false))]);
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

async function file(folder: string, name: string, required: boolean, options: FetchOptions): Promise<Uint8Array | undefined> {
  const url = folder + name;
  const fail = (detail: string, cause?: unknown) => new IsovecError("Hub", `${url}: ${detail}`, { cause });
  let response: Response;
  try {
    const init: RequestInit = { headers: options.headers ?? {} };
    if (options.signal) init.signal = options.signal;
    response = await (options.fetch ?? fetch)(url, init);
  } catch (cause) {
    if (options.signal?.aborted) throw cancelled(options.signal);
    throw fail(`cannot be reached (${String(cause)}); check the address, the network, and the server's CORS headers`, cause);
  }
  // A page instead of a file is what many static hosts answer for a file that is not there.
  const isPage = response.headers.get("content-type")?.startsWith("text/html") ?? false;
  if (!response.ok || isPage) {
    await response.body?.cancel();
    if (!required && (isPage || response.status === 404)) return undefined;
    throw fail(isPage ? "is a web page and no model file; check the address" : `the server answered ${response.status}; check the model's name, the revision, and that it is public`);
  }
  try {
    return await read(response, name, options);
  } catch (cause) {
    if (options.signal?.aborted) throw cancelled(options.signal);
    throw cause instanceof IsovecError ? cause : fail(`broke off (${String(cause)}); try again`, cause);
  }
}

/** Reads a body into one array of the right size, so that it is not held twice. */
async function read(response: Response, name: string, options: FetchOptions): Promise<Uint8Array> {
  const encoded = response.headers.has("content-encoding");
  const length = Number(response.headers.get("content-length") ?? NaN);
  const total = Number.isFinite(length) && !encoded ? length : undefined;
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
