"use client";

import { Embedder, cache } from "isovec";
import { useEffect } from "react";

/** Hands the tests what they call, once the browser has taken over what the server rendered. */
export function InBrowser() {
  useEffect(() => void Object.assign(globalThis, { Embedder, cache }), []);
  return null;
}
