import { isLocal } from "./address.js";
import { IsovecError } from "./error.js";
import type { Fetching, Listening } from "./host.js";
import { readFile } from "./node.js";
import { expected, paced } from "./pace.js";
import { PIECE, type FileState, type Store } from "./store.js";
import type { Stated } from "./weights.js";

/** A file that was brought. */
export interface Fetched {
  name: string;
  url: string;
  content: Uint8Array<ArrayBuffer>;
  /** Bytes that were there from an earlier, broken download. */
  resumed: number;
  verified: boolean;
  /** Its state in the store, when all its pieces are there; nothing where it is not kept. */
  kept: Promise<FileState | undefined>;
}

/** How the files of one load are fetched. */
export interface Line extends Fetching, Listening {
  store: Store | undefined;
  most: Most;
  /** Hears why something is not kept. */
  notKept: (cause: unknown) => void;
}

/** Asks for a file. Nothing where it is not there and need not be. */
export async function ask(url: string, required: boolean, line: Line, init: RequestInit = {}): Promise<Response | undefined> {
  if (line.offline && !isLocal(url)) {
    throw failed(url, "it was asked for offline, and is not in the cache; load the model once with a network");
  }
  let response: Response;
  try {
    const headers = { ...line.headers, ...(init.headers as Record<string, string> | undefined) };
    response = await fetching(url, { ...init, headers, ...(line.signal && { signal: line.signal }) }, line);
  } catch (cause) {
    line.signal?.throwIfAborted();
    throw failed(url, `cannot be reached (${String(cause)}); check the address, the network, and the server's CORS headers`, cause);
  }
  // A page instead of a file is what many static hosts answer for a file that is not there.
  const isPage = response.headers.get("content-type")?.startsWith("text/html") ?? false;
  // A part that nobody asked for would be taken for the whole.
  const whole = response.ok && ![204, 205, 206].includes(response.status);
  if (whole && !isPage) return response;
  await response.body?.cancel();
  if (!required && (isPage || response.status === 404)) return undefined;
  if (isLocal(url)) throw failed(url, "does not exist; check the folder's address");
  throw failed(url, isPage ? "is a web page and no model file; check the address" : `the server answered ${response.status}; check the model's name, the revision, and that it is public`);
}

async function fetching(url: string, init: RequestInit, line: Line): Promise<Response> {
  if (line.fetch) return line.fetch(url, init);
  const file = readFile(new URL(url));
  try {
    if (!file) return await fetch(url, init);
    const content = await file(init.signal);
    return new Response(init.method === "HEAD" ? null : content, { headers: { "content-length": String(content.length) } });
  } catch (cause) {
    // Without a server to say 404, a file that is not there is one that cannot be fetched.
    const missing = file ? (cause as { code?: string }).code === "ENOENT" : isLocal(url) && !init.signal?.aborted;
    if (missing) return new Response(null, { status: 404 });
    throw cause;
  }
}

/** Brings a file, from where an earlier download of it ended. Nothing where it is not there and need not be. */
export async function bring(url: string, name: string, required: boolean, line: Line, stated?: Promise<Stated | undefined>): Promise<Fetched | undefined> {
  const rest = await resume(url, line, stated);
  if (rest) return finish(rest.response, url, name, line, await stated, rest.state, rest.begun);
  const response = await ask(url, required, line);
  return response && finish(response, url, name, line, await stated);
}

/** The file that an answer brings, of which `begun` is already there. */
export async function finish(response: Response, url: string, name: string, line: Line, stated?: Stated, state = stateOf(response), begun: Uint8Array<ArrayBuffer>[] = []): Promise<Fetched> {
  const pieces = new Pieces(url, state, begun.length, line);
  const resumed = begun.reduce((sum, piece) => sum + piece.length, 0);
  try {
    // What the server says may be wrong, so both are looked at before memory is taken, and the bytes as they come.
    for (const said of [stated?.bytes, state.bytes]) if (said !== undefined) fits(url, said, line.most);
    const content = await read(response, name, url, line, begun, pieces);
    if (stated && stated.bytes !== content.length) throw failed(url, `has ${content.length} bytes where its source states ${stated.bytes}; try again`);
    const digest = stated && (await sha256(content));
    if (digest !== undefined && digest !== stated!.sha256) throw failed(url, `is damaged: its hash is ${digest} where its source states ${stated!.sha256}; it is not kept, try again`);
    return { name, url, content, resumed, verified: digest !== undefined, kept: pieces.all(content) };
  } catch (cause) {
    // Nobody reads on, and a body that nobody reads holds its connection. A body that is being read its reader ended.
    if (!response.body?.locked) void response.body?.cancel().catch(() => {});
    line.signal?.throwIfAborted();
    // Who loads it next, here or in another tab, is not to find it half changed.
    await pieces.settled();
    if (cause instanceof RangeError) throw tooLarge(url, state.bytes, `of which there is too little here (${cause.message})`, cause);
    const error = cause instanceof IsovecError ? cause : failed(url, `broke off (${String(cause)}); try again, what has arrived is kept where that can be`, cause);
    // What broke off is gone on with; what is wrong would be wrong again.
    if (cause === error || (await pieces.vain())) await line.store?.drop(url).catch(() => {});
    throw error;
  }
}

