// A plain static host: by itself no isolation headers, in a folder of the site, as GitHub Pages serves it.
import { createReadStream, existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const types = {
  ".js": "text/javascript", ".wasm": "application/wasm", ".json": "application/json", ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
};

const data = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "tests", "data");
/** A seeded CLIP, and its vectors at float64. */
export const clip = join(data, "tiny-clip");
/** A seeded convolutional network that classifies. */
export const network = join(data, "tiny-network");
/** The built page. */
export const dist = join(dirname(dirname(fileURLToPath(import.meta.url))), "dist");

/** Serves the page under /page/, the model under /model/, a CLIP under /clip/, a network under /network/, and those that read text under /reader/. `change` rewrites scripts, for tests of another version. */
export async function serve(model, more = {}) {
  const host = { origin: "", change: undefined, close: () => (server.closeAllConnections(), server.close()) };
  const mounts = [["/page/", dist], ["/model/", model], ["/clip/", clip], ["/network/", network], ["/reader/", process.env.ISOVEC_TEST_OCR ?? "none"]];
  const server = createServer((request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://localhost").pathname));
    const [at, folder] = mounts.find(([at]) => path.startsWith(at)) ?? [];
    const file = folder && join(folder, path === at ? "index.html" : path.slice(at.length));
    if (!file || !existsSync(file) || !statSync(file).isFile()) return void response.writeHead(404).end();
    if (host.change && file.endsWith(".js")) {
      return void response.writeHead(200, { ...more, "content-type": types[".js"] }).end(host.change(path, readFileSync(file, "utf8")));
    }
    const headers = { ...more, "content-type": types[extname(file)] ?? "application/octet-stream", "content-length": statSync(file).size };
    response.writeHead(200, headers);
    if (request.method === "HEAD") return void response.end();
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  host.origin = `http://127.0.0.1:${server.address().port}`;
  return host;
}
