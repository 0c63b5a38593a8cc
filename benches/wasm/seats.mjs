// Where a contestant or the ceilings sit: in a page of their own, or a process of their own in
// node. What a contestant needs beside its `module` goes to it as it is. `turn` of a seat takes a
// turn there (contestants/turns.mjs) and gives back what it came to.
import { fork } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { js, onnxruntimeWeb } from "../page/common.mjs";

const NODE_SEAT = fileURLToPath(new URL("node-seat.mjs", import.meta.url));
/** Node 20 has relaxed SIMD behind a flag, later versions have it without. */
const FLAGS = process.versions.node.startsWith("20.") ? ["--experimental-wasm-relaxed-simd"] : [];

/** Seats in one browser; a context for each, so that each has a process of its own. */
export function inBrowser(browser, origin, cases) {
  return async ({ module, build, threads, ceilings, ...more }) => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${origin}/seat.html`);
    const place = { origin, build, threads, isovec: "/isovec/dist/index.js", onnxruntimeWeb: "/onnxruntime-web/ort.wasm.bundle.min.mjs", ...more };
    await page.evaluate(
      async ({ module, place, ceilings, cases }) => {
        const { seat } = await import("/wasm/contestants/turns.mjs");
        globalThis.turn = await seat({ module, place, ceilings, cases });
      },
      { module, place, ceilings, cases },
    );
    if (build) {
      const fetched = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name).filter((name) => name.endsWith(".wasm")));
      if (!fetched.some((name) => buildOf(name) === build)) throw new Error(`the package was asked for its build ${build} and loaded ${fetched.join(", ")}`);
    }
    return { turn: (turn) => page.evaluate((turn) => globalThis.turn(turn), turn), leave: () => context.close() };
  };
}

/** Seats in node. */
export function inNode(origin, cases) {
  return async ({ module, build, threads, ceilings, ...more }) => {
    const child = fork(NODE_SEAT, { execArgv: FLAGS });
    const ask = (message) =>
      new Promise((resolve, reject) => {
        const ended = (code) => reject(new Error(`node ended with ${code}`));
        child.once("exit", ended);
        child.once("message", ({ answer, error }) => {
          child.off("exit", ended);
          if (error) reject(new Error(error));
          else resolve(answer);
        });
        child.send(message);
      });
    const place = {
      origin,
      build,
      threads,
      isovec: pathToFileURL(join(js, "dist", "index.js")).href,
      onnxruntimeWeb: pathToFileURL(join(onnxruntimeWeb, "ort.node.min.mjs")).href,
      ...more,
    };
    try {
      await ask({ module, place, ceilings, cases });
    } catch (error) {
      child.kill();
      throw error;
    }
    return { turn: (turn) => ask({ turn }), leave: () => child.kill() };
  };
}

/** The build that a module of the package is: what its path has besides the package's own name. */
export function buildOf(path) {
  const inside = path.slice(path.lastIndexOf("/pkg/") + 5);
  return inside.replace("isovec_js", "").replace("_bg.wasm", "").replace(/[/_.-]+/g, " ").trim() || "default";
}
