import type * as Glue from "../pkg/image/isovec_js_image.js";
import { IsovecError } from "./error.js";
import { readFile } from "./node.js";
import { unreadable, type PixelOptions, type Portable } from "./pictures.js";

const PREPROCESSOR = "preprocessor_config.json";

/** The glue's address, written so that bundlers take the file along as it is (`tract.ts` says why it is no `import("…")`). */
const glue = () => new URL("../pkg/image/isovec_js_image.js", import.meta.url);
const wasm = () => new URL("../pkg/image/isovec_js_image_bg.wasm", import.meta.url);

let current: Promise<typeof Glue> | undefined;
let compiled: Promise<WebAssembly.Module> | undefined;
/** How many there were before: each has an address of its own, because a script is evaluated once for each. */
let before = 0;

/** The module in this thread. One that stopped at an internal error is replaced. */
function ready(): Promise<typeof Glue> {
  current ??= start().catch((cause: unknown) => {
    // Another call may try again.
    current = compiled = undefined;
    throw new IsovecError("EngineUnavailable", `what decodes pictures cannot be loaded: ${String(cause)}. Serve pkg/image as it lies in the package, and allow its script in the page's CSP ('script-src')`, { cause });
  });
  return current;
}

async function start(): Promise<typeof Glue> {
  compiled ??= compile();
  compiled.catch(() => {}); // It is waited for below, unless the glue fails first.
  const address = glue();
  if (before > 0) address.hash = String(before);
  const own = (await import(/* webpackIgnore: true */ /* @vite-ignore */ address.href)) as typeof Glue;
  await own.default({ module_or_path: await compiled });
  return own;
}

async function compile(): Promise<WebAssembly.Module> {
  const url = wasm();
  const file = readFile(url);
  if (file) return WebAssembly.compile(await file());
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}`);
  return WebAssembly.compile(await response.arrayBuffer());
}

/** The files of a model that say how its pictures are read. */
interface Own {
  preprocessor: Uint8Array;
  config: Uint8Array | undefined;
}

/** Makes pictures ready for one model, as its files say. */
export class Pixels {
  #files: Own;
  #options: PixelOptions;
  #reader: Glue.RawReader;
  #module: () => Promise<typeof Glue>;
  /** Height and width of the model's input, in pixels. */
  readonly size: readonly [number, number];
  /** What has to be equal of the way from a file to values. */
  readonly identity: string;

  private constructor(files: Own, options: PixelOptions, reader: Glue.RawReader, module: () => Promise<typeof Glue>) {
    this.#files = files;
    this.#module = module;
    this.#options = options;
    this.#reader = reader;
    const [height, width] = reader.size();
    this.size = [height!, width!];
    this.identity = reader.identity();
  }

  /** Reads the files of a model, by their path. `module` is what reads pictures. */
  static async of(origin: string, files: ReadonlyMap<string, Uint8Array>, options: PixelOptions, module = ready): Promise<Pixels> {
    const preprocessor = files.get(PREPROCESSOR);
    if (!preprocessor) throw new IsovecError("MissingFile", `${origin} has no ${PREPROCESSOR}. It says how pixels become the model's input; its publisher has it beside config.json`);
    // The arrays may be emptied when the model is loaded.
    const own = { preprocessor: preprocessor.slice(), config: files.get("config.json")?.slice() };
    try {
      return new Pixels(own, options, await made(own, options, module), module);
    } catch (cause) {
      if (cause instanceof IsovecError) throw cause;
      throw new IsovecError("Preprocessor", `${origin}: ${messageOf(cause)}`, { cause });
    }
  }

  /** How values are made, as the engine is told it. */
  json(): string {
    const { identity, size } = this;
    return JSON.stringify({ identity, size });
  }

  /** Whether pictures are read on other threads, many at a time. */
  get isBeside(): boolean {
    return this.#module !== ready;
  }

  /** The values of a picture, `[3, height, width]`. `index` is its place for messages. */
  async values(picture: Portable, index: number): Promise<Float32Array> {
    const bytes = picture instanceof Blob ? await read(picture, index) : picture;
    const reader = this.#reader;
    try {
      return await (bytes instanceof Uint8Array ? reader.file(bytes) : reader.rgba(new Uint8Array(bytes.data), bytes.width, bytes.height));
    } catch (cause) {
      if (cause instanceof WebAssembly.RuntimeError) {
        await this.#again(reader);
        throw unreadable(index, `reading it stopped at an internal error (${cause.message}); please report it`, cause);
      }
      throw unreadable(index, messageOf(cause), cause);
    }
  }

  free(): void {
    this.#reader.free();
  }

  /** The same in another instance: the memory of one that stopped may be half written. */
  async #again(stopped: Glue.RawReader): Promise<void> {
    if (this.#reader !== stopped) return;
    const module = current;
    current = undefined;
    before++;
    try {
      this.#reader = await made(this.#files, this.#options, this.#module);
    } catch {
      // What stopped answers with the same error again, until it can be replaced.
      current ??= module;
    }
  }
}

async function made({ preprocessor, config }: Own, { reference, alpha, turn, maxPixels, maxBytes }: PixelOptions, module: () => Promise<typeof Glue>): Promise<Glue.RawReader> {
  const { RawOptions, RawReader } = await module();
  const options = new RawOptions();
  if (reference === "torchvision") options.torchvision();
  if (alpha === "white") options.white();
  if (turn === false) options.asStored();
  if (maxPixels !== undefined) options.maxPixels(maxPixels);
  if (maxBytes !== undefined) options.maxBytes(maxBytes);
  try {
    return new RawReader(preprocessor, config, options);
  } finally {
    options.free();
  }
}

async function read(picture: Blob, index: number): Promise<Uint8Array> {
  try {
    return new Uint8Array(await picture.arrayBuffer());
  } catch (cause) {
    throw unreadable(index, `its file cannot be read (${String(cause)})`, cause);
  }
}

const messageOf = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause));
