/** The rows of a CSV text (RFC 4180), with the separator that its first line has most of. */
export function parseCsv(text: string): string[][] {
  const first = text.slice(0, text.search(/[\r\n]|$/));
  const separator = [",", ";", "\t"].map((one) => ({ one, times: first.split(one).length })).sort((a, b) => b.times - a.times)[0]!.one;
  const rows: string[][] = [];
  let row: string[] = [];
  let at = 0;
  while (at < text.length) {
    let value = "";
    if (text[at] === '"') {
      for (at++; at < text.length; at++) {
        if (text[at] !== '"') value += text[at];
        else if (text[at + 1] === '"') value += text[at++];
        else break;
      }
      at++;
    }
    // What follows a closing quote belongs to the value, as spreadsheets read it.
    const start = at;
    while (at < text.length && text[at] !== separator && text[at] !== "\n" && text[at] !== "\r") at++;
    row.push(value + text.slice(start, at));
    if (text[at] === separator) {
      at++;
      if (at < text.length && text[at] !== "\n" && text[at] !== "\r") continue;
      row.push("");
    }
    if (text[at] === "\r") at++;
    if (text[at] === "\n") at++;
    if (row.some((field) => field !== "")) rows.push(row);
    row = [];
  }
  return rows;
}
