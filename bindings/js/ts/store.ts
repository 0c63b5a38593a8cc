/**
 * Models that were fetched once, kept in the browser's Cache API, which pages, workers and service workers share.
 *
 * A file is kept in pieces, each of which is there whole or not at all, so that a tab that is closed in the middle of a
 * download leaves what the next one goes on from. A model is complete when its manifest is written, the last of all; it
 * names the state of each file, so that files of two versions are never put together.
 */

/** The name of the cache. */
export const NAME = "isovec";
/** Bytes of a piece. */
export const PIECE = 4 << 20;
/** Keys have to be HTTP addresses. Nobody is asked at this one. */
const KEYS = "https://cache.isovec.invalid/";

const keyOf = (kind: "file" | "piece" | "model", ...names: string[]) => KEYS + [kind, ...names].map(encodeURIComponent).join("/");

/** A file that is kept, or its beginning. */
export interface FileState {
  /** Which state of the file this is: another one of the same address has another. */
  stamp: string;
  bytes: number;
  /** What the server said that changes with the content, where it may be seen. */
  validator: string | null;
  /** Loads in a row that went on with this beginning, and brought no further piece. */
  vain?: number;
}

interface Manifest {
  model: string;
  files: { name: string; url: string; stamp: string; bytes: number }[];
}

/** What is kept of a model. */
export interface CachedFile {
  /** The address of the model's folder. */
  model: string;
  /** The file's path in it. */
  file: string;
  /** Its bytes that are there. */
  bytes: number;
  /** Whether that is all of it. */
  complete: boolean;
}

/** What a model's files were chosen by: the same folder may be fetched in several forms. */
export type Selection = string;

export class Store {
  #cache: Cache;

  private constructor(cache: Cache) {
    this.#cache = cache;
  }

  /** The cache; nothing where there is none, as in node and on pages without TLS. */
  static async open(): Promise<Store | undefined> {
    if (typeof caches === "undefined") return undefined;
    try {
      return new Store(await caches.open(NAME));
    } catch {
      return undefined; // Refused in private windows and frames of other sites.
    }
  }

  /** The files of a model that is complete; nothing where a part of it is missing. `check` sees their sizes before they are read. */
  async model(folder: string, selection: Selection, check: (name: string, bytes: number) => void): Promise<Map<string, Uint8Array<ArrayBuffer>> | undefined> {
    const manifest = await this.#json<Manifest>(keyOf("model", folder, selection));
    if (!manifest) return undefined;
    for (const { name, bytes } of manifest.files) check(name, bytes);
    const contents = await Promise.all(manifest.files.map(async ({ url, stamp, bytes }) => {
      const state = await this.#json<FileState>(keyOf("file", url));
      return state?.stamp === stamp ? this.#read(url, { ...state, bytes }) : undefined;
    }));
    const files = new Map<string, Uint8Array<ArrayBuffer>>();
    for (const [index, content] of contents.entries()) {
      if (!content) return undefined;
      files.set(manifest.files[index]!.name, content);
    }
    return files;
  }

  /** Says that a model is complete. */
  async seal(folder: string, selection: Selection, files: Manifest["files"]): Promise<void> {
    await this.#put(keyOf("model", folder, selection), { model: folder, files } satisfies Manifest);
  }

  /** Takes away what is said of a model and of its files: they turned out to be damaged. */
  async forget(folder: string, selection: Selection): Promise<void> {
    const key = keyOf("model", folder, selection);
    const manifest = await this.#json<Manifest>(key);
    await this.#cache.delete(key);
    await Promise.all((manifest?.files ?? []).map(({ url }) => this.drop(url)));
  }

  /** The beginning of a file, as far as its pieces go without a gap; nothing where not even the first is there. */
  async beginning(url: string): Promise<{ state: FileState; content: Uint8Array<ArrayBuffer>[] } | undefined> {
    const state = await this.#json<FileState>(keyOf("file", url));
    if (!state) return undefined;
    const content: Uint8Array<ArrayBuffer>[] = [];
    for (let piece = 0; piece * PIECE < state.bytes; piece++) {
      const found = await this.#piece(url, state, piece);
      if (!found) break;
      content.push(found);
    }
    return content.length > 0 ? { state, content } : undefined;
  }

