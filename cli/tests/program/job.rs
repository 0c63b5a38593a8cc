//! `isovec job`: a job that is killed is gone on with, and its output is that of one that was not.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::{isovec, model, stderr, stdout};

/// A folder with texts in two files, and a spec for each output.
struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    fn new(rows: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (file, from) in [("a", 0), ("b", rows / 2)] {
            let line =
                |id: usize| format!("{{\"id\": {id}, \"text\": \"the cat sat {id} times\"}}\n");
            let lines: String = (from..from + rows / 2).map(line).collect();
            fs::write(folder.path().join(file).with_extension("jsonl"), lines).expect("written");
        }
        Self { folder }
    }

    /// Writes the spec of an output.
    fn spec(&self, out: &str, more: &str) -> String {
        let path = self.folder.path();
        let spec = format!(
            "input = '{0}/*.jsonl'\noutput = '{0}/{out}'\nkeep = ['id']\nunit_bytes = 2000\n{more}\n\
             [model.config]\nengine = 'portable'\n[model.config.session]\ndeterministic_compute = true\n",
            path.display()
        );
        let name = path.join(out).with_extension("toml");
        fs::write(&name, spec).expect("written");
        name.display().to_string()
    }

    fn rows(&self, out: &str) -> PathBuf {
        self.folder.path().join(out).join("rows")
    }

    fn output(&self, out: &str) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(self.rows(out)).expect("an output");
        let files = entries.map(|entry| {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("a name");
            (name, fs::read(entry.path()).expect("readable"))
        });
        files.collect()
    }
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(&mut isovec(args))).expect("JSON")
}

