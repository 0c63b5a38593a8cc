// The figures as tables.

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(2)} MB`;
const ms = (value) => (value < 100 ? value.toFixed(1) : value.toFixed(0));

/** What was measured, as text; `result` as bench.mjs makes it. */
export function table({ versions, samples, load, first, page, node, firefox }, median) {
  const middle = (values) => `${ms(median(values))} (${ms(Math.min(...values))})`;
  const names = Object.keys(first);
  const rows = [["", ...names]];
  for (const [where, visited] of [["Chromium", first], ["Firefox", firefox.first]]) {
    const visits = (label, cell) => rows.push([`${where}, ${label}`, ...names.map((name) => cell(visited[name]))]);
    visits("over the wire, first visit", (seen) => megabytes(median(seen.map(({ cold }) => cold.bytes))));
    visits("first vector, ms", (seen) => middle(seen.map(({ cold }) => cold.ms)));
    visits("over the wire, next visit", (seen) => megabytes(median(seen.map(({ warm }) => warm.bytes))));
    visits("first vector, ms", (seen) => middle(seen.map(({ warm }) => warm.ms)));
  }
  for (const [where, { seen, vectors }] of [["Chromium", page], ["Firefox", firefox], ["node", node]]) {
    for (const { case: name, entries } of seen) {
      const best = names.map((name) => entries.filter((entry) => entry.name === name).sort((a, b) => median(a.rounds.flat()) - median(b.rounds.flat()))[0]);
      const times = (entry) => median(entry.rounds.flat());
      rows.push([`${where}, ${name}, ms`, ...best.map((entry) => middle(entry.rounds.flat()))]);
      // Neighbours in time had the same neighbours on the machine.
      const pairs = (entry) => median(entry.rounds.map((one, round) => median(one) / median(best[0].rounds[round])));
      rows.push(["  times isovec int8's, of pairs", ...best.map((entry) => `${(times(entry) / times(best[0])).toFixed(2)}, ${pairs(entry).toFixed(2)}`)]);
    }
    rows.push([`${where}, cosine: worst, mean`, ...names.map((name) => `${vectors[name].worst.toFixed(4)}, ${vectors[name].mean.toFixed(4)}`)]);
  }
  const widths = rows[0].map((_, at) => Math.max(...rows.map((row) => row[at].length)));
  const line = (row) => row.map((cell, at) => (at ? cell.padStart(widths[at]) : cell.padEnd(widths[at]))).join("  ");
  return [
    `isovec ${versions.isovec}, transformers.js ${versions.transformers}, Chromium ${versions.chromium}, node ${versions.node}; ${samples} rounds, medians (minima); one thread each; load average ${load.map((one) => one.toFixed(1)).join(" before, ")} after`,
    "The q8 file was made here, by ONNX Runtime's quantize_dynamic as transformers.js' conversion calls it; in node transformers.js runs ONNX Runtime natively, isovec its WebAssembly.",
    "",
    ...rows.map(line),
  ].join("\n");
}
