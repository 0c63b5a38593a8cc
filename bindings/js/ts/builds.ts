import { adapterHere } from "./adapter.js";

/**
 * The builds of isovec: modules of WebAssembly that the package holds, and one for node and Bun. All of them give the same
 * vectors of an encoder, up to rounding, and the very same with `deterministic_compute`.
 *
 * - `simd128`: runs in every current browser, and has the GPU's path.
 * - `relaxed`: with relaxed SIMD, which multiplies and adds in one step. It has no path for GPUs, which makes it a tenth smaller.
 * - `threads`: relaxed SIMD on several threads, in pages that may share memory with workers, and the GPU's path.
 * - `tract`: `simd128` and tract, which runs ONNX models that the others' programs do not take, and what reads the text of
 *   pictures. It is fetched for such a model alone.
 * - `native`: an add-on of node, in a package of its own for each platform (`@isovec/linux-x64`). It computes on threads of
 *   its own.
 */
export type Build = WasmBuild | "native";

/** The builds that are WebAssembly. */
export type WasmBuild = "simd128" | "relaxed" | "threads" | "tract";

/**
 * A module with one function, `() -> v128`, of the given instructions: whether an engine takes it tells whether it
 * knows them. (WebAssembly core specification, chapter 5, "Binary Format".)
 */
const module = (...instructions: number[]): Uint8Array<ArrayBuffer> =>
  Uint8Array.of(
    0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, // "\0asm", version 1
    0x01, 0x05, 0x01, 0x60, 0x00, 0x01, 0x7b, // section of types: one, function () -> v128
    0x03, 0x02, 0x01, 0x00, // section of functions: one, of type 0
    0x0a, instructions.length + 4, 0x01, // section of code: one body
    instructions.length + 2, 0x00, ...instructions, 0x0b, // without locals; end
  );

const ZEROS = [0x41, 0x00, 0xfd, 0x0f]; // i32.const 0, i8x16.splat
const MADD = [...ZEROS, ...ZEROS, ...ZEROS, 0xfd, 0x85, 0x02]; // f32x4.relaxed_madd

const HEADERS = "'Cross-Origin-Opener-Policy: same-origin' and 'Cross-Origin-Embedder-Policy: require-corp'";

/** Why a build cannot run here, or nothing. */
export function lacking(build: WasmBuild): string | undefined {
  if (!WebAssembly.validate(module(...ZEROS))) return "WebAssembly has no SIMD here; every current browser has it";
  if (build === "simd128" || build === "tract") return undefined;
  if (!WebAssembly.validate(module(...MADD))) return "WebAssembly has no relaxed SIMD here";
  if (build === "relaxed") return undefined;
  if (typeof Worker === "undefined") return "there are no web workers here";
  if (!globalThis.crossOriginIsolated) return `the page may not share memory with workers; serve it with the headers ${HEADERS}`;
  // Without it, wasm-bindgen waits by a worker of its own, which strict pages do not allow.
  if (!("waitAsync" in Atomics)) return "Atomics.waitAsync is missing here";
  return undefined;
}

/** The fastest build for encoders that runs here, where so many threads are wanted, and a GPU or none. */
export function fastest(threads: number, gpu = false): Exclude<WasmBuild, "tract"> {
  if (threads > 1 && !lacking("threads")) return "threads";
  return gpu || lacking("relaxed") ? "simd128" : "relaxed";
}

/** What a configuration says of GPUs, where one may compute. */
export interface Gpu {
  /** Nothing else may compute. */
  only: boolean;
  /** A processor that plays a GPU may. */
  software: boolean;
}

/** The build that is asked for, or the fastest that runs here. Only one in a page reads the text of pictures. */
export async function chosen({ build, threads, gpu, reading }: { build: Build | undefined; threads: number; gpu: Gpu | undefined; reading: unknown }): Promise<Build> {
  if (reading !== undefined) return build ?? "tract";
  return build ?? fastest(threads, gpu && (await mayCompute(gpu)));
}

/** Whether a build with the GPU's path is worth its download: where a GPU has to compute, that build says why it cannot. */
async function mayCompute({ only, software }: Gpu): Promise<boolean> {
  if (only) return true;
  const adapter = await adapterHere();
  return adapter !== undefined && (software || adapter.info.isFallbackAdapter !== true);
}
