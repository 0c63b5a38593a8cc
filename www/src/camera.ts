import { ImageClassifier, IsovecError, type Label } from "isovec";
import { announce, byId, make } from "./dom.js";
import { isCancelled, showError } from "./errors.js";
import { bytes } from "./format.js";
import { note } from "./state.js";
import { onTab } from "./tabs.js";

/** A small vision transformer with ImageNet's labels: 23 MB. */
const HUB = "WinKawaks/vit-tiny-patch16-224";
const K = 5;

/** Frames that the rate is of. */
const RECENT = 20;

const source = new URLSearchParams(location.search).get("camera") ?? HUB;
const toggle = byId<HTMLButtonElement>("camera-toggle");
const video = byId<HTMLVideoElement>("camera-video");
const labels = byId<HTMLOListElement>("camera-labels");
const state = byId("camera-state");
const failure = byId("camera-error");

/** The model, once somebody wanted it. */
let classifier: Promise<ImageClassifier> | undefined;
let running: AbortController | undefined;

/** Makes the part work that says what the camera sees. */
export function startCamera(): void {
  byId("camera-source").textContent = source;
  toggle.onclick = () => void (running ? running.abort() : watch());
  onTab((name) => {
    if (name !== "pictures") running?.abort();
  });
}

/** Classifies one frame after another until it is ended. */
async function watch(): Promise<void> {
  const ending = (running = new AbortController());
  const { signal } = ending;
  toggle.textContent = "Stop the camera";
  showError(failure);
  let stream: MediaStream | undefined;
  try {
    // Before the camera is asked for: a visitor who sees its light has something to see.
    const model = await loaded();
    signal.throwIfAborted();
    state.textContent = "Waiting for the camera";
    stream = await camera();
    signal.throwIfAborted();
    video.srcObject = stream;
    video.hidden = false;
    await video.play();
    await classify(model, signal);
  } catch (error) {
    if (!signal.aborted && !isCancelled(error)) {
      note(`Camera: ${String(error)}`);
      showError(failure, error);
    }
  } finally {
    for (const track of stream?.getTracks() ?? []) track.stop();
    video.srcObject = null;
    video.hidden = true;
    state.textContent = "";
    labels.replaceChildren();
    toggle.textContent = "Start the camera";
    running = undefined;
  }
}

function loaded(): Promise<ImageClassifier> {
  const came = new Map<string, number>();
  const onProgress = ({ file, bytes: some }: { file: string; bytes: number }) => {
    came.set(file, some);
    state.textContent = `Loading the model: ${bytes([...came.values()].reduce((sum, size) => sum + size, 0))}`;
  };
  classifier ??= ImageClassifier.load(source, { onProgress });
  classifier.catch(() => (classifier = undefined));
  return classifier;
}

async function camera(): Promise<MediaStream> {
  try {
    return await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
  } catch (cause) {
    throw new IsovecError("Picture", `there is no camera that this page may use (${String(cause)})`, { cause });
  }
}

async function classify(model: ImageClassifier, signal: AbortSignal): Promise<void> {
  const ends: number[] = [];
  let first: string | undefined;
  while (!signal.aborted) {
    const frame = new VideoFrame(video);
    let said: Label[];
    try {
      said = await model.classifyOne(frame, { signal });
    } finally {
      frame.close();
    }
    ends.push(performance.now());
    if (ends.length > RECENT) ends.shift();
    show(said.slice(0, K));
    const rate = ((ends.length - 1) / (ends.at(-1)! - ends[0]!)) * 1000;
    state.textContent = ends.length > 1 ? `${rate.toFixed(1)} frames a second, ${model.provider().provider}` : "";
    if (said[0]!.label !== first) announce(`The camera sees: ${(first = said[0]!.label)}`);
    // The page is drawn in between.
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
}

function show(said: readonly Label[]): void {
  labels.replaceChildren(...said.map(({ label, score }) => make("li", {}, make("meter", { value: score, "aria-label": label }), " ", make("span", { class: "tabular soft" }, score.toFixed(2)), ` ${label}`)));
}
