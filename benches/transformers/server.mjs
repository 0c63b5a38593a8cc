// What the pages are served from: this machine alone, from memory, as a web server would: what
// compresses well is compressed, everything may be kept, and what went over the wire is counted.
import { createServer } from "node:http";
import { extname } from "node:path";
import { gzipSync } from "node:zlib";

const TYPES = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
  ".json": "application/json",
  ".wasm": "application/wasm",
};

/** Serves files; `sent()` gives the bytes of all bodies since it was asked last, `report()` what a page posts next. */
export async function serve(files) {
  const packed = new Map();
  for (const [path, content] of files) if (TYPES[extname(path)]) packed.set(path, gzipSync(content));
  let bytes = 0;
  let reported;
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://localhost").pathname;
    if (request.method === "POST" && path === "/report") {
      let text = "";
      request.on("data", (part) => (text += part)).on("end", () => reported?.(JSON.parse(text)));
      return void response.writeHead(204).end();
    }
    // A range is of the file itself; transformers.js asks for the first byte, to learn how large it is.
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "");
    const whole = files.get(path);
    const content = range ? whole?.subarray(Number(range[1]), Number(range[2]) + 1) : (packed.get(path) ?? whole);
    if (!content) return void response.writeHead(404, { "cache-control": "no-store" }).end();
    response.writeHead(range ? 206 : 200, {
      "content-type": TYPES[extname(path)] ?? "application/octet-stream",
      "content-length": content.length,
      "cache-control": "public, max-age=31536000, immutable",
      ...(range ? { "content-range": `bytes ${range[1]}-${Number(range[1]) + content.length - 1}/${whole.length}` } : {}),
      ...(packed.has(path) && !range ? { "content-encoding": "gzip" } : {}),
    });
    if (request.method === "HEAD") return void response.end();
    bytes += content.length;
    response.end(content);
  });
  await new Promise((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    sent() {
      const sent = bytes;
      bytes = 0;
      return sent;
    },
    report() {
      return new Promise((resolve) => (reported = resolve));
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
