// A classic script, run before any module: notes the same moments for every contestant.
"use strict";
{
  const inputs = JSON.parse(document.getElementById("inputs").textContent);
  const moments = {};
  const { promise, resolve, reject } = Promise.withResolvers();
  // Nobody may be listening yet when a contestant fails; the bench asks for the promise later.
  promise.catch(() => {});

  for (const name of ["instantiate", "instantiateStreaming"]) {
    const original = WebAssembly[name];
    WebAssembly[name] = async (...args) => {
      const result = await original.apply(WebAssembly, args);
      moments.wasm ??= performance.now();
      return result;
    };
  }

  /** When the first byte of a file was asked for, and when its last byte was there. Browsers list a file a little after its last byte. */
  const transfer = async (ending) => {
    const listed = () => performance.getEntriesByType("resource").filter((entry) => entry.name.endsWith(ending) && entry.decodedBodySize > 0);
    for (let turns = 0; turns < 100 && listed().length === 0; turns++) await new Promise((resume) => setTimeout(resume, 10));
    const entries = listed();
    if (entries.length !== 1) throw new Error(`${entries.length} files that end in ${ending} were fetched, not one`);
    return { from: entries[0].startTime, to: entries[0].responseEnd };
  };

  /**
   * Runs a contestant: `load` gives the session, `embed(session, input)` one vector. Times count
   * from the navigation; the moment is taken when the vector is in hand.
   */
  globalThis.contestant = async ({ weights, load, embed }) => {
    moments.modules = performance.now();
    try {
      const session = await load(inputs);
      moments.session = performance.now();
      const vector = await embed(session, inputs.short);
      const total = performance.now();
      const [wasm, model] = [await transfer(".wasm"), await transfer(weights)];
      const ready = Math.max(moments.wasm, model.to);
      globalThis.warmed = (name, rounds) => measure(() => embed(session, inputs[name]), rounds);
      resolve({
        vector: Array.from(vector),
        phases: {
          modules: moments.modules,
          wasm: moments.wasm - wasm.from,
          model: model.to - model.from,
          ready,
          session: moments.session - ready,
          run: total - moments.session,
          total,
        },
      });
    } catch (error) {
      reject(error);
    }
  };
  globalThis.first = promise;

  /** Single times of a call after as many calls again that do not count: the compiler's better code has to come first. */
  async function measure(call, rounds) {
    const times = [];
    let vector;
    for (let round = -rounds; round < rounds; round++) {
      const from = performance.now();
      vector = await call();
      if (round >= 0) times.push(performance.now() - from);
    }
    return { times, vector: Array.from(vector) };
  }
}
