//! `isovec embed` as a stream: any number of rows, in order, and the causes that end it early.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{isovec, model, rows, stderr, stdout};

#[test]
fn twenty_thousand_rows_come_out_complete_and_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.jsonl");
    let lines: Vec<String> = (0..20_000)
        .map(|n| format!("{{\"id\": {n}, \"text\": \"cat {}\"}}", n % 13))
        .collect();
    fs::write(&input, lines.join("\n")).expect("written");
    let input = input.display().to_string();
    let out = folder.path().join("out.jsonl");
    let path = out.display().to_string();
    let args = [
        "embed", "-f", &input, "-o", &path, "--engine", "portable", "--json",
    ];
    let summary: Value = serde_json::from_str(&stderr(&mut isovec(&args), 0)).expect("JSON");
    assert_eq!(summary["texts"], 20_000);
    let rows = rows(&fs::read_to_string(&out).expect("a file"));
    assert_eq!(rows.len(), 20_000);
    for (n, row) in rows.iter().enumerate() {
        assert_eq!(row["id"], n);
        assert!(row["embedding"].is_array());
        assert_eq!(row["text"], format!("cat {}", n % 13));
    }
    // The same texts have the same vectors wherever they stand.
    let near = |a: &Value, b: &Value| {
        let values = |row: &Value| row["embedding"].as_array().expect("an embedding").clone();
        values(a)
            .iter()
            .zip(&values(b))
            .all(|(a, b)| (a.as_f64().unwrap_or(1.0) - b.as_f64().unwrap_or(-1.0)).abs() < 1e-5)
    };
    assert!(
        rows.iter()
            .enumerate()
            .all(|(n, row)| near(row, &rows[n % 13]))
    );
    assert!(!near(&rows[0], &rows[1]));
}

#[test]
fn a_pipe_and_a_file_give_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.txt");
    let text: String = (0..1500).map(|n| format!("the cat {n}\n")).collect();
    fs::write(&input, &text).expect("written");
    let input = input.display().to_string();
    let alone = crate::configured(
        folder.path(),
        "alone.toml",
        "[session]\ndeterministic_compute = true\n",
        &["embed", "-f", &input, "--engine", "portable"],
    );
    let mut piped = crate::configured(
        folder.path(),
        "alone.toml",
        "[session]\ndeterministic_compute = true\n",
        &["embed", "-", "--engine", "portable"],
    );
    let mut alone = alone;
    assert!(stdout(&mut alone) == stdout(piped.write_stdin(text)));
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

/// The same in every format that has an end.
#[test]
fn what_came_before_a_broken_row_can_be_read_in_every_format() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.txt");
    fs::write(&input, b"one\ntwo\n\xff\nfour\n").expect("written");
    let input = input.display().to_string();
    for ending in ["npy", "parquet", "arrow", "safetensors"] {
        let out = folder.path().join(format!("out.{ending}"));
        let path = out.display().to_string();
        let args = ["embed", "-f", &input, "-o", &path, "--engine", "portable"];
        let message = stderr(&mut isovec(&args), 1);
        assert!(message.contains("in.txt, row 3"), "{message}");
        let bytes = fs::read(&out).expect("a file");
        match ending {
            "npy" => assert_eq!(bytes.len(), 128 + 2 * 32 * 4),
            "parquet" => assert!(bytes.ends_with(b"PAR1")),
            "arrow" => assert!(bytes.ends_with(b"ARROW1")),
            _ => {
                let set = isovec::Embeddings::from_bytes(&bytes).expect("an index");
                assert_eq!(
                    set.labels(),
                    Some(&["one".to_owned(), "two".to_owned()][..])
                );
                assert!(set.token_counts().iter().all(|&count| count > 0));
                assert!(set.model().contains("tiny-bert"));
            }
        }
    }
}

#[test]
fn no_rows_make_an_empty_file_that_can_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out.safetensors");
    let path = out.display().to_string();
    let args = ["embed", "-", "-o", &path, "--engine", "portable"];
    isovec(&args).write_stdin("").assert().success();
    let set = isovec::Embeddings::load(&out).expect("an index");
    assert_eq!((set.len(), set.dim()), (0, 32));
}

/// A copy of the model in which one word has no usable vector.
pub(crate) fn poisoned(folder: &Path, word: &str) -> String {
    let to = folder.join("poisoned");
    fs::create_dir_all(to.join("1_Pooling")).expect("a folder");
    for entry in ["", "1_Pooling"] {
        for file in fs::read_dir(model().join(entry)).expect("a folder") {
            let file = file.expect("an entry");
            if file.path().is_file() {
                fs::copy(file.path(), to.join(entry).join(file.file_name())).expect("copied");
            }
        }
    }
    let tokenizer = fs::read(to.join("tokenizer.json")).expect("a file");
    let tokenizer: Value = serde_json::from_slice(&tokenizer).expect("JSON");
    let id = tokenizer["model"]["vocab"][word].as_u64().expect("a word") as usize;

    let weights = to.join("model.safetensors");
    let mut bytes = fs::read(&weights).expect("a file");
    let length = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes")) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).expect("JSON");
    let table = &header["embeddings.word_embeddings.weight"];
    assert_eq!(table["dtype"], "F32");
    let row = table["shape"][1].as_u64().expect("a width") as usize * 4;
    let start = 8 + length + table["data_offsets"][0].as_u64().expect("an offset") as usize;
    bytes[start + id * row..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&weights, bytes).expect("written");
    to.display().to_string()
}

#[test]
fn a_text_that_fails_is_named_and_those_before_it_are_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = poisoned(folder.path(), "cat");
    let args = ["embed", "-", "--engine", "portable", "--model", &model];
    let assert = isovec(&args)
        .write_stdin("the dog\nthe sun\na cat\nthe end\n")
        .assert()
        .code(1);
    let output = assert.get_output();
    let written = rows(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(written.len(), 2, "{written:?}");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("standard input, row 3: "), "{message}");
    assert!(message.contains("not finite"), "{message}");
}

/// The command line's own limit is some two million bytes.
#[test]
fn many_texts_on_the_command_line_are_rows_like_others() {
    let texts: Vec<String> = (0..20_000).map(|text| format!("t{text}")).collect();
    let mut args = vec!["embed", "--engine", "portable"];
    args.extend(texts.iter().map(String::as_str));
    let out = stdout(&mut isovec(&args));
    assert_eq!(out.lines().count(), texts.len());
}
