import { TextReader, hocr, plain, type PictureText } from "isovec";
import { announce, byId, download, make } from "./dom.js";
import { isCancelled, showError } from "./errors.js";
import { bytes, ms, plural } from "./format.js";
import { note } from "./state.js";

/** PP-OCRv4's networks, which know Chinese, English and digits: 15 MB. */
const HUB = {
  source: "SWHL/RapidOCR",
  detector: "PP-OCRv4/ch_PP-OCRv4_det_infer.onnx",
  orientation: "PP-OCRv1/ch_ppocr_mobile_v2.0_cls_infer.onnx",
  recognizer: "PP-OCRv4/ch_PP-OCRv4_rec_infer.onnx",
};

const folder = new URLSearchParams(location.search).get("reader");
const { source, ...networks } = folder === null ? HUB : { source: folder };
const state = byId("reader-state");
const failure = byId("reader-error");
const page = byId("reader-page");
const lines = byId<HTMLOListElement>("reader-lines");
const save = byId<HTMLButtonElement>("reader-save");
const hold = byId<HTMLButtonElement>("reader-copy");

/** The networks, once somebody wanted them. */
let reader: Promise<TextReader> | undefined;
let running: AbortController | undefined;
/** The picture that is shown, and its text. */
let shown: { name: string; url: string; text: PictureText } | undefined;

/** Makes the part work that reads the text of a picture. */
export function startReader(): void {
  byId("reader-source").textContent = source;
  const input = byId<HTMLInputElement>("reader-file");
  input.onchange = () => {
    const [file] = input.files!;
    input.value = "";
    if (file) void read(file);
  };
  hold.onclick = async () => {
    await navigator.clipboard.writeText(plain(shown!.text));
    announce("Copied.");
  };
  save.onclick = () => download(`${shown!.name}.hocr`, hocr([[shown!.name, shown!.text]]));
}

async function read(file: File): Promise<void> {
  showError(failure);
  running?.abort();
  const { signal } = (running = new AbortController());
  try {
    const networks = await loaded();
    state.textContent = `Reading ${file.name} …`;
    const started = performance.now();
    const text = await networks.readOne(file, { signal });
    signal.throwIfAborted();
    state.textContent = `${plural(text.lines.length, "line")} in ${ms(performance.now() - started)}, ${networks.provider().provider}`;
    announce(`${plural(text.lines.length, "line")} read.`);
    if (shown) URL.revokeObjectURL(shown.url);
    shown = { name: file.name, url: URL.createObjectURL(file), text };
    show(shown);
  } catch (error) {
    if (signal.aborted || isCancelled(error)) return;
    note(`Reader: ${String(error)}`);
    state.textContent = "";
    showError(failure, error);
  }
}

function loaded(): Promise<TextReader> {
  const came = new Map<string, number>();
  const onProgress = ({ file, bytes: some }: { file: string; bytes: number }) => {
    came.set(file, some);
    state.textContent = `Loading the networks: ${bytes([...came.values()].reduce((sum, size) => sum + size, 0))}`;
  };
  reader ??= TextReader.load(source, { ...networks, onProgress });
  reader.catch(() => (reader = undefined));
  return reader;
}

/** The picture with a box around each line, and the lines beside it. */
function show({ name, url, text: { width, height, lines: read } }: NonNullable<typeof shown>): void {
  const boxes = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  boxes.setAttribute("viewBox", `0 0 ${width} ${height}`);
  boxes.setAttribute("aria-hidden", "true");
  for (const { corners } of read) {
    const box = document.createElementNS("http://www.w3.org/2000/svg", "polygon");
    box.setAttribute("points", corners.map((corner) => corner.join(",")).join(" "));
    boxes.append(box);
  }
  page.replaceChildren(make("img", { src: url, alt: name }), boxes);
  page.hidden = false;
  lines.replaceChildren(...read.map(({ text, score }) => make("li", {}, `${text} `, make("span", { class: "tabular soft" }, score.toFixed(2)))));
  for (const button of [hold, save]) button.hidden = read.length === 0;
}
