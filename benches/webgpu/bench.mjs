// isovec on WebGPU against transformers.js on WebGPU: the same model in f32, one short text, one page, one
// adapter, by turns. Run it with `cargo xtask bench webgpu`, which builds and installs what it needs.
//
// Where the only adapter is a processor that plays a GPU, longer texts take minutes: what can be compared
// there are dispatches, bytes and a short text.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { OPTIONS, count, js, launch, versions } from "../page/common.mjs";
import { folder } from "../page/server.mjs";
import { serve } from "../transformers/server.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const packages = join(here, "node_modules");
/** 16 tokens, the special ones included. */
const TEXT = "private search in a browser tab finds what was meant, not what was typed";
const { values: options } = parseArgs({ options: { ...OPTIONS, samples: { type: "string", default: "7" } } });
const samples = count(options.samples);
const scratch = mkdtempSync(join(tmpdir(), "isovec-webgpu-"));
const load = [loadavg()[0]];
let server, browser;
try {
  execFileSync(options.isovec, ["export", "--model", options.model, "--no-head", "--out", scratch, "--json"], { stdio: ["ignore", "ignore", "inherit"] });
  server = await serve(
    new Map([
      ...folder("/page/", join(here, "page")),
      ...folder("/isovec/dist/", join(js, "dist"), (name) => name.endsWith(".js")),
      ...folder("/isovec/pkg/", join(js, "pkg"), (name) => /\.(js|wasm)$/.test(name)),
      ...folder("/transformers/", join(packages, "@huggingface/transformers/dist"), (name) => name === "transformers.min.js"),
      ...folder("/onnxruntime/", join(packages, "onnxruntime-web/dist"), (name) => name.startsWith("ort-wasm-simd-threaded.asyncify")),
      ...folder("/model/", options.model, (name) => /\.(json|safetensors)$/.test(name)),
      ...folder("/plain/", options.model, (name) => name.endsWith(".json")),
      ["/plain/onnx/model.onnx", readFileSync(join(scratch, "model.onnx"))],
      ["/index.html", Buffer.from('<!doctype html><title>pair</title><script type="module" src="/page/pair.js"></script>')],
    ]),
  );
  browser = await launch(options, "--enable-unsafe-webgpu");
  const page = await browser.newPage();
  await page.goto(`${server.origin}/index.html`);
  await page.waitForFunction(() => globalThis.measure);
  const place = { transformers: "/transformers/transformers.min.js", onnxruntime: `${server.origin}/onnxruntime/ort-wasm-simd-threaded.asyncify` };
  const seen = await page.evaluate((asked) => globalThis.measure(asked), { text: TEXT, samples, software: true, origin: server.origin, ...place });
  const visits = { first: [], next: [] };
  for (let round = 0; round < 3; round++) {
    const context = await browser.newContext();
    const visitor = await context.newPage();
    for (const which of ["first", "next"]) {
      await visitor.goto(`${server.origin}/index.html`);
      await visitor.waitForFunction(() => globalThis.visit);
      const { waited, recalled } = await visitor.evaluate((asked) => globalThis.visit(asked), { text: TEXT, software: true, origin: server.origin });
      if (recalled !== (which === "next")) throw new Error(`the ${which} visit's check was ${recalled ? "" : "not "}recalled`);
      visits[which].push(waited);
    }
    await context.close();
  }
  load.push(loadavg()[0]);
  const transformers = JSON.parse(readFileSync(join(packages, "@huggingface/transformers/package.json"), "utf8")).version;
  const result = { versions: { ...versions(browser), transformers }, samples, load, visits, ...seen };
  if (options.json) {
    console.log(JSON.stringify(result, null, 2));
  } else {
    const ms = (value) => `${value.toFixed(0)} ms`;
    const row = (what, { ours, theirs }) => console.log(`| ${what} | ${ms(ours)} | ${ms(theirs)} | ${(theirs / ours).toFixed(2)}x |`);
    console.log(`adapter ${seen.adapter}${seen.software ? ", a processor that plays a GPU" : ""}; Chromium ${browser.version()}; transformers.js ${transformers}; load ${load.map((value) => value.toFixed(1)).join(" to ")}\n`);
    console.log("| MiniLM, f32, 1 x 16 | isovec | transformers.js | isovec is |\n|---|---|---|---|");
    row("load", seen.load);
    row("the first text after it", seen.first);
    row(`a text, median of ${samples}`, seen.median);
    const [first, next] = [visits.first, visits.next].map((times) => times.toSorted((a, b) => a - b)[1]);
    console.log(`\nto the first vector: ${ms(first)} on the first visit, ${ms(next)} on the next (${(next / first).toFixed(2)}x), medians of 3`);
    console.log(`\n${seen.gpu.dispatchesPerRun} dispatches a run, ${seen.gpu.pipelines} pipelines; largest component difference ${seen.apart.toExponential(1)}`);
  }
} finally {
  await browser?.close();
  server?.close();
  rmSync(scratch, { recursive: true, force: true });
}
