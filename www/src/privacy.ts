import { byId } from "./dom.js";
import { bytes, plural } from "./format.js";

// What leaves the tab, counted: by the service worker, through which every request of the page and its workers goes, and
// until it is there by the browser's own list of requests.

const hosts = new Map<string, number>();
const workers = (navigator as { serviceWorker?: ServiceWorkerContainer }).serviceWorker;
let sent = 0;

function add(host: string, requests: number, content: number): void {
  hosts.set(host, (hosts.get(host) ?? 0) + requests);
  sent += content;
  show();
}

function show(): void {
  byId("sent").textContent = bytes(sent);
  const total = [...hosts.values()].reduce((sum, one) => sum + one, 0);
  const others = [...hosts].filter(([host]) => host !== location.host);
  const elsewhere = others.map(([host, requests]) => `${requests} of them to ${host}`).join(", ");
  // Only the service worker sees bodies.
  const seen = workers?.controller ? "" : " The service worker does not watch this visit, so bodies are not counted.";
  byId("requests").textContent = `${plural(total, "request")} so far, ${elsewhere || "all of them to this site"}.${seen}`;
}

/** Starts counting. */
export function startCounting(): void {
  show();
  workers?.addEventListener("message", ({ data }: MessageEvent<{ request?: { host: string; sent: number } }>) => {
    if (data.request) add(data.request.host, 1, data.request.sent);
  });
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { host, search } = new URL(entry.name);
      // What the service worker saw it has told already.
      if ((entry as PerformanceResourceTiming).workerStart === 0) add(host, 1, search.length);
    }
  }).observe({ type: "resource", buffered: true });
}
