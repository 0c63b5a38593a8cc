import { folderOf, isLocal, type Address } from "./address.js";
import type { ModelConfig } from "./config.js";
import { allowed, ask, beside, bring, finish, fits, lengthOf, type Fetched, type Line, type Most } from "./download.js";
import { IsovecError } from "./error.js";
import type { Downloaded, Files, Listening, Progress, Request } from "./host.js";
import type { Answer, Fact, Known, Need, Rules } from "./rules.js";
import { configOf } from "./native.js";
import { Store } from "./store.js";
import { likely, listed, type Stated } from "./weights.js";

/**
 * Where a model comes from: a model id of a hub, the URL of a folder, its files by their path inside the model
 * (`tokenizer.json`, `1_Pooling/config.json`), or the folder of an input element
 * (`<input type="file" webkitdirectory>`).
 */
export type ModelSource = string | URL | ReadonlyMap<string, FileContent> | Record<string, FileContent> | FileList | readonly File[];

/** A file that is there. A `Blob` is not copied. */
export type FileContent = Uint8Array | ArrayBuffer | Blob;

/** How files are fetched. */
export interface FetchOptions {
  /** The hub. Default: `https://huggingface.co`. */
  endpoint?: string;
  /** Branch, tag or commit of a model id. Default: `main`. A commit never changes; of a branch the first fetched state stays cached. */
  revision?: string;
  /** Sent with every request. */
  headers?: Record<string, string>;
  /** Used instead of the global `fetch`, in the thread that loads. */
  fetch?: typeof fetch;
  /** Make no request; load from the cache or fail. Default: `false`. */
  offline?: boolean;
  /**
   * `use`: a cached model is not requested again. `reload`: it is fetched again and cached. `off`: the cache is not
   * used. Default: `use`.
   */
  cache?: "use" | "reload" | "off";
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
}

const CONFIG = "config.json";
const MODULES = "modules.json";
/** What most models have, asked for before the rules are loaded that say what is to be taken. */
const USUAL = [MODULES, "sentence_bert_config.json", "config_sentence_transformers.json", "tokenizer_config.json", "special_tokens_map.json"];
const TOKENIZER = "tokenizer.json";
/** The version of the rules, which what is kept was chosen by. */
const RULES = 4;

/** A source's name for messages, and where its files are. */
export function resolve(source: ModelSource, options: FetchOptions): { name: string; files: Files } {
  if (typeof source === "string" || source instanceof URL) return { name: String(source), files: folderOf(source, options) };
  if (typeof source !== "object" || source === null) {
    throw new IsovecError("Config", `a model comes from a model id, the URL of a folder, or files by their path; ${String(source)} is none of them`);
  }
  const contents = new Map<string, Uint8Array | Blob>();
  for (const [name, content] of entries(source)) {
    const isFile = content instanceof Uint8Array || content instanceof ArrayBuffer || content instanceof Blob;
    if (!isFile) throw new IsovecError("Config", `the model's file ${name} has to be a Uint8Array, an ArrayBuffer or a Blob`);
    contents.set(name, content instanceof ArrayBuffer ? new Uint8Array(content) : content);
  }
  return { name: "the given files", files: { contents } };
}

