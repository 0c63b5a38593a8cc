//! `isovec embed --images` and `isovec classify --images` on seeded models of pictures.

use std::fs;
use std::path::Path;

use isovec_test_models::checkpoint::Stored;
use isovec_test_models::pictures::{self, SIZE};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{isovec, rows, stderr, stdout};

/// A folder with a model, and one of pictures and other files beside it.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let model = pictures::vit();
    let preprocessor = json!({
        "image_processor_type": "ViTImageProcessor",
        "size": {"height": SIZE.0, "width": SIZE.1},
    });
    let place = |name: &str| folder.path().join(name);
    for (name, bytes) in [
        ("model/config.json", model.config_json()),
        ("model/model.safetensors", model.file(Stored::F32)),
        (
            "model/preprocessor_config.json",
            preprocessor.to_string().into_bytes(),
        ),
        ("photos/b.png", picture("png/RGB-17x33")),
        ("photos/a/named-wrongly.txt", picture("jpeg/turn6-big")),
        ("photos/a/c.webp", picture("webp/lossy-60-17x33")),
        ("photos/notes.png", b"no picture at all".to_vec()),
    ] {
        let path = place(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, bytes).expect("written");
    }
    folder
}

/// A file that Pillow wrote.
fn picture(name: &str) -> Vec<u8> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../input/image/tests/data");
    let list = fs::read(data.join("pictures.json")).expect("a list");
    let list: Vec<Value> = serde_json::from_slice(&list).expect("JSON");
    let entry = list
        .iter()
        .find(|entry| entry["name"] == name)
        .expect("a picture");
    let number = |key: &str| entry[key].as_u64().expect("a number") as usize;
    let all = fs::read(data.join("pictures.bin")).expect("pictures");
    all[number("at")..][..number("bytes")].to_vec()
}

fn embed(folder: &TempDir, args: &[&str]) -> assert_cmd::Command {
    let mut command = isovec(&["embed", "--engine", "portable"]);
    command.env("ISOVEC_MODEL", folder.path().join("model"));
    command.current_dir(folder.path()).args(args);
    command
}

fn names(rows: &[Value]) -> Vec<&str> {
    rows.iter()
        .map(|row| row["image"].as_str().expect("a path"))
        .collect()
}

#[test]
fn every_picture_of_a_folder_is_a_row_whatever_it_is_called() {
    let folder = folder();
    let all = rows(&stdout(&mut embed(&folder, &["--images", "photos"])));
    let expected = [
        "photos/a/c.webp",
        "photos/a/named-wrongly.txt",
        "photos/b.png",
    ];
    assert_eq!(names(&all), expected);
    let alone = rows(&stdout(&mut embed(&folder, &["--images", "photos/b.png"])));
    assert_eq!(alone[0], all[2]);
    assert_ne!(all[0]["embedding"], all[2]["embedding"]);
    assert_eq!(
        all[0]["embedding"].as_array().map(Vec::len),
        Some(pictures::WIDTH)
    );
}

#[test]
fn one_that_cannot_be_read_is_named_and_left_out() {
    let folder = folder();
    let whole = picture("png/RGB-17x33");
    fs::write(folder.path().join("photos/a/cut.png"), &whole[..150]).expect("written");
    let args = [
        "--images",
        "photos",
        "--out",
        "all.jsonl",
        "--json",
        "--stats",
    ];
    let said = stderr(&mut embed(&folder, &args), 1);
    assert!(
        said.contains("photos/a/cut.png: PNG: the file is damaged"),
        "{said}"
    );
    assert!(said.contains("1 of 4 pictures could not be read"), "{said}");
    let summary = said
        .lines()
        .find(|line| line.starts_with('{'))
        .expect("a summary");
    let summary: Value = serde_json::from_str(summary).expect("JSON");
    assert_eq!(
        (&summary["images"], &summary["unreadable"]),
        (&3.into(), &1.into())
    );
    let written = fs::read_to_string(folder.path().join("all.jsonl")).expect("written");
    assert_eq!(names(&rows(&written)).len(), 3);
}

/// The same folder with a model of both halves.
fn with_clip() -> TempDir {
    let folder = folder();
    let place = |name: &str| folder.path().join("model").join(name);
    let model = pictures::clip();
    fs::write(place("config.json"), model.config_json()).expect("written");
    fs::write(place("model.safetensors"), model.file(Stored::F32)).expect("written");
    let tokenizer = crate::model().join("tokenizer.json");
    fs::copy(tokenizer, place("tokenizer.json")).expect("copied");
    folder
}

