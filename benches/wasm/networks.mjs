// Convolutional networks in a page on one thread: the package's build tract, which has isovec's own kernels for them, against
// onnxruntime-web, both in one page and in turns. The weights are seeded.
//
//   cargo run -p isovec-test-models --example networks FOLDER
//   node benches/wasm/networks.mjs --networks FOLDER
//
// after `cargo xtask build` and `cargo xtask bench wasm`, which installs the peer. isovec's time is that of `classify`, from pixels
// of the model's size to the logits; the peer's is that of the run alone, from the values.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { OPTIONS, count, js, launch, onnxruntimeWeb, versions } from "../page/common.mjs";
import { folder, serve } from "../page/server.mjs";

/** The largest difference of a logit, as a part of the largest logit. */
const NEAR = 1e-4;

const { values: options } = parseArgs({ options: { chrome: OPTIONS.chrome, samples: { type: "string", default: "15" }, networks: { type: "string" } } });
if (!options.networks) throw new Error("--networks has to name the folder that the example `networks` wrote");
const names = readdirSync(options.networks).toSorted();
const files = new Map([
  ["/page.html", Buffer.from("<!doctype html><title>networks</title>")],
  ...folder("/isovec/dist/", join(js, "dist"), (name) => name.endsWith(".js")),
  ...folder("/isovec/pkg/", join(js, "pkg"), (name) => /\.(js|wasm)$/.test(name)),
  ...folder("/onnxruntime-web/", onnxruntimeWeb, (name) => /^ort(\.wasm\.bundle\.min|-wasm-simd-threaded)\.(mjs|wasm)$/.test(name)),
  ...names.flatMap((name) => [...folder(`/networks/${name}/`, join(options.networks, name))]),
]);

/** Runs in the page. */
async function measure({ samples, name }) {
  const timed = async (work) => {
    const began = performance.now();
    await work();
    return performance.now() - began;
  };
  const median = (all) => all.toSorted((one, other) => one - other)[all.length >> 1];
  const ort = await import("/onnxruntime-web/ort.wasm.bundle.min.mjs");
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = "/onnxruntime-web/";
  const { ImageClassifier } = await import("/isovec/dist/index.js");
  const classifier = await ImageClassifier.load(`/networks/${name}`, { worker: false, cache: "off" });
  const model = new Uint8Array(await (await fetch(`/networks/${name}/model.onnx`)).arrayBuffer());
  const session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"] });
  const side = 224;
  const plane = side * side;
  const data = Uint8ClampedArray.from({ length: 4 * plane }, (_, at) => (at % 4 === 3 ? 255 : (at * 97) % 251));
  const [mean, deviation] = [
    [0.485, 0.456, 0.406],
    [0.229, 0.224, 0.225],
  ];
  const values = Float32Array.from({ length: 3 * plane }, (_, at) => {
    const channel = Math.floor(at / plane);
    return (data[4 * (at % plane) + channel] / 255 - mean[channel]) / deviation[channel];
  });
  const ours = async () => (await classifier.classify([{ data, width: side, height: side }], { scores: "logits" })).scores(0);
  const theirs = async () => Object.values(await session.run({ x: new ort.Tensor("float32", values, [1, 3, side, side]) }))[0].data;
  const [wanted, found] = [await theirs(), await ours()];
  const scale = Math.max(...wanted.map(Math.abs));
  const off = Math.max(...wanted.map((logit, at) => Math.abs(logit - found[at]))) / scale;
  const times = { ours: [], theirs: [] };
  for (let turn = 0; turn < samples; turn++) {
    times.theirs.push(await timed(theirs));
    times.ours.push(await timed(ours));
  }
  const { build } = classifier;
  await classifier.dispose();
  await session.release();
  return { build, ours: median(times.ours), theirs: median(times.theirs), least: [Math.min(...times.ours), Math.min(...times.theirs)], off };
}

const server = await serve(files);
const browser = await launch(options);
try {
  console.log(JSON.stringify(versions(browser)));
  for (const name of names) {
    const page = await browser.newPage();
    await page.goto(`${server.origin}/page.html`);
    const { build, ours, theirs, least, off } = await page.evaluate(measure, { samples: count(options.samples), name });
    if (build !== "tract") throw new Error(`the build ${build} took the model, and tract was to be measured`);
    const shown = [ours, theirs, ...least].map((time) => time.toFixed(1));
    console.log(`${name}: isovec ${shown[0]} ms, onnxruntime-web ${shown[1]} ms, ratio ${(theirs / ours).toFixed(2)}; the least ${shown[2]} and ${shown[3]}; off by ${off.toExponential(1)}`);
    if (!(off <= NEAR)) throw new Error(`the logits differ by ${off}`);
    await page.close();
  }
} finally {
  await browser.close();
  server.close();
}
