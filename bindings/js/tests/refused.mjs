// What tests of errors share.
import assert from "node:assert/strict";
import { IsovecError } from "../dist/index.js";

/** Checks that an error is isovec's, of a kind, and says some words: for `assert.rejects` and `assert.throws`. */
export const refused = (kind, ...words) => (error) => {
  assert.ok(error instanceof IsovecError, String(error));
  assert.equal(error.kind, kind, error.message);
  for (const word of words) assert.ok(error.message.includes(word), `${error.message} says ${word}`);
  return true;
};
