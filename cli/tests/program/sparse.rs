//! `isovec embed --sparse` on the seeded SPLADE model: the weights of a reference at float64, and what cannot work.

use std::fs;

use isovec_test_models::sparse;
use serde_json::Value;

use crate::{isovec, model, rows, stderr, stdout};

/// The largest difference of two weights.
const NEAR: f64 = 1e-5;

fn embed(args: &[&str]) -> assert_cmd::Command {
    let folder = model().with_file_name("tiny-splade");
    let folder = folder.display().to_string();
    let model = [
        "embed", "--sparse", "--model", &folder, "--engine", "portable",
    ];
    isovec(&[&model[..], args].concat())
}

fn texts() -> Vec<Value> {
    let path = model().with_file_name("tiny-splade/reference.json");
    let all: Value = serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON");
    let texts = all["texts"].as_array().expect("texts").clone();
    // A line without a text is no row.
    texts
        .into_iter()
        .filter(|text| text["text"] != "")
        .collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    let all = value.as_array().expect("numbers").iter();
    all.map(|number| number.as_f64().expect("a number"))
        .collect()
}

#[test]
fn a_line_has_the_weights_of_the_reference() {
    let texts = texts();
    let lines: String = texts
        .iter()
        .map(|text| format!("{}\n", text["text"].as_str().expect("a text")))
        .collect();
    for most in [None, Some(3)] {
        let top_k = most.map(|most: usize| most.to_string());
        let args: Vec<&str> = match &top_k {
            Some(most) => vec!["-", "--words", "2", "--top-k", most],
            None => vec!["-", "--words", "2"],
        };
        let written = stdout(embed(&args).write_stdin(lines.clone()));
        let rows = rows(&written);
        assert_eq!(rows.len(), texts.len());
        for (row, text) in rows.iter().zip(&texts) {
            assert_eq!(row["text"], text["text"]);
            let wanted = numbers(&text["weights"]);
            let indices = numbers(&row["sparse"]["indices"]);
            let values = numbers(&row["sparse"]["values"]);
            assert!(indices.is_sorted());
            for (&index, value) in indices.iter().zip(&values) {
                assert!((value - wanted[index as usize]).abs() <= NEAR);
            }
            match most {
                Some(most) => assert_eq!(indices.len(), most),
                None => {
                    let above = wanted.iter().filter(|&&weight| weight > NEAR).count();
                    assert!(indices.len() >= above);
                }
            }
            let largest = wanted.iter().copied().fold(0.0, f64::max);
            let words = row["sparse"]["words"].as_array().expect("words");
            assert_eq!(words.len(), 2);
            assert!(words[0]["token"].is_string());
            let first = words[0]["weight"].as_f64().expect("a number");
            assert!((first - largest).abs() <= NEAR);
        }
    }
}

#[test]
fn what_cannot_be_written_or_loaded_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("vectors.npy");
    let said = stderr(&mut embed(&["a", "--out", &out.display().to_string()]), 2);
    assert!(said.contains("JSON lines"), "{said}");
    assert!(!out.exists());
    let said = stderr(&mut isovec(&["embed", "--sparse", "a"]), 3);
    assert!(said.contains("BertForMaskedLM"), "{said}");
    stderr(&mut isovec(&["embed", "a", "--top-k", "3"]), 2);
    stderr(&mut embed(&["a", "--top-k", "0"]), 2);
    let folder = model().with_file_name("tiny-splade");
    let folder = folder.display().to_string();
    let said = stderr(&mut isovec(&["embed", "a", "--model", &folder]), 3);
    assert!(said.contains("SparseEmbedder"), "{said}");
}

#[test]
fn a_summary_counts() {
    let said = stderr(&mut embed(&["the dog", "money in the bank", "--json"]), 0);
    let summary: Value = serde_json::from_str(said.trim()).expect("JSON");
    assert_eq!(
        (&summary["texts"], &summary["tokens"]),
        (&2.into(), &10.into())
    );
    assert!(summary["weights"].as_u64().expect("a number") > 2);
}

#[test]
fn queries_of_a_model_with_a_table_are_looked_up() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, content) in sparse::routed(&sparse::tiny(), "document_0_MLMTransformer") {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, content).expect("written");
    }
    let path = folder.path().display().to_string();
    let of = |role: &str| {
        let all = ["--model", &path, "--engine", "portable", "--role", role];
        let args = [&["embed", "--sparse"], &all[..], &["the dog and the dog"]].concat();
        let written = stdout(&mut isovec(&args));
        let row = rows(&written).remove(0);
        let [indices, values] = ["indices", "values"].map(|name| numbers(&row["sparse"][name]));
        indices.into_iter().zip(values).collect::<Vec<_>>()
    };
    let query = of("query");
    assert!(!query.is_empty());
    for &(index, value) in &query {
        assert_eq!(value, f64::from(sparse::query_weight(index as usize)));
    }
    assert!(of("passage").len() > query.len());
}
