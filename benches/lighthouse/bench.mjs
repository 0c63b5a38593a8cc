// What Lighthouse says of the page, as a first visit on its slow phone: the median of several runs. Run it
// with `cargo xtask bench lighthouse`, which builds and installs what it needs. The host is a plain one: without the headers
// that isolate.
import { loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { launch } from "chrome-launcher";
import lighthouse from "lighthouse";
import { folder } from "../page/server.mjs";
import { serve } from "../transformers/server.mjs";

const page = fileURLToPath(new URL("../../www/dist", import.meta.url));
const CATEGORIES = ["performance", "accessibility", "best-practices"];

const { values: options } = parseArgs({ options: { chrome: { type: "string", default: process.env.CHROME ?? "/usr/bin/chromium" }, samples: { type: "string", default: "5" }, json: { type: "boolean", default: false } } });

const server = await serve(new Map(folder("/", page)));
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
try {
  const seen = [];
  for (let run = 0; run < Number(options.samples); run++) {
    const chrome = await launch({ chromePath: options.chrome, chromeFlags: ["--headless=new", "--no-sandbox", "--disable-quic"] });
    try {
      const { lhr } = await lighthouse(`${server.origin}/index.html`, { port: chrome.port, onlyCategories: CATEGORIES, logLevel: "error" });
      if (lhr.runtimeError) throw new Error(lhr.runtimeError.message);
      seen.push(lhr);
    } finally {
      await chrome.kill();
    }
  }
  const scores = Object.fromEntries(CATEGORIES.map((name) => [name, seen.map(({ categories }) => Math.round(categories[name].score * 100))]));
  const times = ["first-contentful-paint", "largest-contentful-paint", "total-blocking-time"].map((name) => [name, seen.map(({ audits }) => Math.round(audits[name].numericValue))]);
  if (options.json) console.log(JSON.stringify({ lighthouse: seen[0].lighthouseVersion, load: loadavg()[0], scores, times: Object.fromEntries(times) }, null, 2));
  else {
    console.log(`Lighthouse ${seen[0].lighthouseVersion}, its phone, ${seen.length} runs; load average ${loadavg()[0].toFixed(1)}`);
    for (const [name, values] of Object.entries(scores)) console.log(`${name.padEnd(26)} ${median(values)} (${values.join(", ")})`);
    for (const [name, values] of times) console.log(`${name.padEnd(26)} ${median(values)} ms (${values.join(", ")})`);
  }
} finally {
  server.close();
}
