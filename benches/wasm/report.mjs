// Figures of the rounds, and their table.
import { largestDifference, median } from "../page/report.mjs";

/**
 * Of each case: the ceilings' medians, and each contestant in each way: times, share of the
 * ceiling, and how the first contestant of as many threads stands against it. A peer's `best` way is the one of the
 * lower median.
 */
export function figures(seen, flops) {
  return seen.map(({ case: name, ceilings, entries }, at) => {
    const oursFor = ({ threads }) => entries.find((entry) => entry.threads === threads);
    const limits = Object.fromEntries(Object.keys(ceilings[0] ?? {}).map((which) => [which, median(ceilings.map((one) => one[which]))]));
    const ms = (entry) => median(entry.rounds.flat());
    return {
      case: name,
      gflop: flops[at] / 1e9,
      ceilings: limits,
      entries: entries.map((entry) => ({
        name: entry.name,
        way: entry.way,
        best: entries.every((other) => other.name !== entry.name || ms(entry) <= ms(other)),
        samples: entry.rounds.flat().length,
        median: ms(entry),
        min: Math.min(...entry.rounds.flat()),
        // Neighbours in time had the same neighbours on the machine.
        shares: Object.fromEntries(
          Object.keys(limits).map((which) => [which, median(entry.rounds.map((times, round) => flops[at] / (median(times) * 1e6) / ceilings[round][which]))]),
        ),
        first: entry === oursFor(entry),
        ratio: ms(oursFor(entry)) / ms(entry),
        ratioPaired: median(entry.rounds.map((times, round) => median(oursFor(entry).rounds[round]) / median(times))),
        difference: largestDifference(entries[0].vectors, entry.vectors),
      })),
    };
  });
}

/** The figures as text; ratios are those of the first contestant of as many threads to the one in the line, differences those of the first. */
export function table(cases) {
  const ceilings = Object.keys(cases[0].ceilings);
  const head = ["case", "contestant", "ms, median (min)", ...ceilings.map((name) => `of ${name}`), "isovec / it", "of pairs", "difference"];
  const percent = (share) => `${(share * 100).toFixed(0)} %`;
  const lines = cases.flatMap(({ case: name, entries }) =>
    entries.map((entry, at) => [
      at ? "" : name,
      `${entry.name}, ${entry.way}${entry.best ? "" : " (not its best)"}`,
      `${entry.median.toFixed(1)} (${entry.min.toFixed(1)})`,
      ...ceilings.map((which) => percent(entry.shares[which])),
      ...(entry.first ? ["", ""] : [`${entry.ratio.toFixed(3)}x`, `${entry.ratioPaired.toFixed(3)}x`]),
      at ? entry.difference.toExponential(1) : "",
    ]),
  );
  const widths = head.map((words, at) => Math.max(words.length, ...lines.map((line) => line[at].length)));
  const row = (cells) => cells.map((cell, at) => (at < 2 ? cell.padEnd(widths[at]) : cell.padStart(widths[at]))).join("  ").trimEnd();
  const limits = ceilings.map((name) => `${name} ${median(cases.map((one) => one.ceilings[name])).toFixed(1)}`);
  return [row(head), ...lines.map(row), ...(limits.length ? [`ceilings, GFLOP/s without memory: ${limits.join(", ")}`] : [])].join("\n");
}

/** The largest difference of all. NaN where there is one: it then fails any bound. */
export const worst = (cases) => cases.flatMap(({ entries }) => entries).reduce((most, { difference }) => Math.max(most, difference), 0);
