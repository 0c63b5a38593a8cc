/** The build `native`: an add-on of node, which has the interface of the modules of wasm but for a few members. */
import type * as ImageGlue from "../pkg/image/isovec_js_image.js";
import type * as Glue from "../pkg/simd128/isovec_js.js";
import type * as Tract from "../pkg/tract/isovec_js.js";
import { unavailable } from "./compile.js";
import { IsovecError } from "./error.js";
import { Module } from "./module.js";
import { program } from "./node.js";

/** The version of the package, which the build of the package writes here. */
declare const ISOVEC_VERSION: string;

/** What the add-on has. */
interface Addon {
  version(): string;
  chooseFiles(known: string): string;
  RawCancel: typeof Glue.RawCancel;
  /** As in the module of pictures, but that a reader promises values. */
  RawOptions: typeof ImageGlue.RawOptions;
  RawReader: typeof ImageGlue.RawReader;
  RawImage: typeof ImageGlue.RawImage;
  RawModel: {
    load(origin: string, names: string[], files: Uint8Array[], config: string, output: string, pixels: string | undefined, cancel: Glue.RawCancel): Promise<Glue.RawModel>;
  };
  RawTextReader: {
    load(origin: string, names: string[], files: Uint8Array[], config: string, asking: string, cancel: Glue.RawCancel): Promise<Tract.RawTextReader>;
  };
}

type Program = NonNullable<ReturnType<typeof program>>;

/** The add-on in this thread, or why there is none. */
let found: Module | IsovecError | undefined;

/**
 * The add-on, or why it cannot be used; nothing where there is never one. `asked` makes its lack an error, and so does the
 * variable `ISOVEC_REQUIRE_NATIVE` of a program.
 */
export function native(asked: boolean): Module | IsovecError | undefined {
  const here = program();
  if (here && !found) found = find(here);
  if (found instanceof Module) return found;
  if (!asked && !here?.env.ISOVEC_REQUIRE_NATIVE) return found;
  throw found ?? unavailable("native", "it runs in node and Bun");
}

function find(here: Program): Module | IsovecError {
  const { platform, arch, env, require } = here;
  const named = env.ISOVEC_NATIVE;
  // Linux has packages for its two C libraries, of which an installer takes the one that fits.
  const names = named ? [named] : ["", ...(platform === "linux" ? ["-musl"] : [])].map((libc) => `@isovec/${platform}-${arch}${libc}`);
  let why = "";
  for (const name of names) {
    try {
      const addon = require(name) as Addon;
      if (addon.version() !== ISOVEC_VERSION) throw new Error(`it is of version ${addon.version()}, and isovec of ${ISOVEC_VERSION}`);
      return new Module("native", glued(addon));
    } catch (cause) {
      const missing = !named && (cause as { code?: string }).code === "MODULE_NOT_FOUND";
      if (!missing || !why) why = missing ? `the package ${name} is not installed` : `${name}: ${cause instanceof Error ? cause.message : String(cause)}`;
    }
  }
  return unavailable("native", why);
}

/** What reads pictures: the add-on has that as well. */
export const reading = async (module: Module): Promise<typeof ImageGlue> => module.glue as unknown as typeof ImageGlue;

/** The add-on under the names that wasm-bindgen gives a module. */
function glued(addon: Addon): typeof Glue {
  const taken = (files: Map<string, Uint8Array>): [names: string[], contents: Uint8Array[]] => {
    const all = [[...files.keys()], [...files.values()]] as [string[], Uint8Array[]];
    files.clear();
    return all;
  };
  class RawModel {
    static load(origin: string, files: Map<string, Uint8Array>, ...rest: [config: string, output: string, pixels: string | undefined, cancel: Glue.RawCancel]): Promise<Glue.RawModel> {
      return addon.RawModel.load(origin, ...taken(files), ...rest);
    }
  }
  class RawTextReader {
    static load(origin: string, files: Map<string, Uint8Array>, ...rest: [config: string, asking: string, cancel: Glue.RawCancel]): Promise<Tract.RawTextReader> {
      return addon.RawTextReader.load(origin, ...taken(files), ...rest);
    }
  }
  // A panic does not end it: it is the error of its call.
  return { ...addon, RawModel, RawTextReader, lastPanic: () => undefined } as unknown as typeof Glue;
}
