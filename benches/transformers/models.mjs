// The model in the forms that are compared, by the paths under which they are served.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { folder } from "../page/server.mjs";

const here = dirname(fileURLToPath(import.meta.url));

/**
 * `/model/`: as it was published. `/int8/`: as `isovec export --dtype int8` writes it. `/q8/`: as the
 * hub has it for transformers.js, made here the way that its conversion makes it (quantize.py).
 */
export function models({ isovec, model, python }, scratch) {
  const run = (program, ...args) => execFileSync(program, args, { stdio: ["ignore", "ignore", "inherit"] });
  const [int8, plain, q8] = ["int8", "plain", "q8.onnx"].map((name) => join(scratch, name));
  run(isovec, "export", "--model", model, "--dtype", "int8", "--out", int8);
  run(isovec, "export", "--model", model, "--no-head", "--out", plain);
  run(python, join(here, "quantize.py"), join(plain, "model.onnx"), q8);
  return new Map([
    ...folder("/int8/", int8),
    ...folder("/model/", model, (name) => /\.(json|safetensors)$/.test(name)),
    ...folder("/q8/", model, (name) => name.endsWith(".json")),
    ["/q8/onnx/model_quantized.onnx", readFileSync(q8)],
  ]);
}
