//! JSON lines on a disk: every row once, a resume that reads nothing that is done, and outputs that are refused.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use isovec_jobs::{Error, run, status};

use crate::engine::{Counting, Notes};
use crate::folder::{Folder, expected, lines};

/// Units of about ten rows, in files of at most four.
const SMALL: &str = "unit_bytes = 500\nunit_rows = 4";

fn two_files() -> Folder {
    let folder = Folder::new();
    folder.write("a.jsonl", lines(0, 60));
    folder.write("b.jsonl", lines(60, 41));
    folder
}

#[test]
fn every_row_is_in_the_output_once() {
    let folder = two_files();
    let engine = Counting::default();
    let report = run(&folder.spec("out", SMALL), &engine, Arc::new(())).unwrap();
    assert_eq!(folder.rows("out"), expected(0, 101));
    assert_eq!((report.rows, report.poisoned, report.before), (101, 0, 0));
    assert_eq!(engine.texts.load(Relaxed), 101);
    assert!(report.units > 8, "{report:?}");
    assert_eq!(report.finished, report.units);
    // A unit has files of at most four rows.
    for bytes in folder.output("out").into_values() {
        assert!(crate::folder::rows(bytes.into()).len() <= 4);
    }
    let status = status(&folder.spec("out", SMALL)).unwrap();
    assert_eq!(
        (status.done, status.left, status.rows),
        (report.units, 0, 101)
    );
    let mut outputs = status.outputs;
    outputs.sort();
    assert_eq!(
        outputs,
        folder.output("out").into_keys().collect::<Vec<_>>()
    );
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_workers() {
    let folder = two_files();
    let one = folder.spec("one", SMALL);
    run(&one, &Counting::default(), Arc::new(())).unwrap();
    let three = folder.spec("three", &format!("{SMALL}\nworkers = 3"));
    run(&three, &Counting::default(), Arc::new(())).unwrap();
    assert!(folder.output("one") == folder.output("three"));
}

#[test]
fn a_stopped_run_is_gone_on_with_and_what_is_done_is_not_read() {
    let folder = two_files();
    let spec = folder.spec("out", SMALL);
    let whole = run(
        &folder.spec("whole", SMALL),
        &Counting::default(),
        Arc::new(()),
    )
    .unwrap();
    let notes = Arc::new(Notes::default());
    notes.most.store(4, Relaxed);
    let error = run(&spec, &Counting::default(), notes).unwrap_err();
    assert!(matches!(error, Error::Stopped), "{error}");
    let before = status(&spec).unwrap();
    assert_eq!((before.done, before.left), (4, whole.units - 4));

    let engine = Counting::default();
    let report = run(&spec, &engine, Arc::new(())).unwrap();
    assert_eq!((report.before, report.finished), (4, whole.units - 4));
    assert_eq!(report.rows + before.rows, 101);
    assert_eq!(engine.texts.load(Relaxed), report.rows);
    assert!(folder.output("out") == folder.output("whole"));

    // Nothing is left: nothing is read and nothing is computed, not even if the file could not be read.
    let engine = Counting::default();
    let report = run(&spec, &engine, Arc::new(())).unwrap();
    assert_eq!(
        (report.before, report.finished, report.bytes_read),
        (whole.units, 0, 0)
    );
    assert_eq!(engine.texts.load(Relaxed), 0);
}

#[test]
fn a_changed_file_is_other_units_and_the_stale_outputs_are_told() {
    let folder = two_files();
    let spec = folder.spec("out", SMALL);
    run(&spec, &Counting::default(), Arc::new(())).unwrap();
    let before = status(&spec).unwrap();
    folder.write("b.jsonl", lines(60, 43));
    let report = run(&spec, &Counting::default(), Arc::new(())).unwrap();
    assert_eq!(report.rows, 43);
    let after = status(&spec).unwrap();
    assert_eq!((after.left, after.rows), (0, 103));
    assert!(report.stale > 0);
    assert_eq!(after.stale.len() as u64, report.stale);
    assert!(
        after
            .stale
            .iter()
            .all(|stale| stale.file.ends_with("in/b.jsonl"))
    );
    // What is stale and what is not is everything that there is.
    let stale: usize = after.stale.iter().map(|stale| stale.outputs.len()).sum();
    assert_eq!(stale + after.outputs.len(), folder.output("out").len());
    assert!(
        before
            .outputs
            .iter()
            .any(|name| !after.outputs.contains(name))
    );
    // A file that is not named any more is the same.
    fs::remove_file(folder.path("in/a.jsonl")).unwrap();
    let gone = status(&spec).unwrap();
    assert!(
        gone.stale
            .iter()
            .any(|stale| stale.file.ends_with("in/a.jsonl"))
    );
}

#[test]
fn another_model_and_other_settings_are_refused_by_name() {
    let folder = two_files();
    run(
        &folder.spec("out", SMALL),
        &Counting::default(),
        Arc::new(()),
    )
    .unwrap();
    let other = Counting {
        weights: 7,
        ..Counting::default()
    };
    let files = folder.output("out");
    let error = run(&folder.spec("out", SMALL), &other, Arc::new(())).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("fingerprint.identity.weights is 0 there and 7 here"),
        "{error}"
    );
    for (more, name) in [
        ("unit_bytes = 400\nunit_rows = 4", "unit_bytes is 500 there"),
        ("unit_bytes = 500\nunit_rows = 5", "unit_rows"),
        (
            "unit_bytes = 500\nunit_rows = 4\npoisoned = 'null'",
            "poisoned",
        ),
        (
            "unit_bytes = 500\nunit_rows = 4\nmax_text_bytes = 9",
            "max_text_bytes",
        ),
        ("unit_bytes = 500\nunit_rows = 4\ntext = 'id'", "text"),
    ] {
        let spec = folder.spec("out", more);
        let error = run(&spec, &Counting::default(), Arc::new(())).unwrap_err();
        assert!(
            matches!(error, Error::OtherJob { .. }) && error.to_string().contains(name),
            "{error}"
        );
        assert!(
            matches!(status(&spec), Err(Error::OtherJob { .. })),
            "{more}"
        );
    }
    assert!(folder.output("out") == files);
}

