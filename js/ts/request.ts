import type { Build } from "./builds.js";
import type { Config } from "./config.js";
import { checkWord } from "./error.js";
import { CACHING, type Listening, type Request } from "./host.js";
import { resolve, type FetchOptions, type ModelSource } from "./source.js";
import { wanted } from "./threads.js";

/** How a model is loaded. `config` is the Rust `EmbeddingConfig`. */
export interface LoadOptions extends FetchOptions {
  config?: Config;
  /**
   * The build of the module, for tests and for whoever has to pin it. Default: the fastest that runs here. One that
   * does not is the error `EngineUnavailable`.
   */
  build?: Build;
}

/** What loading a model takes, in the part that can be handed to a worker and the part that cannot. */
export function requested(source: ModelSource, options: LoadOptions): { request: Request; listening: Listening } {
  const { headers = {}, offline = false, cache = "use", onProgress, fetch, signal, config = {}, build } = options;
  checkWord("cache", cache, CACHING);
  const fetching = { headers, offline, cache, progress: onProgress !== undefined };
  const request = { ...resolve(source, options), fetching, config: JSON.stringify(cache === "off" ? { remember: false, ...config } : config), build, threads: wanted(config) };
  return { request, listening: { onProgress, fetch, signal } };
}
