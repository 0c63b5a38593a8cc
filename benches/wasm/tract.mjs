// A model that is no encoder, in a page on one thread: the package's build tract against onnxruntime-web, both in one page
// and in turns. The model is the seeded one of bindings/js/tests/cnn.mjs, larger. `node benches/wasm/tract.mjs`, after
// `cargo xtask build` and `cargo xtask bench wasm`, which installs the peer.
//
// isovec's time is that of `embed`, from the texts to the vectors; the peer's is that of the run alone, from ids.
import { join } from "node:path";
import { parseArgs } from "node:util";
import * as cnn from "../../bindings/js/tests/cnn.mjs";
import { LARGEST_DIFFERENCE, OPTIONS, count, js, launch, onnxruntimeWeb, versions } from "../page/common.mjs";
import { folder, serve } from "../page/server.mjs";

const WIDTH = 384;
const LAYERS = 4;

const { values: options } = parseArgs({ options: { chrome: OPTIONS.chrome, samples: { type: "string", default: "25" } } });
const files = new Map([
  ["/page.html", Buffer.from("<!doctype html><title>tract</title>")],
  ...folder("/isovec/dist/", join(js, "dist"), (name) => name.endsWith(".js")),
  ...folder("/isovec/pkg/", join(js, "pkg"), (name) => /\.(js|wasm)$/.test(name)),
  ...folder("/onnxruntime-web/", onnxruntimeWeb, (name) => /^ort(\.wasm\.bundle\.min|-wasm-simd-threaded)\.(mjs|wasm)$/.test(name)),
  ...Array.from(cnn.files(cnn.weights({ width: WIDTH, layers: LAYERS })), ([name, content]) => [`/model/${name}`, content]),
]);

/** The ids of "a" and of what stands around a text, in the tokenizer of that model. */
const IDS = { word: 43, first: 2, last: 3 };

/** Runs in the page. */
async function measure({ samples, width, ids }) {
  const timed = async (work) => {
    const began = performance.now();
    await work();
    return performance.now() - began;
  };
  const median = (all) => all.toSorted((one, other) => one - other)[all.length >> 1];
  const ort = await import("/onnxruntime-web/ort.wasm.bundle.min.mjs");
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = "/onnxruntime-web/";
  const { Embedder } = await import("/isovec/dist/index.js");
  const embedder = await Embedder.load("/model", { worker: false, cache: "off" });
  const model = new Uint8Array(await (await fetch("/model/model.onnx")).arrayBuffer());
  const session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"] });
  const rows = [];
  for (const batch of [1, 8]) {
    const texts = Array(batch).fill("a ".repeat(62).trim());
    const tokens = await embedder.countTokens(texts[0]);
    const tensor = (value) => new ort.Tensor("int64", new BigInt64Array(batch * tokens).map((_, at) => BigInt(value(at % tokens))), [batch, tokens]);
    const idAt = (at) => (at === 0 ? ids.first : at === tokens - 1 ? ids.last : ids.word);
    const run = () => session.run({ input_ids: tensor(idAt), attention_mask: tensor(() => 1) });
    const pooled = ({ last_hidden_state: { data } }) => {
      const mean = Array.from({ length: width }, (_, at) => {
        let sum = 0;
        for (let row = 0; row < tokens; row++) sum += data[row * width + at];
        return sum / tokens;
      });
      const norm = Math.hypot(...mean);
      return mean.map((component) => component / norm);
    };
    const expected = pooled(await run());
    const vector = (await embedder.embed(texts)).row(0);
    const off = Math.max(...expected.map((component, at) => Math.abs(component - vector[at])));
    const times = { ours: [], theirs: [] };
    for (let turn = 0; turn < samples; turn++) {
      times.theirs.push(await timed(run));
      times.ours.push(await timed(() => embedder.embed(texts)));
    }
    rows.push({ batch, tokens, ours: median(times.ours), theirs: median(times.theirs), off });
  }
  return { build: embedder.build, bytes: (await embedder.stats()).memory.wasm_bytes, rows };
}

const server = await serve(files);
const browser = await launch(options);
try {
  const page = await browser.newPage();
  await page.goto(`${server.origin}/page.html`);
  const { build, bytes, rows } = await page.evaluate(measure, { samples: count(options.samples), width: WIDTH, ids: IDS });
  if (build !== "tract") throw new Error(`the build ${build} took the model, and tract was to be measured`);
  console.log(JSON.stringify(versions(browser)));
  console.log(`WebAssembly memory of tract's module: ${(bytes / 1e6).toFixed(1)} MB`);
  for (const { batch, tokens, ours, theirs, off } of rows) {
    console.log(`${batch} x ${tokens}: isovec tract ${ours.toFixed(1)} ms, onnxruntime-web ${theirs.toFixed(1)} ms, off by ${off.toExponential(1)}`);
    if (!(off <= LARGEST_DIFFERENCE)) throw new Error(`the vectors differ by ${off}`);
  }
} finally {
  await browser.close();
  server.close();
}
