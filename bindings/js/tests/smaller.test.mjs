// What makes the modules smaller changes no result: functions move, and imports from the glue get short names.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import binaryen from "binaryen";

import { nameByOrder, shortImports } from "../scripts/smaller.mjs";

const HASH = "0123456789abcdef";
/** Two kinds of functions by turns, a table that refers to one, and one that a caller names. */
const TEXT = `(module
  (import "./glue.js" "memory" (memory 1))
  (import "./glue.js" "__wbg_twice_${HASH}" (func $twice (param i32) (result i32)))
  (import "./glue.js" "__wbindgen_plain" (func $plain (param i32) (result i32)))
  (import "./glue.js" "table" (table 1 funcref))
  (elem (i32.const 0) $long_b)
  (func $long_a (export "long_a") (param i32) (result i32) ${sum(11)})
  (func $short_a (export "short_a") (param i32) (result i32) (call $twice (local.get 0)))
  (func $long_b (export "long_b") (param i32) (result i32) ${sum(12)})
  (func $short_b (export "short_b") (param i32) (result i32) (call $plain (call $twice (local.get 0))))
  (func $long_c (export "long_c") (param i32) (result i32) ${sum(13)})
  (func (export "by_table") (param i32) (result i32) (call_indirect (param i32) (result i32) (local.get 0) (i32.const 0))))`;

function sum(last) {
  let text = "(local.get 0)";
  for (const constant of [700001, 800002, 900003, 1000004, last]) text = `(i32.mul (i32.add ${text} (i32.const ${constant})) (i32.const 3))`;
  return text;
}

const GLUE = `export const imports = {__wbg_twice_${HASH}: (x) => 2 * x, __wbindgen_plain: (x) => x + 1, other_${HASH}: 0};`;

async function results(path, glue) {
  const { imports } = await import(`data:text/javascript,${encodeURIComponent(readFileSync(glue, "utf8"))}`);
  const table = new WebAssembly.Table({ initial: 1, element: "anyfunc" });
  const all = { ...imports, memory: new WebAssembly.Memory({ initial: 1 }), table };
  const { instance } = await WebAssembly.instantiate(readFileSync(path), { "./glue.js": all });
  const names = ["long_a", "long_b", "long_c", "short_a", "short_b", "by_table"];
  return names.map((name) => instance.exports[name](5));
}

test("functions that are alike lie together, imports have short names, and nothing else changes", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "isovec-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const [path, glue] = [join(folder, "a.wasm"), join(folder, "a.js")];
  const module = binaryen.parseText(TEXT);
  module.setFeatures(binaryen.Features.ReferenceTypes);
  writeFileSync(path, module.emitBinary());
  writeFileSync(glue, GLUE);
  const before = await results(path, glue);
  assert.deepEqual(before.slice(3, 5), [10, 11]);
  assert.equal(before[5], before[1]);

  nameByOrder(path);
  const named = binaryen.readBinary(readFileSync(path));
  named.setFeatures(binaryen.Features.ReferenceTypes);
  const rank = (name) => Number(named.getExport(name) && binaryen.getExportInfo(named.getExport(name)).value);
  const longs = ["long_a", "long_b", "long_c"].map(rank).sort();
  assert.equal(longs[2] - longs[0], 2, `${longs}`);
  named.runPasses(["reorder-functions-by-name"]);
  writeFileSync(path, named.emitBinary());
  assert.deepEqual(await results(path, glue), before);

  shortImports(path, glue);
  assert.deepEqual(await results(path, glue), before);
  const imported = WebAssembly.Module.imports(new WebAssembly.Module(readFileSync(path))).map(({ name }) => name);
  assert.deepEqual(imported.filter((name) => name.includes(HASH)), []);
  assert.ok(imported.includes("__wbindgen_plain") && imported.includes("memory"));
  assert.ok(readFileSync(glue, "utf8").includes(`other_${HASH}`));
});
