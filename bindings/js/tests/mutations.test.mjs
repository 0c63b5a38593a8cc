// Damaged and hostile files of embeddings: this reader and Rust's (tests/embeddings_file.rs, which wrote the verdicts) take and
// refuse the same ones, and read the same out of those that they take. Both make the same files from one seed.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Embeddings } from "../dist/index.js";
import { data } from "./site.mjs";

const folder = join(data, "embeddings");
const { seed, rounds, bytes: odd, replacements } = JSON.parse(readFileSync(join(folder, "mutations.json"), "utf8"));
const original = readFileSync(join(folder, "native.safetensors"));
const verdicts = readFileSync(join(folder, "verdicts.txt"), "utf8").trimEnd().split("\n");
/** Files whose verdicts are one line. */
const BLOCK = 100;

/** Marsaglia's xorshift with 32 bits. */
function random(state) {
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

function mutated(next) {
  let file = Buffer.from(original);
  for (let left = 1 + next(3); left > 0 && file.length > 0; left--) {
    const kind = next(9);
    if (kind === 0) {
      const at = next(file.length);
      file[at] ^= 1 << next(8);
    } else if (kind === 1) {
      const at = next(file.length);
      file[at] = odd[next(odd.length)];
    } else if (kind === 2) {
      file = file.subarray(0, next(file.length));
    } else if (kind === 3) {
      const at = next(file.length + 1);
      file = Buffer.concat([file.subarray(0, at), Buffer.of(odd[next(odd.length)]), file.subarray(at)]);
    } else if (kind === 4) {
      const at = next(file.length);
      file = Buffer.concat([file.subarray(0, at), file.subarray(at + 1 + next(8))]);
    } else {
      const which = next(replacements.length);
      const [from, to] = replacements[which].map((text) => Buffer.from(text));
      const at = file.indexOf(from);
      if (at < 8) continue;
      const length = file.readBigUInt64LE();
      file = Buffer.concat([file.subarray(0, at), to, file.subarray(at + from.length)]);
      file.writeBigUInt64LE(BigInt.asUintN(64, length + BigInt(to.length - from.length)));
    }
  }
  return file;
}

/** FNV-1a with 32 bits. */
function fnv(parts, state = 0x811c9dc5) {
  for (const part of parts) {
    for (const byte of typeof part === "string" ? Buffer.from(`${part}\0`) : part) state = Math.imul(state ^ byte, 0x01000193) >>> 0;
  }
  return state;
}

/** Everything that a set says. */
function contents(set, prompt) {
  const bytes = ({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength);
  const identity = Object.entries(set.fingerprint.identity).sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b))).flat();
  return [
    `${set.length} ${set.dimension}`, bytes(set.values), bytes(set.tokenCounts), Uint8Array.from(set.truncated, Number),
    ...(set.labels ? ["labels", ...set.labels] : ["none"]), set.model, set.metric, set.fingerprint.precision, ...identity,
    prompt === null ? "none" : `prompt ${prompt}`,
  ];
}

