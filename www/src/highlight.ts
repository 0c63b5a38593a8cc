import { make } from "./dom.js";

/** Words that say nothing about what a text is about. */
export const STOP = new Set(
  ("a about after all also an and any are as at be because been before but by can could did do does for from had has have " +
  "he her him his how i if in into is it its just like may me more most my no not of on one only or other our out over " +
  "she so some such than that the their them then there these they this those to too up was we were what when where which " +
  "while who why will with would you your").split(" "));

const WORD = /[\p{L}\p{N}]+(?:['’][\p{L}]+)*/gu;

/** The words of a text, in lower case and without accents' spellings mattering. */
export const words = (text: string): string[] => (text.normalize("NFC").toLowerCase().match(WORD) ?? []).filter((word) => !STOP.has(word));

/** Whether two words are forms of one: one begins with the other, and the rest is an ending. */
function alike(a: string, b: string): boolean {
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  return short === long || (short.length > 3 && long.length - short.length <= 3 && long.startsWith(short));
}

/** Which of the words a text has. */
export const matches = (text: string, wanted: readonly string[]): string[] => {
  const present = words(text);
  return wanted.filter((word) => present.some((one) => alike(one, word)));
};

/** A text with the words marked that a query has, too. */
export function marked(text: string, wanted: readonly string[]): Node[] {
  const nodes: Node[] = [];
  let end = 0;
  for (const { 0: word, index } of text.matchAll(WORD)) {
    const plain = word.normalize("NFC").toLowerCase();
    if (STOP.has(plain) || !wanted.some((one) => alike(one, plain))) continue;
    nodes.push(document.createTextNode(text.slice(end, index)), make("mark", {}, word));
    end = index + word.length;
  }
  nodes.push(document.createTextNode(text.slice(end)));
  return nodes;
}
