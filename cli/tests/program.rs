//! The program as a user runs it, on the tiny seeded model and the engine that needs nothing.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

fn model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/tiny-bert")
}

fn isovec(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("isovec").expect("the program is built");
    command
        .args(args)
        .env("ISOVEC_MODEL", model())
        .env_remove("ORT_DYLIB_PATH");
    command
}

fn stdout(command: &mut Command) -> String {
    let output = command.assert().success().get_output().stdout.clone();
    String::from_utf8(output).expect("UTF-8")
}

fn rows(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a JSON object a line"))
        .collect()
}

#[test]
fn one_row_out_for_each_row_in_empty_ones_included() {
    let mut command = isovec(&["embed", "-", "--engine", "portable"]);
    let rows = rows(&stdout(command.write_stdin("a cat\n\nthe end\n")));
    let texts: Vec<_> = rows.iter().map(|row| row["text"].as_str()).collect();
    assert_eq!(texts, [Some("a cat"), Some(""), Some("the end")]);
    for row in &rows {
        let vector = row["embedding"].as_array().expect("an embedding");
        let squares: f64 = vector
            .iter()
            .map(|x| x.as_f64().unwrap_or(f64::NAN).powi(2))
            .sum();
        assert!((squares.sqrt() - 1.0).abs() < 1e-5, "{squares}");
    }
}

#[test]
fn every_format_holds_every_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.jsonl");
    std::fs::write(
        &input,
        "{\"id\":7,\"body\":\"a\"}\n{\"id\":8,\"body\":\"\"}\n",
    )
    .expect("written");
    let input = input.display().to_string();
    for ending in ["jsonl", "npy", "parquet", "arrow", "safetensors"] {
        let out = folder.path().join(format!("out.{ending}"));
        let path = out.display().to_string();
        let args = [
            "embed", "-f", &input, "--field", "body", "-o", &path, "--engine", "portable",
        ];
        isovec(&args).assert().success().stdout("");
        let bytes = std::fs::read(&out).expect("a file");
        match ending {
            "jsonl" => {
                let rows = rows(std::str::from_utf8(&bytes).expect("UTF-8"));
                assert_eq!((rows.len(), &rows[1]["id"]), (2, &Value::from(8)));
            }
            "npy" => {
                let header = String::from_utf8_lossy(&bytes[10..128]).into_owned();
                assert!(header.contains("'shape': (2, 32)"), "{header}");
                assert_eq!(bytes.len(), 128 + 2 * 32 * 4);
            }
            "parquet" => assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1")),
            "arrow" => assert!(bytes.starts_with(b"ARROW1") && bytes.ends_with(b"ARROW1")),
            _ => assert_eq!(
                isovec::Embeddings::from_bytes(&bytes)
                    .expect("an index")
                    .len(),
                2
            ),
        }
    }
}

#[test]
fn similarity_and_search_agree_about_what_is_near() {
    let same = stdout(&mut isovec(&[
        "similarity",
        "a cat",
        "a cat",
        "--engine",
        "portable",
    ]));
    assert!((same.trim().parse::<f64>().expect("a number") - 1.0).abs() < 1e-5);

    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(
        folder.path().join("a.txt"),
        "something else\n\nthe cat\nsat\n",
    )
    .expect("written");
    std::fs::write(folder.path().join("b.bin"), [0u8, 159, 146, 150]).expect("written");
    let path = folder.path().display().to_string();
    let args = [
        "search",
        "the cat\nsat",
        &path,
        "--json",
        "-k",
        "1",
        "--engine",
        "portable",
    ];
    let answer: Value = serde_json::from_str(&stdout(&mut isovec(&args))).expect("JSON");
    assert_eq!(answer["passages"], 2);
    assert_eq!(answer["hits"][0]["line"], 3);
}

#[test]
fn an_exported_folder_is_a_model() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("exported").display().to_string();
    isovec(&["export", "--out", &out]).assert().success();
    let ask = |model: &str| {
        let args = ["embed", "hello", "--model", model, "--engine", "portable"];
        rows(&stdout(&mut isovec(&args))).remove(0)["embedding"].clone()
    };
    assert_eq!(ask(&out), ask(&model().display().to_string()));
}

#[test]
fn what_cannot_work_says_so_with_its_exit_code() {
    let cases: [(&[&str], i32, &str); 6] = [
        (
            &["embed", "a", "--model", "./nowhere", "--engine", "portable"],
            3,
            "nowhere",
        ),
        (&["embed", "-f", "missing.txt"], 1, "missing.txt"),
        (&["embed", "a", "--format", "npy"], 2, "--out"),
        (&["embed", "a", "-o", "vectors.xyz"], 2, "--format"),
        (&["search", "a", ".", "-k", "0"], 2, "top-k"),
        (
            &["embed", "a", "--max-length", "0", "--engine", "portable"],
            3,
            "max_length",
        ),
    ];
    for (args, code, word) in cases {
        let assert = isovec(args).assert().code(code);
        let message = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(message.contains(word), "{args:?}: {message}");
    }
}

#[test]
fn rows_before_a_broken_one_are_kept() {
    let mut command = isovec(&["embed", "-", "--engine", "portable"]);
    let assert = command
        .write_stdin(&b"one\ntwo\n\xff\nfour\n"[..])
        .assert()
        .code(1);
    let output = assert.get_output();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("row 3"));
}

#[test]
fn info_names_the_engine() {
    let args = ["info", "--json", "--engine", "portable"];
    let info: Value = serde_json::from_str(&stdout(&mut isovec(&args))).expect("JSON");
    assert_eq!(info["provider"]["engine"], "portable");
    assert_eq!(info["model"]["dimension"], 32);
    assert!(
        info["effective_config"]
            .as_array()
            .is_some_and(|knobs| !knobs.is_empty())
    );
}
