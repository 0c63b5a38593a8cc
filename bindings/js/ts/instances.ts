import type * as Glue from "../pkg/simd128/isovec_js.js";
import type { Build } from "./builds.js";
import { checkBuild, unavailable } from "./compile.js";
import { Module } from "./module.js";

const loading = new Map<Build, Promise<Module>>();

/** A build in this thread: each is made once, of what `compiled` brings. */
export function instance(build: Build, glue: () => Promise<typeof Glue>, compiled: () => WebAssembly.Module | Promise<WebAssembly.Module>): Promise<Module> {
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
export async function make(build: Build, glue: () => Promise<typeof Glue>, compiled: () => WebAssembly.Module | Promise<WebAssembly.Module>): Promise<Module> {
  checkBuild(build);
  const code = Promise.resolve(compiled());
  code.catch(() => {}); // It is waited for below, unless the glue fails first.
  const own = await glue();
  const module_or_path = await code;
  try {
    await own.default({ module_or_path });
  } catch (cause) {
    throw unavailable(build, String(cause), cause);
  }
  return new Module(build, own);
}
