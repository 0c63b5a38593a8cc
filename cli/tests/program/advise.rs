//! `advise` and `tune`. Nothing here says how fast anything is.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::{configured, isovec, stderr, stdout};

/// A file of texts, half of which come twice.
fn texts(folder: &tempfile::TempDir) -> PathBuf {
    let path = folder.path().join("texts.txt");
    let mut lines = String::new();
    for text in 0..40 {
        let _ = writeln!(
            lines,
            "text {} {}",
            text % 20,
            "and so on ".repeat(text % 20 % 7)
        );
    }
    std::fs::write(&path, lines).expect("written");
    path
}

fn ids(report: &Value) -> Vec<&str> {
    let suggestions = report["suggestions"].as_array().expect("a list");
    let ids = suggestions.iter().map(|one| one["id"].as_str());
    ids.map(|id| id.expect("a name")).collect()
}

const QUICK: [&str; 4] = ["--rounds", "6", "--seconds", "0.002"];

#[test]
fn what_is_embedded_is_looked_at_and_what_is_suggested_is_tried() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = texts(&folder);
    let args = ["advise", "--engine", "portable", "--json", "--verify"];
    let mut command = configured(
        folder.path(),
        "isovec.toml",
        "[memory]\nmmap = false\n",
        &args,
    );
    command.args(QUICK).arg("--file").arg(&path);
    let report: Value = serde_json::from_str(&stdout(&mut command)).expect("JSON");
    let found = ids(&report);
    assert!(found.contains(&"repeated-texts"), "{found:?}");
    assert!(found.contains(&"model-not-mapped"), "{found:?}");
    for suggestion in report["suggestions"].as_array().expect("a list") {
        assert!(
            suggestion["patch"].is_null() || suggestion["verified"]["rounds"] == 6,
            "{suggestion}"
        );
        // Their vectors are the same.
        assert!(
            suggestion["verified"]["verdict"] != "other_vectors",
            "{suggestion}"
        );
    }

    let mut command = isovec(&["advise", "--engine", "portable", "--min-impact", "critical"]);
    let page = stdout(command.arg("--file").arg(&path));
    assert!(page.starts_with("# What would make it better"), "{page}");
    assert!(!page.contains("repeated-texts"), "{page}");
    assert!(
        page.contains("Left out because of a lower impact"),
        "{page}"
    );
    assert!(!page.contains("found anything"), "{page}");
}

#[test]
fn a_context_from_elsewhere_is_looked_at() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("context.json");
    std::fs::write(&path, r#"{"stats": {"calls": {"batches": 3}, "provider": {"fallbacks": [{"from": "cuda", "to": "cpu", "cause": "no driver"}]}}}"#).expect("written");
    let mut command = isovec(&["advise", "--json", "--context"]);
    let report: Value = serde_json::from_str(&stdout(command.arg(&path))).expect("JSON");
    assert_eq!(ids(&report), ["provider-fallback"]);
    let evidence = report["suggestions"][0]["evidence"][0]["value"].as_str();
    assert_eq!(evidence, Some("cuda gave way to cpu: no driver"));

    std::fs::write(&path, "{}").expect("written");
    let mut command = isovec(&["advise", "--context"]);
    let page = stdout(command.arg(&path));
    assert!(
        page.contains("Nobody knows") && page.contains("no `stats`"),
        "{page}"
    );

    for (content, says) in [
        ("", "no context"),
        ("[1]", "no context"),
        (r#"{"stats": 1}"#, "no context"),
    ] {
        std::fs::write(&path, content).expect("written");
        let message = stderr(isovec(&["advise", "--context"]).arg(&path), 2);
        assert!(message.contains(says), "{message}");
    }
    let message = stderr(&mut isovec(&["advise", "--context", "nowhere.json"]), 1);
    assert!(message.contains("nowhere.json"), "{message}");
    // Nothing to look at, or two things.
    stderr(&mut isovec(&["advise"]), 2);
    stderr(isovec(&["advise", "a text", "--context"]).arg(&path), 2);
    stderr(&mut isovec(&["advise", "a text", "--rounds", "5"]), 2);
}

#[test]
fn what_tuning_found_is_written_and_can_be_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = texts(&folder);
    let out = folder.path().join("tuned.toml");
    let mut command = isovec(&["tune", "--engine", "portable", "--json", "--time", "20"]);
    command
        .args(QUICK)
        .arg("--file")
        .arg(&path)
        .arg("--out")
        .arg(&out);
    let report: Value = serde_json::from_str(&stdout(&mut command)).expect("JSON");
    assert!(!report["steps"].as_array().expect("a list").is_empty());
    // The one that was asked for, or the other if that won.
    let engine = report["config"]["engine"].as_str().expect("a word");
    assert!(["portable", "onnxruntime"].contains(&engine), "{engine}");
    let written = std::fs::read_to_string(&out).expect("written");
    let line = format!("engine = \"{engine}\"");
    assert!(written.contains(&line), "{written}");
    stdout(isovec(&["embed", "a text", "--config"]).arg(&out));

    // What cannot be written is known before anything is tried.
    let mut command = isovec(&[
        "tune",
        "a text",
        "--engine",
        "portable",
        "--out",
        "tuned.yaml",
    ]);
    let message = stderr(&mut command, 2);
    assert!(message.contains("neither .toml nor .json"), "{message}");
    stderr(&mut isovec(&["tune", "a text", "--allow-precision"]), 2);
}
