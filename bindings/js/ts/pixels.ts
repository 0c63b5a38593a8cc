import type * as Glue from "../pkg/image/isovec_js_image.js";
import { IsovecError } from "./error.js";
import { bytesOf, messageOf, stoppedAt, unreadable, type PixelOptions, type Portable } from "./pictures.js";
import { ready, replaced } from "./picture-module.js";

const PREPROCESSOR = "preprocessor_config.json";

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
    const bytes = picture instanceof Blob ? await bytesOf(picture, index) : picture;
    const reader = this.#reader;
    try {
      return await (bytes instanceof Uint8Array ? reader.file(bytes) : reader.rgba(new Uint8Array(bytes.data), bytes.width, bytes.height));
    } catch (cause) {
      if (cause instanceof WebAssembly.RuntimeError) {
        await this.#again(reader);
        throw stoppedAt(index, cause);
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
    this.#reader = (await replaced(() => made(this.#files, this.#options, this.#module))) ?? stopped;
  }
}

async function made({ preprocessor, config }: Own, asked: PixelOptions, module: () => Promise<typeof Glue>): Promise<Glue.RawReader> {
  const glue = await module();
  const options = rawOptions(glue, asked);
  try {
    return new glue.RawReader(preprocessor, config, options);
  } finally {
    options.free();
  }
}

/** Options as the module reads them; whoever asked for them frees them. */
export function rawOptions({ RawOptions }: typeof Glue, { reference, alpha, turn, maxPixels, maxBytes }: PixelOptions): Glue.RawOptions {
  const options = new RawOptions();
  if (reference === "torchvision") options.torchvision();
  if (alpha === "white") options.white();
  if (turn === false) options.asStored();
  if (maxPixels !== undefined) options.maxPixels(maxPixels);
  if (maxBytes !== undefined) options.maxBytes(maxBytes);
  return options;
}
