//! Rows without vectors.

use std::sync::Arc;

use isovec_jobs::{Error, run, status};
use serde_json::Value;

use crate::engine::Counting;
use crate::folder::{Folder, expected, lines, read};

/// Rows 0 to 9 and 10 to 19, with six rows between them that have no vector.
fn poisoned() -> Folder {
    let folder = Folder::new();
    let mut content = lines(0, 10).into_bytes();
    for line in [
        &b"{\"id\": \"a\", \"text\": null}\n"[..],
        b"{\"id\": \"b\", \"text\": \"\xff\"}\n",
        b"{\"id\": \"c\", \"text\": \"a text that is longer than forty bytes of UTF-8\"}\n",
        b"{\"id\": \"d\", \"text\": \"bad\"}\n",
        b"{\"id\": \"e\", \"text\": \"ugly\"}\n",
        b"{\"id\": \"f\"\n",
    ] {
        content.extend_from_slice(line);
    }
    content.extend(lines(10, 10).bytes());
    folder.write("a.jsonl", content);
    folder
}

const LONGEST: &str = "max_text_bytes = 40\nretries = 1";

/// What each of the six is said to be, and its id where its line could be read.
const REASONS: [(&str, &str); 6] = [
    ("a", "is null"),
    ("", "not UTF-8"),
    ("c", "max_text_bytes (40)"),
    ("d", "it is bad"),
    ("e", "crashed"),
    ("", "not a JSON object"),
];

#[test]
fn a_row_becomes_a_null_with_its_reason() {
    let folder = poisoned();
    let spec = folder.spec("out", &format!("{LONGEST}\npoisoned = 'null'"));
    let report = run(&spec, &Counting::default(), Arc::new(())).unwrap();
    assert_eq!((report.rows, report.poisoned, report.failures), (26, 6, 0));
    let rows = folder.rows("out");
    let (good, bad): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.2.is_none());
    assert_eq!(good, expected(0, 20));
    assert_eq!(bad.len(), 6);
    for (id, reason) in REASONS {
        let mut found = bad
            .iter()
            .filter(|row| row.2.as_ref().unwrap().contains(reason));
        let row = found.next().unwrap_or_else(|| panic!("{reason}: {bad:?}"));
        assert_eq!((&*row.0, &row.1), (id, &None), "{reason}");
    }
}

#[test]
fn a_row_goes_to_a_side_file_with_its_place_and_reason() {
    let folder = poisoned();
    let spec = folder.spec("out", &format!("{LONGEST}\npoisoned = 'skip'"));
    let report = run(&spec, &Counting::default(), Arc::new(())).unwrap();
    assert_eq!((report.rows, report.poisoned), (26, 6));
    assert_eq!(folder.rows("out"), expected(0, 20));
    let names = folder.names("out/skipped");
    assert_eq!(names.len(), 1);
    let side = String::from_utf8(read(&folder.path("out/skipped").join(&names[0]))).unwrap();
    let input = read(&folder.path("in/a.jsonl"));
    let skipped: Vec<Value> = side
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(skipped.len(), 6);
    for (line, (_, reason)) in skipped.iter().zip(REASONS) {
        assert!(line["reason"].as_str().unwrap().contains(reason), "{line}");
        assert!(line["file"].as_str().unwrap().ends_with("in/a.jsonl"));
        let at = line["byte"].as_u64().unwrap() as usize;
        assert!(input[at..].starts_with(b"{\"id\"") && (at == 0 || input[at - 1] == b'\n'));
    }
}

#[test]
fn a_row_fails_its_unit_alone_and_is_named() {
    let folder = Folder::new();
    folder.write("a.jsonl", lines(0, 10));
    folder.write(
        "b.jsonl",
        lines(10, 5) + "{\"id\": \"x\", \"text\": \"bad\"}\n" + &lines(15, 5),
    );
    folder.write("c.jsonl", lines(20, 10));
    let spec = folder.spec("out", "");
    let report = run(&spec, &Counting::default(), Arc::new(())).unwrap();
    assert_eq!((report.finished, report.failures), (2, 1));
    let reason = &report.failed[0].reason;
    assert!(
        reason.contains("b.jsonl, byte ") && reason.contains("it is bad"),
        "{reason}"
    );
    let mut good = expected(0, 10);
    good.extend(expected(20, 10));
    assert_eq!(folder.rows("out"), good);
    let before = status(&spec).unwrap();
    assert_eq!((before.done, before.left, before.failed.len()), (2, 1, 1));
    assert_eq!(before.failed[0].reason, *reason);
    // When the row is corrected the note of the failure is stale, as the unit is another.
    folder.write("b.jsonl", lines(10, 10));
    let report = run(&spec, &Counting::default(), Arc::new(())).unwrap();
    assert_eq!((report.before, report.finished, report.failures), (2, 1, 0));
    assert_eq!(folder.rows("out"), expected(0, 30));
    assert_eq!(status(&spec).unwrap().failed, []);
}

#[test]
fn a_unit_that_failed_and_succeeds_is_not_noted_any_more() {
    let folder = Folder::new();
    folder.write("a.jsonl", "{\"id\": \"x\", \"text\": \"bad\"}\n");
    let spec = folder.spec("out", "");
    let report = run(&spec, &Counting::default(), Arc::new(())).unwrap();
    assert_eq!(report.failures, 1);
    assert_eq!(folder.names("out/failed").len(), 1);
    /// An engine that has been mended.
    struct Mended;
    impl isovec_jobs::Compute for Mended {
        fn fingerprint(&self) -> Value {
            Counting::default().fingerprint()
        }
        fn dim(&self) -> usize {
            crate::engine::DIM
        }
        fn embed(&self, texts: &[&str]) -> Result<Vec<f32>, isovec_jobs::Refusal> {
            Ok(texts
                .iter()
                .flat_map(|text| crate::engine::vector(text))
                .collect())
        }
    }
    let report = run(&spec, &Mended, Arc::new(())).unwrap();
    assert_eq!((report.finished, report.failures), (1, 0));
    assert_eq!(folder.names("out/failed"), Vec::<String>::new());
    assert_eq!(folder.rows("out").len(), 1);
}

#[test]
fn a_file_without_the_column_says_what_it_has() {
    let folder = Folder::new();
    folder.write("a.jsonl", "{\"id\": \"1\", \"body\": \"a\"}\n");
    let report = run(&folder.spec("out", ""), &Counting::default(), Arc::new(())).unwrap();
    assert!(
        report.failed[0].reason.contains("no field \"text\""),
        "{:?}",
        report.failed
    );
    let error = isovec_jobs::Spec::parse("input = 'a'").unwrap_err();
    assert!(matches!(error, Error::Spec(_)));
}
