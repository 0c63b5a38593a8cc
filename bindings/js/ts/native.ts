import type { Config } from "./config.js";
import { IsovecError } from "./error.js";
import { FOREIGN, camelCased, camelName, snakeCased } from "./names.js";

/**
 * A configuration as JSON that Rust reads.
 *
 * @throws `Config` for a name as Rust writes it: with two names for a knob nobody could tell which of them is meant.
 */
export function nativeConfig(config: unknown): string {
  // What JSON leaves out is left out here, too.
  const plain: unknown = JSON.parse(JSON.stringify(config) ?? "null");
  refuseSnake(plain, "");
  return JSON.stringify(snakeCased(plain));
}

/** The reverse of `nativeConfig`. */
export function configOf(json: string): Config {
  return camelCased(JSON.parse(json)) ?? {};
}

function refuseSnake(value: unknown, prefix: string): void {
  if (typeof value !== "object" || value === null) return;
  for (const [name, inner] of Object.entries(value)) {
    if (name.includes("_")) throw new IsovecError("Config", `\`${prefix}${name}\` of the configuration is written \`${prefix}${camelName(name)}\` in JavaScript`);
    if (!FOREIGN.has(name)) refuseSnake(inner, `${prefix}${name}.`);
  }
}
