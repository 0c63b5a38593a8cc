//! The workers of a page, which JavaScript starts: each opens this module on the memory of the
//! page, joins, and serves.

#![expect(unreachable_pub, reason = "wasm-bindgen exports what is public")]

use isovec_engine::Result;
use isovec_kernels::parallel::Pool;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use super::crew::Crew;

/// One for each memory, whose one caller is the thread that made it.
static CREW: Crew = Crew::new();

/// How many threads can compute, the caller's included.
pub(crate) fn available() -> usize {
    CREW.len() + 1
}

/// The caller's thread and workers.
#[derive(Debug)]
pub(crate) struct Threads {
    threads: usize,
}

impl Threads {
    /// So many threads, the caller's included; as many of them as have joined.
    pub(crate) fn new(threads: usize, _cores: usize) -> Result<Self> {
        Ok(Self { threads })
    }

    /// A run begins: it takes turns with others on the same threads.
    pub(crate) fn begin(&self) {}

    /// A run is over.
    pub(crate) fn end(&self) {}
}

impl Pool for Threads {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&self, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
        CREW.run(self.threads, jobs, job);
    }
}

/// The compiled module that a worker opens.
#[wasm_bindgen(js_name = isovecModule)]
pub fn module() -> JsValue {
    wasm_bindgen::module()
}

/// The memory on which a worker opens the module.
#[wasm_bindgen(js_name = isovecMemory)]
pub fn memory() -> JsValue {
    wasm_bindgen::memory()
}

/// The calling worker becomes one of the threads that compute. `false` when there are enough.
#[wasm_bindgen(js_name = isovecJoin)]
pub fn join() -> bool {
    CREW.join()
}

/// Computes as long as the worker lives: this never returns.
#[wasm_bindgen(js_name = isovecServe)]
pub fn serve() {
    CREW.serve()
}

/// To be called when [`serve`] ended after all, by a trap.
#[wasm_bindgen(js_name = isovecLost)]
pub fn lost() {
    CREW.lose();
}