function entries(source: Exclude<ModelSource, string | URL>): Iterable<[string, FileContent]> {
  if (source instanceof Map) return source;
  const isList = Array.isArray(source) || (typeof FileList !== "undefined" && source instanceof FileList);
  if (!isList) return Object.entries(source as Record<string, FileContent>);
  // The chosen folder's own name comes first in the path.
  return Array.from(source as readonly File[], (file) => [file.webkitRelativePath.replace(/^[^/]*\//, "") || file.name, file]);
}

export interface Gathered {
  files: Map<string, Uint8Array>;
  /** Settled when it is known what is kept. */
  downloaded: Promise<Downloaded>;
  /** Has to be called: whether the files are those of a model. Damaged ones are not kept. Settled when that is done. */
  settle: (sound: boolean) => Promise<void>;
}

/** Kinds of errors by which a model says that its files are damaged. */
const DAMAGED = ["InvalidModel", "InvalidTokenizer", "Weight"];

/** Uses files that were brought together; what they turn out to be decides whether they are kept. */
export async function using<T>(gathered: Gathered, use: () => Promise<T>): Promise<T> {
  let sound = true;
  try {
    return await use();
  } catch (cause) {
    sound = !(cause instanceof IsovecError && DAMAGED.includes(cause.kind));
    throw cause;
  } finally {
    const settled = gathered.settle(sound);
    // The next load, here or in another tab, is not to find them.
    if (!sound) await settled;
  }
}

/** Brings a model's files together: those that are there, or of a folder those that its configuration will want. */
export async function gather(request: Request, listening: Listening, rules: Rules): Promise<Gathered> {
  const { files } = request;
  const { model = {}, memory } = configOf(request.config);
  const most = allowed(memory?.memoryLimit);
  if ("folder" in files) return fromFolder(files, model, most, request, listening, rules);
  const contents = new Map<string, Uint8Array>();
  for (const [name, content] of files.contents) {
    fits(name, content instanceof Uint8Array ? content.length : content.size, most);
    contents.set(name, content instanceof Uint8Array ? content : new Uint8Array(await content.arrayBuffer()));
  }
  return { files: contents, downloaded: Promise.resolve({ files: [], bytes: 0, store: "none", verified: 0 }), settle: async () => {} };
}

async function fromFolder(folder: Address, model: ModelConfig, most: Most, { name, fetching, reading }: Request, listening: Listening, rules: Rules): Promise<Gathered> {
  const store = fetching.cache === "off" || isLocal(folder.folder) ? undefined : await Store.open();
  const named = reading && [reading.detector, reading.orientation, reading.recognizer].filter((file) => file !== undefined);
  // What was chosen by other rules is chosen anew.
  const selection = JSON.stringify(named ?? [model.onnxFile ?? null, model.dtype === "auto", RULES]);
  const check = (name: string, bytes: number) => fits(name, bytes, most);
  const kept = async () => {
    try {
      return fetching.cache === "use" ? await store?.model(folder.folder, selection, check) : undefined;
    } catch (cause) {
      if (cause instanceof IsovecError) throw cause;
      return undefined; // What cannot be read is fetched anew.
    }
  };
  const there = await kept();
  const forget = async (sound: boolean) => (sound ? undefined : store?.forget(folder.folder, selection).catch(() => {}));
  if (there) return cached(there, listening, forget);
  const load = async () => {
    // Another tab may have brought it while this one waited.
    const there = await kept();
    return there ? cached(there, listening, forget) : download(folder, selection, { origin: name, model, rules, named }, { ...fetching, ...listening, store, most, notKept: () => {} });
  };
  const locks = store && globalThis.navigator?.locks;
  if (!locks) return load();
  const options: LockOptions = listening.signal ? { signal: listening.signal } : {};
  return new Promise((resolve, reject) => {
    const held = async () => {
      const gathered = await load();
      resolve(gathered);
      // Who waits for the lock wants to find the files kept.
      await gathered.downloaded;
    };
    locks.request(`isovec ${folder.folder}`, options, held).catch((cause: unknown) => reject(listening.signal?.aborted ? listening.signal.reason : cause));
  });
}

function cached(files: Map<string, Uint8Array<ArrayBuffer>>, { onProgress }: Listening, settle: Gathered["settle"]): Gathered {
  const list = Array.from(files, ([name, content]) => ({ name, bytes: content.length, cached: true }));
  for (const { name, bytes } of list) onProgress?.({ file: name, bytes, total: bytes, cached: true });
  return { files, downloaded: Promise.resolve({ files: list, bytes: 0, store: "Cache API", verified: 0 }), settle };
}

/** What is to be chosen, and by whom. */
interface Choosing {
  /** The source's name for messages. */
  origin: string;
  model: ModelConfig;
  rules: Rules;
  /** The files, where nothing is to be chosen. */
  named: readonly string[] | undefined;
}

/**
 * Fetches what the rules choose, side by side. They are in the module, which is being loaded meanwhile: what is likely to
 * be chosen is begun before, and given up where it is not. Where `config.json` lists the folder's files, no other is
 * asked for. Files that are named are fetched, and no others. The first failure ends the rest.
 */
async function download({ folder, pointers }: Address, selection: string, { origin, model, rules, named }: Choosing, given: Line): Promise<Gathered> {
  const ending = new AbortController();
  const abort = () => ending.abort(given.signal?.reason);
  given.signal?.addEventListener("abort", abort, { once: true });
  let problem: unknown;
  const line: Line = { ...given, signal: ending.signal, notKept: (cause) => (problem ??= cause) };
  const encoded = (path: string) => path.split("/").map(encodeURIComponent).join("/");
  const urlOf = (path: string) => folder + encoded(path);
  const isSide = (path: string) => /\.(json|txt)$/.test(path);
  const side: Line = { ...line, most: beside(line.most) };

  const config = named ? Promise.resolve(undefined) : bring(folder + CONFIG, CONFIG, false, side).then(async (file) => {
    if (file) return file;
    // Static embeddings of sentence-transformers have none, and say in another file what they are.
    const modules = bring(folder + MODULES, MODULES, false, side);
    files.set(MODULES, { file: modules, end: () => {} });
    return (await modules) ? undefined : bring(folder + CONFIG, CONFIG, true, side);
  });
  const list = config.then((file) => listed(file?.content));
  /** Large files are those that a hub keeps apart, and states the hash of. */
  const stated = async (path: string) => (await list)?.get(path) ?? (pointers === undefined || isSide(path) ? undefined : pointer(pointers + encoded(path), line));
  /** Files that are under way or here, by their path, and what ends each of them. */
  const files = new Map<string, { file: Promise<Fetched | undefined>; end: () => void }>([[CONFIG, { file: config, end: () => {} }]]);
  const fetched = (path: string) => {
    let found = files.get(path);
    if (!found) {
      const own = new AbortController();
      const end = () => own.abort(ending.signal.reason);
      ending.signal.addEventListener("abort", end, { once: true });
      const hash = stated(path);
      hash.catch(() => {});
      const file = bring(urlOf(path), path, false, { ...(isSide(path) ? side : line), signal: own.signal }, hash);
      file.catch(() => {}); // It is waited for where it is wanted.
      files.set(path, (found = { file, end: () => own.abort() }));
    }
    return found.file;
  };
  /** What was begun and is not wanted takes no more time, and no room where files are kept. */
  const giveUp = (path: string) => {
    const { file, end } = files.get(path)!;
    files.delete(path);
    end();
    void file.catch(() => {}).then(() => line.store?.drop(urlOf(path))).catch(() => {});
  };
  /** Answers whose bodies wait until it is known whether they are wanted. */
  const begun = new Map<string, Promise<Response | undefined>>();
  const begin = (path: string) => {
    let response = begun.get(path);
    if (!response) {
      begun.set(path, (response = ask(urlOf(path), false, line)));
      response.catch(() => {});
    }
    return response;
  };
  const sizeOf = (response: Response) => {
    const bytes = lengthOf(response);
    return Number.isSafeInteger(bytes) ? { bytes } : {};
  };
  const find = async (path: string, need: Need): Promise<Fact> => {
    if (need === "likely") {
      const response = await begin(path);
      return response ? sizeOf(response) : null;
    }
    if (need === "size") {
      const response = await ask(urlOf(path), false, line, { method: "HEAD" }).catch(() => "unsaid" as const);
      ending.signal.throwIfAborted();
      return response === "unsaid" ? {} : response ? sizeOf(response) : null;
    }
    const file = await fetched(path);
    if (!file) return null;
    return { bytes: file.content.length, ...(need === "content" && { text: new TextDecoder().decode(file.content) }) };
  };
  const finished = async (path: string): Promise<Fetched | undefined> => {
    const response = files.has(path) ? undefined : await begun.get(path);
    if (!response) return fetched(path);
    begun.delete(path);
    return finish(response, urlOf(path), path, line, await stated(path));
  };
  const take = async (names: readonly string[]): Promise<Fetched[]> => {
    const taken = await Promise.all(names.map(fetched));
    const missing = names.find((_, index) => !taken[index]);
    if (missing !== undefined) throw new IsovecError("MissingFile", `${origin} has no file ${missing}`);
    return taken as Fetched[];
  };
  const choose = async (): Promise<Fetched[]> => {
    const names = await list;
    const facts: Record<string, Fact> = { [CONFIG]: await find(CONFIG, "content") };
    const guess = likely(model.onnxFile, model.dtype === "auto", names);
    for (const path of USUAL) if (names?.has(path) ?? true) void fetched(path);
    void (guess.need === "likely" ? begin(guess.path) : fetched(guess.path));
    // A config.json that was copied from elsewhere lists what another folder has: then nobody has a list.
    for (let listing = names; ; listing = undefined) {
      const told = listing && Object.fromEntries(Array.from(listing, ([path, { bytes }]) => [path, { bytes }]));
      for (;;) {
        const known: Known = { origin, ...(model.onnxFile !== undefined && { onnx_file: model.onnxFile }), smallest: model.dtype === "auto", listed: listing !== undefined, files: { ...told, ...facts } };
        const answer = JSON.parse(await rules(JSON.stringify(known))) as Answer;
        if ("ask" in answer) {
          await Promise.all(answer.ask.map(async ([path, need]) => void (facts[path] = await find(path, need))));
          continue;
        }
        for (const path of files.keys()) if (!answer.files.includes(path)) giveUp(path);
        const chosen = await Promise.all(answer.files.map(finished));
        if (!chosen.includes(undefined)) return chosen as Fetched[];
        const missing = answer.files.find((_, index) => !chosen[index])!;
        if (!listing) throw new IsovecError("Hub", `${urlOf(missing)}: went away while the model was fetched; try again`);
        facts[missing] = null;
        break;
      }
    }
  };
  let chosen: Fetched[];
  try {
    if (!named) void fetched(TOKENIZER);
    chosen = await (named ? take(named) : choose());
  } catch (cause) {
    given.signal?.throwIfAborted();
    ending.abort(cause);
    throw cause;
  } finally {
    given.signal?.removeEventListener("abort", abort);
    for (const response of begun.values()) void response.then((response) => response?.body?.cancel()).catch(() => {});
  }
  let decide!: (sound: boolean) => void;
  const sound = new Promise<boolean>((resolve) => (decide = resolve));
  const seal = async (): Promise<Downloaded> => {
    const states = await Promise.all(chosen.map(({ kept }) => kept));
    if (await sound) {
      const files = chosen.map(({ name, url }, index) => ({ name, url, ...states[index]! }));
      if (line.store && states.every(Boolean)) await line.store.seal(folder, selection, files).catch(line.notKept);
    } else {
      await Promise.all(chosen.map(({ url }) => line.store?.drop(url).catch(() => {})));
    }
    if (problem !== undefined) console.warn(`isovec keeps nothing of this model for the next visit: ${String(problem)}`);
    return {
      files: sizes.map(({ name, bytes }) => ({ name, bytes, cached: false })),
      bytes: sizes.reduce((sum, { bytes, resumed }) => sum + bytes - resumed, 0),
      store: line.store && problem === undefined ? "Cache API" : "none",
      ...(problem !== undefined && { problem: String(problem) }),
      verified: sizes.filter(({ verified }) => verified).length,
    };
  };
  const sizes = chosen.map(({ name, content, resumed, verified }) => ({ name, bytes: content.length, resumed, verified }));
  const contents = new Map<string, Uint8Array>(chosen.map(({ name, content }) => [name, content]));
  const downloaded = seal();
  const settle = async (sound: boolean) => {
    decide(sound);
    await downloaded;
  };
  return { files: contents, downloaded, settle };
}

/** What a hub states of a file that it keeps apart (git-lfs's pointer file, version 1); nothing where it states nothing. */
async function pointer(url: string, line: Line): Promise<Stated | undefined> {
  const response = await ask(url, false, line).catch(() => undefined);
  if (!response) return undefined;
  const found = /^version https:\/\/git-lfs[^\n]*\noid sha256:([0-9a-f]{64})\nsize (\d+)\n?$/.exec(await beginning(response, 1024).catch(() => ""));
  return found ? { sha256: found[1]!, bytes: Number(found[2]) } : undefined;
}

/** A text as far as so many bytes: what is no pointer is the file itself, which is not to be fetched twice. */
async function beginning(response: Response, bytes: number): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  while (reader && text.length <= bytes) {
    const { done, value } = await reader.read();
    if (done) return text;
    text += decoder.decode(value, { stream: true });
  }
  await reader?.cancel();
  return text;
}
