// The page's parts that need no page: how files are cut, and what the map is computed with.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";

const www = dirname(dirname(fileURLToPath(import.meta.url)));
const { build } = createRequire(join(dirname(www), "bindings", "js", "package.json"))("esbuild");
let parts;

before(async () => {
  const contents = ["csv", "passages", "map/pca", "map/clusters", "map/layout"].map((name) => `export * from "./${name}.ts";`).join("\n");
  const built = await build({ stdin: { contents, resolveDir: join(www, "src") }, bundle: true, format: "esm", write: false });
  parts = await import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`);
});

test("tables are read as RFC 4180 says, with the separator that is there", () => {
  const { parseCsv } = parts;
  assert.deepEqual(parseCsv('a,b\r\n"x, y","say ""hi"""\r\n'), [["a", "b"], ["x, y", 'say "hi"']]);
  assert.deepEqual(parseCsv('a;b\n"two\nlines";2'), [["a", "b"], ["two\nlines", "2"]]);
  assert.deepEqual(parseCsv("a\tb\tc\n1\t\t\n\n4\t5\t6\n"), [["a", "b", "c"], ["1", "", ""], ["4", "5", "6"]]);
  assert.deepEqual(parseCsv("a,b\n1,"), [["a", "b"], ["1", ""]]);
});

test("text is cut at blank lines, and headings go with what follows", () => {
  const { readText } = parts;
  const text = "---\ntitle: x\n---\n# Soup\n\nSalt it\nlate.\n\n\n## Bread\n### Rye\n\nKnead.\n\n# End";
  assert.deepEqual(readText(text, "md", "x.md").passages, ["Soup: Salt it late.", "Bread: Rye: Knead.", "End"]);
  assert.deepEqual(readText("one\ntwo\n", "txt", "x.txt").passages, ["one", "two"]);
  assert.deepEqual(readText(" \n\n", "txt", "x.txt").passages, []);
});

test("long paragraphs are cut between sentences, and no word is lost", () => {
  const { paragraphs } = parts;
  const sentences = Array.from({ length: 80 }, (_, at) => `Sentence ${at} has some words in it.`);
  const long = `${sentences.join(" ")} ${"x".repeat(2500)} ${"word ".repeat(500)}`;
  const passages = paragraphs(`first\n\n${long}`);
  assert.ok(passages.every((passage) => passage.length <= 1000 && passage === passage.trim()));
  assert.match(passages[1], /in it\.$/);
  assert.equal(passages.slice(1).join("").replaceAll(" ", ""), long.replaceAll(" ", ""));
});

test("of a table the field with the most text is proposed", () => {
  const { readText, likelyField, column } = parts;
  const table = readText('{"id": "1", "body": "a longer text"}\n{"id": "2", "body": "another", "n": 3}\n', "jsonl", "x.jsonl");
  assert.equal(likelyField(table), "body");
  assert.deepEqual(column(table.rows, "body"), ["a longer text", "another"]);
  assert.throws(() => readText('{"n": 1}', "jsonl", "x.jsonl"), /no field with text/);
  assert.throws(() => readText("only,head", "csv", "x.csv"), /no rows/);
});

/** Two clouds in ten dimensions, far apart along one axis, wide along another. */
function clouds() {
  const [rows, columns] = [60, 10];
  let state = 7;
  const next = () => (state = (state * 48271) % 2147483647) / 2147483647 - 0.5;
  const values = Float32Array.from({ length: rows * columns }, (_, i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    return column === 3 ? (row < 30 ? -5 : 5) + next() : column === 7 ? 4 * next() : 0.1 * next();
  });
  return { values, rows, columns };
}

test("principal components find the axes of the largest spread", () => {
  const data = clouds();
  const { values, columns } = parts.principalComponents(data, 4);
  assert.equal(columns, 4);
  const along = (component, axis) => {
    const mean = data.values.reduce((sum, value, i) => (i % 10 === axis ? sum + value / 60 : sum), 0);
    let [ab, aa, bb] = [0, 0, 0];
    for (let row = 0; row < 60; row++) {
      const [a, b] = [values[row * 4 + component], data.values[row * 10 + axis] - mean];
      [ab, aa, bb] = [ab + a * b, aa + a * a, bb + b * b];
    }
    return Math.abs(ab) / Math.sqrt(aa * bb);
  };
  assert.ok(along(0, 3) > 0.999, `${along(0, 3)}`);
  assert.ok(along(1, 7) > 0.99, `${along(1, 7)}`);
});

test("clouds become clusters, which are named by their own words", () => {
  const data = parts.principalComponents(clouds(), 4);
  const of = parts.clusters(data, 2);
  assert.ok(of.slice(0, 30).every((cluster) => cluster === of[0]) && of.slice(30).every((cluster) => cluster === 1 - of[0]));
  const words = Array.from(of, (_, row) => (row < 30 ? ["soup", "shared"] : ["star", "shared"]));
  const names = parts.names(words, of, 2);
  assert.match(names[of[0]], /^soup/);
  assert.match(names[of[59]], /^star/);
});

test("neighbours are the nearest, and the layout keeps clouds apart", () => {
  const data = parts.principalComponents(clouds(), 4);
  const nearest = parts.neighbours(data);
  const distance = (a, b) => Math.hypot(...[0, 1, 2, 3].map((j) => data.values[a * 4 + j] - data.values[b * 4 + j]));
  const others = Array.from({ length: 60 }, (_, other) => other).filter((other) => other !== 5);
  assert.deepEqual([...nearest.slice(40, 48)], others.sort((a, b) => distance(5, a) - distance(5, b)).slice(0, 8));
  const points = parts.start(data);
  for (const settled of parts.settle(points, nearest)) assert.ok(settled > 0 && settled <= 1);
  const mean = (from, axis) => Array.from({ length: 30 }, (_, i) => points[2 * (from + i) + axis]).reduce((a, b) => a + b) / 30;
  const [a, b] = [0, 30].map((from) => [mean(from, 0), mean(from, 1)]);
  const spread = Math.max(...Array.from({ length: 30 }, (_, row) => Math.hypot(points[2 * row] - a[0], points[2 * row + 1] - a[1])));
  assert.ok(Math.hypot(a[0] - b[0], a[1] - b[1]) > spread, "the clouds overlap");
});
