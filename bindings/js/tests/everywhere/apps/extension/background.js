import { Embedder } from "./node_modules/isovec/dist/inline.js";

// What the test calls.
Object.assign(globalThis, { Embedder });
