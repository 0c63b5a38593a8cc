import { byId, button, make } from "../dom.js";
import { count, ms } from "../format.js";
import { words } from "../highlight.js";
import { likeThis } from "../search.js";
import { corpus, found, type Corpus } from "../state.js";
import { onTab, open } from "../tabs.js";
import { ROUNDS } from "./layout.js";
import type { MapAnswer, MapRequest } from "./worker.js";

const MOST = 5000;
const canvas = byId<HTMLCanvasElement>("map");
const frame = byId("map-frame");
const about = byId("map-about");
const chosen = byId("map-chosen");
const legend = byId("legend");
const dark = matchMedia("(prefers-color-scheme: dark)");
const still = matchMedia("(prefers-reduced-motion: reduce)");

let worker: Worker | undefined;
/** What the map shows, and which rows of it: of a large corpus every so many. */
let shown: Corpus | undefined;
let rows: number[] = [];
let points = new Float32Array();
let clusters: MapAnswer["clusters"];
let selected: number | undefined;
let only: number | undefined;
let drawing = false;

/** Makes the map work. It is computed when its tab is first opened, and again for another corpus. */
export function startMap(): void {
  onTab((name) => name === "map" && begin());
  corpus.watch(() => open === "map" && begin());
  found.watch(draw);
  dark.addEventListener("change", () => {
    showLegend();
    draw();
  });
  new ResizeObserver(draw).observe(canvas);
  canvas.addEventListener("pointermove", (event) => choose(at(event)));
  canvas.addEventListener("pointerdown", (event) => choose(at(event)));
  frame.addEventListener("keydown", onKey);
  frame.addEventListener("focus", () => choose(selected ?? 0));
}

function begin(): void {
  const now = corpus.value;
  if (!now || now === shown) return;
  shown = now;
  selected = only = undefined;
  chosen.replaceChildren("Point at a dot, tap it, or use the arrow keys.");
  const step = Math.max(1, now.passages.length / MOST);
  rows = Array.from({ length: Math.min(MOST, now.passages.length) }, (_, i) => Math.floor(i * step));
  worker?.terminate();
  if (rows.length < 3) {
    points = new Float32Array();
    draw();
    return void (about.textContent = "A map needs three passages.");
  }
  const { dimension } = now.index;
  const values = new Float32Array(rows.length * dimension);
  for (const [i, row] of rows.entries()) values.set(now.index.row(row), i * dimension);
  worker = new Worker(new URL("./map.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }: MessageEvent<MapAnswer>) => receive(data);
  worker.onerror = () => (about.textContent = "The browser does not let the map's worker start; extensions that block scripts may be why.");
  const vectors = { values, rows: rows.length, columns: dimension };
  const request: MapRequest = { vectors, words: rows.map((row) => words(now.passages[row]!)) };
  worker.postMessage(request, [values.buffer]);
  about.textContent = "Computing …";
}

function receive(data: MapAnswer): void {
  if (data.clusters) {
    clusters = data.clusters;
    showLegend();
  }
  if (still.matches && data.settled < 1) return;
  points = data.points as Float32Array<ArrayBuffer>;
  const all = shown?.passages.length ?? 0;
  const part = all > rows.length ? `${count(rows.length)} of ${count(all)} passages` : `${count(all)} passages`;
  about.textContent = data.settled < 1
    ? `${part}: principal components, now settling to their neighbours …`
    : `${part}, placed by principal components and then ${ROUNDS} rounds of pulling neighbours together, in ${ms(data.milliseconds)} ` +
      `in a worker. Colours are ${clusters?.names.length} k-means clusters.`;
  draw();
}

const colour = (cluster: number) => `hsl(${(cluster * 137.5 + 200) % 360} ${dark.matches ? "65% 66%" : "60% 40%"})`;

function showLegend(): void {
  legend.replaceChildren(...(clusters?.names ?? []).map((name, cluster) => {
    const swatch = make("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = colour(cluster);
    const toggle = button("", () => {
      only = only === cluster ? undefined : cluster;
      for (const [i, item] of [...legend.querySelectorAll("button")].entries()) item.setAttribute("aria-pressed", String(i === only));
      draw();
    }, { "aria-pressed": String(only === cluster) });
    toggle.append(swatch, name);
    return make("li", {}, toggle);
  }));
}

/** Where points are on the canvas, in its own pixels. */
function placed(): (i: number) => [number, number] {
  let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let i = 0; i < points.length; i += 2) {
    left = Math.min(left, points[i]!);
    right = Math.max(right, points[i]!);
    top = Math.min(top, points[i + 1]!);
    bottom = Math.max(bottom, points[i + 1]!);
  }
  const margin = 16;
  const { clientWidth: width, clientHeight: height } = canvas;
  const x = (width - 2 * margin) / (right - left || 1);
  const y = (height - 2 * margin) / (bottom - top || 1);
  return (i) => [margin + (points[2 * i]! - left) * x, margin + (points[2 * i + 1]! - top) * y];
}

/** Draws at the next frame, however often it is asked for before. */
function draw(): void {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    paint();
  });
}

