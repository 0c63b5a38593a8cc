import type * as Glue from "../pkg/image/isovec_js_image.js";
import { IsovecError } from "./error.js";
import { readFile } from "./node.js";

/** The glue's address, written so that bundlers take the file along as it is (`tract.ts` says why it is no `import("…")`). */
const glue = () => new URL("../pkg/image/isovec_js_image.js", import.meta.url);
const wasm = () => new URL("../pkg/image/isovec_js_image_bg.wasm", import.meta.url);

let current: Promise<typeof Glue> | undefined;
let compiled: Promise<WebAssembly.Module> | undefined;
/** How many there were before: each has an address of its own, because a script is evaluated once for each. */
let before = 0;

/** The module of pictures in this thread, which is fetched when it is first wanted. */
export function ready(): Promise<typeof Glue> {
  current ??= start().catch((cause: unknown) => {
    // Another call may try again.
    current = compiled = undefined;
    throw new IsovecError("EngineUnavailable", `what decodes pictures cannot be loaded: ${String(cause)}. Serve pkg/image as it lies in the package, and allow its script in the page's CSP ('script-src')`, { cause });
  });
  return current;
}

/**
 * Has something made by another instance of the module, because one stopped at an internal error: its memory may be half written.
 * Nothing where there is none: what stopped answers with the same error again, until it can be replaced.
 */
export async function replaced<T>(make: () => Promise<T>): Promise<T | undefined> {
  const stopped = current;
  current = undefined;
  before++;
  try {
    return await make();
  } catch {
    current ??= stopped;
    return undefined;
  }
}

async function start(): Promise<typeof Glue> {
  compiled ??= compile();
  compiled.catch(() => {}); // It is waited for below, unless the glue fails first.
  const address = glue();
  if (before > 0) address.hash = String(before);
  const own = (await import(/* webpackIgnore: true */ /* @vite-ignore */ address.href)) as typeof Glue;
  await own.default({ module_or_path: await compiled });
  return own;
}

async function compile(): Promise<WebAssembly.Module> {
  const url = wasm();
  const file = readFile(url);
  if (file) return WebAssembly.compile(await file());
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}`);
  return WebAssembly.compile(await response.arrayBuffer());
}
