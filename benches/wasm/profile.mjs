// Where the time of a run goes in wasm, operator by operator: opens the module of
// web/encoder/examples/wasm_profile.rs; runs in node and in a page alike. By itself, in node:
//
//   node --experimental-wasm-relaxed-simd benches/wasm/profile.mjs <wasm_profile.wasm> <model folder> [deterministic]

/** Shapes that are profiled: texts, tokens of each, runs of which the fastest counts. */
export const SHAPES = [
  [1, 16, 40],
  [1, 128, 15],
  [8, 128, 5],
];

/** Opens a model; gives the function that profiles a shape. */
export async function profiler(module, config, weights, deterministic = false) {
  const compiled = await WebAssembly.compile(module);
  const imports = { clock: { now: () => performance.now() } };
  // What the crates below bring along for browsers and is never called here.
  for (const { module: from, name } of WebAssembly.Module.imports(compiled)) (imports[from] ??= {})[name] ??= () => 0;
  const wasm = (await WebAssembly.instantiate(compiled, imports)).exports;
  const text = () => new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, wasm.text(), wasm.text_length()));
  for (const [file, isWeights] of [[config, false], [weights, true]]) {
    const at = wasm.room(file.length);
    new Uint8Array(wasm.memory.buffer, at, file.length).set(file);
    wasm.take(isWeights);
  }
  if (!wasm.compile(deterministic)) throw new Error(text());
  return (texts, tokens, runs) => {
    // The engine compiles the hot functions anew while they run.
    for (const rounds of [3, runs]) if (!wasm.profile(texts, tokens, rounds)) throw new Error(text());
    const [took, ...lines] = text().split("\n");
    const steps = lines.map((line) => {
      const [operator, inner, width, count, multiplyAdds, bytes, ms] = line.split(" ").map((word, at) => (at ? Number(word) : word));
      return { operator, inner, width, count, multiplyAdds, bytes, ms };
    });
    return { texts, tokens, ms: Number(took), steps: steps.sort((a, b) => b.ms - a.ms) };
  };
}

/** A profile as text. Only products are compared with the ceiling, in GFLOP/s. */
export function profileTable({ texts, tokens, ms, steps }, ceiling) {
  const lines = steps.map(({ operator, inner, width, count, multiplyAdds, bytes, ms: part }) => {
    const isProduct = inner > 0;
    const rate = (2 * multiplyAdds) / part / 1e6;
    const share = isProduct && ceiling ? `${((100 * rate) / ceiling).toFixed(0)} %` : "";
    return [operator, isProduct ? `${inner} x ${width}` : String(width), String(count), `${(bytes / 1024).toFixed(0)} KiB`, part.toFixed(3), `${((100 * part) / ms).toFixed(1)} %`, isProduct ? rate.toFixed(1) : "", share];
  });
  const head = ["operator", "columns", "times", "results", "ms", "of the run", "GFLOP/s", ceiling ? "of the ceiling" : ""];
  const widths = head.map((words, at) => Math.max(words.length, ...lines.map((line) => line[at].length)));
  const row = (cells) => cells.map((cell, at) => (at < 1 ? cell.padEnd(widths[at]) : cell.padStart(widths[at]))).join("  ").trimEnd();
  return [`${texts} x ${tokens}: ${ms.toFixed(2)} ms`, row(head), ...lines.map(row)].join("\n");
}

if (typeof process !== "undefined" && process.argv[1]?.endsWith("profile.mjs")) {
  const { readFileSync } = await import("node:fs");
  const [module, model, mode] = process.argv.slice(2);
  if (!module || !model) {
    console.error("usage: profile.mjs <wasm_profile.wasm> <model folder> [deterministic]");
    process.exit(2);
  }
  const profile = await profiler(readFileSync(module), readFileSync(`${model}/config.json`), readFileSync(`${model}/model.safetensors`), mode === "deterministic");
  for (const shape of SHAPES) console.log(`${profileTable(profile(...shape))}\n`);
}
