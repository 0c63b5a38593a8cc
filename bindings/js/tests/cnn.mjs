// A seeded model that is no transformer encoder: words, convolutions over them, tanh. Programs do not take it, tract does.
// It is made here as an ONNX file, and computed here as well, in f64 and from its definition.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { tiny } from "./site.mjs";

const VOCABULARY = 464; // Of the tokenizer of tests/data/tiny-bert.
const KERNEL = 3;

/** Numbers from -1 to 1 that are the same everywhere (mulberry32). */
function* seeded(seed) {
  for (;;) {
    seed = (seed + 0x6d2b79f5) | 0;
    let bits = Math.imul(seed ^ (seed >>> 15), seed | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    yield ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 31 - 1;
  }
}

/** The weights of a model: `layers` convolutions of so many channels. */
export function weights({ width = 96, layers = 2, seed = 7 } = {}) {
  const numbers = seeded(seed);
  const make = (length, scale) => Float32Array.from({ length }, () => numbers.next().value * scale);
  const scale = Math.sqrt(3 / (width * KERNEL));
  return {
    width,
    table: make(VOCABULARY * width, 1),
    layers: Array.from({ length: layers }, () => ({ kernel: make(width * width * KERNEL, scale), bias: make(width, 0.1) })),
  };
}

// Protocol buffers, as far as ONNX files take them (onnx.proto).
const varint = (value) => {
  const bytes = [];
  for (let rest = BigInt.asUintN(64, BigInt(value)); ; rest >>= 7n) {
    if (rest < 128n) return Uint8Array.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 127n) | 128);
  }
};
const joined = (parts) => {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
};
const number = (field, value) => joined([varint(field << 3), varint(value)]);
const bytes = (field, content) => joined([varint((field << 3) | 2), varint(content.length), content]);
const text = (field, value) => bytes(field, new TextEncoder().encode(value));
const message = (field, ...parts) => bytes(field, joined(parts));

const [FLOAT, INT64, BOOL] = [1, 7, 9];
const raw = (array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
const tensor = (name, type, shape, values) => message(5, ...shape.map((extent) => number(1, extent)), number(2, type), text(8, name), bytes(9, raw(values)));
const integer = (name, value) => message(5, text(1, name), number(3, value), number(20, 2));
const integers = (name, values) => message(5, text(1, name), ...values.map((value) => number(8, value)), number(20, 7));
const node = (operator, inputs, output, ...attributes) =>
  message(1, ...inputs.map((name) => text(1, name)), text(2, output), text(3, output), text(4, operator), ...attributes);
const value = (field, name, type, shape) => {
  const dims = shape.map((extent) => message(1, typeof extent === "string" ? text(2, extent) : number(1, extent)));
  return message(field, text(1, name), message(2, message(1, number(1, type), message(2, ...dims))));
};

/** The model as an ONNX file. One that is `wrong` ends with a power of a truth value, which is no ONNX, and at which tract panics. */
export function onnx({ width, table, layers }, { wrong = false } = {}) {
  const turn = () => integers("perm", [0, 2, 1]);
  const parts = [
    node("Gather", ["table", "input_ids"], "words"),
    node("Cast", ["attention_mask"], "mask_2d", integer("to", FLOAT)),
    node("Unsqueeze", ["mask_2d", "last_axis"], "mask"),
    node("Mul", ["words", "mask"], "x0"),
  ];
  for (const index of layers.keys()) {
    const name = (what) => `${what}${index}`;
    parts.push(
      node("Transpose", [name("x")], name("channels"), turn()),
      node("Conv", [name("channels"), name("kernel"), name("bias")], name("mixed"), integers("kernel_shape", [KERNEL]), integers("pads", [1, 1])),
      node("Tanh", [name("mixed")], name("bent")),
      node("Transpose", [name("bent")], name("back"), turn()),
      node("Mul", [name("back"), "mask"], index + 1 === layers.length && !wrong ? "last_hidden_state" : `x${index + 1}`),
    );
  }
  if (wrong) parts.push(node("Cast", ["mask"], "flags", integer("to", BOOL)), node("Pow", [`x${layers.length}`, "flags"], "last_hidden_state"));
  parts.push(text(2, "cnn"), tensor("table", FLOAT, [VOCABULARY, width], table), tensor("last_axis", INT64, [1], BigInt64Array.of(2n)));
  for (const [index, { kernel, bias }] of layers.entries()) {
    parts.push(tensor(`kernel${index}`, FLOAT, [width, width, KERNEL], kernel), tensor(`bias${index}`, FLOAT, [width], bias));
  }
  for (const name of ["input_ids", "attention_mask"]) parts.push(value(11, name, INT64, ["batch", "sequence"]));
  parts.push(value(12, "last_hidden_state", FLOAT, ["batch", "sequence", width]));
  return joined([number(1, 8), message(8, number(2, 17)), message(7, ...parts)]);
}

/** What the model makes of the ids of one text: the mean over its tokens, of length 1. */
export function vector({ width, table, layers }, ids) {
  let rows = ids.map((id) => Float64Array.from(table.subarray(id * width, (id + 1) * width)));
  for (const { kernel, bias } of layers) {
    rows = rows.map((_, at) =>
      Float64Array.from({ length: width }, (_, to) => {
        let sum = bias[to];
        for (let tap = 0; tap < KERNEL; tap++) {
          const row = rows[at + tap - 1];
          if (!row) continue;
          for (let from = 0; from < width; from++) sum += row[from] * kernel[(to * width + from) * KERNEL + tap];
        }
        return Math.tanh(sum);
      }),
    );
  }
  const mean = Float64Array.from({ length: width }, (_, at) => rows.reduce((sum, row) => sum + row[at], 0) / rows.length);
  const norm = Math.hypot(...mean);
  return mean.map((component) => component / norm);
}

/** The files of a model, by their paths: those of tests/data/tiny-bert around that ONNX file. */
export function files(model, options) {
  const json = (name, changes) => [name, new TextEncoder().encode(JSON.stringify({ ...JSON.parse(readFileSync(join(tiny, name), "utf8")), ...changes }))];
  const same = (name) => [name, new Uint8Array(readFileSync(join(tiny, name)))];
  return new Map([
    json("config.json", { architectures: ["TextCnn"], model_type: "text-cnn", hidden_size: model.width }),
    json("1_Pooling/config.json", { word_embedding_dimension: model.width }),
    ...["tokenizer.json", "modules.json", "sentence_bert_config.json"].map(same),
    ["model.onnx", onnx(model, options)],
  ]);
}
