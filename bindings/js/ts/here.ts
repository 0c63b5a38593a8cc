// A model in this thread. Pages that have workers do not download it.
import { native, reading } from "./addon.js";
import { decodes } from "./decode.js";
import type { Host, ReadingHost, Request } from "./host.js";
import type { Opener } from "./lived.js";
import { openReader } from "./local-reader.js";
import { open } from "./local.js";
import type { Module } from "./module.js";
import { Pixels } from "./pixels.js";
import { tract } from "./tract.js";
import { ready } from "./wasm.js";

export { instanceOf } from "./wasm.js";

/** Opens a model with the add-on for node, if that is wanted and there, or in a wasm build. */
export const here: Opener<Host> = (request, listening) => {
  const addon = addonFor(request);
  if (!(addon instanceof Error || addon === undefined)) return open(request, listening, Promise.resolve(addon), { tract, pixels: (...model) => Pixels.of(...model, () => reading(addon)) });
  return open(request, listening, ready(request), { tract, pixels: Pixels.of, notNative: addon?.message });
};

/** Opens a reader of text in the same way. */
export const readerHere: Opener<ReadingHost> = (request, listening) => {
  const addon = addonFor(request);
  if (!(addon instanceof Error || addon === undefined)) return openReader(request, listening, Promise.resolve(addon), { tract, decode: decodes(() => reading(addon)) });
  return openReader(request, listening, ready(request), { decode: decodes(), notNative: addon?.message });
};

/** The add-on, or why it is not there; nothing where another build is asked for, or there is never one. */
function addonFor({ build }: Request): Module | Error | undefined {
  return build === undefined || build === "native" ? native(build === "native") : undefined;
}
