// The built page in headless Firefox, on the real model: another compiler of wasm, another service worker, other layout.
// What holds in every browser alike is tested in page.test.mjs. Run by `cargo xtask test page`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { firefox } from "../../bindings/js/tests/everywhere/browsers.mjs";
import { nearest, readIndex } from "./index-file.mjs";
import { dist, serve } from "./server.mjs";

const model = process.env.ISOVEC_TEST_MODEL;
if (!model) throw new Error("ISOVEC_TEST_MODEL has to name the folder of all-MiniLM-L6-v2; `cargo xtask test page` does");
const screenshots = process.env.ISOVEC_SCREENSHOTS;

const host = await serve(model);
after(() => host.close());
const index = readIndex(readFileSync(join(dist, "sample", "sample.safetensors")));
const page = await firefox();
await page.setViewportSize({ width: 1280, height: 900 });
await page.goto(`${host.origin}/page/?model=/model/`);

const text = (selector) => page.evaluate((selector) => document.querySelector(selector).textContent, selector);
const passages = () => page.evaluate(() => Array.from(document.querySelectorAll("#results .passage"), ({ textContent }) => textContent));
/** Waits until what `selector` names says such words. */
const says = (selector, words) =>
  page.waitForFunction(({ selector, words }) => new RegExp(words).test(document.querySelector(selector)?.textContent), { selector, words });

/** Searches by meaning, and returns the passages that were found, best first. */
async function search(words) {
  await page.click("#tab-search");
  // What was found before would be there already.
  await page.evaluate(() => document.querySelector("#summary").replaceChildren());
  await page.fill("#query", words);
  await says("#summary", "to embed");
  // Every letter is a search; the last one's results stay.
  await page.waitForFunction(async () => {
    const before = document.querySelector("#summary").firstChild;
    await new Promise((later) => setTimeout(later, 250));
    return before === document.querySelector("#summary").firstChild;
  });
  return passages();
}

/** Proposes lines for an index, and begins to make it. */
async function indexLines(lines) {
  await page.evaluate((text) => (document.querySelector("#pasted").value = text), lines.join("\n"));
  await page.click("#paste-form button");
  await page.click("#preview button.primary");
}

test("the page finds words before it has a model", async () => {
  await page.waitForFunction(() => document.querySelectorAll("#results li").length > 0);
  await page.fill("#query", "sauce");
  await says("#results mark", "^sauce$");
  assert.deepEqual(await passages(), index.labels.filter((label) => /\bsauce\b/.test(label)));
});

test("the service worker isolates the page, and the model starts on several threads", async () => {
  assert.equal(await page.evaluate(() => crossOriginIsolated), false);
  await page.waitForFunction(() => document.querySelector("#start button.primary")?.disabled === false);
  await page.click("#start button.primary");
  await page.waitForFunction(() => document.querySelector("[data-kind=ready]") !== null);
  const seen = await page.evaluate(() => [crossOriginIsolated, navigator.serviceWorker.controller !== null, document.querySelector("#query").value]);
  assert.deepEqual(seen, [true, true, "sauce"]);
  await page.click("#badge");
  await says("#facts", "threads share memory");
});

test("a search in an index that was made natively finds what its own vectors say", async () => {
  for (const row of [0, 250]) assert.deepEqual(await search(index.labels[row]), nearest(index, row, 10).map((at) => index.labels[at]));
  assert.match((await search("why does my stew taste of nothing"))[0], /soup/);
  if (screenshots) await page.screenshot({ path: join(screenshots, "search-firefox.png") });
});

test("this browser's vectors are the reference's", async () => {
  await page.click("#tab-parity");
  await page.click("#parity-go");
  await page.waitForFunction(() => document.querySelectorAll("#parity-rows tr").length > 100);
  assert.ok(Number(await text("#parity-worst")) > 0.9999);
});

test("own text is indexed, kept, and there at the next visit", async () => {
  await page.click("#tab-search");
  await indexLines(["The cat sleeps, as ever", "Rates rose in spring", 'She said "no" twice', "A kettle sings"]);
  await says("#corpus-name", "^Pasted text, 4 passages$");
  const found = await search("a refusal");
  assert.equal(found[0], 'She said "no" twice');
  await page.reload();
  await page.waitForFunction(() => document.querySelector("[data-kind=ready]") !== null);
  await page.click("#kept button");
  await says("#corpus-name", "^Pasted text, 4 passages");
  assert.deepEqual(await search("a refusal"), found);
});

test("indexing thousands of passages can be cancelled, and the next search is answered", async () => {
  const lines = Array.from({ length: 3000 }, (_, at) => `Note ${at} is about the number ${at * 7}, and about nothing else of any weight.`);
  await indexLines(lines);
  await says("#preview", "of 3,000 passages");
  await page.click("#cancel");
  await says("#preview", "before you cancelled");
  const [, done] = /the first ([\d,]+)\)/.exec(await text("#corpus-name"));
  assert.ok(Number(done.replace(",", "")) < lines.length);
  assert.equal((await search(lines[3]))[0], lines[3]);
});

test("nothing was sent to anybody", async () => {
  assert.equal(await text("#sent"), "0 bytes");
  assert.match(await text("#requests"), /all of them to this site/);
});

// The last: afterwards there is no server.
test("the page works when its server is gone, the model included", async () => {
  host.close();
  await page.reload();
  await page.waitForFunction(() => document.querySelector("[data-kind=ready]") !== null);
  assert.equal(await page.evaluate(() => fetch("./nothing").then(() => "answered", () => "no server")), "no server");
  assert.equal(await page.evaluate(() => crossOriginIsolated), true);
  assert.match((await search("why does my stew taste of nothing"))[0], /soup/);
});
