import type * as Glue from "../pkg/simd128/isovec_js.js";
import type { WasmBuild } from "./builds.js";
import { unavailable, whatToDo } from "./compile.js";

/**
 * Where the builds' scripts lie; written so that bundlers find the files and take them along, as they are. They are no
 * `import("…")`: a bundler would split a worker's script for that, which Vite refuses to do for workers of its default format.
 */
const URLS: Record<WasmBuild, () => URL> = {
  simd128: () => new URL("../pkg/simd128/isovec_js.js", import.meta.url),
  relaxed: () => new URL("../pkg/relaxed/isovec_js.js", import.meta.url),
  threads: () => new URL("../pkg/threads/isovec_js.js", import.meta.url),
  tract: () => new URL("../pkg/tract/isovec_js.js", import.meta.url),
};

/** Where a build's script lies, as this script's own address has it; nothing of a build that there is not. */
export const glueAt = (build: string): string | undefined => (Object.hasOwn(URLS, build) ? URLS[build as WasmBuild]().href : undefined);

/** Fetches that failed: a browser may remember that of an address. */
let failed = 0;

/**
 * A build's script, fetched when the build is wanted: a page runs one of them. It is evaluated once for each `evaluation`, and
 * each evaluation has one memory. `at` is its address, where this thread may not know it. The builds have the same interface, and
 * `threads` a little more.
 */
export async function glueOf(build: WasmBuild, evaluation = "", at?: string): Promise<typeof Glue> {
  const address = at === undefined ? URLS[build]() : new URL(at);
  // With the build's name: of scripts that are the same, bundlers make one file.
  address.hash = [build, evaluation, failed].join("-");
  try {
    return (await import(/* webpackIgnore: true */ /* @vite-ignore */ address.href)) as typeof Glue;
  } catch (cause) {
    failed++;
    throw unavailable(build, `${String(cause)}. ${whatToDo(`Serve pkg/${build} as it lies in the package, and allow its script in the page's CSP ('script-src')`)}`, cause);
  }
}
