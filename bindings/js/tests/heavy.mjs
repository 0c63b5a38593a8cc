// A model that is large enough to be kept in several pieces.
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { tiny } from "./site.mjs";

/** Bytes of a piece of what is kept (bindings/js/ts/store.ts). */
export const PIECE = 4 << 20;
export const WEIGHTS = "model.safetensors";

/** The tiny model's weights, made heavy by a tensor that nobody reads: 11 MB, three pieces. */
export function heavy() {
  const file = readFileSync(join(tiny, WEIGHTS));
  const length = Number(file.readBigUInt64LE());
  const header = JSON.parse(file.subarray(8, 8 + length));
  const data = file.subarray(8 + length);
  const ballast = randomBytes(11e6);
  header.ballast = { dtype: "U8", shape: [ballast.length], data_offsets: [data.length, data.length + ballast.length] };
  const text = Buffer.from(JSON.stringify(header).padEnd(length + 128));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([size, text, data, ballast]);
}
