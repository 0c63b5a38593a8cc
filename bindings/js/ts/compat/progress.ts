import type { Progress } from "../host.js";

/** What a `progress_callback` is told, by the names and words of transformers.js. */
export type ProgressInfo =
  | { status: "initiate" | "download" | "done"; name: string; file: string }
  | { status: "progress"; name: string; file: string; progress: number; loaded: number; total: number }
  | { status: "ready"; task: string; model: string };

/** Is told how far loading has come. */
export type ProgressCallback = (info: ProgressInfo) => void;

/** Tells `callback` of the files of the model `name`: each is initiated, downloaded, in progress and done. */
export class Files {
  #callback: ProgressCallback;
  #name: string;
  /** Those that are under way. */
  #open = new Set<string>();
  #done = new Set<string>();

  constructor(name: string, callback: ProgressCallback) {
    this.#name = name;
    this.#callback = callback;
  }

  readonly progress = ({ file, bytes, total }: Progress): void => {
    if (this.#done.has(file)) return;
    if (!this.#open.has(file)) {
      this.#open.add(file);
      this.#say("initiate", file);
      this.#say("download", file);
    }
    // A server need not say how much there is: it is then what came.
    const all = Math.max(total ?? 0, bytes);
    this.#callback({ status: "progress", name: this.#name, file, progress: all === 0 ? 100 : (100 * bytes) / all, loaded: bytes, total: all });
    if (total !== undefined && bytes >= total) this.#end(file);
  };

  /** All files are there. */
  end(): void {
    for (const file of [...this.#open]) this.#end(file);
  }

  #end(file: string): void {
    this.#open.delete(file);
    this.#done.add(file);
    this.#say("done", file);
  }

  #say(status: "initiate" | "download" | "done", file: string): void {
    this.#callback({ status, name: this.#name, file });
  }
}
