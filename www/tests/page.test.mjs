// The built page in headless Chromium, on the real model, as a plain static host serves it. Run by `cargo xtask test page`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { HEADERS, WAY, launch } from "../../bindings/js/tests/site.mjs";
import { nearest, readIndex } from "./index-file.mjs";
import { clip, dist, network, serve } from "./server.mjs";

// What the tests stand on is installed with the package's.
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const js = join(root, "bindings", "js", "package.json");
const data = join(root, "tests", "data");
const axe = readFileSync(createRequire(js).resolve("axe-core/axe.min.js"), "utf8");
const model = process.env.ISOVEC_TEST_MODEL;
if (!model) throw new Error("ISOVEC_TEST_MODEL has to name the folder of all-MiniLM-L6-v2; `cargo xtask test page` does");
const screenshots = process.env.ISOVEC_SCREENSHOTS;
const TABS = ["search", "pictures", "map", "engine", "bench", "parity"];
const TOLD = "?model=/model/";

const host = await serve(model, HEADERS);
after(() => host.close());
const browser = await launch();
const context = await browser.newContext({ acceptDownloads: true });
const page = await open(context);

/** A page of the site; what goes wrong in it fails the test that runs. */
async function open(context, query = TOLD) {
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (error) => assert.fail(`the page failed: ${error.stack}`));
  await page.goto(`${host.origin}/page/${query}`);
  await page.waitForFunction(() => document.querySelectorAll("#results li").length > 0);
  return page;
}

/** Starts the model, where it is not started. */
async function start(page) {
  const go = page.locator("#start button.primary:enabled");
  await page.waitForSelector("#start button.primary:enabled:visible, [data-kind=ready]");
  if (await go.isVisible()) await go.click();
  await page.waitForSelector("[data-kind=ready]", { timeout: 60_000 });
}

/** Searches, and returns the passages that were found, best first. */
async function search(page, text) {
  await page.click("#tab-search");
  // What was found before would be there already.
  await page.evaluate(() => document.querySelector("#summary").replaceChildren());
  await page.fill("#query", text);
  await page.waitForFunction(() => /to embed/.test(document.querySelector("#summary").textContent));
  // The results of what was typed before may stand there for a moment.
  await page.waitForFunction(async () => {
    const before = document.querySelector("#summary").firstChild;
    await new Promise((later) => setTimeout(later, 250));
    return before === document.querySelector("#summary").firstChild;
  });
  return page.locator("#results .passage").allTextContents();
}

const file = (name, content) => ({ name, mimeType: "application/octet-stream", buffer: Buffer.from(content) });

test("the page opens with a sample that was indexed natively, and finds words at once", async () => {
  const { labels } = readIndex(readFileSync(join(dist, "sample", "sample.safetensors")));
  assert.ok(labels.length >= 300);
  assert.equal(await page.textContent("#corpus-name"), `The sample, ${labels.length} passages`);
  await page.fill("#query", "sauce");
  const passages = await page.locator("#results .passage").allTextContents();
  assert.deepEqual(passages, labels.filter((label) => /\bsauce\b/.test(label)));
  assert.deepEqual(await page.locator("#results mark").allTextContents(), passages.map(() => "sauce"));
  await page.fill("#query", "");
});

test("nothing is downloaded before it is asked for, and the page says what would be", async () => {
  assert.match(await page.textContent("#start"), /Download/);
  const fetched = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name));
  assert.deepEqual(fetched.filter((name) => /\.(safetensors|onnx|wasm)$/.test(name) && !name.includes("/sample/")), []);
});

test("neighbours of a passage need no model", async () => {
  const index = readIndex(readFileSync(join(dist, "sample", "sample.safetensors")));
  const first = page.locator("#results li").first();
  const row = index.labels.indexOf(await first.locator(".passage").textContent());
  await first.getByRole("button").click();
  const expected = nearest(index, row, 11).slice(1).map((at) => index.labels[at]);
  assert.deepEqual(await page.locator("#results .passage").allTextContents(), expected);
});

