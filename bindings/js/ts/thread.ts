// The script of a worker: a thread that computes for the page that started it.
import init, { isovecJoin, isovecLost, isovecServe } from "../pkg/threads/isovec_js.js";
import type { Answer, Shared } from "./threads.js";

const answer = (answer: Answer) => postMessage(answer);

onmessage = async ({ data }: MessageEvent<Shared>) => {
  try {
    await init({ module_or_path: data.module, memory: data.memory });
    if (!isovecJoin()) throw new Error("there are enough threads");
    answer({});
  } catch (cause) {
    return answer({ failed: String(cause) });
  }
  try {
    isovecServe();
  } finally {
    // It came back, so it was ended by a trap; whoever waits for it has to know.
    isovecLost();
  }
};
