// The examples of the documents, as strict as compilers get: each is a program of its own that imports the built package.
// What an example does not say (an embedder, the texts) is declared below. Run by `cargo xtask test npm`, or `npm test`
// after `npm run build`.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const js = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(dirname(js));
const documents = ["README.md", "bindings/js/README.md", ...readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`)];

/** What examples take for granted. */
const GIVEN = `
declare const embedder: import("isovec").Embedder;
declare const texts: string[];
declare const lines: AsyncIterable<string>;
declare const files: Map<string, Uint8Array>;
declare const signal: AbortSignal;
declare function store(index: number, vector: Float32Array): void;
`;

/** The examples of a language by a name for messages. */
function examples(language) {
  return documents.flatMap((name) => {
    const text = readFileSync(join(root, name), "utf8");
    const found = [...text.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].filter(([, own]) => own === language);
    return found.map(({ 2: code, index }) => ({ name: `${name}:${text.slice(0, index).split("\n").length}`, code }));
  });
}

test("every example compiles", () => {
  const programs = new Map([[join(js, "example-given.d.ts"), GIVEN]]);
  const names = new Map();
  for (const [at, { name, code }] of [...examples("js"), ...examples("ts")].entries()) {
    const path = join(js, `example-${at}.ts`);
    names.set(path, name);
    // A module even where nothing is imported.
    programs.set(path, `${code}\nexport {};\n`);
  }
  assert.ok(names.size > 10, `${names.size} examples`);
  const options = {
    module: ts.ModuleKind.ES2022, moduleResolution: ts.ModuleResolutionKind.Bundler, target: ts.ScriptTarget.ES2022,
    lib: ["lib.es2022.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts", "lib.dom.asynciterable.d.ts", "lib.esnext.disposable.d.ts"], types: [], strict: true, skipLibCheck: true, noEmit: true,
  };
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (path) => programs.has(path) || fileExists(path);
  host.readFile = (path) => programs.get(path) ?? readFile(path);
  host.getSourceFile = (path, version) => (programs.has(path) ? ts.createSourceFile(path, programs.get(path), version) : getSourceFile(path, version));
  const diagnostics = ts.getPreEmitDiagnostics(ts.createProgram([...programs.keys()], options, host));
  const problems = diagnostics.map(({ file, start, messageText }) => {
    const line = file && start !== undefined ? file.getLineAndCharacterOfPosition(start).line + 1 : 0;
    return `${names.get(file?.fileName) ?? file?.fileName}, line ${line} of the example: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`;
  });
  assert.deepEqual(problems, []);
});

test("every example of JSON is JSON", () => {
  for (const { name, code } of examples("json")) {
    // Part of an object, as a manifest's lines are.
    const whole = code.trimStart().startsWith("{") ? code : `{${code}}`;
    assert.doesNotThrow(() => JSON.parse(whole), name);
  }
});
