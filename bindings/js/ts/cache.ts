import { folderOf } from "./address.js";
import { NAME, Store, type CachedFile } from "./store.js";

/**
 * The cache of this site's models, so that the next visit downloads nothing: in the browser's Cache API, under the
 * name `isovec`. Without a Cache API (node, pages without TLS) nothing is cached, and lists are empty.
 */
export const cache = {
  /** The cache's name in the browser's Cache API. */
  name: NAME,
  /** Every cached file, including incomplete ones. */
  async list(): Promise<CachedFile[]> {
    return (await (await Store.open())?.list()) ?? [];
  },
  /** Bytes of all of them. */
  async size(): Promise<number> {
    return (await cache.list()).reduce((sum, { bytes }) => sum + bytes, 0);
  },
  /** Takes a model away, by the source and options that it was loaded with; all of them where none is named. */
  async delete(source?: string | URL, options: { endpoint?: string; revision?: string } = {}): Promise<void> {
    await (await Store.open())?.delete(source === undefined ? undefined : folderOf(source, options).folder);
  },
};
