import { IsovecError } from "./error.js";
import type { Role } from "./host.js";

/** The prompt of a call. */
export interface PromptOptions {
  /**
   * The name of one of the model's prompts, `"query"`, `"passage"`, or `"none"`. A name can also be that of an adapter, as of
   * jina-embeddings-v3. Default: the model's default prompt.
   */
  prompt?: string;
  /** A text to put before each text, in place of a prompt of the model's. */
  prefix?: string;
}

/** The words that are no names of prompts. */
const WORDS = ["default", "none", "query", "passage"];

/** What the engine is told of a prompt: one of the words, a name behind `name:`, or a text behind `text:`. */
export function told(role: Role, { prompt, prefix }: { [word in keyof PromptOptions]: string | undefined }, text = "prefix"): string {
  for (const [name, value] of [["prompt", prompt], [text, prefix]]) {
    if (value !== undefined && typeof value !== "string") throw new IsovecError("Config", `the option ${name} is not a string`);
  }
  if (prompt === undefined && prefix === undefined) return role;
  if (role !== "default") throw new IsovecError("Config", `this call has the prompt ${JSON.stringify(role)} already; leave ${prompt === undefined ? text : "prompt"} out, or use embed`);
  if (prompt !== undefined && prefix !== undefined) throw new IsovecError("Config", `prompt names a prompt of the model, and ${text} is a text; give one of them`);
  if (prompt === undefined) return `text:${prefix}`;
  return WORDS.includes(prompt) ? prompt : `name:${prompt}`;
}