test("the service worker isolates the page that the host did not, before the model is loaded, and keeps what was typed", async () => {
  assert.equal(await page.evaluate(() => crossOriginIsolated), WAY.isolated);
  await page.fill("#query", "sauce");
  await start(page);
  assert.equal(await page.evaluate(() => crossOriginIsolated && navigator.serviceWorker.controller !== null), true);
  assert.equal(await page.inputValue("#query"), "sauce");
});

test("a search in an index that was made natively finds what its own vectors say", async () => {
  await start(page);
  const index = readIndex(readFileSync(join(dist, "sample", "sample.safetensors")));
  for (const row of [0, 100, 250]) {
    assert.deepEqual(await search(page, index.labels[row]), nearest(index, row, 10).map((at) => index.labels[at]));
  }
  assert.match((await search(page, "why does my stew taste of nothing"))[0], /soup/);
});

test("the same index, dropped on the page, finds the same", async () => {
  const before = await search(page, "light from far away");
  await page.evaluate(async () => {
    const content = await (await fetch("./sample/sample.safetensors")).blob();
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([content], "native.safetensors"));
    window.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true }));
  });
  await page.waitForFunction(() => document.querySelector("#corpus-name").textContent.startsWith("native.safetensors"));
  assert.deepEqual(await search(page, "light from far away"), before);
});

test("own text waits for the model, which nobody downloads unasked", async () => {
  const other = await browser.newContext();
  const page = await open(other);
  await page.fill("#pasted", "One line.\nAnother line.");
  await page.getByRole("button", { name: "Cut it into passages" }).click();
  await page.getByRole("button", { name: "Index them" }).click();
  await page.waitForSelector("#own-error .error");
  assert.match(await page.textContent("#own-error"), /model is not there yet/);
  await other.close();
});

test("own text: a column of a table is indexed, kept, exported and opened again", async () => {
  const rows = ['1,"The cat sleeps, as ever"', "2,Rates rose in spring", '3,"She said ""no"" twice"', "4,A kettle sings", "5,Snow"];
  await page.setInputFiles("#files", file("notes.csv", ["id,note", ...rows].join("\r\n")));
  assert.equal(await page.inputValue("#field"), "note");
  assert.match(await page.textContent("#preview"), /5 passages/);
  await page.getByRole("button", { name: "Index them" }).click();
  await page.waitForFunction(() => document.querySelector("#corpus-name").textContent === "notes.csv, 5 passages");
  const found = await search(page, "a refusal");
  assert.equal(found[0], 'She said "no" twice');
  const [saved] = await Promise.all([page.waitForEvent("download"), page.click("#export")]);
  const content = readFileSync(await saved.path());
  assert.deepEqual(readIndex(content).labels.sort(), [...found].sort());
  await page.setInputFiles("#files", file("again.safetensors", content));
  await page.waitForFunction(() => document.querySelector("#corpus-name").textContent.startsWith("again.safetensors"));
  assert.deepEqual(await search(page, "a refusal"), found);
  await page.reload();
  await page.waitForSelector("[data-kind=ready]", { timeout: 60_000 });
  await page.getByRole("button", { name: "Open notes.csv" }).click();
  await page.waitForFunction(() => document.querySelector("#corpus-name").textContent.startsWith("notes.csv"));
  assert.deepEqual(await search(page, "a refusal"), found);
  await page.getByRole("button", { name: "Delete notes.csv" }).click();
  await page.waitForFunction(() => !document.querySelector("#kept").textContent.includes("notes.csv"));
});

test("indexing thousands of passages shows how far it is, and can be cancelled", async () => {
  const lines = Array.from({ length: 3000 }, (_, at) => `Note ${at} is about the number ${at * 7}, and about nothing else of any weight.`);
  await page.evaluate((text) => (document.querySelector("#pasted").value = text), lines.join("\n"));
  await page.getByRole("button", { name: "Cut it into passages" }).click();
  await page.getByRole("button", { name: "Index them" }).click();
  await page.waitForFunction(() => /of 3,000 passages/.test(document.querySelector("#preview").textContent));
  await page.click("#cancel");
  await page.waitForFunction(() => /before you cancelled/.test(document.querySelector("#preview").textContent));
  const [, done] = /the first ([\d,]+)\)/.exec(await page.textContent("#corpus-name"));
  assert.ok(Number(done.replace(",", "")) < 3000);
  assert.equal((await search(page, lines[3]))[0], lines[3]);
  await page.click("#to-sample");
});

