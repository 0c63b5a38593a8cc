// Figures of the samples, and their tables.

/** The middle value; the mean of the two middle ones of an even number. */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The largest difference of a component. NaN where there is one: it then fails any bound. */
export function largestDifference(a, b) {
  if (a.length !== b.length || a.length === 0) throw new Error(`vectors of ${a.length} and ${b.length} components`);
  return a.reduce((largest, value, at) => Math.max(largest, Math.abs(value - b[at])), 0);
}

const summary = (values) => ({ median: median(values), min: Math.min(...values) });

/** Medians and minima of each contestant's samples, and the first contestant against each other. */
export function figures(samples, warmed) {
  const names = Object.keys(samples);
  const [ours] = names;
  const first = {}, warm = {}, ratios = {};
  for (const name of names) {
    const phases = Object.keys(samples[name][0]);
    first[name] = Object.fromEntries(phases.map((phase) => [phase, summary(samples[name].map((sample) => sample[phase]))]));
    warm[name] = Object.fromEntries(Object.entries(warmed[name]).map(([length, times]) => [length, summary(times)]));
  }
  for (const name of names.slice(1)) {
    ratios[name] = {
      first: first[ours].total.median / first[name].total.median,
      // Neighbours in time had the same neighbours on the machine.
      firstPaired: median(samples[ours].map((sample, at) => sample.total / samples[name][at].total)),
      firstMin: first[ours].total.min / first[name].total.min,
      warmed: Object.fromEntries(Object.keys(warm[ours]).map((length) => [length, warm[ours][length].median / warm[name][length].median])),
    };
  }
  return { first, warmed: warm, ratios };
}

const PHASES = {
  modules: "page and modules",
  wasm: "  wasm: fetch, compile, instantiate",
  model: "  model: fetch",
  ready: "both in the page",
  session: "session, from there",
  run: "first run",
  total: "first vector, from navigation",
};

/** The figures as text. */
export function table({ first, warmed, ratios }) {
  const names = Object.keys(first);
  const label = (text) => text.padEnd(38);
  const cell = (text) => String(text).padStart(24);
  const times = ({ median, min }) => cell(`${median.toFixed(1)} (${min.toFixed(1)})`);
  const lines = [label("ms, median (min)") + names.map(cell).join("")];
  for (const [phase, words] of Object.entries(PHASES)) lines.push(label(words) + names.map((name) => times(first[name][phase])).join(""));
  for (const length of Object.keys(warmed[names[0]])) lines.push(label(`warmed, ${length}`) + names.map((name) => times(warmed[name][length])).join(""));
  for (const [name, ratio] of Object.entries(ratios)) {
    lines.push("", `${names[0]} against ${name}, first vector: ${ratio.first.toFixed(3)}x (median of pairs ${ratio.firstPaired.toFixed(3)}x, of minima ${ratio.firstMin.toFixed(3)}x)`);
    for (const [length, value] of Object.entries(ratio.warmed)) lines.push(`${names[0]} against ${name}, warmed, ${length}: ${value.toFixed(3)}x`);
  }
  return lines.join("\n");
}
