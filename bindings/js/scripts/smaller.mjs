// Makes a module and its glue smaller as they are sent: compressed. It moves and renames, and changes no instruction.
import { readFileSync, writeFileSync } from "node:fs";

const SECTION = { custom: 0, import: 2, code: 10 };
/** The bytes that functions are compared by, a run at a time: about two instructions. */
const RUN = 6;
/** Runs that more functions have than this say too little of which are alike for the time that they take. */
const COMMON = 1000;

/** The number at a place (LEB128, as WebAssembly writes all its numbers), and the place behind it. */
function number(bytes, at) {
  for (let value = 0, scale = 1; ; scale *= 128) {
    const byte = bytes[at++];
    value += (byte & 127) * scale;
    if (byte < 128) return [value, at];
  }
}

function written(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value & 127) | 128);
  return Buffer.from([...bytes, value]);
}

const sized = (bytes) => Buffer.concat([written(bytes.length), bytes]);
const section = (id, content) => Buffer.concat([Buffer.from([id]), sized(content)]);

/** A module's sections: their kinds, where they begin, and where their contents lie. */
function sections(module) {
  const found = [];
  for (let at = 8; at < module.length; ) {
    const start = at;
    const [length, from] = number(module, at + 1);
    at = from + length;
    found.push({ id: module[start], start, from, to: at });
  }
  return found;
}

/** What a module imports: the name's own place, and whether it is a function. */
function imports(module) {
  const { from } = sections(module).find(({ id }) => id === SECTION.import);
  let [count, at] = number(module, from);
  const next = () => {
    const [value, behind] = number(module, at);
    at = behind;
    return value;
  };
  const name = () => {
    const start = at;
    const length = next();
    at += length;
    return { start, end: at, text: module.toString("utf8", at - length, at) };
  };
  const found = [];
  for (; count > 0; count--) {
    name();
    const named = name();
    const kind = next();
    if (kind === 0) next();
    else if (kind === 3) at += 2;
    else {
      if (kind === 1) at++;
      if (kind > 2) throw new Error(`an import of kind ${kind}, which this script does not know`);
      const limits = next();
      next();
      if (limits & 1) next();
    }
    found.push({ ...named, isFunction: kind === 0 });
  }
  return found;
}

/** Where the bodies of a module's functions lie. */
function bodies(module) {
  const { from } = sections(module).find(({ id }) => id === SECTION.code);
  let [count, at] = number(module, from);
  const found = [];
  for (; count > 0; count--) {
    const [length, start] = number(module, at);
    at = start + length;
    found.push({ start, end: at });
  }
  return found;
}

/** For each function the runs of bytes that others have too, numbered, and for each of those the functions that have it. */
function shared(module, functions) {
  const having = new Map();
  functions.forEach(({ start, end }, index) => {
    for (let at = start; at + RUN <= end; at++) {
      const run = module.readUIntLE(at, RUN);
      const list = having.get(run);
      if (list === undefined) having.set(run, [index]);
      else if (list.at(-1) !== index) list.push(index);
    }
  });
  const runs = functions.map(() => []);
  const owners = [];
  for (const list of having.values()) {
    if (list.length < 2 || list.length > COMMON) continue;
    for (const index of list) runs[index].push(owners.length);
    owners.push(list);
  }
  return { runs, owners };
}

/**
 * An order in which each function is followed by the one that is most like it of those that are left: the one with the most
 * runs in common (rare ones count for more) for the length of both. What Rust makes of generic code is there many times with
 * small differences, and a compressor finds the last copy cheapest.
 */
function order(module) {
  const functions = bodies(module);
  const { runs, owners } = shared(module, functions);
  const weight = owners.map((list) => Math.log(functions.length / list.length));
  const length = ({ start, end }) => end - start;
  const rest = functions.map((_, index) => index).sort((a, b) => length(functions[a]) - length(functions[b]) || a - b);
  const placed = new Uint8Array(functions.length);
  const alike = new Float64Array(functions.length);
  const found = [];
  for (let last = -1, at = 0; ; ) {
    let [best, most] = [-1, 0];
    if (last >= 0) {
      const touched = [];
      for (const run of runs[last]) {
        for (const other of owners[run]) {
          if (placed[other]) continue;
          if (alike[other] === 0) touched.push(other);
          alike[other] += weight[run];
        }
      }
      for (const other of touched) {
        const likeness = alike[other] / (runs[last].length + runs[other].length);
        if (likeness > most) [best, most] = [other, likeness];
        alike[other] = 0;
      }
    }
    if (best < 0) {
      while (at < rest.length && placed[rest[at]]) at++;
      if (at === rest.length) return found;
      best = rest[at];
    }
    placed[best] = 1;
    found.push(best);
    last = best;
  }
}

/**
 * Gives a module's functions names whose order is that in which they compress best, for `wasm-opt
 * --reorder-functions-by-name`, which also mends what refers to them and takes the names away.
 */
export function nameByOrder(path) {
  const module = readFileSync(path);
  const imported = imports(module).filter(({ isFunction }) => isFunction).length;
  const names = order(module).map((index, rank) => [imported + index, String(rank).padStart(7, "0")]);
  names.sort(([a], [b]) => a - b);
  const entries = names.map(([index, name]) => Buffer.concat([written(index), sized(Buffer.from(name))]));
  const map = Buffer.concat([Buffer.from([1]), sized(Buffer.concat([written(names.length), ...entries]))]);
  const content = Buffer.concat([sized(Buffer.from("name")), map]);
  writeFileSync(path, Buffer.concat([module, section(SECTION.custom, content)]));
}

/** Gives what a module imports from its glue, by names that end with a hash of 16 digits, names of two or three letters. */
export function shortImports(path, glue) {
  const module = readFileSync(path);
  const short = new Map();
  const { start: head, from, to } = sections(module).find(({ id }) => id === SECTION.import);
  const pieces = [];
  let at = from;
  for (const { start, end, text } of imports(module)) {
    if (!/_[0-9a-f]{16}$/.test(text)) continue;
    if (!short.has(text)) short.set(text, `$${short.size.toString(36)}`);
    pieces.push(module.subarray(at, start), sized(Buffer.from(short.get(text))));
    at = end;
  }
  const content = Buffer.concat([...pieces, module.subarray(at, to)]);
  writeFileSync(path, Buffer.concat([module.subarray(0, head), section(SECTION.import, content), module.subarray(to)]));
  const script = readFileSync(glue, "utf8");
  writeFileSync(glue, script.replace(/\b\w+_[0-9a-f]{16}\b/g, (name) => short.get(name) ?? name));
}
