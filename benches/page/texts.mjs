// Texts whose token ids need no tokenizer: every word is one entry of the vocabulary.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const WORDS = (
  "the library keeps old letters from the war and people come to read them in winter when the river is cold " +
  "a teacher found one that her own grandfather had written to a friend about music and a small house near the sea"
).split(" ");

/** A text of exactly `tokens` tokens, the two special ones included, and their ids. */
export function text(model, tokens) {
  const { vocab } = JSON.parse(readFileSync(join(model, "tokenizer.json"), "utf8")).model;
  const id = (token) => {
    if (!Object.hasOwn(vocab, token)) throw new Error(`${token} is no entry of the vocabulary in ${model}: the texts are made for all-MiniLM-L6-v2`);
    return vocab[token];
  };
  const words = Array.from({ length: tokens - 2 }, (_, at) => WORDS[at % WORDS.length]);
  return { text: words.join(" "), ids: [id("[CLS]"), ...words.map(id), id("[SEP]")] };
}
