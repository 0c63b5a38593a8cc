import { IsovecError } from "./error.js";
import { workingFolder } from "./node.js";

const HUB = "https://huggingface.co";

/** Where a folder of files lies, and where the hub states their hashes, if it is a hub. */
export interface Address {
  folder: string;
  pointers: string | undefined;
}

/**
 * Whether files are read without a server: from this machine (`file:`), or out of what the program came with
 * (`chrome-extension:`). Nobody answers 404 there, and what is there already need not be kept a second time.
 */
export function isLocal(url: string): boolean {
  return !/^https?:/.test(url);
}

/** What relative addresses are relative to: the page, or on a server the folder that the program runs in. */
function base(): string {
  if (globalThis.location?.href) return globalThis.document?.baseURI ?? globalThis.location.href;
  return workingFolder() ?? "file:///";
}

function urlOf(text: string): URL {
  try {
    return new URL(text, base());
  } catch (cause) {
    throw new IsovecError("Hub", `${JSON.stringify(text)} is no address (${String(cause)})`, { cause });
  }
}

/** An id is `name` or `owner/name`; whatever is written as a path or URL is a folder of files. */
export function folderOf(source: string | URL, options: { endpoint?: string; revision?: string }): Address {
  const text = String(source);
  if (source instanceof URL || /^([a-z][a-z0-9+.-]*:)?\/\/|^\.{0,2}\//i.test(text)) {
    const folder = urlOf(text);
    if (folder.search || folder.hash) throw new IsovecError("Hub", `${text} is no folder of files: it ends in a query or a place in a page; give what a server wants to know as \`headers\``);
    if (!folder.pathname.endsWith("/")) folder.pathname += "/";
    return { folder: folder.href, pointers: undefined };
  }
  if (!/^[\w.-]+(\/[\w.-]+)?$/.test(text)) {
    throw new IsovecError("Hub", `${JSON.stringify(text)} is neither a model id (owner/name) nor the URL of a folder (start it with ./, / or https://)`);
  }
  const endpoint = urlOf(options.endpoint ?? HUB).href.replace(/\/+$/, "");
  const revision = encodeURIComponent(options.revision ?? "main");
  return { folder: `${endpoint}/${text}/resolve/${revision}/`, pointers: `${endpoint}/${text}/raw/${revision}/` };
}
