import { lacking, type Build, type WasmBuild } from "./builds.js";
import { IsovecError } from "./error.js";
import { readFile } from "./node.js";

/** Where the builds lie; written so that bundlers find the files and take them along. */
const URLS: Record<WasmBuild, () => URL> = {
  simd128: () => new URL("../pkg/simd128/isovec_js_bg.wasm", import.meta.url),
  relaxed: () => new URL("../pkg/relaxed/isovec_js_bg.wasm", import.meta.url),
  threads: () => new URL("../pkg/threads/isovec_js_bg.wasm", import.meta.url),
  tract: () => new URL("../pkg/tract/isovec_js_bg.wasm", import.meta.url),
};

const PAGE = "Serve isovec_js_bg.wasm where it lies in the package, as application/wasm, and allow 'wasm-unsafe-eval' in the page's CSP";
const SERVER =
  "Where a server's code is bundled, leave isovec out of it (Next.js: serverExternalPackages: [\"isovec\"]), so that its files lie beside its code; where there are no files, isovec/inline takes the compiled module";

const compiling = new Map<Build, Promise<WebAssembly.Module>>();

/** A build, compiled while it is fetched, once: workers are handed what is compiled. */
export function compiled(build: Build): Promise<WebAssembly.Module> {
  let module = compiling.get(build);
  if (!module) {
    module = compile(build);
    compiling.set(build, module);
    // Another call may try again.
    module.catch(() => compiling.delete(build));
  }
  return module;
}

/** What to do where a file of the package cannot be had: in a page or its worker, and in a program. */
export const whatToDo = (page: string): string => (globalThis.location ? page : SERVER);

/** The error of a build that cannot be loaded. */
export function unavailable(build: string, why: string, cause?: unknown): IsovecError {
  return new IsovecError("EngineUnavailable", `isovec's build ${build} cannot be loaded: ${why}`, { cause });
}

/** Refuses a build that there is not, that is no WebAssembly, or that cannot run here. */
export function checkBuild(build: Build): asserts build is WasmBuild {
  if (build === "native") throw unavailable(build, "it runs in node and Bun, without { worker: true }: it computes on threads of its own");
  if (!Object.hasOwn(URLS, build)) throw unavailable(build, `there is no such build; there are ${Object.keys(URLS).join(", ")}, native`);
  const why = lacking(build);
  if (why) throw unavailable(build, why);
}

async function compile(build: Build): Promise<WebAssembly.Module> {
  checkBuild(build);
  const url = URLS[build]();
  try {
    const file = readFile(url);
    if (file) return await WebAssembly.compile(await file());
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${response.url} answered ${response.status}`);
    const isWasm = response.headers.get("content-type")?.startsWith("application/wasm") ?? false;
    // Under another type it can only be compiled when it is all there.
    return await (isWasm ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer()));
  } catch (cause) {
    throw unavailable(build, `${String(cause)}. ${whatToDo(PAGE)}`, cause);
  }
}
