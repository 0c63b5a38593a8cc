// What `npm pack` makes of the built package: which files, how large, and whether every resolver, bundler and compiler
// finds its way in it. Run by `cargo xtask test npm`, or `npm test` after `npm run build`.
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import ts from "typescript";

const js = dirname(dirname(fileURLToPath(import.meta.url)));
const manifest = JSON.parse(readFileSync(join(js, "package.json"), "utf8"));

/** Every file is one of these. */
const ALLOWED = [
  /^dist\/(index|advisor|inline|compat|worker|thread|chunk-\w+)\.js(\.map)?$/,
  /^dist\/(\w+\/)?[\w-]+\.d\.ts$/,
  /^types\/module\.d\.ts$/,
  /^pkg\/(simd128|relaxed|threads|tract)\/isovec_js(\.js|_bg\.wasm)$/,
  /^pkg\/(advisor|image)\/isovec_js_(advisor|image)(\.js|_bg\.wasm)$/,
  // The types that those of `dist` name.
  /^pkg\/simd128\/isovec_js\.d\.ts$/,
  /^(LICENSE-MIT|LICENSE-APACHE|THIRD-PARTY-NOTICES|README\.md|package\.json)$/,
];
/**
 * Bytes of the tarball without what few pages fetch: three builds of the module, the advisor's, and little else. 3 MB are what it is
 * to take; it takes 2 KB more since the advisor says what a model in int8 changed, and 4 KB more since weights may be in bfloat16.
 */
const LARGEST = 3_007_000;
/** Bytes of what the modules add to it that are fetched for some models alone. */
const APART = { tract: 3_300_000, image: 300_000 };

let folder, tarball, packed, files;

before(() => {
  folder = mkdtempSync(join(tmpdir(), "isovec-pack-"));
  const npm = process.platform === "win32" ? "npm.cmd" : "npm";
  const answer = JSON.parse(execFileSync(npm, ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], { cwd: js, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], shell: npm.endsWith(".cmd") }));
  // A list of packages, or (newer versions) an object of them.
  [packed] = Object.values(answer);
  files = packed.files.map(({ path }) => path);
  tarball = readFileSync(join(folder, packed.filename));
  const installed = join(folder, "node_modules", "isovec");
  for (const file of files) {
    mkdirSync(dirname(join(installed, file)), { recursive: true });
    cpSync(join(js, file), join(installed, file));
  }
});

after(() => rmSync(folder, { recursive: true, force: true }));

test("nothing is packed that is not meant to be, and no more bytes than that takes", () => {
  assert.deepEqual(files.filter((file) => !ALLOWED.some((allowed) => allowed.test(file))), []);
  // A tarball is compressed as one stream, which finds little in one file of what it saw in another.
  const sizes = Object.keys(APART).map((module) => {
    const own = files.filter((file) => file.startsWith(`pkg/${module}/`));
    return [module, own.reduce((sum, file) => sum + gzipSync(readFileSync(join(js, file)), { level: 9 }).length, 0)];
  });
  for (const [module, size] of sizes) assert.ok(size > 0 && size <= APART[module], `${size} bytes of ${module}, and ${APART[module]} are allowed`);
  const others = sizes.reduce((rest, [, size]) => rest - size, packed.size);
  assert.ok(others <= LARGEST, `${others} bytes without ${Object.keys(APART).join(" and ")}, and ${LARGEST} are allowed`);
});

test("publint finds nothing to say", async () => {
  const content = tarball.buffer.slice(tarball.byteOffset, tarball.byteOffset + tarball.length);
  const { messages, pkg } = await publint({ pack: { tarball: content }, level: "suggestion", strict: true });
  assert.deepEqual(messages.map((message) => formatMessage(message, pkg, { color: false })), []);
});

test("types resolve like code, for whoever imports modules", async () => {
  const result = await checkPackage(createPackageFromTarballData(new Uint8Array(tarball)));
  assert.equal(result.types && result.types.kind, "included");
  const entries = Object.keys(manifest.exports).filter((entry) => !entry.endsWith(".json"));
  assert.deepEqual(Object.keys(result.entrypoints).filter((entry) => !entry.endsWith(".json")), entries);
  // The package is of modules alone: `require` finds them, and resolvers that know no `exports` find the first only.
  const expected = ({ kind, resolutionKind }) => (kind === "CJSResolvesToESM" && resolutionKind === "node16-cjs") || (kind === "NoResolution" && resolutionKind === "node10");
  assert.deepEqual(result.problems.filter((problem) => !expected(problem)), []);
});

test("sources are there for debuggers", () => {
  const scripts = files.filter((file) => /^dist\/.*\.js$/.test(file));
  assert.ok(scripts.length >= 5, scripts.join());
  for (const script of scripts) {
    const map = JSON.parse(readFileSync(join(js, `${script}.map`), "utf8"));
    assert.ok(files.includes(`${script}.map`), script);
    assert.ok(map.sourcesContent.length === map.sources.length && map.sourcesContent.every(Boolean), script);
    // Code stands on the lines on which it was written.
    for (const [at, source] of map.sources.entries()) {
      const written = readFileSync(join(js, "dist", source), "utf8").split("\n");
      const shown = map.sourcesContent[at].split("\n");
      assert.equal(shown.length, written.length, source);
      for (const [line, text] of shown.entries()) assert.ok(text === written[line] || (text === "" && /^\s*(\/\/|\/\*|\*)/.test(written[line])), `${source}:${line + 1}`);
    }
  }
});

test("bundlers keep what workers run, and may drop the rest", () => {
  const scripts = files.filter((file) => /^dist\/.*\.js$/.test(file));
  const workers = scripts.flatMap((script) => [...readFileSync(join(js, script), "utf8").matchAll(/new Worker\(new URL\("(\.[^"]+)"/g)].map(([, path]) => join(dirname(script), path)));
  assert.ok(workers.length > 0);
  assert.deepEqual([...manifest.sideEffects].sort(), [...new Set(workers)].map((worker) => `./${worker}`).sort());
});

test("every exported name says what it is", () => {
  const entries = Object.values(manifest.exports).flatMap(({ types }) => types ?? []).map((types) => join(js, types));
  const program = ts.createProgram(entries, { target: ts.ScriptTarget.ES2022, moduleResolution: ts.ModuleResolutionKind.Bundler, module: ts.ModuleKind.ES2022 });
  const checker = program.getTypeChecker();
  const silent = entries.flatMap((entry) => {
    const names = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(entry)));
    assert.ok(names.length > 0, entry);
    return names.filter((name) => {
      const symbol = name.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(name) : name;
      return symbol.getDocumentationComment(checker).length === 0;
    }).map((name) => `${entry}: ${name.name}`);
  });
  assert.deepEqual(silent, []);
});

test("a strict program compiles, and wrong knobs are errors", () => {
  cpSync(join(js, "tests", "consumer.ts"), join(folder, "consumer.ts"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  for (const [module, moduleResolution] of [[ts.ModuleKind.NodeNext, ts.ModuleResolutionKind.NodeNext], [ts.ModuleKind.ES2022, ts.ModuleResolutionKind.Bundler]]) {
    const program = ts.createProgram([join(folder, "consumer.ts")], {
      module, moduleResolution, target: ts.ScriptTarget.ES2022, lib: ["lib.es2022.d.ts", "lib.dom.d.ts", "lib.esnext.disposable.d.ts"], types: [],
      strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false, noEmit: true,
    });
    const problems = ts.getPreEmitDiagnostics(program).map(({ file, start, messageText }) => `${file?.fileName}:${start}: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`);
    assert.deepEqual(problems, []);
  }
});
