import { cache } from "isovec";
import { openIndex } from "./corpus.js";
import { byId, announce, button, download, make } from "./dom.js";
import { downloaded } from "./engine.js";
import { showError } from "./errors.js";
import { bytes, plural } from "./format.js";
import { forget, kept, type Kept } from "./store.js";

const failure = byId("kept-error");

/** Shows what this browser keeps for the page, and lets it be taken away. */
export async function showKept(): Promise<void> {
  try {
    const [indexes, models] = await Promise.all([kept(), cache.list()]);
    const folders = new Map<string, number>();
    for (const { model, bytes } of models) folders.set(model, (folders.get(model) ?? 0) + bytes);
    const rows = [...indexes.map(indexRow), ...[...folders].map(([folder, size]) => modelRow(folder, size))];
    byId("kept").replaceChildren(...rows);
    byId("kept-none").hidden = rows.length > 0;
  } catch (error) {
    showError(failure, error);
  }
}

/** Keeps the list up to date. */
export function startKept(): void {
  downloaded.watch(() => void showKept());
}

async function act(action: () => Promise<unknown>): Promise<void> {
  showError(failure);
  try {
    await action();
  } catch (error) {
    showError(failure, error);
  }
}

function indexRow({ id, name, made, passages, content }: Kept): HTMLElement {
  const named = (verb: string) => ({ "aria-label": `${verb} ${name}` });
  return row(name, `${plural(passages, "passage")}, ${bytes(content.size)}, ${made.toLocaleDateString()}`,
    button("Open", () => act(() => openIndex(name, content)), named("Open")),
    button("Save as file", () => download(`${name}.safetensors`, content), named("Save as file:")),
    button("Delete", () => act(async () => {
      await forget(id);
      announce(`${name} was deleted.`);
      await showKept();
    }), named("Delete")));
}

function modelRow(folder: string, size: number): HTMLElement {
  return row("Model", `${new URL(folder).pathname.replace(/\/resolve\/.*/, "")}, ${bytes(size)}`, button("Delete", () => act(async () => {
    await cache.delete(folder);
    announce("The model was deleted from this browser.");
    await showKept();
  }), { "aria-label": `Delete the model ${folder}` }));
}

function row(name: string, about: string, ...buttons: HTMLElement[]): HTMLElement {
  const words = make("div", {}, make("strong", {}, name), make("span", { class: "soft" }, about));
  return make("li", {}, words, make("div", { class: "buttons" }, ...buttons));
}