function paint(): void {
  const context = canvas.getContext("2d");
  const { clientWidth: width, clientHeight: height } = canvas;
  if (!context || width === 0) return;
  const density = devicePixelRatio;
  if (canvas.width !== Math.round(width * density) || canvas.height !== Math.round(height * density)) {
    canvas.width = Math.round(width * density);
    canvas.height = Math.round(height * density);
  }
  context.setTransform(density, 0, 0, density, 0, 0);
  context.clearRect(0, 0, width, height);
  const place = placed();
  const radius = rows.length > 1500 ? 2 : rows.length > 500 ? 3 : 4;
  const ink = getComputedStyle(canvas).color;
  const hits = new Set(shown === corpus.value ? found.value.filter(({ score }) => score !== undefined).map(({ index }) => index) : []);
  for (let i = 0; i < points.length / 2; i++) {
    const cluster = clusters?.of[i] ?? 0;
    const [x, y] = place(i);
    context.globalAlpha = only === undefined || only === cluster ? 0.85 : 0.12;
    context.fillStyle = colour(cluster);
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fill();
    if (i !== selected && !hits.has(rows[i]!)) continue;
    context.globalAlpha = 1;
    context.strokeStyle = ink;
    context.lineWidth = i === selected ? 2.5 : 1.5;
    context.beginPath();
    context.arc(x, y, radius + (i === selected ? 5 : 3), 0, 2 * Math.PI);
    context.stroke();
  }
}

/** The dot nearest to a pointer, if one is near. */
function at({ offsetX, offsetY }: PointerEvent): number | undefined {
  const place = placed();
  let best: number | undefined;
  let least = 24 ** 2;
  for (let i = 0; i < points.length / 2; i++) {
    const [x, y] = place(i);
    const distance = (x - offsetX) ** 2 + (y - offsetY) ** 2;
    if (distance < least) [best, least] = [i, distance];
  }
  return best;
}

function choose(i: number | undefined): void {
  if (i === undefined || i === selected || !shown || points.length === 0) return;
  selected = i;
  const row = rows[i]!;
  const name = clusters?.names[clusters.of[i]!] ?? "";
  const words = [make("p", {}, shown.passages[row]!), make("p", { class: "soft" }, name)];
  chosen.replaceChildren(...words, button("More like this", () => likeThis(row)));
  draw();
}

/** Arrows go to the nearest dot in their direction. */
function onKey(event: KeyboardEvent): void {
  const direction = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
  if (event.key === "Enter" && selected !== undefined) likeThis(rows[selected]!);
  if (!direction || points.length === 0) return;
  event.preventDefault();
  const place = placed();
  const [fromX, fromY] = place(selected ?? 0);
  let best: number | undefined;
  let least = Infinity;
  for (let i = 0; i < points.length / 2; i++) {
    const [x, y] = place(i);
    const along = (x - fromX) * direction[0]! + (y - fromY) * direction[1]!;
    const across = Math.abs((x - fromX) * direction[1]!) + Math.abs((y - fromY) * direction[0]!);
    if (i === selected || along <= 0.5 || across > along) continue;
    if (along + across < least) [best, least] = [i, along + across];
  }
  choose(best);
}
