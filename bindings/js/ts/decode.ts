import type * as Glue from "../pkg/image/isovec_js_image.js";
import { bytesOf, messageOf, stoppedAt, unreadable, type PixelOptions, type Portable } from "./pictures.js";
import { ready, replaced } from "./picture-module.js";
import { rawOptions } from "./pixels.js";

/** Pixels of one to four channels, row by row. */
export interface Decoded {
  data: Uint8Array;
  width: number;
  height: number;
  channels: number;
}

/** What decodes the pictures of a reader of text. */
export type Decode = (picture: Portable, index: number, options: PixelOptions) => Promise<Decoded>;

/** Decodes files with what a module brings, and hands pixels on as they are. `index` is the picture's place for messages. */
export function decodes(module = ready): Decode {
  return async (picture, index, options) => {
    const bytes = picture instanceof Blob ? await bytesOf(picture, index) : picture;
    if (!(bytes instanceof Uint8Array)) return { data: new Uint8Array(bytes.data), width: bytes.width, height: bytes.height, channels: 4 };
    const glue = await module();
    try {
      return await decoded(glue, bytes, options);
    } catch (cause) {
      if (!(cause instanceof WebAssembly.RuntimeError)) throw unreadable(index, messageOf(cause), cause);
      // Another call may have replaced it.
      if (module === ready && (await ready()) === glue) await replaced(ready);
      throw stoppedAt(index, cause);
    }
  };
}

async function decoded(glue: typeof Glue, bytes: Uint8Array, options: PixelOptions): Promise<Decoded> {
  const raw = rawOptions(glue, options);
  try {
    const image = await glue.RawImage.decode(bytes, raw);
    const { width, height, channels } = image;
    const data = image.data();
    image.free();
    return { data, width, height, channels };
  } finally {
    raw.free();
  }
}
