// The token ids of plain texts, for engines that take ids: BERT's WordPiece as tokenizer.json of
// all-MiniLM-L6-v2 describes it (lower case, punctuation apart, the longest entry first). Of ASCII
// alone, where no accents and no Chinese characters have to be treated. A wrong id would show in
// the vectors, which are compared with isovec's.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const PARTS = /[a-z0-9]+|[!-/:-@[-`{-~]/g;
/** Longer words are unknown. */
const LONGEST = 100;

/** A function that gives the ids of a text, the special ones included; nothing for what it cannot read. */
export function tokenizer(model) {
  const { vocab } = JSON.parse(readFileSync(join(model, "tokenizer.json"), "utf8")).model;
  const known = new Map(Object.entries(vocab));
  const pieces = (word) => {
    const ids = [];
    for (let from = 0; from < word.length; ) {
      let to = word.length;
      const entry = () => (from ? "##" : "") + word.slice(from, to);
      while (to > from && !known.has(entry())) to--;
      if (to === from || word.length > LONGEST) return [known.get("[UNK]")];
      ids.push(known.get(entry()));
      from = to;
    }
    return ids;
  };
  return (text) => {
    if (!/^[ -~]*$/.test(text)) return undefined;
    const words = text.toLowerCase().match(PARTS) ?? [];
    return [known.get("[CLS]"), ...words.flatMap(pieces), known.get("[SEP]")];
  };
}