  /** Begins to keep a file; what was kept under its address is another state, and no longer valid. */
  async begin(url: string, state: FileState): Promise<void> {
    await this.#put(keyOf("file", url), state);
  }

  /** Keeps a piece of a file. */
  async keep(url: string, state: FileState, piece: number, content: Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#cache.put(keyOf("piece", url, String(piece)), new Response(content, { headers: { "isovec-stamp": state.stamp } }));
  }

  /** Takes a file away, with every piece of it: where one could not be kept, later ones may have been. */
  async drop(url: string): Promise<void> {
    await this.#cache.delete(keyOf("file", url));
    const pieces = (await this.#names()).filter(([kind, address]) => kind === "piece" && address === url);
    await Promise.all(pieces.map(([, , piece]) => this.#cache.delete(keyOf("piece", url, piece!))));
  }

  /** Every file that is kept. */
  async list(): Promise<CachedFile[]> {
    const names = await this.#names();
    const models = names.filter(([kind]) => kind === "model").map(([, folder]) => folder!);
    const listed = names.filter(([kind]) => kind === "file").map(async ([, url]): Promise<CachedFile> => {
      const state = await this.#json<FileState>(keyOf("file", url!));
      const stamps = await Promise.all(names.filter(([kind, of]) => kind === "piece" && of === url).map(async ([, , piece]) => (await this.#cache.match(keyOf("piece", url!, piece!)))?.headers));
      const kept = stamps.filter((headers) => headers?.get("isovec-stamp") === state?.stamp).length;
      const bytes = Math.min(kept * PIECE, state?.bytes ?? 0);
      const folder = models.filter((folder) => url!.startsWith(folder)).sort((a, b) => b.length - a.length)[0] ?? new URL(".", url).href;
      return { model: folder, file: url!.slice(folder.length), bytes, complete: bytes === state?.bytes };
    });
    return (await Promise.all(listed)).sort((a, b) => (a.model + a.file < b.model + b.file ? -1 : 1));
  }

  /** Takes away everything that lies in a folder; everything where none is named. */
  async delete(folder = ""): Promise<void> {
    const theirs = (await this.#names()).filter(([, address]) => address?.startsWith(folder));
    await Promise.all(theirs.map(([kind, ...names]) => this.#cache.delete(keyOf(kind as "file", ...names))));
  }

  /** The keys' parts. */
  async #names(): Promise<string[][]> {
    const keys = await this.#cache.keys();
    return keys.map(({ url }) => url).filter((url) => url.startsWith(KEYS)).map((url) => url.slice(KEYS.length).split("/").map(decodeURIComponent));
  }

  async #read(url: string, state: FileState): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const content = new Uint8Array(state.bytes);
    const pieces = Array.from({ length: Math.ceil(state.bytes / PIECE) }, async (_, piece) => {
      const found = await this.#piece(url, state, piece);
      if (found) content.set(found, piece * PIECE);
      return found !== undefined;
    });
    return (await Promise.all(pieces)).every(Boolean) ? content : undefined;
  }

  /** A piece of this state of a file, if it is there and as long as it has to be. */
  async #piece(url: string, state: FileState, piece: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const response = await this.#cache.match(keyOf("piece", url, String(piece)));
    if (response?.headers.get("isovec-stamp") !== state.stamp) return undefined;
    const content = new Uint8Array(await response.arrayBuffer());
    return content.length === Math.min(PIECE, state.bytes - piece * PIECE) ? content : undefined;
  }

  async #json<T>(key: string): Promise<T | undefined> {
    return (await this.#cache.match(key))?.json() as Promise<T | undefined>;
  }

  async #put(key: string, value: unknown): Promise<void> {
    await this.#cache.put(key, new Response(JSON.stringify(value)));
  }
}
