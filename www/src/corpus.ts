import { Embeddings } from "isovec";
import { PageError } from "./page-error.js";
import { corpus } from "./state.js";

/** Opens an index: a file that `isovec embed`, the Rust SDK or this page wrote. */
export async function openIndex(name: string, content: ArrayBuffer | Blob, isSample = false): Promise<void> {
  const index = await Embeddings.load(content);
  const passages = index.labels;
  if (!passages) {
    const todo = "Write it with labels, as isovec embed does with -o index.safetensors.";
    throw new PageError("This index has vectors and no texts, so there is nothing to show.", todo);
  }
  corpus.value = { name, passages, index, isSample };
}

/** Opens the sample, whose index was written natively when the page was built. */
export async function openSample(): Promise<void> {
  const response = await fetch("./sample/sample.safetensors");
  if (!response.ok) throw new PageError(`The sample is not there (${response.status}).`, "Reload the page, or index a text of your own.");
  await openIndex("The sample", await response.arrayBuffer(), true);
}