/** The prompt's name, which a set only writes. */
function promptOf(set) {
  const file = set.save();
  const length = Number(new DataView(file.buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(file.subarray(8, 8 + length)));
  return JSON.parse(header.__metadata__["isovec.embeddings"]).prompt;
}

test("what Rust takes is taken here, and is the same; what it refuses is refused", async () => {
  const next = random(seed);
  const [found, taken] = [[], []];
  for (let block = 0; block < rounds / BLOCK; block++) {
    let state = 0x811c9dc5;
    for (let one = 0; one < BLOCK; one++) {
      const file = mutated(next);
      let verdict = ["refused"];
      try {
        const set = await Embeddings.load(file);
        verdict = contents(set, promptOf(set));
        taken.push(block * BLOCK + one);
        // What was taken is written as something that is taken, and is the same.
        const again = await Embeddings.load(set.save());
        assert.equal(fnv(contents(again, promptOf(again))), fnv(verdict), `round ${block * BLOCK + one}`);
      } catch (error) {
        assert.ok(error.name === "IsovecError" && error.kind === "InvalidEmbeddings", `round ${block * BLOCK + one}: ${error.stack}`);
      }
      if (process.env.ISOVEC_SHOW_VERDICTS) console.log(block * BLOCK + one, fnv(verdict).toString(16));
      state = fnv([new Uint8Array(Uint32Array.of(fnv(verdict)).buffer)], state);
    }
    found.push(state.toString(16).padStart(8, "0"));
  }
  assert.ok(taken.length > rounds / 20 && taken.length < rounds / 2, `${taken.length} files were taken`);
  const differing = found.flatMap((line, block) => (line === verdicts[block] ? [] : [`${block * BLOCK} to ${(block + 1) * BLOCK - 1}`]));
  assert.deepEqual(differing, [], "rounds of which this reader and Rust's say something else");
  assert.equal(verdicts.length, found.length);
  assert.equal({}.polluted ?? Object.prototype.model, undefined);
});

/** The file with another header, whose length is right again. */
function changed(from, to) {
  const text = original.toString("latin1");
  assert.ok(text.includes(from), from);
  const file = Buffer.from(text.replace(from, () => to), "latin1");
  file.writeBigUInt64LE(original.readBigUInt64LE() + BigInt(to.length - from.length));
  return file;
}

test("a name that every object has is a name like any other", async () => {
  const set = await Embeddings.load(original);
  for (const name of ["toString", "__proto__", "constructor", "hasOwnProperty"]) {
    const other = await Embeddings.load(changed('{\\"dimension\\"', `{\\"${name}\\":\\"x\\",\\"dimension\\"`));
    assert.ok(Object.hasOwn(other.fingerprint.identity, name));
    for (const [one, two, words] of [[set, other, "nothing here, x there"], [other, set, "x here, nothing there"]]) {
      assert.throws(() => one.search(two, 1), { kind: "IncompatibleIndex", message: new RegExp(`${name}: ${words}`) });
    }
    const again = await Embeddings.load(other.save());
    assert.equal(again.search(other, 1).length, 5);
  }
});

test("what is no file is refused, whatever it is", async () => {
  for (const given of [undefined, null, 5e9, "text", {}, [1, 2], { byteLength: 8 }, new Uint8Array(), new ArrayBuffer(3), new Blob([])]) {
    await assert.rejects(Embeddings.load(given), { kind: "InvalidEmbeddings" });
  }
  const { buffer, byteOffset, byteLength } = Uint8Array.from(original);
  const views = [new DataView(buffer, byteOffset, byteLength), new Int8Array(buffer), new Uint8ClampedArray(buffer)];
  for (const view of views) assert.equal((await Embeddings.load(view)).length, 5);
  // A part of node's buffers' pool, at an odd place.
  const pool = Buffer.concat([Buffer.of(0), original]).subarray(1);
  assert.deepEqual((await Embeddings.load(pool)).values, (await Embeddings.load(original)).values);
});

test("a name that stands twice is refused, on every level", async () => {
  const doubled = [
    ['"truncated":', '"truncated":{"dtype":"U8","shape":[0],"data_offsets":[871,871]},"truncated":'],
    ['"shape":[5,32]', '"shape":[5,32],"shape":[5,32]'],
    ['"__metadata__":{', '"__metadata__":{"isovec.embeddings":"",'],
    ['\\"similarity\\":', '\\"similarity\\":\\"dot\\",\\"similarity\\":'],
    ['\\"pooling\\":', '\\"pooling\\":\\"cls\\",\\"pooling\\":'],
  ];
  for (const [from, to] of doubled) await assert.rejects(Embeddings.load(changed(from, to)), { kind: "InvalidEmbeddings", message: /twice/ }, to);
});
