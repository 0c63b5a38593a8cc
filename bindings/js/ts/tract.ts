import { compiled } from "./compile.js";
import { glueOf } from "./glue.js";
import { make } from "./instances.js";
import type { Module } from "./module.js";

/** The build that is used now, and how often one was asked for. */
let current: Promise<Module> | undefined;
let last: Module | undefined;
let asked = 0;

/**
 * The build `tract` in this thread, which is fetched when it is first wanted. One that stopped at an internal error is
 * replaced: tract may panic at a model, and that must not keep the next model from loading. `given` is a module that
 * somebody else compiles, and `at` the address of its script, where this thread may not know it.
 */
export function tract(given?: Promise<WebAssembly.Module>, at?: string): Promise<Module> {
  if (current && !last?.poisoned) return current;
  last = undefined;
  const loading = (current = load(asked++, given, at));
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

/** A build that is replaced keeps its memory: each has an evaluation of the script of its own. */
function load(before: number, given: Promise<WebAssembly.Module> | undefined, at: string | undefined): Promise<Module> {
  return make("tract", () => glueOf("tract", String(before), at), () => given ?? compiled("tract"));
}
