// A browser that nobody drives: the address says what to measure, and what came of it is posted back.
const job = JSON.parse(decodeURIComponent(location.hash.slice(1)));

const openAll = (contestants) => Promise.all(contestants.map(async ({ name, module, place }) => {
  const { open } = await import(`/wasm/contestants/${module}.mjs`);
  return { name, ways: await open({ origin: location.origin, isovec: "/isovec/dist/index.js", ...place }) };
}));

/** Milliseconds from the navigation to the first vector. */
async function visit({ contestants, text }) {
  const [{ ways }] = await openAll(contestants);
  await Object.values(ways)[0]({ texts: [text] });
  return performance.now();
}

/** Warmed runs: contestants take turns, each in its ways. */
async function rounds({ contestants, cases, samples }) {
  const all = await openAll(contestants);
  const entries = cases.flatMap(({ name: at, texts, calls }) => all.flatMap(({ name, ways }) => Object.entries(ways).map(([way, run]) => ({ at, name, way, calls, run: () => run({ texts }), rounds: [] }))));
  for (const { run } of entries) for (const from = performance.now(); performance.now() - from < 1500; ) await run();
  for (let round = 0; round < samples; round++) {
    for (const { calls, run, rounds } of entries) {
      const times = [];
      for (let call = 0; call < calls; call++) {
        const from = performance.now();
        await run();
        times.push(performance.now() - from);
      }
      rounds.push(times);
    }
  }
  return cases.map(({ name }) => ({ case: name, entries: entries.filter(({ at }) => at === name).map(({ name, way, rounds }) => ({ name, way, rounds })) }));
}

/** The vectors of texts, each embedded alone. */
async function vectors({ contestants, texts }) {
  const all = await openAll(contestants);
  const found = {};
  for (const { name, ways } of all) found[name] = Array.from(await Object.values(ways).at(-1)({ texts, rows: [] }));
  return found;
}

let report;
try {
  report = { value: await { visit, rounds, vectors }[job.what](job) };
} catch (error) {
  report = { error: String(error?.stack ?? error) };
}
await fetch("/report", { method: "POST", body: JSON.stringify(report) });