/** Asks for the rest of a file whose beginning is kept. Nothing where there is none, or where it may be of another state. */
async function resume(url: string, line: Line, stated: Promise<Stated | undefined> | undefined): Promise<{ response: Response; state: FileState; begun: Uint8Array<ArrayBuffer>[] } | undefined> {
  const begun = line.cache === "use" && !line.offline ? await line.store?.beginning(url).catch(() => undefined) : undefined;
  if (!begun) return undefined;
  const { state, content } = begun;
  // Where all of it is there, nothing says that it is still what the server has: its end is asked for again.
  if ((content.length - 1) * PIECE + content.at(-1)!.length === state.bytes) content.pop();
  if (content.length === 0) return undefined;
  const from = content.reduce((sum, piece) => sum + piece.length, 0);
  let response: Response;
  try {
    // A range of this form alone is sent to other origins without being asked for leave.
    response = await fetching(url, { headers: { ...line.headers, Range: `bytes=${from}-` }, ...(line.signal && { signal: line.signal }) }, line);
  } catch {
    return undefined; // A host that refuses ranges may answer without.
  }
  const rest = lengthOf(response);
  const validator = validatorOf(response);
  // Without a validator that the page may see, only a hash tells that both parts are of one state.
  // Where it may be seen, it says which part this is.
  const range = response.headers.get("content-range");
  const there = range === null || range.startsWith(`bytes ${from}-`);
  const same = validator === null && state.validator === null ? (await stated) !== undefined : validator === state.validator;
  if (response.status === 206 && from + rest === state.bytes && there && same) return { response, state, begun: content };
  await response.body?.cancel();
  return undefined;
}

/** Loads in a row that may fail to add a piece to what is kept of a file, before it is fetched whole. */
const TRIES = 3;

/** Writes the pieces of a file as they arrive. What goes wrong with that is never a reason not to load the file. */
class Pieces {
  #next: number;
  #began: Promise<void> | undefined;
  #puts: Promise<void>[] = [];
  #dropped: Promise<void> | undefined;

  constructor(
    readonly url: string,
    readonly state: FileState,
    /** Pieces that are there already. */
    readonly there: number,
    readonly line: Line,
  ) {
    this.#next = there;
    if (there > 0) this.#began = Promise.resolve();
  }

