// What a page feels of either package (page/tab.js), and that as a table.
import { readFileSync } from "node:fs";
import { text } from "../page/texts.mjs";

/** Short real texts: the shortest of the reference's, in turn. */
function short(count) {
  const lines = readFileSync(new URL("../../tests/data/reference/texts.txt", import.meta.url), "utf8").trimEnd().split("\n");
  const few = lines.filter((line) => line.split(/\s+/).length <= 12);
  return Array.from({ length: count }, (_, at) => `${few[at % few.length]} ${at}`);
}

/** Measures in a page of its own. */
export async function tab(browser, origin, { model, samples, place }) {
  const page = await browser.newPage();
  try {
    await page.goto(`${origin}/page/tab.html`);
    const given = { isovec: "/isovec/dist/index.js", origin, short: text(model, 16).text, many: short(1000), samples, ...place };
    return await page.evaluate((given) => globalThis.measure(given), given);
  } finally {
    await page.close();
  }
}

/** The lines of the table. */
export function lines({ through, without, overhead, callers, blocked, next }, median) {
  const ms = (values) => `${median(values).toFixed(1)} (${Math.min(...values).toFixed(1)} to ${Math.max(...values).toFixed(1)})`;
  return [
    `1x16 through the worker ${ms(through)} ms, in the page ${ms(without)} ms: +${overhead.toFixed(2)} ms`,
    `1,000 short texts from 50 callers: isovec ${ms(callers.ours)} ms, transformers.js ${ms(callers.theirs)} ms: ${(median(callers.theirs) / median(callers.ours)).toFixed(2)} times as fast`,
    `the page stands still at most, while 1,000 texts are embedded: isovec ${ms(blocked.ours)} ms; transformers.js, 100 texts: ${ms(blocked.theirs)} ms`,
    `from abort in the middle of 20,000 texts to the vector of the next call: ${ms(next)} ms, of which that one takes ${median(through).toFixed(1)}`,
  ];
}
