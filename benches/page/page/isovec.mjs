// isovec as its README shows it: the model's published files, text in, vector out.
import { Embedder } from "/isovec/dist/index.js";

await contestant({
  weights: "/model.safetensors",
  load: () => Embedder.load("/model/"),
  embed: (embedder, { text }) => embedder.embedOne(text),
});
