//! `isovec graph`.

use super::*;

#[test]
fn every_format_shows_the_graph_on_standard_output_or_in_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    for (format, begins) in [
        ("text", ""),
        ("mermaid", "flowchart TD\n"),
        ("html", "<!doctype html>\n"),
        ("json", "{\n"),
    ] {
        let args = ["graph", "--engine", "portable", "--format", format];
        let shown = stdout(&mut isovec(&args));
        assert!(shown.starts_with(begins), "{shown}");
        assert!(
            shown.ends_with('\n') && shown.contains("encoder layer"),
            "{shown}"
        );
        let path = folder.path().join(format);
        assert_eq!(stdout(isovec(&args).arg("--out").arg(&path)), "");
        let written = std::fs::read_to_string(&path).expect("written");
        assert_eq!(written, shown);
    }
}

#[test]
fn layers_are_shown_once_unless_expanded_and_the_file_has_its_own_operators() {
    let collapsed = stdout(&mut isovec(&["graph", "--engine", "portable"]));
    assert!(collapsed.contains("\nencoder layer × 2 ("), "{collapsed}");
    assert!(
        collapsed.contains("for 1 text of 128 tokens: "),
        "{collapsed}"
    );
    let expanded = stdout(&mut isovec(&["graph", "--engine", "portable", "--expand"]));
    assert!(expanded.contains("\nencoder layer 2 of 2 ("), "{expanded}");
    let file = stdout(&mut isovec(&[
        "graph", "--onnx", "--rows", "3", "--tokens", "16",
    ]));
    assert!(
        file.contains("as the file has it, with its pooling head"),
        "{file}"
    );
    assert!(file.contains("for 3 texts of 16 tokens: "), "{file}");
    assert!(file.contains("─ MatMul "), "{file}");
}

#[test]
fn a_profile_of_the_same_model_times_the_nodes_and_others_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    let embed = [
        "embed",
        "a cat",
        "and the end",
        "--engine",
        "portable",
        "--profile",
    ];
    stdout(isovec(&embed).arg(&path));
    let graph = ["graph", "--engine", "portable", "--profile"];
    let shown = stdout(isovec(&graph).arg(&path));
    assert!(
        shown.contains("\ntimes: ") && shown.contains("the mean of 1 run with 2.0 texts"),
        "{shown}"
    );

    let whole = std::fs::read_to_string(&path).expect("readable");
    let cut = folder.path().join("cut.json");
    std::fs::write(&cut, &whole[..whole.len() / 2]).expect("written");
    let error = stderr(isovec(&graph).arg(&cut), 1);
    assert!(
        error.contains("cut.json: the trace ends at byte"),
        "{error}"
    );

    let other = folder.path().join("other.json");
    std::fs::write(&other, whole.replace("\"attention\"", "\"convolution\"")).expect("written");
    let error = stderr(isovec(&graph).arg(&other), 1);
    assert!(error.contains("of another model or engine"), "{error}");

    let error = stderr(isovec(&graph).arg(folder.path().join("none.json")), 1);
    assert!(error.contains("none.json"), "{error}");
    let error = stderr(isovec(&["graph", "--onnx", "--profile"]).arg(&path), 2);
    assert!(error.contains("--onnx"), "{error}");
}

#[test]
fn what_cannot_be_shown_is_said_and_a_closed_pipe_is_no_failure() {
    stderr(&mut isovec(&["graph", "--rows", "0"]), 2);
    let folder = tempfile::tempdir().expect("a folder");
    stderr(isovec(&["graph", "--model"]).arg(folder.path()), 3);
    let nowhere = folder.path().join("none/graph.txt");
    let error = stderr(
        isovec(&["graph", "--engine", "portable", "--out"]).arg(&nowhere),
        1,
    );
    assert!(error.contains("graph.txt"), "{error}");

    let mut program = std::process::Command::new(crate::program());
    program
        .args(["graph", "--engine", "portable", "--format", "json"])
        .env("ISOVEC_MODEL", model())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut running = program.spawn().expect("it runs");
    drop(running.stdout.take());
    let output = running.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}
