// isovec as its README shows it, but on the page's thread, like its peer: the model's published files, text in, vector out.
import { Embedder } from "/isovec/dist/index.js";

await contestant({
  weights: "/model.safetensors",
  load: () => Embedder.load("/model/", { worker: false }),
  embed: (embedder, { text }) => embedder.embedOne(text),
});
