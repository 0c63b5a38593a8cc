import type * as Glue from "../pkg/simd128/isovec_js.js";
import { checkBuild, compiled, unavailable } from "./compile.js";
import { make } from "./instances.js";
import type { Module } from "./module.js";

/**
 * The glue's address, written so that bundlers take the file along as it is. It is no `import("…")`: a bundler would split
 * the worker's script for that, which Vite refuses to do for workers of its default format.
 */
const glue = () => new URL("../pkg/tract/isovec_js.js", import.meta.url);

/** The build that is used now, and how often one was asked for. */
let current: Promise<Module> | undefined;
let last: Module | undefined;
let asked = 0;

/**
 * The build `tract` in this thread, which is fetched when it is first wanted. One that stopped at an internal error is
 * replaced: tract may panic at a model, and that must not keep the next model from loading. `given` is a module that
 * somebody else compiles.
 */
export function tract(given?: Promise<WebAssembly.Module>): Promise<Module> {
  if (current && !last?.poisoned) return current;
  last = undefined;
  const loading = (current = load(asked++, given));
  loading.then(
    (module) => {
      if (current === loading) last = module;
    },
    () => {
      // Another call may try again.
      if (current === loading) current = undefined;
    },
  );
  return loading;
}

async function load(before: number, given: Promise<WebAssembly.Module> | undefined): Promise<Module> {
  checkBuild("tract");
  const code = given ?? compiled("tract");
  code.catch(() => {}); // It is waited for below, unless the glue fails first.
  const address = glue();
  // A script is evaluated once for each address, and each evaluation has a memory of its own.
  if (before > 0) address.hash = String(before);
  let own: typeof Glue;
  try {
    own = (await import(/* webpackIgnore: true */ /* @vite-ignore */ address.href)) as typeof Glue;
  } catch (cause) {
    throw unavailable("tract", `${String(cause)}. Serve pkg/tract as it lies in the package, and allow its script in the page's CSP ('script-src')`, cause);
  }
  return make("tract", own, () => code);
}
