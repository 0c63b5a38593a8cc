import { Embedder, Embeddings, ImageEmbedder, IsovecError, topK, type Hit } from "isovec";
import { announce, button, byId, make } from "./dom.js";
import { isCancelled, showError } from "./errors.js";
import { bytes, count, plural } from "./format.js";
import { isolate } from "./offline.js";
import { note } from "./state.js";
import { onTab } from "./tabs.js";

/** A CLIP: one model, of which one half reads pictures and the other texts. */
const HUB = "laion/CLIP-ViT-B-32-laion2B-s34B-b79K";
const K = 12;

/** A picture that is indexed: its name, and an address of its file in this tab. */
interface Shown {
  name: string;
  url: string;
}

const state = byId("pictures-state");
const failure = byId("pictures-error");
const grid = byId<HTMLOListElement>("pictures-found");
const box = byId<HTMLInputElement>("pictures-query");
const source = new URLSearchParams(location.search).get("pictures") ?? HUB;

/** The halves of the model, once somebody wanted them. */
let halves: { pictures: Promise<ImageEmbedder>; texts: Promise<Embedder> } | undefined;
const shown: Shown[] = [];
let index: Embeddings | undefined;
let running: AbortController | undefined;

/** Makes the part work that finds pictures. */
export function startPictures(): void {
  byId("pictures-source").textContent = source;
  // Before there are pictures that would be lost.
  onTab((name) => {
    if (name === "pictures") void isolate();
  });
  for (const id of ["pictures-files", "pictures-folder"]) {
    const input = byId<HTMLInputElement>(id);
    input.onchange = () => {
      const files = [...input.files!];
      input.value = "";
      void takePictures(files);
    };
  }
  byId("pictures-form").addEventListener("submit", (event) => {
    event.preventDefault();
    void act(find);
  });
}

/** Indexes files that were chosen, or dropped. */
export const takePictures = (files: readonly File[]): Promise<void> => act(() => take(files));

async function act(action: () => Promise<void>): Promise<void> {
  showError(failure);
  try {
    await action();
  } catch (error) {
    if (isCancelled(error)) return;
    note(`Pictures: ${String(error)}`);
    state.replaceChildren();
    showError(failure, error);
  }
}

/** Both halves. Their files are the same, fetched once, and kept for the next visit. */
function model(signal: AbortSignal): NonNullable<typeof halves> {
  if (halves) return halves;
  const came = new Map<string, number>();
  const onProgress = ({ file, bytes: some }: { file: string; bytes: number }) => {
    came.set(file, some);
    state.textContent = `Loading the model: ${bytes([...came.values()].reduce((sum, size) => sum + size, 0))}`;
  };
  const pictures = ImageEmbedder.load(source, { onProgress, signal });
  // One after the other: the second finds the files that the first has brought.
  const texts = pictures.then(() => Embedder.load(source, { signal }));
  const failed = () => (halves = undefined);
  texts.catch(failed);
  return (halves = { pictures, texts });
}

/** Indexes pictures, beside those that are there. What cannot be read is named, and left out. */
async function take(files: readonly File[]): Promise<void> {
  if (files.length === 0) return;
  running?.abort();
  const ending = (running = new AbortController());
  const bar = make("progress", { max: files.length, value: 0, "aria-label": "Pictures indexed" });
  const words = make("span", { class: "tabular" });
  const embedder = await model(ending.signal).pictures;
  state.replaceChildren(bar, " ", words, " ", button("Cancel", () => ending.abort(), { id: "pictures-cancel" }));
  const made: Embeddings[] = [];
  const unread: string[] = [];
  const started = performance.now();
  try {
    for (let done = 0; done < files.length; done++) {
      const file = files[done]!;
      try {
        made.push(await embedder.embed([file], { signal: ending.signal }));
        shown.push({ name: file.name, url: URL.createObjectURL(file) });
      } catch (error) {
        if (!(error instanceof IsovecError && error.kind === "Picture")) throw error;
        unread.push(`${file.name}: ${error.message.replace(/^picture 0: /, "")}`);
      }
      bar.value = done + 1;
      words.textContent = `${count(done + 1)} of ${count(files.length)}, ${((done + 1) / ((performance.now() - started) / 1000)).toFixed(1)} a second`;
    }
  } finally {
    // Those that are done are not lost.
    if (made.length > 0) index = Embeddings.concat(index ? [index, ...made] : made);
  }
  const left = unread.map((why) => make("li", {}, why));
  state.replaceChildren(`${plural(shown.length, "picture")} indexed in this tab.`, ...(left.length > 0 ? [make("details", {}, make("summary", {}, `${plural(left.length, "file")} left out`), make("ul", {}, ...left))] : []));
  announce(state.textContent!);
  show(shown.slice(0, K).map((_, at) => ({ index: at, score: Number.NaN })));
}

/** Finds pictures by what was typed. */
async function find(): Promise<void> {
  const text = box.value.trim();
  if (!index || text === "") return;
  const ending = (running = new AbortController());
  const query = await (await model(ending.signal).texts).embedQuery(text);
  show(index.searchOne(query, K));
  announce(`First: ${grid.querySelector("img")?.alt ?? "nothing"}`);
}

function show(hits: readonly Hit[]): void {
  grid.replaceChildren(
    ...hits.map(({ index: at, score }) => {
      const { name, url } = shown[at]!;
      const like = button("More like this", () => show(near(at)), { "aria-label": `More like ${name}` });
      const value = Number.isNaN(score) ? [] : [make("span", { class: "tabular soft" }, score.toFixed(3))];
      return make("li", {}, make("img", { src: url, alt: name, loading: "lazy" }), make("div", { class: "below" }, ...value, like));
    }),
  );
}

/** Pictures like one of those that are indexed. */
function near(at: number): Hit[] {
  return topK(index!.row(at), index!, K + 1).filter(({ index }) => index !== at).slice(0, K);
}
