import { Embedder, cache } from "isovec";

// What the tests call.
Object.assign(globalThis, { Embedder, cache });
