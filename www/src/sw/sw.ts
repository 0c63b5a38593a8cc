/// <reference lib="webworker" />
// The service worker: it keeps the page for offline visits, adds the headers that let the page share memory with workers,
// and tells the page of every request that leaves it.

/** Written by build-page.mjs, so that another build is another script. */
declare const BUILD: {
  hash: string;
  /** What is kept from the first visit on. */
  files: string[];
  /** What is kept when it is used: of the engine's builds a browser needs one. */
  large: string[];
};

const worker = self as unknown as ServiceWorkerGlobalScope;
const PREFIX = "isovec-page-";
const NAME = PREFIX + BUILD.hash;
const ISOLATION = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };
/** The address of a file of the page. */
const address = (path: string) => new URL(path, worker.registration.scope).href;

worker.addEventListener("install", (event) => event.waitUntil(install()));
worker.addEventListener("activate", (event) => event.waitUntil(activate()));
worker.addEventListener("message", (event) => {
  if (event.data === "take over") void worker.skipWaiting();
});
worker.addEventListener("fetch", (event) => {
  event.waitUntil(tell(event.request.clone()));
  const file = fileOf(event.request);
  if (file !== undefined) event.respondWith(answer(event, file));
});

/** Takes all files before the version counts, from the server and not from the browser's own cache. */
async function install(): Promise<void> {
  const names = (await caches.keys()).filter((name) => name.startsWith(PREFIX));
  const before = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
  const used = new Set(before.flat().map(({ url }) => url));
  // The engine's build that the last version had in use: offline visits need the new one's, too.
  const files = [...BUILD.files, ...BUILD.large.filter((path) => used.has(address(path)))];
  await Promise.all(files.map(async (path) => keep(path, await isolated(path))));
}

/** Other versions' files go when no page uses them any more. */
async function activate(): Promise<void> {
  const old = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== NAME);
  await Promise.all(old.map((name) => caches.delete(name)));
  await worker.clients.claim();
}

/** The page's file that a request means; nothing for all else, such as the model, which the package keeps itself. */
function fileOf({ url, method }: Request): string | undefined {
  const { origin, pathname } = new URL(url);
  const scope = new URL(worker.registration.scope);
  if (method !== "GET" || origin !== scope.origin || !pathname.startsWith(scope.pathname)) return undefined;
  const path = pathname.slice(scope.pathname.length) || "index.html";
  return BUILD.files.includes(path) || BUILD.large.includes(path) ? path : undefined;
}

async function answer(event: FetchEvent, path: string): Promise<Response> {
  const kept = await (await caches.open(NAME)).match(address(path));
  if (kept) return kept;
  const response = await isolated(path);
  // Without space the page works as long as there is a network.
  if (response.ok) event.waitUntil(keep(path, response.clone()).catch(() => {}));
  return response;
}

/** A file from the server, with the headers that isolate. */
async function isolated(path: string): Promise<Response> {
  const { body, headers, status } = await fetch(address(path), { cache: "no-cache" });
  const more = new Headers(headers);
  for (const [name, value] of Object.entries(ISOLATION)) more.set(name, value);
  return new Response(body, { headers: more, status });
}

async function keep(path: string, response: Response): Promise<void> {
  if (!response.ok) throw new Error(`${path}: the server answered ${response.status}`);
  await (await caches.open(NAME)).put(address(path), response);
}

/** Tells the pages what a request sends: its body, and what its address says beyond a file's name. */
async function tell(request: Request): Promise<void> {
  const { origin, host, search } = new URL(request.url);
  const body = request.method === "GET" || request.method === "HEAD" ? 0 : (await request.arrayBuffer()).byteLength;
  const own = origin === worker.location.origin;
  const sent = body + (request.mode === "navigate" ? 0 : search.length);
  for (const client of await worker.clients.matchAll()) client.postMessage({ request: { host, own, sent } });
}
