/** The element of that id, which index.html has. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`index.html has no element with the id ${id}`);
  return found as T;
}

type Child = Node | string;

/** A new element: properties are set as they are, `class` and `aria-…` as attributes. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Record<string, unknown> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class" || name === "role" || name === "scope" || name.includes("-")) element.setAttribute(name, String(value));
    else (element as unknown as Record<string, unknown>)[name] = value;
  }
  element.append(...children);
  return element;
}

/** A button that calls. */
export function button(text: string, onclick: () => unknown, properties: Record<string, unknown> = {}): HTMLButtonElement {
  return make("button", { type: "button", onclick, ...properties }, text);
}

const live = byId("live");
/** A row of a table; its first cell heads it where `headed`. */
export function tableRow(headed: boolean, ...cells: string[]): HTMLTableRowElement {
  return make("tr", {}, ...cells.map((cell, at) => (headed && at === 0 ? make("th", { scope: "row" }, cell) : make("td", {}, cell))));
}

let later: ReturnType<typeof setTimeout> | undefined;

/** Says something to screen readers, once nothing newer has come for a moment. */
export function announce(text: string): void {
  clearTimeout(later);
  later = setTimeout(() => (live.textContent = text), 700);
}

/** Hands content to the visitor as a file; the name loses what file systems do not like. */
export function download(name: string, content: BlobPart): void {
  const url = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
  make("a", { href: url, download: name.replace(/[^\p{L}\p{N}.-]+/gu, "-") }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
