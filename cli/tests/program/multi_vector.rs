//! `isovec embed --multi-vector` on the seeded model of late interaction: the vectors of a reference at float64, sets that are saved,
//! and what cannot work.

use std::fs;

use isovec::{CompactForm, MultiVectorEmbeddings};
use serde_json::Value;

use crate::{isovec, model, rows, stderr, stdout};

/// The largest difference of two components.
const NEAR: f64 = 1e-6;

fn embed(args: &[&str]) -> assert_cmd::Command {
    let folder = model().with_file_name("tiny-colbert");
    let folder = folder.display().to_string();
    let model = [
        "embed",
        "--multi-vector",
        "--model",
        &folder,
        "--engine",
        "portable",
    ];
    isovec(&[&model[..], args].concat())
}

fn reference() -> Value {
    let path = model().with_file_name("tiny-colbert/reference.json");
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

fn texts(passages: &[Value]) -> Vec<&str> {
    let texts = passages.iter().map(|passage| passage["text"].as_str());
    texts.map(|text| text.expect("a text")).collect()
}

/// Holds that two arrays of arrays have as many numbers, and near ones.
fn near(found: &Value, wanted: &Value) {
    if let (Some(found), Some(wanted)) = (found.as_array(), wanted.as_array()) {
        assert_eq!(found.len(), wanted.len());
        found.iter().zip(wanted).for_each(|(a, b)| near(a, b));
        return;
    }
    let apart = found.as_f64().expect("a number") - wanted.as_f64().expect("a number");
    assert!(apart.abs() <= NEAR, "{apart}");
}

#[test]
fn a_line_has_the_vectors_of_the_reference() {
    let reference = reference();
    let passages = reference["passages"].as_array().expect("texts");
    let texts = texts(passages);
    let written = stdout(&mut embed(&texts));
    let rows = rows(&written);
    assert_eq!(rows.len(), passages.len());
    for (row, passage) in rows.iter().zip(passages) {
        assert_eq!(row["text"], passage["text"]);
        near(&row["vectors"], &passage["vectors"]);
    }
    let query = &reference["query"];
    let written = stdout(&mut embed(&[
        query["text"].as_str().expect("a text"),
        "--role",
        "query",
    ]));
    let row: Value = serde_json::from_str(&written).expect("JSON");
    near(&row["vectors"], &query["vectors"]);
}

#[test]
fn sets_are_saved_and_searched() {
    let reference = reference();
    let passages = reference["passages"].as_array().expect("texts");
    let folder = tempfile::tempdir().expect("a folder");
    let save = |name: &str, args: &[&str]| {
        let path = folder.path().join(name);
        let out = path.display().to_string();
        embed(&[args, &["--out", &out]].concat()).assert().success();
        MultiVectorEmbeddings::load(path).expect("a set")
    };
    let texts = texts(passages);
    let query = reference["query"]["text"].as_str().expect("a text");
    let query = save("query.safetensors", &[query, "--role", "query"]);
    let index = save("index.safetensors", &texts);
    for hit in index.search_one(&query, 3).expect("hits") {
        let score = passages[hit.index]["score"].as_f64().expect("a number");
        assert!((f64::from(hit.score) - score).abs() <= 1e-5);
    }
    let compact = save(
        "compact.safetensors",
        &[&texts[..], &["--compact", "binary"]].concat(),
    );
    assert_eq!(compact, index.compact(CompactForm::Binary));
}

#[test]
fn what_cannot_be_written_or_loaded_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("vectors.npy");
    let said = stderr(&mut embed(&["a", "--out", &out.display().to_string()]), 2);
    assert!(said.contains("JSON lines") && !out.exists(), "{said}");
    stderr(&mut embed(&["a", "--sparse"]), 2);
    let folder = model().with_file_name("tiny-colbert");
    let folder = folder.display().to_string();
    let said = stderr(&mut isovec(&["embed", "a", "--model", &folder]), 3);
    assert!(said.contains("MultiVectorEmbedder"), "{said}");
}

#[test]
fn a_summary_counts() {
    let said = stderr(&mut embed(&["the dog.", "money in the bank", "--json"]), 0);
    let summary: Value = serde_json::from_str(said.trim()).expect("JSON");
    // The beginning, the marker and the end are tokens, and the full stop is read and not compared.
    assert_eq!(
        (&summary["texts"], &summary["tokens"], &summary["vectors"]),
        (&2.into(), &13.into(), &12.into())
    );
}