test("what cannot be read is named", async () => {
  const says = async (name, content, words) => {
    await page.setInputFiles("#files", file(name, content));
    await page.waitForFunction((words) => new RegExp(words).test(document.querySelector("#own-error").textContent), words.source);
  };
  await says("picture.txt", Uint8Array.of(0xff, 0xd8, 0xff), /picture\.txt is no text/);
  await says("lines.jsonl", '{"text": "fine"}\nbroken', /Line 2 of lines\.jsonl/);
  await says("odd.safetensors", "not an index", /no isovec index/);
});

test("an index of another model can be opened, and is not compared with questions", async () => {
  await page.setInputFiles("#files", join(data, "embeddings", "native.safetensors"));
  await page.waitForFunction(() => document.querySelector("#corpus-name").textContent.startsWith("native.safetensors"));
  await page.fill("#query", "anything");
  await page.waitForSelector("#search-error .error");
  assert.match(await page.textContent("#search-error"), /Another model made this index/);
  await page.click("#to-sample");
  await page.waitForFunction(() => document.querySelectorAll("#search-error .error").length === 0);
});

const bin = readFileSync(join(root, "input", "image", "tests", "data", "pictures.bin"));
const seen = JSON.parse(readFileSync(join(clip, "reference.json"), "utf8"));
const photos = seen.pictures.map(({ name, at, bytes }) => file(name.replace("/", "-"), bin.subarray(at, at + bytes)));

/** Names of pictures, those nearest to a vector first. */
function photosNear(vector) {
  const dot = (other) => other.reduce((sum, component, at) => sum + component * vector[at], 0);
  return seen.pictures.map(({ vector }, at) => ({ name: photos[at].name, score: dot(vector) })).sort((a, b) => b.score - a.score).map(({ name }) => name);
}

/** Indexes the photos, and checks what a text finds, and what is like a picture. */
async function findPhotos(page) {
  await page.click("#tab-pictures");
  await page.setInputFiles("#pictures-files", [...photos, file("broken.png", photos[4].buffer.subarray(0, 60)), file("notes.txt", "no picture")]);
  await page.waitForFunction(() => /^12 pictures indexed/.test(document.querySelector("#pictures-state").textContent), undefined, { timeout: 60_000 });
  assert.match(await page.textContent("#pictures-state"), /2 files left out.*broken\.png: PNG.*notes\.txt: these 10 bytes/s);
  const { text, vector } = seen.texts[1];
  await page.fill("#pictures-query", text);
  await page.press("#pictures-query", "Enter");
  const names = () => page.locator("#pictures-found img").evaluateAll((all) => all.map(({ alt }) => alt));
  await page.waitForFunction(() => document.querySelector("#pictures-found .soft"));
  const found = await names();
  assert.deepEqual(found, photosNear(vector));
  // Thumbnails are shown as they are: the page's policy lets them.
  await page.waitForFunction(() => [...document.querySelectorAll("#pictures-found img")].every(({ naturalWidth }) => naturalWidth > 0));
  await page.locator("#pictures-found button").first().click();
  await page.waitForFunction((first) => document.querySelector("#pictures-found img").alt !== first, found[0]);
  const like = seen.pictures[photos.findIndex(({ name }) => name === found[0])];
  assert.deepEqual(await names(), photosNear(like.vector).slice(1));
}

test("the visitor's pictures are found by words and by a picture, offline too", async () => {
  const own = await browser.newContext();
  const page = await open(own, `${TOLD}&pictures=/clip/`);
  await page.waitForFunction(() => navigator.serviceWorker.controller);
  await page.click("#tab-pictures");
  await page.waitForFunction(() => crossOriginIsolated);
  await findPhotos(page);
  // The model of texts was not asked for.
  assert.equal(await page.locator("[data-kind=ready]").count(), 0);
  await own.setOffline(true);
  await page.reload();
  await findPhotos(page);
  await own.close();
});

