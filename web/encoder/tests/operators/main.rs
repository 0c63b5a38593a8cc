//! Small graphs on the processor.

#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

mod all;

/// Where else a graph runs: nowhere.
mod elsewhere {
    use isovec_engine::bundle::ModelBundle;
    use isovec_engine::engine::Batch;

    pub(crate) fn run(_: &str, _: &ModelBundle, _: Batch) -> Option<Vec<Vec<Vec<f32>>>> {
        None
    }
}
