import { cosine } from "isovec";
import { announce, byId, tableRow } from "./dom.js";
import { ready } from "./engine.js";
import { showError } from "./errors.js";
import { PageError } from "./page-error.js";
import { reference } from "./reference.js";

const go = byId<HTMLButtonElement>("parity-go");

/** Makes the part work that compares this browser's vectors with those that are shipped. */
export function startParity(): void {
  go.onclick = async () => {
    const failure = byId("parity-error");
    showError(failure);
    go.disabled = true;
    try {
      await compare();
    } catch (error) {
      showError(failure, error);
    } finally {
      go.disabled = false;
    }
  };
}

async function compare(): Promise<void> {
  const embedder = ready();
  if (!embedder) throw new PageError("The model is not there yet.", "Start it above, then compare.");
  const { texts, vectors } = await reference();
  if (vectors[0]!.length !== embedder.dimension) {
    const what = `This model's vectors have ${embedder.dimension} components, the reference's ${vectors[0]!.length}.`;
    throw new PageError(what, "The reference is all-MiniLM-L6-v2's; open the page without ?model=.");
  }
  byId("parity-summary").textContent = `Embedding ${texts.length} texts …`;
  const own = await embedder.embed(texts);
  const rows = texts.map((text, at) => {
    const [mine, native] = [own.row(at), vectors[at]!];
    const difference = mine.reduce((most, value, j) => Math.max(most, Math.abs(value - native[j]!)), 0);
    return { text, cosine: cosine(mine, native), difference };
  });
  rows.sort((a, b) => a.cosine - b.cosine || b.difference - a.difference);
  const worst = rows[0]!;
  const mean = rows.reduce((sum, { cosine }) => sum + cosine, 0) / rows.length;
  const { precision } = embedder.fingerprint();
  byId("parity-worst").textContent = worst.cosine.toFixed(6);
  byId("parity-mean").textContent = mean.toFixed(6);
  byId("parity-difference").textContent = Math.max(...rows.map(({ difference }) => difference)).toExponential(1);
  byId("parity-figures").hidden = byId("parity-table").hidden = false;
  byId("parity-summary").textContent = precision === "f32"
    ? `${rows.length} texts. The weights are those that were published, so what differs is rounding.`
    : `${rows.length} texts. The weights are stored as ${precision}, which is the difference; the engine adds rounding only.`;
  byId("parity-rows").replaceChildren(...rows.map(({ text, cosine, difference }) =>
    tableRow(false, cosine.toFixed(6), difference.toExponential(1), text ? text.slice(0, 160) : "(the empty text)")));
  announce(`Compared. The worst cosine is ${worst.cosine.toFixed(5)}.`);
}
