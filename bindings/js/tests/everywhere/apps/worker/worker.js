import { Embedder } from "isovec/inline";
import module from "isovec/simd128.wasm";
import config from "./model/config.json";
import tokenizer from "./model/tokenizer.json";
import modules from "./model/modules.json";
import pooling from "./model/1_Pooling/config.json";
import limits from "./model/sentence_bert_config.json";
import weights from "./model/model.safetensors";

const files = {
  "config.json": config,
  "tokenizer.json": tokenizer,
  "modules.json": modules,
  "1_Pooling/config.json": pooling,
  "sentence_bert_config.json": limits,
  "model.safetensors": weights,
};
const bytes = Object.fromEntries(Object.entries(files).map(([name, buffer]) => [name, new Uint8Array(buffer)]));
let loading;

export default {
  async fetch(request) {
    const embedder = await (loading ??= Embedder.load(bytes, { module }));
    const vectors = await embedder.embed(await request.json());
    return Response.json({ build: embedder.build, vectors: Array.from(vectors, (row) => Array.from(row)) });
  },
};
