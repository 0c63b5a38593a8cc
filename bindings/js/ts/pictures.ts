import { IsovecError } from "./error.js";

/** Pixels of red, green, blue and alpha, a byte each, row by row: `ImageData`, or what has the same members. */
export interface RawPicture {
  data: Uint8Array | Uint8ClampedArray;
  width: number;
  height: number;
}

/**
 * A picture.
 *
 * - `Blob`, `File`, `Uint8Array`, `ArrayBuffer`: a file in PNG, JPEG, WebP or GIF. isovec decodes it, never the browser: the
 *   bytes are Pillow's, the same in every browser and on the server. This is the form to prefer.
 * - `ImageData`, or another `RawPicture`: pixels.
 * - `ImageBitmap`, `VideoFrame`: read by WebCodecs, without a canvas. Their pixels are what the browser made of the source. A
 *   browser that does not convert them gives the error `Picture`.
 */
export type Picture = Blob | Uint8Array | ArrayBuffer | ImageData | ImageBitmap | VideoFrame | RawPicture;

/** A picture that can be handed to a worker. */
export type Portable = Blob | Uint8Array | RawPicture;

/** How pictures are read, where no file of the model says it. All but the limits is a part of the fingerprint. */
export interface PixelOptions {
  /** Whose arithmetic resizes and scales. Default: `pillow`. */
  reference?: "pillow" | "torchvision";
  /** What becomes of alpha: it is dropped, or the picture is laid on white. Default: `drop`. */
  alpha?: "drop" | "white";
  /** Whether pictures are turned as their EXIF or XMP asks for. Default: `true`. */
  turn?: boolean;
  /** The most pixels of a picture. Default: 100 million. */
  maxPixels?: number;
  /** The most bytes of a file. Default: 256 MiB. */
  maxBytes?: number;
}

export const REFERENCES: readonly NonNullable<PixelOptions["reference"]>[] = ["pillow", "torchvision"];
export const ALPHAS: readonly NonNullable<PixelOptions["alpha"]>[] = ["drop", "white"];

/** The error of a picture that cannot be read, by its place. */
export function unreadable(index: number, why: string, cause?: unknown): IsovecError {
  return new IsovecError("Picture", `picture ${index}: ${why}`, { cause });
}

/** The error of a picture at which its module stopped. */
export function stoppedAt(index: number, cause: WebAssembly.RuntimeError): IsovecError {
  return unreadable(index, `reading it stopped at an internal error (${cause.message}); please report it`, cause);
}

export const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));

/** The bytes of a file. */
export async function bytesOf(picture: Blob, index: number): Promise<Uint8Array> {
  try {
    return new Uint8Array(await picture.arrayBuffer());
  } catch (cause) {
    throw unreadable(index, `its file cannot be read (${String(cause)})`, cause);
  }
}

/** A picture in a form that can be handed to a worker. Nothing that was given is closed or taken away. */
export async function portable(picture: Picture, index: number): Promise<Portable> {
  if (picture instanceof Blob || picture instanceof Uint8Array) return picture;
  if (picture instanceof ArrayBuffer) return new Uint8Array(picture);
  if (isA(picture, "VideoFrame")) return pixels(picture as VideoFrame, index);
  if (isA(picture, "ImageBitmap")) {
    const frame = new VideoFrame(picture as ImageBitmap, { timestamp: 0 });
    try {
      return await pixels(frame, index);
    } finally {
      frame.close();
    }
  }
  const { data, width, height } = (picture ?? {}) as Partial<RawPicture>;
  const isRaw = (data instanceof Uint8Array || data instanceof Uint8ClampedArray) && isSide(width) && isSide(height);
  if (!isRaw) throw unreadable(index, `a picture is a Blob, a Uint8Array or an ArrayBuffer of a file, an ImageData, an ImageBitmap, a VideoFrame, or { data, width, height }, and this is ${kindOf(picture)}`);
  if (data.length !== 4 * width * height) throw unreadable(index, `${width} x ${height} pixels of four bytes are ${4 * width * height} bytes, and its data has ${data.length}`);
  return { data, width, height };
}

const isSide = (side: unknown): side is number => Number.isInteger(side) && (side as number) > 0 && (side as number) < 2 ** 31;

const kindOf = (value: unknown): string => (value === null ? "null" : typeof value === "object" ? `a ${value.constructor?.name ?? "thing without a class"}` : `of type ${typeof value}`);

function isA(value: unknown, name: "VideoFrame" | "ImageBitmap"): boolean {
  const type = (globalThis as Record<string, unknown>)[name];
  return typeof type === "function" && value instanceof type;
}

async function pixels(frame: VideoFrame, index: number): Promise<RawPicture> {
  if (!(await (converts ??= convertsToRgba()))) throw unreadable(index, "this browser does not read pixels without a canvas, which would change them; give the file's bytes, or an ImageData");
  const { width, height } = frame.visibleRect ?? {};
  if (!width || !height) throw unreadable(index, "the frame was closed, or has no pixels");
  const data = new Uint8Array(4 * width * height);
  try {
    await frame.copyTo(data, { format: "RGBA", layout: [{ offset: 0, stride: 4 * width }] });
  } catch (cause) {
    throw unreadable(index, `its pixels cannot be read (${String(cause)})`, cause);
  }
  return { data, width, height };
}

let converts: Promise<boolean> | undefined;

/** Whether `copyTo` heeds the format that it is asked for. Browsers that do not know the option copy what is there. */
async function convertsToRgba(): Promise<boolean> {
  try {
    const frame = new VideoFrame(Uint8Array.of(1, 2, 3, 255), { format: "BGRX", codedWidth: 1, codedHeight: 1, timestamp: 0 });
    const pixel = new Uint8Array(4);
    await frame.copyTo(pixel, { format: "RGBA" }).finally(() => frame.close());
    return pixel[0] === 3 && pixel[1] === 2 && pixel[2] === 1;
  } catch {
    return false;
  }
}
