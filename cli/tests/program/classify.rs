//! `isovec classify` on the seeded classifier: every format against logits at float64, and what cannot work.

use std::fs;

use serde_json::{Value, json};

use crate::{isovec, model, rows, stderr, stdout};

/// The largest difference of two scores.
const NEAR: f64 = 1e-5;

fn folder() -> String {
    let folder = model().with_file_name("tiny-classifier");
    folder.display().to_string()
}

/// The texts of the reference that are one line, and their logits in the order of the labels.
fn reference() -> (Vec<String>, Vec<(String, Vec<f64>)>) {
    let path = model().with_file_name("tiny-classifier/reference.json");
    let all: Value = serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON");
    let labels = all["labels"].as_array().expect("labels");
    let labels = labels.iter().map(string).collect();
    let texts = all["texts"].as_array().expect("texts").iter();
    let texts = texts.map(|text| {
        let logits = text["logits"].as_array().expect("logits").iter();
        (string(&text["text"]), logits.map(number).collect())
    });
    let one_line = texts.filter(|(text, _): &(String, Vec<f64>)| !text.contains('\n'));
    (labels, one_line.collect())
}

fn string(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// The labels of a text with their scores, as a program would rank them.
fn ranked(labels: &[String], scores: &[f64]) -> Vec<(String, f64)> {
    let mut ranked: Vec<_> = labels.iter().cloned().zip(scores.iter().copied()).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked
}

fn softmax(logits: &[f64]) -> Vec<f64> {
    let sum: f64 = logits.iter().map(|logit| logit.exp()).sum();
    logits.iter().map(|logit| logit.exp() / sum).collect()
}

fn sigmoid(logits: &[f64]) -> Vec<f64> {
    logits
        .iter()
        .map(|logit| 1.0 / (1.0 + (-logit).exp()))
        .collect()
}

/// A command with the model and the engine that needs nothing.
fn classify(args: &[&str]) -> assert_cmd::Command {
    let folder = folder();
    let model = ["classify", "--model", &folder, "--engine", "portable"];
    isovec(&[&model[..], args].concat())
}

fn near(written: &Value, wanted: &[(String, f64)]) {
    let written = written.as_array().expect("labels");
    assert_eq!(written.len(), wanted.len());
    for (label, (name, score)) in written.iter().zip(wanted) {
        assert_eq!(label["label"], name.as_str(), "{written:?} and {wanted:?}");
        assert!((number(&label["score"]) - score).abs() <= NEAR, "{label}");
    }
}

#[test]
fn scores_are_the_references_in_lines_and_as_an_array() {
    let (labels, texts) = reference();
    let input: String = texts.iter().map(|(text, _)| format!("{text}\n")).collect();
    type Form = fn(&[f64]) -> Vec<f64>;
    let forms: [(&[&str], Form); 4] = [
        (&[], softmax),
        (&["--scores", "softmax"], softmax),
        (&["--scores", "sigmoid"], sigmoid),
        (&["--scores", "logits"], <[f64]>::to_vec),
    ];
    for (scores, form) in forms {
        let args = |format| [&["-", "--format", format][..], scores].concat();
        let lines = stdout(classify(&args("jsonl")).write_stdin(input.clone()));
        let lines = rows(&lines);
        assert_eq!(lines.len(), texts.len());
        for (row, (text, logits)) in lines.iter().zip(&texts) {
            assert_eq!(row["text"], text.as_str());
            near(&row["labels"], &ranked(&labels, &form(logits)));
        }
        let array = stdout(classify(&args("json")).write_stdin(input.clone()));
        let array: Vec<Value> = serde_json::from_str(&array).expect("an array");
        assert_eq!(array, lines);
    }
}

#[test]
fn a_row_keeps_its_fields_and_the_file_its_format() {
    let (labels, texts) = reference();
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let input = path("in.jsonl");
    let given: Vec<String> = texts
        .iter()
        .enumerate()
        .map(|(id, (text, _))| {
            json!({"id": id, "body": text, "truncated": true, "label": "gold"}).to_string()
        })
        .collect();
    fs::write(&input, given.join("\n")).expect("written");
    let run = |name: &str, more: &[&str]| {
        let out = path(name);
        let args = [&["-f", &input, "--field", "body", "-o", &out][..], more].concat();
        classify(&args).assert().success().stdout("");
        fs::read_to_string(&out).expect("a file")
    };
    for (id, row) in rows(&run("out.jsonl", &["-k", "2"])).iter().enumerate() {
        assert_eq!((&row["id"], &row["label"]), (&json!(id), &json!("gold")));
        // The mark is this model's, and not the one that was there.
        let long = texts[id].0.len() > 300;
        assert_eq!(row.get("truncated"), long.then_some(&json!(true)));
        near(
            &row["labels"],
            &ranked(&labels, &softmax(&texts[id].1))[..2],
        );
    }
    let array: Vec<Value> =
        serde_json::from_str(&run("out.json", &["--format", "json"])).expect("an array");
    assert_eq!(array.len(), texts.len());

    let all = run("out.csv", &["--top-k", "7", "--scores", "logits"]);
    let mut reader = csv::Reader::from_reader(all.as_bytes());
    let header = reader.headers().expect("a header").clone();
    assert_eq!(header, vec!["text", "label", "score", "truncated"]);
    let records: Vec<csv::StringRecord> = reader.records().map(|one| one.expect("read")).collect();
    assert_eq!(records.len(), 3 * texts.len());
    for (records, (text, logits)) in records.chunks(3).zip(&texts) {
        for (record, (label, score)) in records.iter().zip(ranked(&labels, logits)) {
            assert_eq!((&record[0], &record[1]), (&text[..], &label[..]));
            let written: f64 = record[2].parse().expect("a number");
            assert!((written - score).abs() <= NEAR, "{record:?}");
            assert_eq!(&record[3], (text.len() > 300).to_string());
        }
    }
    let best = run("best.csv", &[]);
    assert_eq!(best.lines().count(), 1 + texts.len());
}

#[test]
fn a_table_shows_the_best_label_or_as_many_as_are_asked_for() {
    let (labels, texts) = reference();
    let (text, logits) = &texts[0];
    let wanted = ranked(&labels, &softmax(logits));
    let line = |at: usize, text: &str| {
        let (label, score) = &wanted[at];
        let line = format!("{label:<8}  {score:>9.4}  {text}");
        format!("{}\n", line.trim_end())
    };
    let head = "label         score  text\n";
    let best = stdout(&mut classify(&[text]));
    assert_eq!(best, format!("{head}{}", line(0, text)));
    let two = stdout(&mut classify(&["-k", "2", text]));
    assert_eq!(two, format!("{head}{}{}", line(0, text), line(1, "")));
    // A text that would break the columns does not.
    let wide = stdout(&mut classify(&[&format!("a\tb\n{}", "x".repeat(100))]));
    let last = wide.lines().last().expect("a line");
    assert!(
        last.ends_with(&format!("a b {}…", "x".repeat(56))),
        "{wide}"
    );
    assert_eq!(wide.lines().count(), 2);
}

#[test]
fn many_rows_come_out_complete_and_in_order() {
    let input: String = (0..6_000)
        .map(|row| format!("{{\"id\": {row}, \"text\": \"cat {}\"}}\n", row % 13))
        .collect();
    let args = ["-", "--input-format", "jsonl", "--format", "jsonl"];
    let written = rows(&stdout(classify(&args).write_stdin(input)));
    assert_eq!(written.len(), 6_000);
    let score = |row: &Value| number(&row["labels"][0]["score"]);
    for (at, row) in written.iter().enumerate() {
        assert_eq!(row["id"], at);
        assert!((score(row) - score(&written[at % 13])).abs() <= NEAR);
    }
    assert!((score(&written[0]) - score(&written[1])).abs() > NEAR);
}

#[test]
fn rows_before_a_broken_one_are_written_in_every_format() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.txt");
    fs::write(&input, b"one\ntwo\n\xff\nfour\n").expect("written");
    let input = input.display().to_string();
    for (format, lines) in [("table", 3), ("csv", 3), ("jsonl", 2), ("json", 4)] {
        let mut command = classify(&["-f", &input, "--format", format]);
        let output = command.assert().code(1).get_output().clone();
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(text.lines().count(), lines, "{format}: {text}");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.contains("in.txt, row 3"), "{message}");
        if format == "json" {
            let array: Vec<Value> = serde_json::from_str(&text).expect("an array");
            assert_eq!(array.len(), 2);
        }
    }
    for (format, nothing) in [("json", "[]\n"), ("jsonl", "")] {
        let mut command = classify(&["-", "--format", format]);
        assert_eq!(stdout(command.write_stdin("")), nothing);
    }
}

