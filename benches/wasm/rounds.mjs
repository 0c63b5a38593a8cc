// The order in which contestants take turns, so that all see the same machine.

/** How long a case is run before anything counts: the browser's better code has to come first. */
const WARM_UP_MS = 1500;

/**
 * `samples` rounds over all cases. In each of them a case's contestants follow one another, each
 * in all its ways, and the ceilings are measured between them. Gives, for each case, the ceilings
 * of each round, and the times of each contestant and way in each round with its vectors.
 */
export async function rounds({ seats, ceiling, cases, samples, progress }) {
  const entries = [];
  for (const { name, threads, turn } of seats) {
    for (const way of await turn()) entries.push({ name, threads, way, turn });
  }
  const seen = cases.map((one) => ({
    case: one.name,
    ceilings: [],
    // A single text is one batch and one by one at once.
    entries: entries
      .filter(({ way }) => one.texts.length > 1 || way !== "one by one")
      .map((entry) => ({ ...entry, rounds: [] })),
  }));
  for (const [at, one] of cases.entries()) {
    for (const entry of seen[at].entries) {
      progress(`warming  ${one.name.padEnd(10)} ${entry.name}, ${entry.way}`);
      for (const from = performance.now(); ; ) {
        entry.vectors = (await entry.turn({ case: one.name, way: entry.way, calls: one.calls, vectors: true })).vectors;
        if (performance.now() - from > WARM_UP_MS) break;
      }
    }
  }
  if (ceiling) for (let warm = 0; warm < 5; warm++) await ceiling.turn();
  for (let round = 1; round <= samples; round++) {
    progress(`round ${round} of ${samples}`);
    for (const [at, one] of cases.entries()) {
      if (ceiling) seen[at].ceilings.push(await ceiling.turn());
      for (const entry of seen[at].entries) entry.rounds.push((await entry.turn({ case: one.name, way: entry.way, calls: one.calls })).times);
    }
  }
  return seen.map(({ entries, ...rest }) => ({ ...rest, entries: entries.map(({ turn, ...entry }) => entry) }));
}
