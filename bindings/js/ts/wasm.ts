import type * as Threads from "../pkg/threads/isovec_js.js";
import { fastest, type Build } from "./builds.js";
import { checkBuild, compiled } from "./compile.js";
import { glueOf } from "./glue.js";
import { instance } from "./instances.js";
import type { Module } from "./module.js";
import { start } from "./threads.js";
import { tract } from "./tract.js";

/**
 * A build, ready to be called in this thread: the one that is asked for, or the fastest that runs here. It has as many
 * threads as it was ever wanted to have. `given` is a module that somebody else compiles, `at` the address of its script.
 */
export async function ready(asked: Build | undefined, wanted: number, given?: Promise<WebAssembly.Module>, at?: string): Promise<Module> {
  const build = asked ?? fastest(wanted);
  try {
    const module = await instanceOf(build, given, at);
    if (build === "threads") await start(module.glue as unknown as typeof Threads, wanted);
    return module;
  } catch (cause) {
    // Its memory is one that not every device can give.
    if (asked || build !== "threads") throw cause;
    console.warn(`isovec computes on one thread: ${String(cause)}`);
    return instanceOf(fastest(1));
  }
}

/** A build in this thread, without any threads beside it. */
export function instanceOf(build: Build, given?: Promise<WebAssembly.Module>, at?: string): Promise<Module> {
  if (build === "tract") return tract(given);
  checkBuild(build);
  return instance(build, () => glueOf(build, "", at), () => given ?? compiled(build));
}