  /** Keeps what is whole of the first `bytes`. */
  arrived(content: Uint8Array<ArrayBuffer>, bytes: number, end = false): void {
    const { store } = this.line;
    if (!store || this.#dropped || !Number.isFinite(this.state.bytes)) return;
    this.#began ??= store.begin(this.url, this.state).catch((cause) => this.#fail(cause));
    try {
      while ((this.#next + 1) * PIECE <= bytes || (end && this.#next * PIECE < bytes)) {
        const [piece, began] = [this.#next++, this.#began];
        // Copied here: the array is somebody else's when the put begins.
        const part = content.slice(piece * PIECE, Math.min((piece + 1) * PIECE, bytes));
        const put = async () => (this.#dropped ? undefined : store.keep(this.url, this.state, piece, part));
        this.#puts.push(began.then(put).catch((cause) => this.#fail(cause)));
      }
    } catch (cause) {
      this.#fail(cause); // There is no memory for a copy.
    }
  }

  /** Keeps the rest, and says when everything is there. */
  async all(content: Uint8Array<ArrayBuffer>): Promise<FileState | undefined> {
    if (!this.line.store) return undefined;
    const restated = this.#began !== undefined && this.state.bytes !== content.length;
    this.state.bytes = content.length;
    if (restated) this.#puts.push(this.#began!.then(() => this.line.store!.begin(this.url, this.state)).catch((cause) => this.#fail(cause)));
    this.arrived(content, content.length, true);
    await this.settled();
    return this.#dropped ? undefined : this.state;
  }

  /** Whether going on after the same beginning has brought nothing, time and again: then the beginning is to blame. */
  async vain(): Promise<boolean> {
    const { store } = this.line;
    if (!store || this.there === 0 || this.#next > this.there) return false;
    this.state.vain = (this.state.vain ?? 0) + 1;
    await store.begin(this.url, this.state).catch(() => {});
    return this.state.vain >= TRIES;
  }

  /** Settled when nothing is written any more; what is taken away after that may be what another tab has written. */
  async settled(): Promise<void> {
    await this.#began;
    await Promise.all(this.#puts);
    await this.#dropped;
  }

  #fail(cause: unknown): void {
    if (this.#dropped) return;
    this.line.notKept(cause);
    // Half of a file takes the room that the next one may need.
    this.#dropped = Promise.allSettled(this.#puts).then(() => this.line.store?.drop(this.url)).catch(() => {});
  }
}

/** Reads a body into one array of the right size, so that it is not held twice. */
async function read(response: Response, name: string, url: string, line: Line, begun: Uint8Array<ArrayBuffer>[], pieces: Pieces): Promise<Uint8Array<ArrayBuffer>> {
  const before = begun.reduce((sum, piece) => sum + piece.length, 0);
  const length = before + lengthOf(response);
  let total = Number.isFinite(length) ? length : undefined;
  const progress = (bytes: number) => line.onProgress?.({ file: name, bytes, total, cached: false });
  const complete = (bytes: number) => {
    if (total !== undefined && bytes !== total) throw new Error(`${bytes} of ${total} bytes arrived`);
  };
  // Another origin's answer may be compressed without a word: what is stated is then the length of the compressed bytes.
  const hidden = response.type === "cors" && !response.headers.has("content-encoding");
  // In one piece the browser puts it together by itself, in less than half of the time. It also keeps to the length that a
  // server states; where none is stated, or somebody else answers, the body may be of any length.
  const bounded = total !== undefined && !hidden && !line.fetch;
  if (before === 0 && (!response.body || (bounded && !line.progress && !(line.store && total! > PIECE)))) {
    const whole = response.arrayBuffer();
    const content = new Uint8Array(await (total === undefined ? whole : paced(whole, expected(total))));
    fits(url, content.length, line.most);
    complete(content.length);
    progress(content.length);
    // What only looks like a response may have handed out an array of its own.
    return response instanceof Response ? content : content.slice();
  }
  let content = new Uint8Array(total ?? 1 << 16);
  let bytes = 0;
  const take = (value: Uint8Array) => {
    fits(url, bytes + value.length, line.most);
    if (bytes + value.length > content.length) {
      if (total !== undefined && !hidden) throw new Error(`more than the ${total} bytes arrived that it was to have`);
      if (total !== undefined) [total, pieces.state.bytes] = [undefined, NaN];
      const larger = new Uint8Array(Math.min(Math.max(content.length * 2, bytes + value.length), line.most.bytes));
      larger.set(content.subarray(0, bytes));
      content = larger;
    }
    content.set(value, bytes);
    bytes += value.length;
  };
  begun.forEach(take);
  const reader = response.body!.getReader();
  const all = async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      take(value);
      if (total !== undefined) pieces.arrived(content, bytes);
      progress(bytes);
    }
  };
  try {
    await paced(all(), () => bytes);
    complete(bytes);
  } catch (cause) {
    // What comes after that nobody wants.
    void reader.cancel(cause).catch(() => {});
    throw cause;
  }
  return bytes === content.length ? content : content.slice(0, bytes);
}

/** Bytes of the file that an answer brings; NaN, which is less than nothing, where it does not say. */
export function lengthOf({ headers }: Response): number {
  return headers.has("content-encoding") ? NaN : Number(headers.get("content-length") ?? NaN);
}

function validatorOf({ headers }: Response): string | null {
  return headers.get("etag") ?? headers.get("last-modified");
}

function stateOf(response: Response): FileState {
  return { stamp: crypto.randomUUID?.() ?? String(Math.random()), bytes: lengthOf(response), validator: validatorOf(response) };
}

/** The hash as hubs write it; nothing where the browser has none to offer, as on pages without TLS. */
async function sha256(content: Uint8Array<ArrayBuffer>): Promise<string | undefined> {
  const digest = await globalThis.crypto?.subtle?.digest("SHA-256", content);
  return digest && Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function failed(url: string, detail: string, cause?: unknown): IsovecError {
  return new IsovecError("Hub", `${url}: ${detail}`, { cause });
}

/** Bytes that a file may have, and who says so: it lies in memory while the model is loaded. */
export interface Most {
  bytes: number;
  why: string;
}

/** What the configuration allows, and no more than the module can count: its numbers have 32 bits. */
export function allowed(limit: unknown): Most {
  // Another than a number is refused where the configuration is read.
  if (typeof limit === "number" && limit < 2 ** 32) return { bytes: Math.max(0, Math.floor(limit)), why: `memory.memoryLimit allows ${limit}` };
  return { bytes: 2 ** 32 - 1, why: `${2 ** 32 - 1} are the most that a page can read` };
}

/** What a file may have that lies beside the weights (Rust: `MAX_SIDE_BYTES`). */
export function beside(most: Most): Most {
  const bytes = 64 << 20;
  return most.bytes <= bytes ? most : { bytes, why: `${bytes} are the most for a file beside the weights` };
}

/** Refuses a file that would take more memory than it may, before it takes any. */
export function fits(name: string, bytes: number, most: Most): void {
  if (bytes > most.bytes) throw tooLarge(name, bytes, `and ${most.why}`);
}

function tooLarge(name: string, bytes: number, why: string, cause?: unknown): IsovecError {
  const size = Number.isFinite(bytes) ? `${bytes} bytes` : "its bytes";
  return new IsovecError("InputTooLarge", `${name} takes ${size} of memory, ${why}; take a smaller model, or a smaller form of this one (isovec export --dtype int8)`, { cause });
}
