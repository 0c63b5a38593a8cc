//! `isovec ocr` on PP-OCR's own networks, where set-up put them or `ISOVEC_TEST_OCR` says, on ONNX Runtime.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

use crate::{isovec, rows, stderr, stdout};

/// The program with the networks; nothing, aloud, without them or ONNX Runtime. `ISOVEC_REQUIRE_OCR=1` makes that a failure.
fn ocr(args: &[&str]) -> Option<Command> {
    let folder = match std::env::var_os("ISOVEC_TEST_OCR") {
        Some(folder) => Some(PathBuf::from(folder)),
        None => isovec::cache_dir().map(|cache| cache.join("models/pp-ocrv4")),
    };
    let library = std::env::var_os("ORT_DYLIB_PATH");
    let there = folder.filter(|folder| folder.is_dir()).zip(library);
    let Some((folder, library)) = there else {
        let must = std::env::var_os("ISOVEC_REQUIRE_OCR").is_some_and(|value| value == "1");
        assert!(
            !must,
            "PP-OCR's networks or ONNX Runtime are not there: run `cargo xtask setup`"
        );
        eprintln!(
            "not run: PP-OCR's networks or ONNX Runtime are not there; `cargo xtask setup` fetches them"
        );
        return None;
    };
    let mut command = isovec(&["ocr", "--engine", "onnxruntime"]);
    command
        .args(args)
        .arg("--model")
        .arg(folder)
        .env("ORT_DYLIB_PATH", library);
    Some(command)
}

fn page(number: usize) -> String {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/pages");
    data.join(format!("{number:03}.png")).display().to_string()
}

#[test]
fn every_format_has_the_same_text() {
    let (page, white) = (page(0), page(7));
    let Some(mut jsonl) = ocr(&[&page, &white, "--format", "jsonl"]) else {
        return;
    };
    let objects = rows(&stdout(&mut jsonl));
    assert_eq!(objects.len(), 2);
    assert_eq!(
        (&objects[0]["image"], &objects[1]["lines"]),
        (&Value::from(page.clone()), &Value::Array(Vec::new()))
    );
    let lines = objects[0]["lines"].as_array().expect("lines");
    let texts: Vec<&str> = lines
        .iter()
        .map(|line| line["text"].as_str().expect("a text"))
        .collect();
    assert!(texts.len() > 3);
    let folder = tempfile::tempdir().expect("a folder");
    let out = |name: &str| {
        let path = folder.path().join(name);
        let mut command = ocr(&[&page, "--out", &path.display().to_string()]).expect("was there");
        command.assert().success().stdout("");
        fs::read_to_string(path).expect("written")
    };
    assert_eq!(out("page.txt").lines().collect::<Vec<_>>(), texts);
    let json: Value = serde_json::from_str(&out("page.json")).expect("an array");
    assert_eq!(json[0]["lines"], objects[0]["lines"]);
    let hocr = out("page.hocr");
    assert_eq!(hocr.matches("class=\"ocr_line\"").count(), texts.len());
    assert!(hocr.contains(&format!(">{}</span>", texts[0])), "{hocr}");
}

#[test]
fn a_picture_that_cannot_be_read_is_named_and_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let broken = folder.path().join("broken.png");
    fs::write(&broken, b"\x89PNG\r\n\x1a\n").expect("written");
    let Some(mut command) = ocr(&[&broken.display().to_string(), &page(8), "--format", "json"])
    else {
        return;
    };
    let assert = command.assert().code(1);
    let output = assert.get_output();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("broken.png") && said.contains("1 of 2 pictures"),
        "{said}"
    );
    let json: Vec<Value> = serde_json::from_slice(&output.stdout).expect("an array");
    assert_eq!(json.len(), 1);
}

#[test]
fn without_networks_it_says_where_they_are() {
    let cache = tempfile::tempdir().expect("a folder");
    let mut command = isovec(&["ocr", &page(8)]);
    command.env("ISOVEC_CACHE", cache.path());
    let said = stderr(&mut command, 2);
    assert!(
        said.contains("rapidocr-onnxruntime") && said.contains("--model"),
        "{said}"
    );
    let said = stderr(&mut isovec(&["ocr", &page(8), "--out", "page.doc"]), 2);
    assert!(said.contains(".hocr"), "{said}");
}
