import { buildInfo } from "./build-info.js";
import { announce, button, byId, make } from "./dom.js";
import { engine, loadEngine, type EngineState } from "./engine.js";
import { showError } from "./errors.js";
import { bytes } from "./format.js";

const panel = byId("start");
let bar: HTMLProgressElement | undefined;
let words: HTMLElement | undefined;

/** Shows what will be downloaded, downloads it on demand, and shows how far it is. */
export function startStartPanel(): void {
  let kind = "";
  engine.watch((state) => {
    if (state.kind === "loading") {
      if (kind !== "loading") showLoading(state);
      update(state);
    } else if (state.kind === "absent") void showOffer(state);
    else if (state.kind === "ready") {
      panel.hidden = true;
      announce("The model is ready.");
    }
    kind = state.kind;
  });
}

async function showOffer({ source, error }: EngineState & { kind: "absent" }): Promise<void> {
  const engines = Object.values((await buildInfo).engine);
  if (engine.value.kind !== "absent") return; // It began to load meanwhile.
  const largest = Math.max(...engines);
  const size = source.bytes === undefined ? undefined : source.bytes + largest;
  const parts = source.bytes === undefined
    ? `Its files come from ${source.where}, which says how large they are when asked; ${bytes(largest)} of engine come from this site.`
    : `${bytes(source.bytes)} from ${source.where}, and ${bytes(largest)} of engine.`;
  const go = button(size === undefined ? "Download and start" : `Download ${bytes(size)} and start`, loadEngine, { class: "primary" });
  const failure = make("div");
  panel.replaceChildren(
    make("div", { class: "start-words" },
      make("strong", {}, "Search by meaning needs the model."),
      make("p", {}, `${parts} Both are kept for the next visit. Until then the box finds words.`)),
    go, failure);
  panel.hidden = false;
  showError(failure, error);
}

function showLoading({ source, cancel }: EngineState & { kind: "loading" }): void {
  bar = make("progress", { "aria-label": "Loading the model" });
  words = make("p", { class: "tabular" });
  const title = source.cached ? "Opening the model kept in this browser" : `Fetching the model from ${source.where}`;
  panel.replaceChildren(make("div", { class: "start-words" }, make("strong", {}, title), bar, words), button("Cancel", cancel));
  panel.hidden = false;
  announce("Loading the model.");
}

function update({ bytes: now, total }: EngineState & { kind: "loading" }): void {
  if (!bar || !words) return;
  if (total !== undefined && now > 0) {
    bar.max = total;
    bar.value = now;
  }
  const all = total === undefined ? "" : ` of ${bytes(total)}`;
  words.textContent = total !== undefined && now >= total ? "Preparing it to run …" : bytes(now) + all;
}
