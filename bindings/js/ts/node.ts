/** What is used of node, Bun and Deno where there is no page. */
interface Process {
  cwd(): string;
  getBuiltinModule?(name: "node:fs/promises"): { readFile(path: URL, options?: { signal?: AbortSignal | undefined }): Promise<Uint8Array<ArrayBuffer>> };
}

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
