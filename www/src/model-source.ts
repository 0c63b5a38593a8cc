import { cache } from "isovec";
import { buildInfo } from "./build-info.js";

/** Where the model comes from. */
export interface Source {
  /** As `Embedder.load` takes it. */
  source: string;
  /** In words. */
  where: string;
  /** What its files weigh, where that is known without asking anybody else. */
  bytes: number | undefined;
  /** Whether the browser keeps it already. */
  cached: boolean;
}

const HUB = "sentence-transformers/all-MiniLM-L6-v2";
const isFolder = (source: string) => /^([a-z][a-z0-9+.-]*:)?\/\/|^\.{0,2}\//i.test(source);

/** `?model=`, else the folder that was built beside the page, else the hub. */
export async function findSource(): Promise<Source> {
  const source = new URLSearchParams(location.search).get("model") ?? ((await buildInfo).model ? "./model/" : HUB);
  const address = isFolder(source) ? source.replace(/\/*$/, "/") : `https://huggingface.co/${source}/resolve/main/`;
  const folder = new URL(address, document.baseURI);
  const kept = (await cache.list()).filter(({ model }) => model === folder.href);
  const cached = kept.some(({ file }) => /\.(safetensors|onnx)$/.test(file)) && kept.every(({ complete }) => complete);
  const own = folder.origin === location.origin;
  return { source, where: own ? "this site" : folder.host, bytes: own && !cached ? await stated(folder) : undefined, cached };
}

/** What the files of a folder weigh, which `isovec export` states in config.json. Only this site is asked before the visitor agrees. */
async function stated(folder: URL): Promise<number | undefined> {
  try {
    const response = await fetch(new URL("config.json", folder));
    const { isovec } = (await response.json()) as { isovec?: { files?: Record<string, { bytes: number }> } };
    const sum = Object.values(isovec?.files ?? {}).reduce((sum, { bytes }) => sum + bytes, 0);
    return sum > 0 ? sum : undefined;
  } catch {
    return undefined; // Loading says what is wrong with the folder.
  }
}