fn search(folder: &TempDir, args: &[&str]) -> assert_cmd::Command {
    let mut command = isovec(&["search", "--engine", "portable", "--images"]);
    command.env("ISOVEC_MODEL", folder.path().join("model"));
    command.current_dir(folder.path()).args(args);
    command
}

#[test]
fn a_text_or_a_picture_finds_pictures() {
    let folder = with_clip();
    let found = stdout(&mut search(
        &folder,
        &["the end of the cat", "photos", "--json"],
    ));
    let found: Value = serde_json::from_str(&found).expect("JSON");
    assert_eq!(
        (&found["images"], &found["unreadable"]),
        (&3.into(), &0.into())
    );
    let hits = found["hits"].as_array().expect("hits");
    let scores: Vec<f64> = hits
        .iter()
        .map(|hit| hit["score"].as_f64().expect("a score"))
        .collect();
    assert_eq!(scores.len(), 3);
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    // Of a picture, the picture itself is the nearest.
    let page = stdout(&mut search(&folder, &["photos/b.png", "photos", "-k", "1"]));
    assert!(page.contains("1.000  photos/b.png"), "{page}");
    fs::write(
        folder.path().join("photos/cut.webp"),
        &picture("webp/lossy-60-17x33")[..90],
    )
    .expect("written");
    let said = search(&folder, &["photos/b.png", "photos", "-k", "1"])
        .assert()
        .success()
        .get_output()
        .stderr
        .clone();
    let said = String::from_utf8(said).expect("UTF-8");
    assert!(
        said.contains("photos/cut.webp: WebP: the file is damaged"),
        "{said}"
    );
}

#[test]
fn a_text_needs_a_model_that_reads_texts_too() {
    let folder = folder();
    let said = stderr(&mut search(&folder, &["a cat", "photos"]), 2);
    assert!(said.contains("both halves"), "{said}");
    let page = stdout(&mut search(&folder, &["photos/b.png", "photos", "-k", "1"]));
    assert!(page.contains("1.000  photos/b.png"), "{page}");
    fs::write(folder.path().join("no.png"), b"no picture").expect("written");
    let said = stderr(&mut search(&folder, &["no.png", "photos"]), 2);
    assert!(said.contains("no.png"), "{said}");
}

#[test]
fn what_cannot_work_says_so() {
    let folder = folder();
    let said = |args: &[&str], code| stderr(&mut embed(&folder, args), code);
    let both = said(&["--file", "model/config.json", "--images", "photos"], 2);
    assert!(both.contains("cannot be used with"), "{both}");
    assert!(said(&["--images", "model"], 2).contains("no picture"));
    assert!(said(&["--images", "nowhere.png"], 1).contains("nowhere.png"));
    assert!(said(&["--images", "photos", "--resume"], 2).contains("--resume"));
    let over = said(
        &[
            "--images",
            "photos/b.png",
            "--out",
            "photos/b.png",
            "--format",
            "jsonl",
        ],
        2,
    );
    assert!(over.contains("would be overwritten"), "{over}");
    let mut of_texts = embed(&folder, &["--images", "photos"]);
    of_texts.env("ISOVEC_MODEL", crate::model());
    assert!(stderr(&mut of_texts, 3).contains("reads no pictures"));
    let text = said(&["a text"], 3);
    assert!(text.contains("ImageEmbedder"), "{text}");
}

#[test]
fn a_model_of_pictures_is_made_smaller_with_the_pictures_of_a_folder() {
    let folder = folder();
    let optimize = |out: &str, args: &[&str]| {
        let mut command = isovec(&["optimize", "./model", "--out", out]);
        command.args(["--engine", "portable", "--int8", "static"]);
        command.current_dir(folder.path()).args(args);
        command
    };
    // One of the files is no picture, and is not taken.
    let report = stdout(&mut optimize("small", &["--images", "photos"]));
    assert!(report.contains("| int8 | applied: 19 of 19"), "{report}");
    assert!(report.contains("| 0 of 3 |"), "{report}");
    assert!(report.contains("| pictures a second |"), "{report}");
    let embed = |model: &str| {
        let args = ["--images", "photos/b.png", "--model", model];
        rows(&stdout(&mut embed(&folder, &args)))[0]["embedding"].clone()
    };
    assert_ne!(embed("./small"), embed("./model"));
    // The same pictures calibrate, and fewer are compared.
    let file = |name: &str| fs::read(folder.path().join(name).join("model.onnx")).expect("a file");
    let mut apart = optimize("apart", &["--images", "photos/a"]);
    apart.args(["--calibrate-images", "photos"]);
    assert!(stdout(&mut apart).contains("| 0 of 2 |"));
    assert!(file("apart") == file("small"));
    let said = stderr(
        &mut optimize(
            "none",
            &["--images", "photos", "--texts", "photos/notes.png"],
        ),
        2,
    );
    assert!(said.contains("--texts"), "{said}");
}

