import type { Embedder } from "isovec";
import { reference } from "./reference.js";

/** Texts that are timed together. */
export interface Shape {
  name: string;
  texts: string[];
  tokens: number;
  repeats: number;
}

/** Words that are one token each in most vocabularies. */
const WORDS = "the water of a river runs down from high hills to the sea and every town on its way has a mill or an old bridge".split(" ");
const MIXED = { texts: 32, shortest: 3, longest: 256 };

/** The shapes that isovec is always measured with (benches/wasm/cases.mjs): 1x16, 1x128, 8x128 tokens, 32 mixed texts. */
export async function shapes(embedder: Embedder): Promise<Shape[]> {
  const same = async (rows: number, tokens: number, repeats: number): Promise<Shape> => {
    const text = await ofLength(embedder, tokens);
    const counted = await embedder.countTokens(text);
    return { name: `${rows} × ${tokens} tokens`, texts: Array<string>(rows).fill(text), tokens: rows * counted, repeats };
  };
  return [await same(1, 16, 25), await same(1, 128, 15), await same(8, 128, 7), await mixed(embedder)];
}

/** A text of so many tokens, special ones included. */
async function ofLength(embedder: Embedder, tokens: number): Promise<string> {
  const text = (words: number) => Array.from({ length: words }, (_, at) => WORDS[at % WORDS.length]).join(" ");
  let words = tokens - 2;
  while (words > 1 && (await embedder.countTokens(text(words))) > tokens) words--;
  return text(words);
}

/** As many short and long texts as there are among the reference's, in their order. */
async function mixed(embedder: Embedder): Promise<Shape> {
  const { texts } = await reference();
  const counted = await Promise.all(texts.map(async (text, line) => ({ text, line, tokens: await embedder.countTokens(text) })));
  const fitting = counted.filter(({ tokens }) => tokens >= MIXED.shortest && tokens <= MIXED.longest).sort((a, b) => a.tokens - b.tokens);
  const chosen = Array.from({ length: MIXED.texts }, (_, at) => fitting[Math.floor(((at + 0.5) * fitting.length) / MIXED.texts)]!);
  chosen.sort((a, b) => a.line - b.line);
  const tokens = chosen.reduce((sum, one) => sum + one.tokens, 0);
  return { name: `${MIXED.texts} mixed texts`, texts: chosen.map(({ text }) => text), tokens, repeats: 7 };
}
