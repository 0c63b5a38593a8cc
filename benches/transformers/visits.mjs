// The first vector, from the navigation: of somebody who was never here, and of the same again.
import { rmSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { launchProfile } from "../page/common.mjs";

/** For the browser to write down what it keeps: it does so after it has answered. */
const SETTLING_MS = 1500;
/** The text of the first vector. */
const TEXT = "the library keeps old letters from the war and people come to read them";

/**
 * Two visits of a browser whose profile is empty, and what each came to: milliseconds from the
 * navigation to the vector, and bytes over the wire. Between them the browser is closed: nothing stays
 * but what is on its disk.
 */
export async function visit(options, profile, server, { module, place }) {
  rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  const once = async () => {
    const context = await launchProfile(options, profile);
    try {
      const page = context.pages()[0] ?? (await context.newPage());
      server.sent();
      await page.goto(`${server.origin}/page/visit.html`, { waitUntil: "domcontentloaded" });
      const ms = await page.evaluate(
        async ({ module, place, text }) => {
          const { open } = await import(`/wasm/contestants/${module}.mjs`);
          const ways = await open({ origin: location.origin, isovec: "/isovec/dist/index.js", ...place });
          await Object.values(ways)[0]({ texts: [text] });
          return performance.now();
        },
        { module, place, text: TEXT },
      );
      const bytes = server.sent();
      await wait(SETTLING_MS);
      return { ms, bytes };
    } finally {
      await context.close();
    }
  };
  return { cold: await once(), warm: await once() };
}
