// What is embedded: texts of exact lengths, and real ones of mixed lengths.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { cache } from "../page/common.mjs";
import { text } from "../page/texts.mjs";
import { tokenizer } from "./wordpiece.mjs";

const REFERENCE = new URL("../../tests/data/reference/texts.txt", import.meta.url);
const MIXED = { texts: 32, shortest: 3, longest: 256 };

/** The cases, and where the real texts are from. `calls`: how many are timed in one turn. */
export function cases(model) {
  const same = (name, rows, tokens, calls) => {
    const { text: one, ids } = text(model, tokens);
    return { name, calls, texts: Array(rows).fill(one), ids: Array(rows).fill(ids) };
  };
  const corpus = join(cache(), "corpus.txt");
  const found = existsSync(corpus);
  return {
    corpus: found ? "the benchmarks' corpus" : "tests/data/reference/texts.txt (`cargo xtask setup corpus` brings longer ones)",
    cases: [same("1x16", 1, 16, 5), same("1x128", 1, 128, 2), same("8x128", 8, 128, 1), mixed(model, found ? corpus : REFERENCE)],
  };
}

/** Texts of a file that fit, as many short and long ones among them as in the whole; in the file's order. */
function mixed(model, file) {
  const tokens = tokenizer(model);
  const fitting = readFileSync(file, "utf8")
    .split("\n")
    .map((text, line) => ({ text, line, ids: tokens(text) }))
    .filter(({ ids }) => ids?.length >= MIXED.shortest && ids.length <= MIXED.longest)
    .sort((a, b) => a.ids.length - b.ids.length);
  const chosen = Array.from({ length: MIXED.texts }, (_, at) => fitting[Math.floor(((at + 0.5) * fitting.length) / MIXED.texts)]);
  chosen.sort((a, b) => a.line - b.line);
  return { name: `${MIXED.texts} mixed`, calls: 1, texts: chosen.map(({ text }) => text), ids: chosen.map(({ ids }) => ids) };
}

/**
 * Additions and multiplications in the products of a case, without padding: in each layer four
 * projections, two products of attention, two layers of the feed-forward part.
 */
export function flops(model, { ids }) {
  const { num_hidden_layers: layers, hidden_size: hidden, intermediate_size: inner } = JSON.parse(readFileSync(join(model, "config.json"), "utf8"));
  const layer = (tokens) => 2 * tokens * (4 * hidden * hidden + 2 * tokens * hidden + 2 * hidden * inner);
  return ids.reduce((sum, one) => sum + layers * layer(one.length), 0);
}
