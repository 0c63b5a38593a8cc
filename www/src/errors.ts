import { IsovecError, type ErrorKind } from "isovec";
import { make } from "./dom.js";
import { PageError, type Explained } from "./page-error.js";

const RELOAD = "Reload the page and try again.";

const OFFLINE: Explained = {
  what: "There is no network, and this browser does not keep the model yet.",
  todo: "Go online once and start it again.",
};

const KINDS: Partial<Record<ErrorKind, Explained>> = {
  Hub: { what: "The model's files did not come.", todo: "Check the address after ?model= and the network, then try again." },
  MissingFile: { what: "The model's folder lacks a file.", todo: "Serve the whole folder, or name another model after ?model=." },
  InvalidModel: { what: "The model's files cannot be used.", todo: "Name another model after ?model=, or export it again." },
  InvalidText: { what: "A text holds something that is no character.", todo: "Remove it and try again." },
  InputTooLarge: { what: "A text is too large for this browser's memory.", todo: "Cut it into shorter passages." },
  IncompatibleIndex: {
    what: "Another model made this index, so its vectors cannot be compared with your question's.",
    todo: "Index the texts again here, or load the page with the model that made it (?model=).",
  },
  InvalidEmbeddings: {
    what: "This file is no isovec index, or it is damaged.",
    todo: "Write it again with isovec embed -o index.safetensors.",
  },
  Picture: { what: "A picture cannot be read.", todo: "Choose PNG, JPEG, WebP or GIF files." },
  Preprocessor: { what: "isovec cannot follow how this model wants its pictures.", todo: "Name a CLIP after ?pictures=." },
  EnginePoisoned: {
    what: "The engine stopped at an internal error.",
    todo: "The next question starts it again; please report what you did.",
  },
  Disposed: { what: "The engine was closed.", todo: RELOAD },
};

/** What an error means to the visitor. The error's own words are kept as `detail`. */
export function explain(error: unknown): Explained & { detail: string } {
  const detail = error instanceof Error ? error.message : String(error);
  if (error instanceof PageError) return { what: error.what, todo: error.todo, detail: "" };
  if (error instanceof DOMException && error.name === "QuotaExceededError") {
    const todo = "Delete a kept index below, or free space on the device.";
    return { what: "The browser gives this page no more storage.", todo, detail };
  }
  if (!(error instanceof IsovecError)) return { what: "Something went wrong.", todo: RELOAD, detail };
  if ((error.kind === "Hub" || error.kind === "EngineUnavailable") && !navigator.onLine) return { ...OFFLINE, detail };
  if (error.kind === "EngineUnavailable") return { ...unavailable(detail), detail };
  return { ...(KINDS[error.kind] ?? { what: `The engine reports ${error.kind}.`, todo: RELOAD }), detail };
}

function unavailable(detail: string): Explained {
  if (/has no SIMD/.test(detail)) {
    return { what: "This browser's WebAssembly has no SIMD.", todo: "Use a current Chrome, Edge, Firefox or Safari (16.4 or later)." };
  }
  if (/worker/i.test(detail)) {
    const todo = "Switch off extensions that block scripts here, and reload.";
    return { what: "The browser does not let the engine's worker start.", todo };
  }
  return { what: "The engine cannot be loaded.", todo: "Reload the page; where that does not help, another browser may." };
}

/** Whether somebody pressed cancel. */
export const isCancelled = (error: unknown): boolean => error instanceof DOMException && error.name === "AbortError";

/** Shows an error in a place; nothing empties it. */
export function showError(place: HTMLElement, error?: unknown): void {
  place.replaceChildren();
  if (error === undefined || isCancelled(error)) return;
  const { what, todo, detail } = explain(error);
  const lines = [make("strong", {}, what), " ", todo];
  place.append(make("div", { class: "error", role: "alert" }, make("p", {}, ...lines), ...(detail ? [details(detail)] : [])));
}

function details(detail: string): HTMLElement {
  return make("details", {}, make("summary", {}, "Details"), make("p", { class: "detail" }, detail));
}
