/** A build of isovec's module, compiled by the platform that imports it: what `isovec/inline` takes as `module`. */
declare const module: WebAssembly.Module;
export default module;