#[test]
fn what_was_counted_and_what_was_done_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace.json").display().to_string();
    let mut command = classify(&["a", "b", "--stats", "--profile", &trace]);
    let counted: Value = serde_json::from_str(&stderr(&mut command, 0)).expect("JSON");
    assert_eq!(counted["stats"]["calls"]["texts"], 2);
    let summary = stdout(&mut isovec(&["trace", &trace, "--json"]));
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    assert!(summary.is_object(), "{summary}");
    let events = fs::read_to_string(&trace).expect("a file");
    let events: Value = serde_json::from_str(&events).expect("JSON");
    let runs = events["traceEvents"].as_array().expect("events");
    assert!(runs.iter().any(|event| event["cat"] == "run"));
}

#[test]
fn what_cannot_work_says_so_with_its_exit_code() {
    let vectors = model().display().to_string();
    let classifier = folder();
    let cases: [(&[&str], i32, &[&str]); 6] = [
        (&["classify", "a"], 2, &["--model"]),
        (
            &["classify", "a", "--model", &vectors],
            3,
            &["tiny-bert", "logits"],
        ),
        (
            &["classify", "a", "--model", &classifier, "-o", "labels.xyz"],
            2,
            &["labels.xyz", "--format"],
        ),
        (
            &["classify", "a", "--model", &classifier, "-k", "0"],
            2,
            &["--top-k", "at least 1"],
        ),
        (
            &["classify", "a", "--model", &classifier, "--scores", "all"],
            2,
            &["softmax", "sigmoid", "logits"],
        ),
        (
            &["classify", "a", "--model", &classifier, "--dimension", "2"],
            2,
            &["classifier"],
        ),
    ];
    for (args, code, words) in cases {
        let mut command = isovec(args);
        let message = stderr(command.env_remove("ISOVEC_MODEL"), code);
        for word in words {
            assert!(message.contains(word), "{args:?}: {message}");
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.csv");
    fs::write(&input, "text\na\n").expect("written");
    let path = input.display().to_string();
    let message = stderr(&mut classify(&["-f", &path, "-o", &path]), 2);
    assert!(message.contains("would be overwritten"), "{message}");
    let message = stderr(
        &mut classify(&["a", "-o", "same.json", "--profile", "same.json"]),
        2,
    );
    assert!(message.contains("the same file"), "{message}");
    assert_eq!(fs::read_to_string(&input).expect("a file"), "text\na\n");
}