#[test]
fn a_job_that_is_killed_is_gone_on_with() {
    let folder = Folder::new(400);
    let whole = folder.spec("whole", "");
    let report = json(&["job", "run", &whole, "--json"]);
    assert_eq!(
        (&report["rows"], &report["before"]),
        (&400.into(), &0.into())
    );

    let spec = folder.spec("out", "");
    let mut child = std::process::Command::new(crate::program())
        .args(["job", "run", &spec])
        .env("ISOVEC_MODEL", model())
        .env_remove("ORT_DYLIB_PATH")
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    // As soon as something is there.
    while fs::read_dir(folder.rows("out")).map_or(0, Iterator::count) == 0 {
        let ended = child.try_wait().expect("a state");
        assert!(ended.is_none(), "{ended:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("killed");
    child.wait().expect("ended");

    let before = json(&["job", "status", &spec, "--json"]);
    let report = json(&["job", "run", &spec, "--json"]);
    assert_eq!(report["before"], before["done"]);
    let rows = report["rows"].as_u64().expect("rows") + before["rows"].as_u64().expect("rows");
    assert_eq!(rows, 400);
    assert!(folder.output("out") == folder.output("whole"));

    let report = json(&["job", "run", &spec, "--json"]);
    assert_eq!(
        (&report["finished"], &report["bytes_read"]),
        (&0.into(), &0.into())
    );
    let page = stdout(&mut isovec(&["job", "status", &spec]));
    assert!(
        page.contains("0 left") && page.contains("400 in what is done"),
        "{page}"
    );
}

#[test]
fn another_model_and_a_wrong_spec_are_usage_errors_that_are_named() {
    let folder = Folder::new(20);
    let spec = folder.spec("out", "");
    isovec(&["job", "run", &spec]).assert().success();
    let text = fs::read_to_string(&spec).expect("a spec");
    let query = text.replace("[model.config]", "[model]\nrole = 'query'\n[model.config]");
    fs::write(&spec, query).expect("written");
    let message = stderr(&mut isovec(&["job", "run", &spec]), 2);
    assert!(
        message.contains("fingerprint.role is \"default\" there and \"query\" here"),
        "{message}"
    );
    fs::write(&spec, format!("speed = 7\n{text}")).expect("written");
    for command in ["run", "status"] {
        let message = stderr(&mut isovec(&["job", command, &spec]), 2);
        assert!(message.contains("speed"), "{message}");
    }
}

#[test]
fn a_row_without_a_vector_fails_its_unit_and_the_others_are_done() {
    let folder = Folder::new(20);
    fs::write(
        folder.folder.path().join("c.jsonl"),
        "{\"id\": 1, \"text\": null}\n",
    )
    .expect("written");
    let spec = folder.spec("out", "");
    let message = stderr(&mut isovec(&["job", "run", &spec]), 1);
    assert!(
        message.contains("c.jsonl, byte 0: the field \"text\" is null"),
        "{message}"
    );
    assert!(message.contains("1 of 3 units failed"), "{message}");
    let status = json(&["job", "status", &spec, "--json"]);
    assert_eq!((&status["done"], &status["rows"]), (&2.into(), &20.into()));
    let page = stdout(&mut isovec(&["job", "status", &spec]));
    assert!(
        page.contains("failed") && page.contains("c.jsonl"),
        "{page}"
    );
    // In another output the row is a null.
    let spec = folder.spec("null", "poisoned = 'null'");
    let report = json(&["job", "run", &spec, "--json"]);
    assert_eq!(
        (&report["rows"], &report["poisoned"]),
        (&21.into(), &1.into())
    );
}

#[test]
fn a_plan_needs_no_input_and_says_its_costs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (spec, costs) = (path("job.toml"), path("costs.toml"));
    fs::write(&spec, "input = 'nothing/*.parquet'\noutput = 'nowhere'\n").expect("written");
    fs::write(&costs, "texts_per_second = 100\nload_seconds = 3\n").expect("written");
    let mut args = vec!["job", "plan", &spec, "--costs", &costs, "--json"];
    args.extend([
        "--cost",
        "load_seconds=2",
        "--texts",
        "200000",
        "--workers",
        "1,8",
    ]);
    let plan = json(&args);
    assert_eq!(plan["costs"]["texts_per_second"], 100.0);
    assert_eq!(plan["costs"]["load_seconds"], 2.0);
    let of_texts = &plan["plans"][0];
    let workers: Vec<&Value> = (0..2).map(|at| &of_texts["forecasts"][at]).collect();
    // Row groups of 50,000 rows.
    assert_eq!(
        (&workers[0]["units"], &workers[0]["rows_again"]),
        (&4.into(), &0.into())
    );
    assert!(workers[1]["rows_again"].as_u64() > Some(0), "{plan}");
    assert_eq!(of_texts["limits"]["again"], 8);
    let page = stdout(isovec(&args[..5]).args(["--texts", "200000"]));
    assert!(page.contains("200000 texts in 4 units"), "{page}");
    assert!(page.contains("texts_per_second = 100"), "{page}");

    // Files of sixty rows, as somebody has who tries it: a million make few enough units, and more is left out unless it is asked for.
    let small = ["--cost", "file_rows=60", "--cost", "texts_per_second=100"];
    let few = stdout(isovec(&["job", "plan", &spec, "--workers", "1"]).args(small));
    assert!(few.contains("1000000 texts in 16667 units"), "{few}");
    assert!(
        few.contains("left out: ") && few.contains("too many to simulate"),
        "{few}"
    );
    let many = ["--texts", "1000000,1000000000"];
    let message = stderr(isovec(&["job", "plan", &spec]).args(small).args(many), 2);
    assert!(message.contains("too many to simulate"), "{message}");

    for (more, said) in [
        (&[][..], "texts_per_second is not known"),
        (&["--cost", "texts_per_second=0"], "texts_per_second is 0"),
        (
            &["--cost", "texts_per_second=1", "--cost", "speed=1"],
            "speed",
        ),
        (
            &["--cost", "texts_per_second=1", "--workers", "0"],
            "0 texts or workers",
        ),
        (&["--rows", "10"], "--measure"),
    ] {
        let message = stderr(isovec(&["job", "plan", &spec]).args(more), 2);
        assert!(message.contains(said), "{message}");
    }
    assert!(!folder.path().join("nowhere").exists());
}

#[test]
fn a_plan_measures_this_machine() {
    let folder = Folder::new(400);
    let spec = folder.spec("out", "");
    let plan = json(&[
        "job",
        "plan",
        &spec,
        "--measure",
        "--rows",
        "100",
        "--texts",
        "400",
        "--workers",
        "1",
        "--json",
    ]);
    let costs = &plan["costs"];
    for cost in [
        "texts_per_second",
        "load_seconds",
        "request_seconds",
        "bytes_per_second",
    ] {
        assert!(costs[cost].as_f64() > Some(0.0), "{cost}: {plan}");
    }
    // 200 lines of about 42 bytes a file.
    assert!(
        (30..50).contains(&costs["input_row_bytes"].as_u64().expect("bytes")),
        "{plan}"
    );
    assert!(
        (180..230).contains(&costs["file_rows"].as_u64().expect("rows")),
        "{plan}"
    );
    assert!(!folder.rows("out").exists());
    assert_eq!(json(&["job", "status", &spec, "--json"])["done"], 0);
}
