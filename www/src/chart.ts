import { make } from "./dom.js";

const POINTS = 60;
const [WIDTH, HEIGHT] = [120, 36];
const SVG = "http://www.w3.org/2000/svg";

/** Lines of the last minute on one scale, with their newest values in figures. */
export class Chart {
  readonly element: HTMLElement;
  #figures: HTMLElement[];
  #lines: SVGPolylineElement[];
  #values: number[][];

  /** `series`: a name for each line; one that stands alone needs none. */
  constructor(title: string, readonly format: (value: number) => string, series: readonly string[] = [""]) {
    const picture = document.createElementNS(SVG, "svg");
    picture.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    picture.setAttribute("preserveAspectRatio", "none");
    picture.setAttribute("aria-hidden", "true");
    this.#lines = series.map(() => document.createElementNS(SVG, "polyline"));
    picture.append(...this.#lines);
    this.#values = series.map(() => []);
    this.#figures = series.map(() => make("span", { class: "figure tabular" }, "–"));
    const figures = series.map((name, at) => make("span", {}, this.#figures[at]!, make("span", { class: "soft" }, name ? ` ${name}` : "")));
    const head = make("span", { class: "soft" }, title);
    this.element = make("div", { class: "chart" }, head, make("div", { class: "figures" }, ...figures), picture);
  }

  /** Adds a value to each line at the right; the oldest leave at the left. */
  add(...values: number[]): void {
    this.#values = this.#values.map((line, at) => [...line, values[at]!].slice(-POINTS));
    const largest = Math.max(...this.#values.flat()) || 1;
    for (const [at, line] of this.#values.entries()) {
      this.#figures[at]!.textContent = this.format(values[at]!);
      const x = (place: number) => WIDTH - (line.length - 1 - place) * (WIDTH / (POINTS - 1));
      const points = line.map((value, place) => `${x(place).toFixed(1)},${(HEIGHT - 2 - (value / largest) * (HEIGHT - 4)).toFixed(1)}`);
      this.#lines[at]!.setAttribute("points", points.join(" "));
    }
  }
}
