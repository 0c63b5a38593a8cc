import { topK } from "isovec";
import { announce, button, byId, make } from "./dom.js";
import { engine, latency, ready } from "./engine.js";
import { isCancelled, showError } from "./errors.js";
import { count, ms, plural } from "./format.js";
import { marked, matches, words } from "./highlight.js";
import { corpus, found, note, type Corpus, type Found } from "./state.js";
import { show } from "./tabs.js";

const K = 10;
const box = byId<HTMLInputElement>("query");
const list = byId<HTMLOListElement>("results");
const summary = byId("summary");
const failure = byId("search-error");
let running: AbortController | undefined;
/** The passage that neighbours are looked for, instead of a question. */
let like: number | undefined;

/** Makes the search box work. */
export function startSearch(): void {
  box.addEventListener("input", () => {
    like = undefined;
    void search();
  });
  byId("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    void search();
  });
  for (const example of document.querySelectorAll<HTMLButtonElement>("[data-query]")) {
    example.onclick = () => ask(example.textContent!);
  }
  corpus.watch((now) => {
    like = undefined;
    byId("corpus-name").textContent = now ? `${now.name}, ${plural(now.passages.length, "passage")}` : "opening …";
    byId("is-sample").hidden = !now?.isSample;
    byId("to-sample").hidden = !now || now.isSample;
    byId<HTMLButtonElement>("export").disabled = !now;
    void search();
  });
  let wasReady = false;
  engine.watch(({ kind }) => {
    if (kind === "ready" && !wasReady) void search();
    wasReady = kind === "ready";
  });
}

/** Searches for a text. */
export function ask(text: string): void {
  box.value = text;
  like = undefined;
  show("search");
  void search();
}

/** Shows the passages nearest to one of the corpus, which needs no model: their vectors are there. */
export function likeThis(index: number): void {
  const now = corpus.value;
  if (!now) return;
  like = index;
  box.value = "";
  show("search");
  void search();
  summary.focus();
}

async function search(): Promise<void> {
  running?.abort();
  const now = corpus.value;
  const text = box.value.trim();
  if (!now) return;
  if (like !== undefined) {
    const hits = topK(now.index.row(like), now.index, K + 1).filter(({ index }) => index !== like).slice(0, K);
    return display(now, hits, [], "Nearest to", marked(`“${now.passages[like]}”`, []));
  }
  if (text === "") return display(now, sample(now), [], "A few of the passages");
  const embedder = ready();
  if (!embedder) return display(now, byWords(now, text), words(text), "By words alone, until the model is there");
  const ending = (running = new AbortController());
  try {
    const started = performance.now();
    const question = await embedder.embedQuery(text, { signal: ending.signal });
    const embedded = performance.now();
    const hits = now.index.searchOne(question, K);
    const done = performance.now();
    if (ending.signal.aborted) return;
    latency.value = done - started;
    const how = `${ms(embedded - started)} to embed, ${ms(done - embedded)} to compare with ${count(now.passages.length)} vectors`;
    display(now, hits, words(text), how);
  } catch (error) {
    if (isCancelled(error) || ending.signal.aborted) return;
    note(`A search failed: ${String(error)}`);
    found.value = [];
    list.replaceChildren();
    summary.textContent = "";
    showError(failure, error);
  }
}

/** Passages from all over the corpus, to begin with. */
function sample({ passages }: Corpus): Found[] {
  const step = passages.length / Math.min(6, passages.length);
  return Array.from({ length: Math.min(6, passages.length) }, (_, at) => ({ index: Math.floor((at + 0.5) * step), score: undefined }));
}

/** The passages with the most of a question's words. */
function byWords({ passages }: Corpus, text: string): Found[] {
  const wanted = words(text);
  return passages
    .map((passage, index) => ({ index, score: undefined, hits: matches(passage, wanted).length }))
    .filter(({ hits }) => hits > 0)
    .sort((a, b) => b.hits - a.hits)
    .slice(0, K);
}

function display(now: Corpus, hits: readonly Found[], wanted: readonly string[], how: string, of: Node[] = []): void {
  showError(failure);
  found.value = hits;
  summary.replaceChildren(how, " ", ...of);
  list.replaceChildren(...hits.map(({ index, score }) => {
    const passage = now.passages[index] ?? "";
    const value = score === undefined ? [] : [meter(score)];
    const more = button("More like this", () => likeThis(index), { "aria-label": `More like this: ${passage.slice(0, 60)}` });
    return make("li", {}, make("p", { class: "passage" }, ...marked(passage, wanted)), make("div", { class: "below" }, ...value, more));
  }));
  byId("nothing").hidden = hits.length > 0;
  const [best] = hits;
  if (wanted.length > 0) announce(best ? `${plural(hits.length, "result")}. First: ${now.passages[best.index]}` : "No results.");
}

function meter(score: number): HTMLElement {
  const bar = make("span", { class: "bar", "aria-hidden": "true" }, make("span"));
  (bar.firstChild as HTMLElement).style.width = `${Math.max(0, Math.min(1, score)) * 100}%`;
  return make("span", { class: "score tabular" }, bar, make("span", { class: "hidden-text" }, "similarity "), score.toFixed(3));
}