test("the camera's frames are classified until it is stopped, and without one the page says so", async () => {
  const own = await browser.newContext({ permissions: ["camera"] });
  const page = await open(own, `${TOLD}&camera=/network/`);
  await page.waitForFunction(() => navigator.serviceWorker.controller);
  await page.click("#tab-pictures");
  await page.waitForFunction(() => crossOriginIsolated);
  const labels = JSON.parse(readFileSync(join(network, "config.json"), "utf8")).id2label;
  await page.click("#camera-toggle");
  await page.waitForFunction(() => /frames a second/.test(document.querySelector("#camera-state").textContent), undefined, { timeout: 60_000 });
  assert.match(await page.textContent("#camera-state"), /, wasm simd128$/);
  const shown = await page.locator("#camera-labels li").allTextContents();
  assert.deepEqual(shown.map((text) => text.trim().split(/\s+/)[1]).toSorted(), Object.values(labels).toSorted());
  const sum = shown.reduce((sum, text) => sum + Number(text.trim().split(/\s+/)[0]), 0);
  assert.ok(Math.abs(sum - 1) < 0.05, shown.join("; "));
  // Leaving the tab turns the camera off.
  await page.click("#tab-map");
  await page.waitForFunction(() => document.querySelector("#camera-video").srcObject === null);
  await page.click("#tab-pictures");
  assert.equal(await page.textContent("#camera-toggle"), "Start the camera");
  assert.ok(await page.locator("#camera-video").isHidden());
  await own.clearPermissions();
  await page.evaluate(() => (navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("nobody allowed it", "NotAllowedError"))));
  await page.click("#camera-toggle");
  await page.waitForSelector("#camera-error .error");
  assert.match(await page.textContent("#camera-error"), /nobody allowed it/);
  await own.close();
});

const skip = process.env.ISOVEC_TEST_OCR ? false : "PP-OCR's networks are not there";

test("the text of a picture is read, shown with its boxes, and saved", { skip }, async () => {
  const own = await browser.newContext({ permissions: ["clipboard-read", "clipboard-write"] });
  const page = await open(own, `${TOLD}&reader=/reader/`);
  await page.click("#tab-pictures");
  const pages = join(data, "pages");
  const peer = JSON.parse(readFileSync(join(pages, "rapidocr.json"), "utf8"))[6];
  await page.setInputFiles("#reader-file", join(pages, peer.file));
  await page.waitForFunction(() => /^\d+ lines? in/.test(document.querySelector("#reader-state").textContent), undefined, { timeout: 120_000 });
  assert.match(await page.textContent("#reader-state"), /, wasm simd128$/);
  const wanted = peer.lines.map(({ text, score }) => `${text} ${score.toFixed(2)}`);
  assert.deepEqual(await page.locator("#reader-lines li").allTextContents(), wanted);
  assert.equal(await page.locator("#reader-page polygon").count(), wanted.length);
  await page.waitForFunction(() => document.querySelector("#reader-page img").naturalWidth > 0);
  await page.click("#reader-copy");
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), peer.lines.map(({ text }) => `${text}\n`).join(""));
  const [saved] = await Promise.all([page.waitForEvent("download"), page.click("#reader-save")]);
  assert.match(readFileSync(await saved.path(), "utf8"), /class="ocr_line"/);
  await page.setInputFiles("#reader-file", file("broken.png", "no picture"));
  await page.waitForSelector("#reader-error .error");
  await own.close();
});

test("the map is computed in a worker and read with the keyboard", async () => {
  await page.click("#tab-map");
  await page.waitForFunction(() => /120 rounds/.test(document.querySelector("#map-about").textContent));
  await page.focus("#map-frame");
  const first = await page.textContent("#map-chosen p");
  await page.keyboard.press("ArrowRight");
  const second = await page.textContent("#map-chosen p");
  assert.ok(first.length > 10 && second.length > 10 && first !== second);
  await page.keyboard.press("Enter");
  assert.ok((await page.textContent("#summary")).includes(second));
});

