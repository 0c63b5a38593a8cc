// How slowly a server may send (Rust: `hub/pace.rs`): without a bound one that sends a byte now and then holds a load for ever.

/** Bytes that have to arrive in each window: a kilobyte in a second. */
const LEAST = 60 << 10;
/** Milliseconds of a window. */
const WINDOW = 60_000;

/** What `work` brings; it fails where a window passes in which `arrived`, the bytes until now, has not grown by `LEAST`. */
export async function paced<T>(work: Promise<T>, arrived: () => number): Promise<T> {
  let [before, began] = [arrived(), Date.now()];
  let timer: ReturnType<typeof setInterval> | undefined;
  const slow = new Promise<never>((_, reject) => {
    timer = setInterval(() => {
      const [bytes, now] = [arrived(), Date.now()];
      // A timer that comes late was held up with everything else, by a busy page or a computer that slept.
      const inTime = now - began < WINDOW * 1.5;
      if (inTime && bytes - before < LEAST) reject(new Error(`the server sends less than ${LEAST} bytes in ${WINDOW / 1000} seconds`));
      [before, began] = [bytes, now];
    }, WINDOW);
  });
  try {
    return await Promise.race([work, slow]);
  } finally {
    clearInterval(timer);
  }
}

/** Where nobody sees the bytes arrive: those that have to be there by the end of each window, if there are `total` in all. */
export function expected(total: number): () => number {
  let bytes = -LEAST;
  return () => (bytes = Math.min(bytes + LEAST, total));
}