#[test]
fn a_budget_over_pictures_is_kept_or_nothing_is_written() {
    let folder = folder();
    let within = |bound: &str| {
        let mut command = isovec(&["optimize", "./model", "--out", "small", "--json"]);
        command.args([
            "--engine",
            "portable",
            "--rounds",
            "6",
            "--seconds",
            "0.001",
        ]);
        command.args(["--images", "photos", "--budget", bound]);
        command.args(["--calibrate-images", "photos/a"]);
        command.current_dir(folder.path());
        command
    };
    let error = stderr(&mut within("size<=100B"), 4);
    assert!(error.contains("comes nearest: size is"), "{error}");
    assert!(!folder.path().join("small").exists());

    let report: Value = serde_json::from_str(&stdout(&mut within("cosine>=0.5"))).expect("JSON");
    let points = report["points"].as_array().expect("candidates");
    let names = points
        .iter()
        .map(|point| &point["candidate"]["technique"])
        .collect::<Vec<_>>();
    assert_eq!(names, ["f16", "int8", "int8-static", "int8-dynamic"]);
    assert_eq!(
        (&report["of_pictures"], &report["texts"]),
        (&json!(true), &json!(3))
    );
    let chosen = report["chosen"].as_u64().expect("a choice") as usize;
    let figures = &points[chosen]["tried"]["measured"]["figures"];
    assert_eq!(figures["bytes"], report["optimized"]["bytes"]);
    let args = ["--images", "photos/b.png", "--model", "./small"];
    assert_eq!(rows(&stdout(&mut embed(&folder, &args))).len(), 1);
}

fn classify(folder: &TempDir, args: &[&str]) -> assert_cmd::Command {
    let mut command = isovec(&["classify", "--engine", "portable"]);
    command.env(
        "ISOVEC_MODEL",
        crate::model().with_file_name("tiny-network"),
    );
    command.current_dir(folder.path()).args(args);
    command
}

#[test]
fn pictures_get_the_reference_s_labels() {
    let folder = folder();
    let model = crate::model().with_file_name("tiny-network");
    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(model.join(name)).expect("a file")).expect("JSON")
    };
    let (config, reference) = (read("config.json"), read("reference.json"));
    let pictures = reference["pictures"].as_array().expect("pictures");
    for about in pictures {
        let name = about["name"].as_str().expect("a name");
        fs::write(folder.path().join("one"), picture(name)).expect("written");
        let args = ["--images", "one", "--format", "jsonl", "--scores", "logits"];
        let said = rows(&stdout(&mut classify(&folder, &args)));
        assert_eq!(said[0]["image"], "one");
        let labels = said[0]["labels"].as_array().expect("labels");
        let logits = about["logits"].as_array().expect("logits");
        assert_eq!(labels.len(), logits.len());
        for (id, logit) in logits.iter().enumerate() {
            let label = &config["id2label"][id.to_string()];
            let found = labels.iter().find(|found| found["label"] == *label);
            let found = found.expect("the label")["score"]
                .as_f64()
                .expect("a score");
            let apart = (found - logit.as_f64().expect("a logit")).abs();
            assert!(apart < 1e-5, "{name}, {label}: {found}, {logit}");
        }
    }
    let table = stdout(&mut classify(&folder, &["--images", "photos"]));
    assert_eq!(table.matches("photos/").count(), 3, "{table}");
    fs::write(folder.path().join("photos/cut.gif"), b"GIF89a").expect("written");
    let args = ["--images", "photos", "--out", "all.csv", "--top-k", "2"];
    let said = stderr(&mut classify(&folder, &args), 1);
    assert!(said.contains("photos/cut.gif: GIF"), "{said}");
    let written = fs::read_to_string(folder.path().join("all.csv")).expect("written");
    assert_eq!(written.lines().count(), 1 + 3 * 2, "{written}");
    let both = stderr(
        &mut classify(&folder, &["--images", "photos", "--file", "one"]),
        2,
    );
    assert!(both.contains("--file"), "{both}");
    let over = [
        "--images",
        "photos",
        "--format",
        "csv",
        "--out",
        "photos/b.png",
    ];
    assert!(stderr(&mut classify(&folder, &over), 2).contains("overwritten"));
    let mut of_texts = classify(&folder, &["--images", "photos"]);
    of_texts.env(
        "ISOVEC_MODEL",
        crate::model().with_file_name("tiny-classifier"),
    );
    assert!(stderr(&mut of_texts, 3).contains("no pictures"));
}
