/**
 * Translates names between Rust, which writes `max_batch_size`, and JavaScript, which writes `maxBatchSize`. Files
 * and output for other programs keep the names of Rust.
 */
import { FREE, KNOBS } from "./knobs.js";

/** Members whose own members have names that somebody else gave them: operators of a graph, prompts, a model's identity. */
export const FOREIGN: ReadonlySet<string> = new Set([...FREE, "claimed", "identity", "operators", "stages"]);

/** `max_batch_size` as `maxBatchSize`. */
export const camelName = (name: string): string => name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
/** `maxBatchSize` as `max_batch_size`. */
export const snakeName = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** What Rust wrote as JSON, under the names of JavaScript. Values, and names that somebody else gave, stay as they are. */
export function camelCased<T>(value: unknown): T {
  return renamed(value, camelName) as T;
}

/** The reverse of `camelCased`: what Rust reads as JSON. */
export function snakeCased(value: unknown): unknown {
  return renamed(value, snakeName);
}

function renamed(value: unknown, rename: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((inner) => renamed(inner, rename));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [rename(name), FOREIGN.has(name) ? inner : renamed(inner, rename)]));
}

/** A knob's path, wherever a text names it. */
const PATHS = new RegExp(`\\b(?:${KNOBS.map((path) => path.replaceAll(".", "\\.")).join("|")})\\b`, "g");
/** The last parts of those paths. */
const LAST: ReadonlySet<string> = new Set(KNOBS.map((path) => path.slice(path.lastIndexOf(".") + 1)));

/** A text of Rust's in which knobs have the names that JavaScript gives them. */
export function spoken(text: string): string {
  return text.replace(PATHS, camelName);
}

/** The same for what Rust says of a configuration that it cannot read: it quotes names without their path. */
export function spokenOfConfig(text: string): string {
  const unknown = new Set(Array.from(text.matchAll(/(?:unknown field `|no knob or group ")(\w+)/g), ([, name]) => name));
  const isName = (name: string) => unknown.has(name) || LAST.has(name);
  const quoted = spoken(text).replace(/([`"])(\w+)\1/g, (quoted, mark: string, name: string) => (isName(name) ? mark + camelName(name) + mark : quoted));
  // A knob that is gone has no path in the list.
  return quoted.replace(/(?<=there is no knob )[\w.]+/, camelName);
}

/** All texts within a value, spoken. */
export function spokenWithin<T>(value: T): T {
  if (typeof value === "string") return spoken(value) as T;
  if (Array.isArray(value)) return value.map(spokenWithin) as T;
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, spokenWithin(inner)])) as T;
}
