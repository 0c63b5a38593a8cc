import type * as Threads from "../pkg/threads/isovec_js.js";
import { chosen, type Build } from "./builds.js";
import { checkBuild, compiled } from "./compile.js";
import { glueOf } from "./glue.js";
import type { Request } from "./host.js";
import { instance } from "./instances.js";
import type { Module } from "./module.js";
import { start } from "./threads.js";
import { tract } from "./tract.js";

/** A build that somebody else chose and compiles. */
export interface Given {
  build: Build;
  module: Promise<WebAssembly.Module>;
  /** The address of its script. */
  at: string | undefined;
}

/**
 * A build, ready to be called in this thread: the one that is asked for or given, or the fastest that runs here. It has as many
 * threads as it was ever wanted to have.
 */
export async function ready(request: Request, given?: Given): Promise<Module> {
  const build = given?.build ?? (await chosen(request));
  try {
    const module = await instanceOf(build, given?.module, given?.at);
    if (build === "threads") await start(module.glue as unknown as typeof Threads, request.threads);
    return module;
  } catch (cause) {
    // Its memory is one that not every device can give.
    if (request.build || build !== "threads") throw cause;
    console.warn(`isovec computes on one thread: ${String(cause)}`);
    return instanceOf(await chosen({ ...request, threads: 1 }));
  }
}

/** A build in this thread, without any threads beside it. */
export function instanceOf(build: Build, given?: Promise<WebAssembly.Module>, at?: string): Promise<Module> {
  if (build === "tract") return tract(given, at);
  checkBuild(build);
  return instance(build, () => glueOf(build, "", at), () => given ?? compiled(build));
}
