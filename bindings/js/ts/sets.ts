/** What sets of vectors in every form have in common. */
import type { Embeddings, Fingerprint } from "./embeddings.js";
import { IsovecError } from "./error.js";

/** What has to be the same in two sets that are compared. */
interface Vectors {
  readonly fingerprint: Fingerprint;
  readonly dimension: number;
}

/** The vector of a set of one. */
export function only(query: Embeddings): Float32Array<ArrayBuffer> {
  if (query.length !== 1) throw new IsovecError("NotOneQuery", `this takes a set of one vector, and the one that was given has ${query.length}; use search, which gives the hits of each`);
  return query.row(0);
}

/** The bytes that were given, where they lie. A number would be taken for a length, and an array of numbers for bytes. */
export function viewed(bytes: unknown): Uint8Array<ArrayBuffer> {
  if (ArrayBuffer.isView(bytes)) return new Uint8Array(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.byteLength);
  if (Object.prototype.toString.call(bytes) === "[object ArrayBuffer]") return new Uint8Array(bytes as ArrayBuffer);
  throw new IsovecError("InvalidEmbeddings", "a set is opened from the bytes of its file: give a Uint8Array, an ArrayBuffer or a Blob");
}

/** Vectors of different models have nothing in common; comparing them would give numbers all the same. */
export function compatible(here: Vectors, there: Vectors): void {
  const [one, other] = [here.fingerprint.identity, there.fingerprint.identity];
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])].sort();
  // Own entries alone: a name may be one that every object has.
  const entry = (of: Record<string, string>, name: string) => (Object.hasOwn(of, name) ? of[name] : undefined);
  // What one side does not know is no difference; sets that were written before there was this entry do not have it.
  const unknown = (name: string) => name === "architecture" && [entry(one, name), entry(other, name)].some((value) => value === undefined || value === "unknown");
  // Two that share a space may read different things: what only one of them has is about how.
  const shared = entry(one, "space") !== undefined && entry(one, "space") === entry(other, "space");
  const apart = (name: string) => shared && [entry(one, name), entry(other, name)].includes(undefined);
  const different = names.filter((name) => entry(one, name) !== entry(other, name) && !unknown(name) && !apart(name));
  if (here.dimension !== there.dimension) different.push("dimension");
  if (different.length === 0) return;
  const detail = different.map((name) => `${name}: ${entry(one, name) ?? "nothing"} here, ${entry(other, name) ?? "nothing"} there`);
  throw new IsovecError("IncompatibleIndex", `the vectors were not made the same way: ${[...new Set(detail)].join("; ")}; embed both with the same model and settings`);
}
