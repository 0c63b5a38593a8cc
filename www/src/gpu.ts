import type { Config } from "isovec";

// Whether the model computes on a GPU: the visitor's choice, kept in this browser.

const KEY = "isovec-gpu";

/** `?gpu=software` behind the page's address: a processor that plays a GPU, to see that path where there is no GPU. */
const software = new URLSearchParams(location.search).get("gpu") === "software";

/** What is needed here of the browser's WebGPU, which TypeScript's own library does not describe. */
type WithGpu = Navigator & { gpu?: { requestAdapter(): Promise<{ info: { isFallbackAdapter?: boolean } } | null> } };

/** Whether this browser has a GPU to offer. */
export async function hasGpu(): Promise<boolean> {
  const adapter = await (navigator as WithGpu).gpu?.requestAdapter().catch(() => null);
  return !!adapter && !adapter.info.isFallbackAdapter;
}

/** Whether the visitor wants it. */
export function wantsGpu(): boolean {
  try {
    return localStorage.getItem(KEY) === "yes";
  } catch {
    return false; // Where the browser keeps nothing.
  }
}

/** Keeps what the visitor wants. */
export function wantGpu(wanted: boolean): void {
  try {
    localStorage.setItem(KEY, wanted ? "yes" : "no");
  } catch {
    // It holds until the page is closed all the same: the model is loaded with it.
  }
}

/** What the model is loaded with. */
export function configuration(wanted = wantsGpu()): Config {
  if (software) return { providers: { executionProviders: ["webgpu", "cpu"], webgpu: { softwareAdapter: true } } };
  return wanted ? { providers: { providerAutoSelection: true } } : {};
}