#[test]
fn a_job_that_was_not_begun_has_everything_left_and_is_not_begun_by_a_look() {
    let folder = two_files();
    let status = status(&folder.spec("out", SMALL)).unwrap();
    assert_eq!((status.done, status.left), (0, status.units));
    assert!(status.units > 8);
    assert!(!folder.path("out").exists());
}

#[test]
fn a_pattern_that_names_nothing_and_a_file_of_another_kind_are_errors() {
    let folder = Folder::new();
    let error = run(&folder.spec("out", ""), &Counting::default(), Arc::new(())).unwrap_err();
    assert!(error.to_string().contains("no such file"), "{error}");
    folder.write("a.csv", "text\na\n");
    let toml = folder.toml("out", "*", "");
    let spec = isovec_jobs::Spec::parse(&toml).unwrap();
    let error = run(&spec, &Counting::default(), Arc::new(())).unwrap_err();
    assert!(error.to_string().contains("a.csv: its ending"), "{error}");
    assert!(!folder.path("out").exists());
}

#[test]
fn what_a_killed_run_left_is_taken_over() {
    let folder = two_files();
    let spec = folder.spec("out", SMALL);
    run(&spec, &Counting::default(), Arc::new(())).unwrap();
    let whole = folder.output("out");
    // As a run leaves it that was killed between an output and its entry.
    for name in folder.names("out/manifest").iter().step_by(2) {
        fs::remove_file(folder.path("out/manifest").join(name)).unwrap();
    }
    let report = run(&spec, &Counting::default(), Arc::new(())).unwrap();
    assert!(report.finished > 3 && report.lost == 0, "{report:?}");
    assert!(folder.output("out") == whole);
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_takes_nothing_is_tried_again_and_then_names_the_unit() {
    let folder = two_files();
    let spec = folder.spec("out", &format!("{SMALL}\nretries = 2"));
    let notes = Arc::new(Notes::default());
    // Nobody can make files there.
    fs::create_dir(folder.path("out")).unwrap();
    std::os::unix::fs::symlink("/proc/self", folder.path("out/rows")).unwrap();
    let error = run(&spec, &Counting::default(), Arc::<Notes>::clone(&notes)).unwrap_err();
    let said = error.to_string();
    assert!(matches!(error, Error::Unit { .. }), "{said}");
    assert!(
        said.contains("in/") && said.contains("tried 3 times"),
        "{said}"
    );
    let waits = notes
        .all()
        .iter()
        .filter(|event| event.starts_with("Retrying"))
        .count();
    assert_eq!(waits, 2);
    assert_eq!(folder.names("out/manifest"), Vec::<String>::new());
    // Where there is room again, the job is done.
    fs::remove_file(folder.path("out/rows")).unwrap();
    run(&spec, &Counting::default(), Arc::new(())).unwrap();
    assert_eq!(folder.rows("out"), expected(0, 101));
}

#[test]
fn an_engine_without_power_ends_the_run_and_blames_no_row() {
    let folder = two_files();
    let spec = folder.spec("out", &format!("{SMALL}\nretries = 1\npoisoned = 'skip'"));
    let engine = Counting::default();
    engine.dead.store(true, Relaxed);
    let error = run(&spec, &engine, Arc::new(())).unwrap_err();
    assert!(error.to_string().contains("no power"), "{error}");
    assert!(folder.output("out").is_empty());
    engine.dead.store(false, Relaxed);
    run(&spec, &engine, Arc::new(())).unwrap();
    assert_eq!(folder.rows("out"), expected(0, 101));
}

/// Changes a file when the first text of the other one is embedded.
struct Meddling<'a> {
    folder: &'a Folder,
    engine: Counting,
}

impl isovec_jobs::Compute for Meddling<'_> {
    fn fingerprint(&self) -> serde_json::Value {
        self.engine.fingerprint()
    }

    fn dim(&self) -> usize {
        self.engine.dim()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<f32>, isovec_jobs::Refusal> {
        let other = match texts[0] {
            "text number 20" => "b.jsonl",
            _ => "a.jsonl",
        };
        if self.engine.texts.load(Relaxed) == 0 {
            // As many bytes as before.
            self.folder.write(other, lines(90, 8));
        }
        self.engine.embed(texts)
    }
}

#[test]
fn a_file_that_changes_under_a_run_fails_its_unit_and_is_done_by_the_next() {
    let folder = Folder::new();
    folder.write("a.jsonl", lines(20, 8));
    folder.write("b.jsonl", lines(10, 8));
    let spec = folder.spec("out", "");
    let meddling = Meddling {
        folder: &folder,
        engine: Counting::default(),
    };
    let report = run(&spec, &meddling, Arc::new(())).unwrap();
    assert_eq!((report.finished, report.rows, report.failures), (1, 8, 1));
    let report = run(&spec, &Counting::default(), Arc::new(())).unwrap();
    assert_eq!((report.finished, report.rows, report.failures), (1, 8, 0));
    assert!(folder.rows("out").ends_with(&expected(90, 8)));
}
