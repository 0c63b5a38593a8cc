// An ONNX file whose lists of numbers have a field for each number. Readers of protobuf have to
// take both forms; rten 0.27 takes this one alone where attributes and shapes are concerned.
// Field numbers: onnx.proto. Encoding: https://protobuf.dev/programming-guides/encoding/

const [VARINT, FIXED64, BYTES, FIXED32] = [0, 1, 2, 5];
const TENSOR = { 1: VARINT };
const ATTRIBUTE = { 5: TENSOR, 7: FIXED32, 8: VARINT };
const NODE = { 5: ATTRIBUTE };
const GRAPH = { 1: NODE, 5: TENSOR };
const MODEL = { 7: GRAPH };

/** The same model, read by more. */
export const unpacked = (model) => rewritten(model, MODEL);

function rewritten(message, fields) {
  const parts = [];
  for (let at = 0; at < message.length; ) {
    const start = at;
    const [tag, content] = varint(message, at);
    const [number, type] = [Math.floor(tag / 8), tag % 8];
    if (type !== BYTES) {
      at = end(message, content, type);
      parts.push(message.subarray(start, at));
      continue;
    }
    const [length, from] = varint(message, content);
    at = from + length;
    const inside = message.subarray(from, at);
    const field = fields[number];
    if (field === undefined) parts.push(message.subarray(start, at));
    else if (typeof field === "number") {
      for (let one = 0, next; one < inside.length; one = next) {
        next = end(inside, one, field);
        parts.push(encoded(number * 8 + field), inside.subarray(one, next));
      }
    } else {
      const content = rewritten(inside, field);
      parts.push(encoded(tag), encoded(content.length), content);
    }
  }
  return Buffer.concat(parts);
}

/** Where a value of a type ends that begins at `at`. */
function end(bytes, at, type) {
  if (type === FIXED64) return at + 8;
  if (type === FIXED32) return at + 4;
  if (type === VARINT) {
    while (bytes[at] >= 0x80) at++;
    return at + 1;
  }
  throw new Error(`fields of type ${type} do not occur in ONNX files`);
}

function varint(bytes, at) {
  let [value, scale] = [0, 1];
  for (;; scale *= 0x80) {
    const byte = bytes[at++];
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return [value, at];
  }
}

function encoded(value) {
  const bytes = [];
  for (; value >= 0x80; value = Math.floor(value / 0x80)) bytes.push((value % 0x80) | 0x80);
  return Buffer.from([...bytes, value]);
}
