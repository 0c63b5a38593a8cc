//! Runs in processes of their own, which are killed at random points.

use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use isovec_jobs::{Spec, run};

use crate::engine::{Counting, Notes};
use crate::folder::{Folder, expected, lines};

const SPEC: &str = "ISOVEC_TEST_JOB";
const PAUSE: &str = "ISOVEC_TEST_PAUSE";

/// What another process runs: the job of its environment.
#[test]
#[ignore = "the other tests start it in processes of their own"]
fn child() {
    let spec = Spec::parse(&std::env::var(SPEC).unwrap()).unwrap();
    let pause: u64 = std::env::var(PAUSE).unwrap().parse().unwrap();
    let engine = Counting {
        pause: Duration::from_millis(pause),
        ..Counting::default()
    };
    let notes = Arc::new(Notes::default());
    let said = match run(&spec, &engine, Arc::<Notes>::clone(&notes)) {
        Ok(report) => format!("REPORT {}", serde_json::to_string(&report).unwrap()),
        Err(error) => format!("ERROR {error}"),
    };
    println!("\n{said}");
    for event in notes.all() {
        println!("EVENT {event}");
    }
}

/// This program, as one that does a job and takes so many milliseconds for every call of the engine.
pub(crate) fn program(toml: &str, pause: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["killed::child", "--exact", "--ignored", "--nocapture"])
        .env(SPEC, toml)
        .env(PAUSE, pause.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The lines that a process said with this word before them.
pub(crate) fn said(output: &Output, word: &str) -> Vec<String> {
    let lines = String::from_utf8(output.stdout.clone()).unwrap();
    let lines = lines.lines().filter_map(|line| line.strip_prefix(word));
    lines.map(|line| line.trim().to_owned()).collect()
}

/// The report of a process that did its job.
pub(crate) fn report(output: &Output) -> serde_json::Value {
    let said = said(output, "REPORT ");
    assert_eq!(said.len(), 1, "{output:?}");
    serde_json::from_str(&said[0]).unwrap()
}

/// Seeded numbers (xorshift64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// Kills a process after a random time. Whether it was killed before its end.
pub(crate) fn kill(mut child: Child, random: &mut Random) -> bool {
    std::thread::sleep(Duration::from_micros(random.below(60_000)));
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

/// Units of about ten rows, in files of at most four.
const SMALL: &str = "unit_bytes = 500\nunit_rows = 4\nworkers = 2";

#[test]
fn killed_at_random_points_a_job_has_every_row_once_and_the_bytes_of_one_that_was_not() {
    let folder = Folder::new();
    folder.write("a.jsonl", lines(0, 300));
    folder.write("b.jsonl", lines(300, 300));
    run(
        &folder.spec("whole", SMALL),
        &Counting::default(),
        Arc::new(()),
    )
    .unwrap();
    let toml = folder.toml("out", "*.jsonl", SMALL);
    let mut random = Random(0x5eed);
    let mut kills = 0;
    for _ in 0..25 {
        let child = program(&toml, 1).spawn().unwrap();
        kills += u32::from(kill(child, &mut random));
    }
    assert!(kills > 5, "{kills} kills");
    let last = program(&toml, 0).output().unwrap();
    let report = report(&last);
    assert_eq!(report["failures"], 0);
    assert_eq!(folder.rows("out"), expected(0, 600));
    assert!(folder.output("out") == folder.output("whole"));
    assert_eq!(folder.names("out/writing"), Vec::<String>::new());
}

#[test]
fn processes_that_work_at_once_and_are_killed_double_nothing() {
    let folder = Folder::new();
    folder.write("a.jsonl", lines(0, 400));
    run(
        &folder.spec("whole", SMALL),
        &Counting::default(),
        Arc::new(()),
    )
    .unwrap();
    let toml = folder.toml("out", "*.jsonl", SMALL);
    let mut random = Random(0xcafe);
    for _ in 0..5 {
        let children = [(); 3].map(|()| program(&toml, 1).spawn().unwrap());
        for child in children {
            kill(child, &mut random);
        }
    }
    let children = [(); 3].map(|()| program(&toml, 1).spawn().unwrap());
    let outputs = children.map(|child| child.wait_with_output().unwrap());
    for output in &outputs {
        let report = report(output);
        let of = |name: &str| report[name].as_u64().unwrap();
        // Every unit is accounted for by every process.
        let all = of("before") + of("finished") + of("elsewhere") + of("lost");
        assert_eq!(all, of("units"), "{report}");
    }
    assert_eq!(folder.rows("out"), expected(0, 400));
    assert!(folder.output("out") == folder.output("whole"));
    assert_eq!(folder.names("out/writing"), Vec::<String>::new());
}

/// A disk that takes no more than 4 KiB of a file, in the middle of a write.
#[test]
fn a_disk_that_is_full_is_tried_again_and_then_names_the_unit_and_leaves_nothing_half_written() {
    let folder = Folder::new();
    folder.write("a.jsonl", lines(0, 2000));
    let more = "unit_rows = 2000\nretries = 2";
    let toml = folder.toml("out", "*.jsonl", more);
    let whole = program(&toml, 0);
    let mut shell = Command::new("bash");
    shell
        .args(["-c", "trap '' XFSZ; ulimit -f 4; exec \"$0\" \"$@\""])
        .arg(whole.get_program())
        .args(whole.get_args())
        .envs(
            whole
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    let output = shell.output().unwrap();
    let errors = said(&output, "ERROR ");
    assert_eq!(errors.len(), 1, "{output:?}");
    for part in ["unit ", "in/a.jsonl, bytes 0 to", "rows/", "tried 3 times"] {
        assert!(errors[0].contains(part), "{errors:?}");
    }
    let waits = said(&output, "EVENT Retrying");
    assert_eq!(waits.len(), 2, "{output:?}");
    for empty in ["out/rows", "out/manifest", "out/writing"] {
        assert_eq!(folder.names(empty), Vec::<String>::new(), "{empty}");
    }
    // Where there is room again, the job is done.
    report(&program(&toml, 0).output().unwrap());
    assert_eq!(folder.rows("out"), expected(0, 2000));
}
