// What the pages are served from: this machine alone, from memory, so that no disk is measured.
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".json": "application/json",
  // Under another type browsers refuse to compile while they download.
  ".wasm": "application/wasm",
};

/** The files of a folder, below it too, by the path that a URL has: `prefix` and the path inside. */
export function folder(prefix, root, wanted = () => true) {
  const files = new Map();
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && wanted(entry.name)) files.set(prefix + path.slice(root.length + 1).replaceAll("\\", "/"), readFileSync(path));
  }
  return files;
}

/** What makes pages `crossOriginIsolated`: they may then share memory with workers. */
export const ISOLATED = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };

/** Serves files from memory, uncompressed and never cached, with some headers; gives back the origin, what was asked for, and how to end. */
export async function serve(files, headers = {}) {
  const asked = new Set();
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://localhost").pathname;
    const content = files.get(path);
    if (!content) return void response.writeHead(404, { "cache-control": "no-store" }).end();
    asked.add(path);
    response.writeHead(200, {
      ...headers,
      "content-type": TYPES[extname(path)] ?? "application/octet-stream",
      "content-length": content.length,
      "cache-control": "no-store",
    });
    response.end(content);
  });
  await new Promise((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    asked,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
