//! The tiny model of `tests/data/tiny-bert` is the output of its generator, and matches its description.

mod convert_support;

use std::path::Path;
use std::sync::Arc;

use convert_support::{Batch, Runner, inlined};
use isovec_model::convert::convert;
use isovec_model::safetensors::TensorSet;
use isovec_test_models::reference::mean_normalised;
use isovec_test_models::tiny;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/tiny-bert")
}

#[test]
fn the_folder_holds_what_the_generator_writes() {
    for (name, contents) in tiny::files() {
        let found = std::fs::read(folder().join(&name)).expect("the file is there");
        assert!(found == contents, "{name} is not what the generator writes");
        assert!(
            contents.len() <= 200_000,
            "{name} is {} bytes",
            contents.len()
        );
    }
}

/// The files alone, read back and run, give the vectors that stand beside them.
#[test]
fn the_files_give_the_reference_vectors() {
    let read = |name: &str| std::fs::read(folder().join(name)).expect("the file is there");
    let weights = vec![("model.safetensors".into(), read("model.safetensors").into())];
    let tensors = TensorSet::from_files("tiny-bert", weights).expect("safetensors");
    let converted = convert(&read("config.json"), Arc::new(tensors)).expect("it converts");
    let runner = Runner::new(&inlined(&converted)).expect("tract takes the graph");
    let reference: serde_json::Value =
        serde_json::from_slice(&read("reference.json")).expect("JSON");
    let texts = ["texts", "queries"].map(|key| reference[key].as_array().expect("a list"));
    let texts: Vec<_> = texts.into_iter().flatten().collect();
    let ids: Vec<Vec<i64>> = texts
        .iter()
        .map(|text| serde_json::from_value(text["ids"].clone()).expect("ids"))
        .collect();
    let types: Vec<Vec<i64>> = ids.iter().map(|ids| vec![0; ids.len()]).collect();
    let rows = runner
        .run(&Batch::padded(&ids, &types, 0))
        .expect("it runs");
    let mut worst = 0f64;
    for ((text, ids), rows) in texts.iter().zip(&ids).zip(rows) {
        let rows = rows[..ids.len()]
            .iter()
            .map(|row| row.iter().map(|&value| f64::from(value)).collect())
            .collect();
        let expected: Vec<f64> = serde_json::from_value(text["vector"].clone()).expect("a vector");
        for (value, expected) in mean_normalised(&rows).iter().zip(&expected) {
            worst = worst.max((value - expected).abs());
        }
    }
    println!("worst component: {worst:.2e}");
    assert!(worst <= 1e-6, "{worst:e}");
}
