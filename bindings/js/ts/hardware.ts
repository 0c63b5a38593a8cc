import { adapterHere, hasWebGpu, type Adapter } from "./adapter.js";
import { fastest, lacking } from "./builds.js";

/** An adapter as WebGPU shows it. */
export interface HardwareAdapter {
  /** As it names itself; most browsers leave that out. */
  name: string | null;
  /** The interface to it: `webgpu`. */
  backend: string;
  /** `cpu` for a processor that emulates a GPU; browsers do not report other kinds. */
  kind: "discrete" | "integrated" | "virtual" | "cpu" | null;
  vendorId: number | null;
  deviceId: number | null;
  pci: string | null;
  driver: string | null;
  /** Whether shaders may compute with 16-bit floats. */
  shaderF16: boolean;
  /** Whether the threads of a group can exchange values without memory, and how many do, at least and at most. */
  subgroups: boolean;
  subgroupMinSize: number | null;
  subgroupMaxSize: number | null;
  /** Whether it can measure the time of its kernels. */
  timestampQuery: boolean;
  /** Bytes of a buffer, and of a buffer that a kernel may bind, at most. */
  maxBufferBytes: number;
  maxBindingBytes: number;
  /** Buffers that a kernel may bind, at most. */
  maxStorageBuffers: number;
  /** Bytes that a group of threads may share, and threads of a group, at most. */
  maxWorkgroupBytes: number;
  maxWorkgroupThreads: number;
}

/** A GPU. */
export interface HardwareGpu {
  name: string | null;
  /** The vendor, if the browser reports it: `nvidia`, `amd`, `intel`, `apple`. */
  vendor: string | null;
  vendorId: number | null;
  deviceId: number | null;
  pci: string | null;
  kind: HardwareAdapter["kind"];
  memoryBytes: number | null;
  memoryAvailableBytes: number | null;
  driver: string | null;
  computeCapability: string | null;
}

/** The hardware: Rust's `HardwareInfo`. Unknown values are null; nothing is guessed. */
export interface Hardware {
  os: string | null;
  /** The architecture that the module is compiled for. */
  arch: string;
  cpu: {
    model: string | null;
    vendor: string | null;
    physicalCores: number | null;
    /** `navigator.hardwareConcurrency`, which may be less than there are. */
    logicalCores: number | null;
    usableCores: number | null;
    affinityCores: number | null;
    quotaCores: number | null;
    /** The instruction sets of the build that runs here. */
    simd: string[];
    /** The widest of them that its kernels use. */
    kernels: string;
    caches: { l1dBytes: number | null; l2Bytes: number | null; l3Bytes: number | null; l3SharedBy: number | null };
  };
  memory: { totalBytes: number | null; availableBytes: number | null; limitBytes: number | null };
  /** The GPU behind the adapter, unless a processor emulates it. */
  gpus: HardwareGpu[];
  /** The adapters that the browser gives for WebGPU: one or none. */
  adapters: HardwareAdapter[];
  page: {
    /** `navigator.deviceMemory`, rounded and capped. Only Chromium reports it, and only over TLS. */
    deviceMemoryGib: number | null;
    /** Whether the page is cut off from others, which threads need; null where there are no pages, as in node. */
    crossOriginIsolated: boolean | null;
    /** Whether there is memory that workers can share. */
    sharedMemory: boolean;
    /** Whether WebAssembly has SIMD, and relaxed SIMD. */
    simd: boolean;
    relaxedSimd: boolean;
    /** Whether isovec can compute on several threads here. */
    threads: boolean;
    /** Whether the browser has WebGPU. */
    webgpu: boolean;
  };
}

interface Told {
  hardwareConcurrency?: number;
  deviceMemory?: number;
}

/**
 * The hardware of this page, worker or program. Nothing is downloaded and no model is loaded; the browser is asked
 * for a WebGPU adapter, and no device is opened.
 */
export async function hardware(): Promise<Hardware> {
  const told: Told = globalThis.navigator ?? {};
  const [simd, relaxed, threads] = [!lacking("simd128"), !lacking("relaxed"), !lacking("threads")];
  const build = fastest(told.hardwareConcurrency ?? 1);
  const sets = { simd128: ["simd128"], relaxed: ["simd128", "relaxed-simd"], threads: ["simd128", "relaxed-simd", "atomics"] }[build];
  const adapter = await adapterHere();
  const adapters = adapter ? [described(adapter)] : [];
  return {
    os: null,
    arch: "wasm32",
    cpu: {
      model: null, vendor: null, physicalCores: null, logicalCores: told.hardwareConcurrency ?? null, usableCores: null, affinityCores: null, quotaCores: null,
      simd: simd ? sets : [],
      kernels: build === "simd128" ? "simd128" : "relaxed-simd",
      caches: { l1dBytes: null, l2Bytes: null, l3Bytes: null, l3SharedBy: null },
    },
    memory: { totalBytes: null, availableBytes: null, limitBytes: null },
    gpus: adapters.filter(({ kind }) => kind !== "cpu").map(({ name, kind }) => ({
      name, vendor: adapter!.info.vendor || null, vendorId: null, deviceId: null, pci: null, kind,
      memoryBytes: null, memoryAvailableBytes: null, driver: null, computeCapability: null,
    })),
    adapters,
    page: {
      deviceMemoryGib: told.deviceMemory ?? null,
      crossOriginIsolated: globalThis.crossOriginIsolated ?? null,
      sharedMemory: typeof SharedArrayBuffer !== "undefined",
      simd, relaxedSimd: relaxed, threads,
      webgpu: hasWebGpu(),
    },
  };
}

function described({ features, limits, info }: Adapter): HardwareAdapter {
  const subgroups = features.has("subgroups");
  return {
    name: info.description || null,
    backend: "webgpu",
    kind: info.isFallbackAdapter ? "cpu" : null,
    vendorId: null, deviceId: null, pci: null, driver: null,
    shaderF16: features.has("shader-f16"),
    subgroups,
    subgroupMinSize: (subgroups && info.subgroupMinSize) || null,
    subgroupMaxSize: (subgroups && info.subgroupMaxSize) || null,
    timestampQuery: features.has("timestamp-query"),
    maxBufferBytes: limits.maxBufferSize,
    maxBindingBytes: limits.maxStorageBufferBindingSize,
    maxStorageBuffers: limits.maxStorageBuffersPerShaderStage,
    maxWorkgroupBytes: limits.maxComputeWorkgroupStorageSize,
    maxWorkgroupThreads: limits.maxComputeInvocationsPerWorkgroup,
  };
}
