//! Compares the predicted memory of a run with ONNX Runtime's count.

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::{Batch, Engine};
use isovec_model::bundle::{self, BundleOptions};

use super::{available, load};

/// The seeded model that the repository carries. A package of this crate alone lacks its folder, and what is in a folder
/// that is there has to load.
fn tiny() -> Option<ModelBundle> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/tiny-bert");
    if !std::path::Path::new(folder).is_dir() {
        eprintln!("skipped: {folder} is not there");
        return None;
    }
    Some(bundle::from_folder(folder, &BundleOptions::default()).unwrap())
}

#[test]
fn a_batch_takes_about_what_was_foretold() {
    let Some(bundle) = tiny() else {
        return;
    };
    if !available() {
        return;
    }
    let engine = load(&bundle).unwrap();
    let foretold = |rows, length| engine.predicted_bytes(rows, length).unwrap();
    assert!(foretold(1, 32) > 0);
    assert!(foretold(2, 32) > foretold(1, 32) && foretold(1, 64) > foretold(1, 32));
    for (rows, length) in [(4, 48), (16, 60)] {
        let measured = measured(&engine, rows, length);
        let ratio = foretold(rows, length) as f64 / measured as f64;
        assert!(
            (0.9..2.0).contains(&ratio),
            "{rows} x {length}: {} foretold, {measured} counted",
            foretold(rows, length)
        );
    }
}

fn measured(engine: &std::sync::Arc<dyn Engine>, rows: usize, length: usize) -> u64 {
    let batch = Batch::sample(engine.description(), rows, length)
        .unwrap()
        .unwrap();
    engine.run_blocking(batch, &Cancel::new()).unwrap();
    // The peak only grows, and every batch here is larger than the one before.
    engine.stats().sessions.peak_run_bytes
}
