/** What is used of node, Bun and Deno where there is no page. */
interface Process {
  cwd(): string;
  platform: string;
  arch: string;
  env: Readonly<Record<string, string | undefined>>;
  getBuiltinModule?: Builtin;
}

/** The modules of node that are used. */
interface Builtin {
  (name: "node:fs/promises"): { readFile(path: URL, options?: { signal?: AbortSignal | undefined }): Promise<Uint8Array<ArrayBuffer>> };
  (name: "node:module"): { createRequire(file: string): Require };
}

/** Node's `require`. */
export type Require = (name: string) => unknown;

const process = (globalThis as { process?: Partial<Process> }).process;

/** The folder that the program runs in, as an address; nothing where there is none. */
export function workingFolder(): string | undefined {
  const folder = process?.cwd?.().replaceAll("\\", "/");
  return folder && `file://${folder.startsWith("/") ? "" : "/"}${folder.split("/").map(encodeURIComponent).join("/").replaceAll("%3A", ":")}/`;
}

/** Reads files by their address, which `fetch` does not do everywhere. Nothing where there are none. */
export const readFile = (url: URL): ((signal?: AbortSignal | null) => Promise<Uint8Array<ArrayBuffer>>) | undefined => {
  const fs = url.protocol === "file:" ? process?.getBuiltinModule?.("node:fs/promises") : undefined;
  return fs && ((signal) => fs.readFile(url, { signal: signal ?? undefined }));
};

/** Where a program runs, and what loads modules that are native: nothing in a page, and nothing in Deno, which asks its user first. */
export function program(): { platform: string; arch: string; env: Process["env"]; require: Require } | undefined {
  const builtin = process?.getBuiltinModule;
  if (!builtin || "Deno" in globalThis) return undefined;
  const { platform, arch, env } = process as Process;
  return { platform, arch, env, require: builtin("node:module").createRequire(import.meta.url) };
}
