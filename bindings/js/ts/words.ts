import type { Config, Dtype } from "./config.js";
import { IsovecError, checkWord } from "./error.js";

/**
 * The device, in a word.
 *
 * - `cpu`: the processor, by WebAssembly.
 * - `webgpu`: the GPU if the browser has one, else the processor; `provider()` says which, `stats()` why.
 * - `auto`: the fastest provider in a short measured run.
 */
export type Device = "cpu" | "webgpu" | "auto";

/**
 * How weights are stored, in a word: those of `config.model.dtype`, and what transformers.js calls them.
 *
 * - `f32`, `fp32`: as they are published.
 * - `f16`, `fp16`: made 16-bit floats at load.
 * - `bf16`: made the upper halves of 32-bit floats at load.
 * - `int8`, `q8`: made 8-bit integers at load.
 * - `int8-fast`: the same, and activations rounded to 8 bits.
 * - `auto`: the smallest form that is published and as good.
 */
export type DtypeWord = Dtype | "fp32" | "fp16" | "q8";

const PROVIDERS: Readonly<Record<Device, NonNullable<Config["providers"]>>> = {
  cpu: { executionProviders: ["cpu"] },
  webgpu: { executionProviders: ["webgpu", "cpu"] },
  auto: { providerAutoSelection: true },
};
const DTYPES: Readonly<Record<DtypeWord, Dtype>> = { auto: "auto", f32: "f32", fp32: "f32", f16: "f16", fp16: "f16", bf16: "bf16", int8: "int8", q8: "int8", "int8-fast": "int8-fast" };

/** The configuration with the words in it. Throws `Config` where both say something of the same. */
export function inWords({ device, dtype, config = {} }: { device?: Device | undefined; dtype?: DtypeWord | undefined; config?: Config | undefined }): Config {
  let whole = config;
  if (device !== undefined) {
    checkWord("device", device, Object.keys(PROVIDERS));
    apart("device", "providers", config.providers, ["executionProviders", "providerAutoSelection"]);
    whole = { ...whole, providers: { ...config.providers, ...PROVIDERS[device] } };
  }
  if (dtype !== undefined) {
    checkWord("dtype", dtype, Object.keys(DTYPES));
    apart("dtype", "model", config.model, ["dtype"]);
    whole = { ...whole, model: { ...config.model, dtype: DTYPES[dtype] } };
  }
  return whole;
}

/** Refuses a word where the configuration has a knob that it decides. */
function apart<T extends object>(word: string, group: string, knobs: T | undefined, names: readonly (keyof T & string)[]): void {
  const knob = names.find((name) => (knobs?.[name] ?? undefined) !== undefined);
  if (knob) throw new IsovecError("Config", `\`${word}\` and \`config.${group}.${knob}\` say the same thing twice; keep one of them`);
}
