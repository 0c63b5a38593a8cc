import { parseCsv } from "./csv.js";
import { PageError } from "./page-error.js";

/** What a file holds: passages, or fields of which one holds them. */
export type Reading = { passages: string[] } | { fields: string[]; rows: Record<string, string>[] };

/** Characters of a passage at most: about what a model with 256 tokens sees. */
const LONGEST = 1000;
const LARGEST_FILE = 100e6;

/** Reads a text file by its ending. */
export async function readFile(file: File): Promise<Reading> {
  if (file.size > LARGEST_FILE) {
    throw new PageError(`${file.name} is larger than 100 MB.`, "Use isovec embed for it, and drop the index here.");
  }
  return readText(await decode(file), file.name.slice(file.name.lastIndexOf(".") + 1).toLowerCase(), file.name);
}

async function decode(file: File): Promise<string> {
  const content = await file.arrayBuffer().catch((cause: unknown) => {
    throw new PageError(`${file.name} cannot be read.`, "It may have been moved or be locked; choose it again.", { cause });
  });
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(content);
    if (!text.includes("\0")) return text;
  } catch {
    // Said below.
  }
  throw new PageError(`${file.name} is no text in UTF-8.`, "Save it as plain text (txt, md, csv or jsonl), encoded as UTF-8.");
}

/** Reads a text that is written in a form. */
export function readText(text: string, form: string, name: string): Reading {
  if (form === "csv" || form === "tsv") {
    const [head = [], ...rows] = parseCsv(text);
    if (rows.length === 0) throw new PageError(`${name} has no rows under its first line.`, "The first line has to name the columns.");
    const fields = head.map((field, at) => field.trim() || `column ${at + 1}`);
    return { fields, rows: rows.map((row) => Object.fromEntries(fields.map((field, at) => [field, row[at] ?? ""]))) };
  }
  if (form === "jsonl" || form === "ndjson") return readJsonLines(text, name);
  return { passages: paragraphs(form === "md" || form === "markdown" ? plain(text) : text) };
}

function readJsonLines(text: string, name: string): Reading {
  const rows: Record<string, string>[] = [];
  const fields = new Set<string>();
  for (const [at, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (cause) {
      throw new PageError(`Line ${at + 1} of ${name} is no JSON.`, "Each line has to be one JSON object.", { cause });
    }
    const object = typeof value === "object" && value !== null ? value : { text: value };
    const texts = Object.entries(object).filter((entry): entry is [string, string] => typeof entry[1] === "string");
    for (const [field] of texts) fields.add(field);
    rows.push(Object.fromEntries(texts));
  }
  if (fields.size === 0) {
    throw new PageError(`${name} has no field with text.`, "Each line has to be an object with a field that holds a string.");
  }
  return { fields: [...fields], rows };
}

/** The field that most likely holds the passages: the one with the most text. */
export function likelyField({ fields, rows }: { fields: string[]; rows: Record<string, string>[] }): string {
  const size = (field: string) => rows.slice(0, 200).reduce((sum, row) => sum + (row[field]?.length ?? 0), 0);
  return fields.reduce((best, field) => (size(field) > size(best) ? field : best));
}

/** The passages of a field. */
export function column(rows: readonly Record<string, string>[], field: string): string[] {
  return rows.flatMap((row) => cut(tidy(row[field] ?? "")));
}

/** Markdown without its front matter, and with headings as paragraphs of their own. */
const plain = (text: string) => text.replace(/^---\r?\n[^]*?\n---\r?\n/, "").replace(/^#{1,6} .*$/gm, "\n$&\n");
const tidy = (text: string) => text.replace(/\s+/g, " ").trim();
const isHeading = (block: string) => /^#{1,6} \S/.test(block) && !block.includes("\n");

/**
 * Paragraphs, between blank lines. A heading goes with what follows it. A text without blank lines has a passage a line.
 */
export function paragraphs(text: string): string[] {
  const blocks = text.replace(/\r\n?/g, "\n").split(/\n[^\S\n]*\n+/).map((block) => block.trim()).filter(Boolean);
  const all = blocks.length === 1 ? blocks[0]!.split("\n") : blocks;
  const passages: string[] = [];
  let heading = "";
  for (const block of all) {
    if (isHeading(block)) heading += `${block.replace(/^#+ /, "")}: `;
    else {
      passages.push(...cut(tidy(heading + block)));
      heading = "";
    }
  }
  if (heading) passages.push(tidy(heading.slice(0, -2)));
  return passages;
}

/** Cuts what is too long between sentences, else between words. */
function cut(text: string): string[] {
  if (text.length <= LONGEST) return text ? [text] : [];
  const passages: string[] = [];
  let passage = "";
  const flush = () => {
    if (passage.trim()) passages.push(passage.trim());
    passage = "";
  };
  for (const sentence of text.split(/(?<=[.!?…。！？])\s+/)) {
    if (passage.length + sentence.length > LONGEST) flush();
    for (let rest = sentence; rest; ) {
      const space = rest.length > LONGEST ? rest.lastIndexOf(" ", LONGEST) : rest.length;
      const end = space > 0 ? space : LONGEST;
      if (rest.length > LONGEST) passages.push(rest.slice(0, end).trim());
      else passage += `${rest} `;
      rest = rest.length > LONGEST ? rest.slice(end).trim() : "";
    }
  }
  flush();
  return passages;
}
