// Measures the module of web/kernels/examples/ceiling.rs; runs in node and in a page alike.

const SHAPES = [
  [1, 384, 1536],
  [16, 384, 384],
  [16, 384, 1536],
  [16, 1536, 384],
  [128, 32, 128],
  [128, 384, 384],
  [128, 384, 1536],
  [128, 1536, 384],
  [1024, 384, 1536],
];

/** Calls `run(times)` for about `SECONDS`; GFLOP/s. */
const SECONDS = 0.03;
export function timed(state) {
  for (;;) {
    const start = performance.now();
    const flops = state.run(state.times);
    const seconds = (performance.now() - start) / 1000;
    if (seconds > SECONDS / 2) return flops / seconds / 1e9;
    state.times = Math.ceil(state.times * Math.min(8, (1.2 * SECONDS) / Math.max(seconds, 1e-4)));
  }
}

/** What `timed` takes to measure the most that the machine does without memory. */
export const ceiling = (wasm, fused) => ({ times: 1, run: (times) => wasm.run_ceiling(fused, times * 100_000) });

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

/**
 * Lines of `{ name, gflops, share }`. Other programs take their part of a machine, so a product
 * and the ceiling take turns, and `share` is the median of what one is of the other.
 */
export async function measure(bytes, report) {
  const { instance } = await WebAssembly.instantiate(bytes, {});
  const wasm = instance.exports;
  for (const [kind, label] of ['', 'deterministic ', 'int8 '].entries()) {
    const fused = kind !== 1;
    const most = ceiling(wasm, fused);
    // The engine compiles the hot functions anew while they run.
    for (let warm = 0; warm < 5; warm += 1) timed(most);
    report({
      name: `ceiling, f32${fused ? '' : ' multiplied, then added'}`,
      gflops: Math.max(...Array.from({ length: 7 }, () => timed(most))),
    });
    for (let kernel = 0; kernel < wasm.kernels(kind); kernel += 1) {
      let name = label;
      for (let at = 0, letter; (letter = wasm.kernel_name(kind, kernel, at)); at += 1) {
        name += String.fromCharCode(letter);
      }
      for (const [m, k, n] of SHAPES) {
        if (!wasm.prepare(kind, kernel, m, k, n)) {
          throw new Error(`the operands of ${m}x${k}x${n} cannot be made`);
        }
        const product = {
          times: 1,
          run(times) {
            if (!wasm.run_product(times)) throw new Error(`${m}x${k}x${n} failed`);
            return 2 * m * k * n * times;
          },
        };
        timed(product);
        const pairs = Array.from({ length: 7 }, () => [timed(product), timed(most)]);
        report({
          name: `${name} ${m}x${k}x${n}`,
          gflops: Math.max(...pairs.map(([gflops]) => gflops)),
          share: median(pairs.map(([gflops, limit]) => gflops / limit)),
        });
      }
    }
  }
}
