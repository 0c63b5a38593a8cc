import { openIndex, openSample } from "./corpus.js";
import { byId, announce, button, download, make } from "./dom.js";
import { ready } from "./engine.js";
import { showError } from "./errors.js";
import { bytes, count, plural } from "./format.js";
import { indexPassages } from "./indexing.js";
import { showKept } from "./kept.js";
import { PageError } from "./page-error.js";
import { column, likelyField, readFile, readText, type Reading } from "./passages.js";
import { takePictures } from "./pictures.js";
import { corpus } from "./state.js";
import { keep } from "./store.js";
import { open } from "./tabs.js";

const failure = byId("own-error");
const preview = byId("preview");
const zone = byId("drop");

/** Makes the part work where visitors bring texts of their own. */
export function startOwn(): void {
  const files = byId<HTMLInputElement>("files");
  files.onchange = () => {
    void take([...files.files!]);
    files.value = "";
  };
  byId("paste-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = byId<HTMLTextAreaElement>("pasted").value;
    void attempt(async () => propose("Pasted text", [readText(text, "txt", "The pasted text")]));
  });
  byId("to-sample").onclick = () => void attempt(openSample);
  byId("export").onclick = () => {
    const now = corpus.value;
    if (now) download(`${now.name}.safetensors`, now.index.save() as BlobPart);
  };
  // Files may be dropped anywhere; a page that opened them instead would be gone.
  addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  for (const kind of ["dragleave", "drop"]) addEventListener(kind, () => zone.classList.remove("over"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    const files = [...(event.dataTransfer?.files ?? [])];
    if (open === "pictures") return void takePictures(files);
    byId("own").scrollIntoView({ block: "nearest" });
    if (files.length) void take(files);
  });
}

async function attempt(action: () => Promise<unknown>): Promise<void> {
  showError(failure);
  try {
    await action();
  } catch (error) {
    showError(failure, error);
  }
}

async function take(files: File[]): Promise<void> {
  await attempt(async () => {
    const index = files.find(({ name }) => name.endsWith(".safetensors"));
    if (index) {
      await openIndex(index.name, index);
      preview.replaceChildren(make("p", {}, `${index.name} is open: ${plural(corpus.value!.passages.length, "passage")}.`));
      return announce(`${index.name} is open.`);
    }
    propose(files.map(({ name }) => name).join(", "), await Promise.all(files.map(readFile)));
  });
}

/** Shows what was read, and offers to index it. */
function propose(name: string, readings: Reading[]): void {
  const tables = readings.filter((reading) => "fields" in reading);
  const texts = readings.flatMap((reading) => ("passages" in reading ? reading.passages : []));
  const fields = [...new Set(tables.flatMap((table) => table.fields))];
  const choice = make("select", { id: "field" }, ...fields.map((field) => make("option", { value: field }, field)));
  if (tables[0]) choice.value = likelyField(tables[0]);
  const passages = () => [...texts, ...tables.flatMap(({ rows }) => column(rows, choice.value))];
  const words = make("p");
  const example = make("blockquote");
  const go = button("Index them", () => void attempt(() => index(name, passages())), { class: "primary" });
  const look = () => {
    const all = passages();
    words.textContent = `${name}: ${plural(all.length, "passage")}. The first:`;
    example.textContent = all[0]?.slice(0, 240) ?? "There is no text in it.";
    go.disabled = all.length === 0;
  };
  choice.onchange = look;
  look();
  const chooser = fields.length > 0 ? [make("p", {}, make("label", { htmlFor: "field" }, "Text is in the column "), choice)] : [];
  preview.replaceChildren(words, ...chooser, example, go);
  announce(words.textContent!);
}

/** Indexes passages, shows how far it is, keeps the index and opens it. */
async function index(name: string, passages: string[]): Promise<void> {
  const embedder = ready();
  if (!embedder) throw new PageError("The model is not there yet.", "Start it at the top of the page, then index the passages.");
  const ending = new AbortController();
  const bar = make("progress", { max: passages.length, value: 0, "aria-label": "Passages indexed" });
  const words = make("p", { class: "tabular" }, "Starting …");
  preview.replaceChildren(bar, words, button("Cancel", () => ending.abort(), { id: "cancel" }));
  try {
    const made = await indexPassages(embedder, passages, ending.signal, ({ done, all, rate }) => {
      bar.value = done;
      words.textContent = `${count(done)} of ${count(all)} passages, ${count(rate)} a second, ${count((all - done) / rate)} s to go`;
    });
    if (!made) return void preview.replaceChildren(make("p", {}, "Cancelled; nothing was indexed."));
    const full = made.length === passages.length ? name : `${name} (the first ${count(made.length)})`;
    corpus.value = { name: full, passages: made.labels!, index: made, isSample: false };
    const content = new Blob([made.save() as BlobPart]);
    byId<HTMLTextAreaElement>("pasted").value = "";
    const how = ending.signal.aborted ? "were indexed before you cancelled" : "are indexed";
    preview.replaceChildren(make("p", {}, `${plural(made.length, "passage")} ${how} (${bytes(content.size)}). Search them above.`));
    announce("Indexing has ended.");
    await keep({ name: full, made: new Date(), passages: made.length, content });
    await showKept();
  } catch (error) {
    preview.replaceChildren();
    throw error;
  }
}
