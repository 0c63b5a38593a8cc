import type * as Glue from "../pkg/simd128/isovec_js.js";
import type { Build } from "./builds.js";
import { checkBuild, unavailable } from "./compile.js";
import { Module } from "./module.js";

const loading = new Map<Build, Promise<Module>>();

/** A build in this thread: each is made once, of what `compiled` brings. */
export function instance(build: Build, glue: typeof Glue, compiled: () => WebAssembly.Module | Promise<WebAssembly.Module>): Promise<Module> {
  let module = loading.get(build);
  if (!module) {
    module = make(build, glue, compiled);
    loading.set(build, module);
    // Another call may try again.
    module.catch(() => loading.delete(build));
  }
  return module;
}

/** A build in this thread, of a glue that nobody used before. */
export async function make(build: Build, glue: typeof Glue, compiled: () => WebAssembly.Module | Promise<WebAssembly.Module>): Promise<Module> {
  checkBuild(build);
  const code = await compiled();
  try {
    await glue.default({ module_or_path: code });
  } catch (cause) {
    throw unavailable(build, String(cause), cause);
  }
  return new Module(build, glue);
}
