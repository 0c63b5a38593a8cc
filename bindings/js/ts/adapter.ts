/** An adapter of WebGPU, as much of it as is asked for: TypeScript's own library does not have it yet. */
export interface Adapter {
  readonly features: ReadonlySet<string>;
  readonly limits: Readonly<Record<"maxBufferSize" | "maxStorageBufferBindingSize" | "maxStorageBuffersPerShaderStage" | "maxComputeWorkgroupStorageSize" | "maxComputeInvocationsPerWorkgroup", number>>;
  readonly info: { vendor: string; description: string; isFallbackAdapter?: boolean; subgroupMinSize?: number; subgroupMaxSize?: number };
}

interface WithGpu {
  gpu?: { requestAdapter(options: { powerPreference: "high-performance" }): Promise<Adapter | null> };
}

/** Whether the browser has WebGPU, with an adapter or without. */
export const hasWebGpu = (): boolean => (globalThis.navigator as WithGpu | undefined)?.gpu !== undefined;

/** The adapter that would compute, if there is one. No device is opened. */
export async function adapterHere(): Promise<Adapter | undefined> {
  const { gpu } = (globalThis.navigator ?? {}) as WithGpu;
  return (await gpu?.requestAdapter({ powerPreference: "high-performance" }).catch(() => null)) ?? undefined;
}