/** The worst cosine between this browser's vectors and the reference's. */
async function worst(page) {
  await page.click("#tab-parity");
  await page.click("#parity-go");
  await page.waitForFunction(() => document.querySelectorAll("#parity-rows tr").length > 100);
  return Number(await page.textContent("#parity-worst"));
}

test("this browser's vectors are the reference's", async () => {
  assert.ok((await worst(page)) > 0.9999);
});

test("the bench measures, and stops when it is told to", async () => {
  await page.click("#tab-bench");
  await page.click("#bench-go");
  await page.waitForFunction(() => document.querySelectorAll("#bench-rows tr").length > 0);
  await page.click("#bench-go");
  await page.waitForFunction(() => document.querySelector("#bench-state").textContent === "Stopped.");
  assert.match(await page.textContent("#bench-rows"), /^1 × 16 tokens[\d.]+ ms/);
});

test("the engine's panel shows what computes", async () => {
  await page.click("#badge");
  await page.waitForFunction(() => /^Texts: [1-9]/.test(document.querySelector("#calls").textContent));
  assert.match(await page.textContent("#facts"), /threads share memory/);
  assert.ok((await page.locator("#config tr").count()) > 10);
  assert.match(await page.textContent("#events"), /computes on/);
});

for (const colorScheme of ["light", "dark"]) {
  test(`no accessibility rule is broken, and nothing is wider than a phone: ${colorScheme}`, async () => {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    for (const width of [1280, 360]) {
      await page.setViewportSize({ width, height: 800 });
      for (const tab of TABS) {
        await page.click(`#tab-${tab}`);
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => globalThis.axe.run());
        const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(" ")}`);
        assert.deepEqual(found, [], `${tab}, ${width} pixels`);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0, `${tab}, ${width} pixels`);
        // For people to look at: what looks bad breaks no rule.
        if (screenshots) await page.screenshot({ path: join(screenshots, `${tab}-${width}-${colorScheme}.png`), fullPage: true });
      }
    }
    await page.setViewportSize({ width: 1280, height: 800 });
  });
}

if (WAY.webgpu) {
  test("on a GPU that a processor plays, the page finds the same and says who computes", async () => {
    const apart = await browser.newContext();
    try {
      const other = await open(apart, `${TOLD}&gpu=software`);
      other.setDefaultTimeout(60_000);
      await start(other);
      assert.equal(await other.textContent("#badge-engine"), "WebGPU");
      assert.deepEqual(await search(other, "a dish of noodles"), await search(page, "a dish of noodles"));
      await other.click("#tab-engine");
      assert.match(await other.textContent("#facts"), /gpu .* on WebGPU/);
      // Only a real GPU is offered.
      assert.equal(await other.isVisible("#gpu-choice"), false);
    } finally {
      await apart.close();
    }
  });
}

test("nothing was sent to anybody, and the page counts it", async () => {
  assert.equal(await page.textContent("#sent"), "0 bytes");
  assert.match(await page.textContent("#requests"), /all of them to this site/);
  const ask = ({ url, body }) => fetch(url, { method: "POST", body }).then(() => true, () => false);
  const post = (url, body) => page.evaluate(ask, { url, body });
  const reached = await post("https://example.com/", "secret");
  assert.equal(reached, false, "the policy lets a request out");
  await post("./nothing", "four");
  await page.waitForFunction(() => document.querySelector("#sent").textContent === "4 bytes");
});

test("the page works offline after the first visit, the model included", async () => {
  await context.setOffline(true);
  await page.reload();
  await page.waitForSelector("[data-kind=ready]", { timeout: 60_000 });
  assert.equal(await page.evaluate(() => crossOriginIsolated), true);
  assert.match((await search(page, "why does my stew taste of nothing"))[0], /soup/);
  await context.setOffline(false);
});

test("where no service worker may start, the page works as the host serves it", async () => {
  const other = await browser.newContext();
  await other.addInitScript(() => {
    ServiceWorkerContainer.prototype.register = () => Promise.reject(new DOMException("not here", "SecurityError"));
  });
  const page = await open(other);
  await start(page);
  assert.equal(await page.evaluate(() => crossOriginIsolated), WAY.isolated);
  assert.match((await search(page, "why does my stew taste of nothing"))[0], /soup/);
  await page.click("#badge");
  assert.match(await page.textContent("#facts"), WAY.isolated ? /threads share memory/ : /one thread/);
  assert.match(await page.textContent("#events"), /not here/);
  await other.close();
});

test("without a network and without a kept model the page says so", async () => {
  const other = await browser.newContext();
  const page = await open(other);
  await other.setOffline(true);
  await page.click("#start button.primary");
  await page.waitForSelector("#start .error");
  assert.match(await page.textContent("#start .error"), /network/);
  await other.setOffline(false);
  await page.goto(`${host.origin}/page/?model=/nowhere/`);
  await page.click("#start button.primary");
  await page.waitForSelector("#start .error");
  assert.match(await page.textContent("#start .error"), /did not come/);
  await other.close();
});

test("another version is taken when the visitor wants it, and the old one's files go", async () => {
  const other = await browser.newContext();
  // The browser looks for another version by itself, and may have found one before the page can listen.
  await other.addInitScript(() => {
    const { register } = ServiceWorkerContainer.prototype;
    ServiceWorkerContainer.prototype.register = async function (...all) {
      const registration = await register.apply(this, all);
      while (!registration.installing && !registration.waiting) await new Promise((later) => setTimeout(later, 1));
      return registration;
    };
  });
  const page = await open(other);
  // The one that is there has to be in charge, with its files kept: what comes first takes over at once.
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  const [before] = await page.evaluate(async () => (await caches.keys()).filter((name) => name.startsWith("isovec-page-")));
  host.change = (path, text) => (path === "/page/sw.js" ? text.replace(before.slice("isovec-page-".length), "another") : text);
  await page.reload();
  await page.getByRole("button", { name: "Take it now" }).click();
  await page.waitForFunction(async () => (await caches.keys()).filter((name) => name !== "isovec").join() === "isovec-page-another");
  host.change = undefined;
  await other.close();
});

test("the model beside the page is named with its size, checked, and as good as int8 is", async () => {
  const other = await browser.newContext();
  const page = await open(other, "");
  // The one that stands there before the page knows what it would fetch cannot be pressed.
  assert.match(await page.textContent("#start button:enabled"), /^Download 2\d\.\d MB and start$/);
  await start(page);
  await page.click("#tab-engine");
  await page.waitForFunction(() => /checked against their hash/.test(document.querySelector("#facts").textContent));
  assert.match(await page.textContent("#facts"), /int8/);
  const cosine = await worst(page);
  assert.ok(cosine > 0.99 && cosine < 0.99999, `${cosine}`);
  await other.close();
});

test("the lines that the page shows work as they stand", async () => {
  const code = await page.textContent("#code");
  assert.equal(code.split("\n").length, 10);
  const other = await browser.newContext();
  const plain = await other.newPage();
  const map = JSON.stringify({ imports: { isovec: "/page/isovec/dist/index.js" } });
  const html = `<!doctype html><script type="importmap">${map}</script><input id="search"><pre id="results"></pre>
    <script type="module">${code.replace('"sentence-transformers/all-MiniLM-L6-v2"', '"/model/"')}\n;document.title = "ready";</script>`;
  await plain.route("**/plain/", (route) => route.fulfill({ contentType: "text/html", body: html }));
  await plain.route("**/passages.txt", (route) => route.fulfill({ body: "a cat purrs\nstocks fell\nrain tomorrow" }));
  await plain.goto(`${host.origin}/plain/`);
  await plain.waitForFunction(() => document.title === "ready", null, { timeout: 60_000 });
  await plain.fill("#search", "weather");
  await plain.waitForFunction(() => document.querySelector("#results").textContent.startsWith("rain tomorrow\n"));
  await other.close();
});
