// The same comparison in Firefox, which nobody drives: a page measures and posts what it found.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

/** For the browser to write down what it keeps. */
const SETTLING_MS = 3000;
const PATIENCE_MS = 300_000;
/** No updates, no first page, no reports; the clock as fine as it gets. */
const PREFS = {
  "app.update.enabled": false,
  "browser.shell.checkDefaultBrowser": false,
  "browser.startup.homepage_override.mstone": "ignore",
  "datareporting.policy.dataSubmissionEnabled": false,
  "toolkit.telemetry.enabled": false,
  "network.captive-portal-service.enabled": false,
  "network.connectivity-service.enabled": false,
  "privacy.reduceTimerPrecision": false,
  "browser.cache.disk.max_entry_size": 200_000,
};

/** One job in a browser of its own, whose profile stays. */
async function job(firefox, profile, server, what) {
  mkdirSync(profile, { recursive: true });
  writeFileSync(join(profile, "user.js"), Object.entries(PREFS).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`).join(""));
  const address = `${server.origin}/page/firefox.html#${encodeURIComponent(JSON.stringify(what))}`;
  const reported = server.report();
  const child = spawn(firefox, ["--headless", "--no-remote", "--profile", profile, address], { stdio: "ignore" });
  const ended = once(child, "exit");
  const late = new AbortController();
  try {
    const { value, error } = await Promise.race([
      reported,
      ended.then(([code]) => ({ error: `Firefox ended with ${code}` })),
      wait(PATIENCE_MS, { error: `Firefox said nothing for ${PATIENCE_MS / 1000} s` }, { signal: late.signal }),
    ]);
    if (error) throw new Error(error);
    await wait(SETTLING_MS);
    return value;
  } finally {
    late.abort();
    child.kill();
    await ended;
  }
}

/** First visits, next visits, warmed runs and the vectors of the reference's texts. */
export async function inFirefox(firefox, scratch, server, { contestants, cases, texts, samples, progress }) {
  const profile = join(scratch, "firefox");
  const first = {};
  for (let round = 0; round <= samples; round++) {
    for (const contestant of contestants) {
      rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
      const once = async () => {
        server.sent();
        const ms = await job(firefox, profile, server, { what: "visit", contestants: [contestant], text: texts[0] });
        return { ms, bytes: server.sent() };
      };
      const seen = { cold: await once(), warm: await once() };
      progress(`firefox  ${round === 0 ? "not counted" : `${round} of ${samples}`}  ${contestant.name.padEnd(20)} ${seen.cold.ms.toFixed(0)} ms, again ${seen.warm.ms.toFixed(0)} ms`);
      if (round > 0) (first[contestant.name] ??= []).push(seen);
    }
  }
  const plain = cases.map(({ name, texts, calls }) => ({ name, texts, calls }));
  const seen = await job(firefox, profile, server, { what: "rounds", contestants, cases: plain, samples });
  const vectors = {};
  for (const contestant of contestants) Object.assign(vectors, await job(firefox, profile, server, { what: "vectors", contestants: [contestant], texts }));
  return { first, seen, vectors };
}
