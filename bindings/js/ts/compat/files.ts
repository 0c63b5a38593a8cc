import type { Pooling } from "../config.js";
import type { LoadOptions } from "../index.js";
import { requested } from "../request.js";
import { rulesHere } from "../rules.js";
import { gather, type ModelSource } from "../source.js";

/** A model's files by their path. Files as blobs lie outside the page's memory, and may be read any number of times. */
export type Contents = ReadonlyMap<string, Uint8Array | Blob>;

/** A model's files: those that are given, else those that are fetched or kept. */
export async function filesOf(source: ModelSource, options: LoadOptions): Promise<Contents> {
  const { request, listening } = requested({ output: "vectors", pictures: false }, source, options);
  if ("contents" in request.files) return request.files.contents;
  const gathered = await gather(request, listening, rulesHere(request));
  // They are loaded later, and as files that were given.
  void gathered.settle(true);
  return new Map(Array.from(gathered.files, ([name, content]) => [name, new Blob([content as Uint8Array<ArrayBuffer>])]));
}

/** What sentence-transformers adds to a model, and transformers.js does not look at. */
const ADDED = ["modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"];

/** The files that transformers.js looks at. */
export function plain(files: Contents): Contents {
  return new Map([...files].filter(([name]) => !ADDED.includes(name)));
}

/** How a text's vectors become one. */
export interface Head {
  pooling: Pooling;
  normalize: boolean;
}

/** The head that the model was trained with, if its files name one, else the most usual. */
export async function likely(files: Contents): Promise<Head> {
  const modules = await json(files.get("modules.json"));
  const normalize = !Array.isArray(modules) || modules.some((module: { type?: unknown }) => String(module?.type).endsWith(".Normalize"));
  const file = [...files.keys()].find((name) => /Pooling\/config\.json$/.test(name));
  const pooling = (await json(file && files.get(file))) as Record<string, unknown> | undefined;
  const is = (name: string, flag: string) => pooling?.["pooling_mode"] === name || pooling?.[flag] === true;
  if (is("cls", "pooling_mode_cls_token")) return { pooling: "cls", normalize };
  if (is("lasttoken", "pooling_mode_lasttoken")) return { pooling: "last_token", normalize };
  return { pooling: "mean", normalize };
}

async function json(content: Uint8Array | Blob | "" | undefined): Promise<unknown> {
  if (!content) return undefined;
  try {
    return JSON.parse(content instanceof Blob ? await content.text() : new TextDecoder().decode(content));
  } catch {
    return undefined; // It was only to be a hint.
  }
}
