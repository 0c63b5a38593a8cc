import { chosen } from "./builds.js";
import type { Request } from "./host.js";
import type { Module } from "./module.js";

/**
 * Which files are a model (Rust: `next_told`). What is known of them comes as JSON, and the answer is what to find out
 * next, or the choice.
 */
export type Rules = (known: string) => Promise<string>;

/** What is known of a file: nothing else than that it is not there, or its size, and what is in it where that matters. */
export type Fact = { bytes?: number; text?: string } | null;

export interface Known {
  origin: string;
  onnx_file?: string;
  smallest: boolean;
  /** Whether what is not among the files is not there. */
  listed: boolean;
  files: Record<string, Fact>;
}

/** What has to be known: that a file is there, which is taken then; its size, of one that is likely to be taken; its size; its content. */
export type Need = "taken" | "likely" | "size" | "content";

export type Answer = { ask: [path: string, need: Need][] } | { files: string[]; weights: string };

/** The rules of a module that is being loaded anyway. */
export function rulesOf(module: Promise<Module>): Rules {
  return async (known) => {
    const engine = await module;
    return engine.guardedNow(() => engine.glue.chooseFiles(known));
  };
}

/** The rules in this thread, for a page whose worker has the module: only what fetches here has to have them here. */
export function rulesHere(request: Request): Rules {
  return async (known) => {
    const { instanceOf } = await import("./here.js");
    return rulesOf(instanceOf(await chosen(request)))(known);
  };
}
