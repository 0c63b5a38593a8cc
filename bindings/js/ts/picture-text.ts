/** The version of the package, which the build of the package writes here. */
declare const ISOVEC_VERSION: string;

/** The text of a picture. */
export interface PictureText {
  /** The picture's width in pixels, turned as its EXIF asks for. */
  width: number;
  /** Its height in pixels. */
  height: number;
  /** Its lines of text, in the order in which they are read; none where there is no text. */
  lines: TextLine[];
}

/** A line of text, and where it stands. */
export interface TextLine {
  text: string;
  /** The mean probability of its characters, from 0 to 1. */
  score: number;
  /** The corners of the box around it in pixels of the picture: upper left, upper right, lower right, lower left. */
  corners: [Corner, Corner, Corner, Corner];
}

/** From the left, and from the top. */
export type Corner = [x: number, y: number];

/** The lines alone, each ended by a line break. */
export function plain({ lines }: PictureText): string {
  return lines.map(({ text }) => `${text}\n`).join("");
}

/**
 * Writes the text of pictures as one document in hOCR 1.2 (kba.github.io/hocr-spec/1.2), a page for each: its file's name, its size,
 * and a level box around each line with its score in percent (`x_wconf`). The document is Rust's `hocr`, byte for byte.
 */
export function hocr(pages: Iterable<readonly [name: string, text: PictureText]>): string {
  let document = HEAD;
  let number = 0;
  for (const [place, [name, { width, height, lines }]] of [...pages].entries()) {
    // A file's name stands in quotes within the title.
    const title = escaped(`image "${name.replace(/["\\]/g, "_")}"; bbox 0 0 ${width} ${height}; ppageno ${place}`);
    document += `<div class="ocr_page" id="page_${place + 1}" title="${title}">\n`;
    for (const line of lines) document += span(line, ++number);
    document += "</div>\n";
  }
  return `${document}</body>\n</html>\n`;
}

const HEAD = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">
<html xmlns="http://www.w3.org/1999/xhtml">
<head>
<title></title>
<meta http-equiv="Content-Type" content="text/html;charset=utf-8"/>
<meta name="ocr-system" content="isovec ${ISOVEC_VERSION}"/>
<meta name="ocr-capabilities" content="ocr_page ocr_line ocrp_wconf"/>
</head>
<body>
`;

/** A line with the level box around its corners. */
function span({ text, score, corners }: TextLine, number: number): string {
  const along = (axis: 0 | 1) => corners.map((corner) => corner[axis]);
  const [left, top] = ([0, 1] as const).map((axis) => Math.floor(Math.min(...along(axis))));
  const [right, bottom] = ([0, 1] as const).map((axis) => Math.ceil(Math.max(...along(axis))));
  return `<span class="ocr_line" id="line_${number}" title="bbox ${left} ${top} ${right} ${bottom}; x_wconf ${Math.round(score * 100)}">${escaped(text)}</span>\n`;
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** For XML: markup as entities, and characters that no XML document may hold as spaces. */
function escaped(text: string): string {
  return text.replace(/[\u0000-\u001f\ufffe\uffff]/g, " ").replace(/[&<>"']/g, (character) => ENTITIES[character]!);
}
