// A model in this thread. Pages that have workers do not download it.
import { native, reading } from "./addon.js";
import { open } from "./local.js";
import type { Opener } from "./model.js";
import { Pixels } from "./pixels.js";
import { tract } from "./tract.js";
import { ready } from "./wasm.js";

export { instanceOf } from "./wasm.js";

/** Opens a model with the add-on for node, if that is wanted and there, or in a wasm build. */
export const here: Opener = (request, listening) => {
  const { build } = request;
  const addon = build === undefined || build === "native" ? native(build === "native") : undefined;
  if (!(addon instanceof Error || addon === undefined)) return open(request, listening, Promise.resolve(addon), { tract, pixels: (...model) => Pixels.of(...model, () => reading(addon)) });
  return open(request, listening, ready(request), { tract, pixels: Pixels.of, notNative: addon?.message });
};
