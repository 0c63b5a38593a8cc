import { byId, button } from "./dom.js";
import { note } from "./state.js";

/** Set when the page has opened itself again, to what was typed. */
const QUERY = "isovec-query";
const TRIED = "isovec-isolating";
const workers = (navigator as { serviceWorker?: ServiceWorkerContainer }).serviceWorker;
/** Whether the visitor has given something that would be lost if the page opened itself again. */
let given = false;

/** Starts the service worker, which keeps the page for offline visits and isolates it where the host does not. */
export async function startOffline(): Promise<void> {
  addEventListener("drop", () => (given = true));
  addEventListener("input", ({ target }) => (given ||= (target as HTMLElement).id !== "query"));
  if (!workers) return note("No service worker: the page does not work offline here, and has one thread");
  try {
    const registration = await workers.register("./sw.js");
    registration.addEventListener("updatefound", () => offer(registration));
    // It may have been found before anybody listened.
    if (registration.waiting ?? registration.installing) offer(registration);
  } catch (error) {
    note(`The service worker does not start (${String(error)}): no offline visits`);
  }
}

/** Resolves when the service worker sees this page's requests, or when it is clear that it will not for now. */
async function controlled(): Promise<void> {
  if (!workers || workers.controller) return;
  await new Promise<void>((resolve) => {
    workers.addEventListener("controllerchange", () => resolve(), { once: true });
    setTimeout(resolve, 3000);
  });
}

/**
 * A page that was opened without the isolation headers gets them by being opened again, once: before the model is loaded,
 * because only the model has a use for threads, and not while somebody looks at the page for the first time. With a question
 * the page goes on to load the model of texts.
 */
export async function isolate(question?: string): Promise<void> {
  await controlled();
  if (crossOriginIsolated || !workers?.controller || given || sessionStorage.getItem(TRIED)) return;
  sessionStorage.setItem(TRIED, "yes");
  if (question !== undefined) sessionStorage.setItem(QUERY, question);
  location.reload();
  await new Promise(() => {}); // Nothing is to begin any more.
}

/** What was typed when the page opened itself again to load the model; nothing where it did not. */
export function goesOn(): string | undefined {
  const query = sessionStorage.getItem(QUERY) ?? undefined;
  sessionStorage.removeItem(QUERY);
  return query;
}

/** A new version waits for the next visit, unless the visitor wants it at once. */
function offer(registration: ServiceWorkerRegistration): void {
  const worker = registration.waiting ?? registration.installing;
  const show = () => {
    if (worker?.state !== "installed" || !workers?.controller) return;
    const bar = byId("update");
    bar.hidden = false;
    bar.replaceChildren("A new version of this page is ready. ", button("Take it now", () => {
      workers.addEventListener("controllerchange", () => location.reload(), { once: true });
      worker.postMessage("take over");
    }));
  };
  worker?.addEventListener("statechange", show);
  show();
}
