//! `--profile` and `isovec trace`.

use super::*;

/// Embeds some texts and keeps the trace.
fn traced(folder: &Path, texts: &str) -> PathBuf {
    let path = folder.join("trace.json");
    let mut command = isovec(&["embed", "-", "--engine", "portable", "--profile"]);
    stdout(command.arg(&path).write_stdin(texts.to_owned()));
    path
}

fn trace(args: &[&str], paths: &[&Path]) -> Value {
    let mut command = isovec(&["trace", "--json"]);
    let json = stdout(command.args(args).args(paths));
    serde_json::from_str(&json).expect("JSON")
}

/// How many spans a stage has.
fn count(summary: &Value, stage: &str) -> u64 {
    let stages = summary["stages"].as_array().expect("stages");
    let found = stages.iter().find(|one| one["name"] == stage);
    found.map_or(0, |one| one["count"].as_u64().expect("a number"))
}

#[test]
fn what_was_embedded_is_seen_in_its_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = traced(folder.path(), "a cat\nthe end\nand a longer one\n");
    let summary = trace(&[], &[&path]);
    assert_eq!(summary["faults"], serde_json::json!([]));
    for stage in ["request", "tokenize"] {
        assert_eq!(count(&summary, stage), 1, "{summary}");
    }
    let batches = count(&summary, "batch");
    assert!(
        batches > 0 && batches == count(&summary, "run"),
        "{summary}"
    );
    assert!(count(&summary, "operator") > 10, "{summary}");
    assert_eq!(summary["slowest_requests"][0]["texts"], 3);
    assert_eq!(summary["slowest_requests"][0]["ended"], "well");
    let request = summary["slowest_requests"][0]["request"].to_string();
    let of_request = trace(
        &["--request", &request, "--stage", "run,operator"],
        &[&path],
    );
    assert_eq!(count(&of_request, "run"), batches);
    assert_eq!(count(&of_request, "request"), 0);
    let compared = trace(&[], &[&path, &path]);
    let change = &compared["stages"][0];
    assert_eq!(change["mean_ratio"], 1.0, "{compared}");

    let shown = stdout(isovec(&["trace"]).arg(&path));
    assert!(shown.contains("critical path of request"), "{shown}");
    let other = stdout(isovec(&["trace"]).arg(&path).arg(&path));
    assert!(other.contains("× 1.00"), "{other}");
}

#[test]
fn onnx_runtimes_operators_are_in_the_trace() {
    let Some(library) = std::env::var_os("ORT_DYLIB_PATH") else {
        let required = std::env::var_os("ISOVEC_REQUIRE_ONNXRUNTIME").is_some_and(|is| is == "1");
        assert!(!required, "ORT_DYLIB_PATH is not set");
        eprintln!("not run: ORT_DYLIB_PATH is not set");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    let mut command = isovec(&["embed", "a cat", "--engine", "onnxruntime", "--profile"]);
    command
        .env("ORT_DYLIB_PATH", library)
        .env("TMPDIR", folder.path());
    stdout(command.arg(&path));
    let summary = trace(&[], &[&path]);
    let names = summary["names"].to_string();
    assert!(names.contains("MatMul"), "{summary}");
    assert_eq!(summary["faults"], serde_json::json!([]));
    let left = std::fs::read_dir(folder.path()).expect("read").flatten();
    let mut ours = left.filter(|left| left.file_name().to_string_lossy().contains("isovec"));
    assert!(ours.next().is_none(), "what ONNX Runtime wrote is gone");
}

#[test]
fn every_command_that_embeds_takes_a_profile() {
    let folder = tempfile::tempdir().expect("a folder");
    let texts = folder.path().join("texts.txt");
    std::fs::write(&texts, "a cat\n\nthe end\n").expect("written");
    let path = folder.path().join("trace.json");
    let texts = texts.to_str().expect("UTF-8");
    for args in [&["similarity", "a", "b"][..], &["search", "a", texts]] {
        let mut command = isovec(args);
        stdout(
            command
                .args(["--engine", "portable", "--profile"])
                .arg(&path),
        );
        assert!(count(&trace(&[], &[&path]), "request") > 0);
    }
}

#[test]
fn a_profile_that_cannot_be_written_is_said_before_anything_is_embedded() {
    let folder = tempfile::tempdir().expect("a folder");
    let nowhere = folder.path().join("no/such/trace.json");
    let mut command = isovec(&["embed", "a", "--engine", "portable", "--profile"]);
    let message = stderr(command.arg(nowhere), 1);
    assert!(message.contains("trace.json"), "{message}");
    let out = folder.path().join("out.jsonl");
    let mut command = isovec(&["embed", "a", "--out"]);
    let message = stderr(command.arg(&out).arg("--profile").arg(&out), 2);
    assert!(message.contains("the same file"), "{message}");
    let mut command = isovec(&["embed", "--file"]);
    std::fs::write(&out, "{\"text\": \"a\"}").expect("written");
    let message = stderr(command.arg(&out).arg("--profile").arg(&out), 2);
    assert!(message.contains("would be overwritten"), "{message}");
    assert!(
        std::fs::read_to_string(&out)
            .expect("read")
            .contains("text")
    );
}

#[test]
fn the_oldest_events_go_when_there_are_too_many() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    let mut command = isovec(&["embed", "a", "b", "c", "--engine", "portable"]);
    let message = stderr(
        command
            .args(["--profile-events", "5", "--profile"])
            .arg(&path),
        0,
    );
    assert!(message.contains("--profile-events"), "{message}");
    let summary = trace(&[], &[&path]);
    assert_eq!(summary["spans"], 5);
    let faults = summary["faults"].to_string();
    assert!(faults.contains("no room"), "{faults}");
}

#[test]
fn what_is_no_trace_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("not.json");
    let message = stderr(isovec(&["trace"]).arg(&path), 1);
    assert!(message.contains("not.json"), "{message}");
    std::fs::write(&path, "hello").expect("written");
    let message = stderr(isovec(&["trace"]).arg(&path), 1);
    assert!(message.contains("is no trace"), "{message}");
}
