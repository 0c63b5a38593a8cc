//! Two runs with the same output at once: one is refused, and the other's output is whole.
//!
//! The second is stopped before each of its calls in turn, and the first runs meanwhile: to just before its end where it can, so
//! that the second goes on while the first one's rows are in the file. Nobody waits for a clock: a run that is stopped says so
//! on its standard error, and goes on when a pipe is opened.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command};

use crate::driver::{folder, isovec, run, shim, start};

/// A run that is stopped before one of its calls, or has ended.
struct Stopped {
    child: Child,
    stderr: BufReader<ChildStderr>,
    gate: PathBuf,
    /// What it said, where it has ended.
    said: Option<String>,
}

impl Stopped {
    fn new(
        shim: &Path,
        work: &Path,
        name: &str,
        mut command: (Command, Vec<u8>),
        at: usize,
    ) -> Self {
        let gate = work.with_extension(name);
        if !gate.exists() {
            let made = Command::new("mkfifo").arg(&gate).status();
            assert!(made.expect("mkfifo runs").success());
        }
        command.0.env("FAULT_GATE", &gate);
        let mut child = start(shim, work, command, Some(("WAIT", at)));
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let (mut line, mut all) = (String::new(), String::new());
        let said = loop {
            line.clear();
            if stderr.read_line(&mut line).expect("readable") == 0 {
                break Some(all);
            }
            if line == "WAITING\n" {
                break None;
            }
            all.push_str(&line);
        };
        Self {
            child,
            stderr,
            gate,
            said,
        }
    }

    /// Lets it go on to its end: its code, and what it said.
    fn go_on(mut self) -> (Option<i32>, String) {
        let said = match self.said {
            Some(said) => said,
            None => {
                drop(
                    OpenOptions::new()
                        .write(true)
                        .open(&self.gate)
                        .expect("a pipe"),
                );
                let mut said = String::new();
                self.stderr.read_to_string(&mut said).expect("readable");
                said
            }
        };
        (self.child.wait().expect("ends").code(), said)
    }
}

fn embed(work: &Path, out: &Path, word: &str) -> (Command, Vec<u8>) {
    let config = work.with_extension("toml");
    // As many calls in every run: a hash that is kept would be kept by the first alone.
    let knobs = "[session]\ndeterministic_compute = true\n[model]\nverify = true\n";
    fs::write(&config, knobs).expect("written");
    let (config, out) = (config.display().to_string(), out.display().to_string());
    let args = [
        "embed", "-", "--engine", "portable", "--config", &config, "--out", &out,
    ];
    let rows: String = (0..3).map(|n| format!("{word} {n}\n")).collect();
    (isovec(work, &args), rows.into_bytes())
}

#[test]
fn two_runs_with_one_output() {
    let Some(shim) = shim() else { return };
    for (ending, older) in [("jsonl", false), ("jsonl", true), ("npy", false)] {
        let name = format!("out.{ending}");
        let (_folder, work) = folder();
        // What each writes alone, and how many calls that takes.
        let [first, second] = ["first", "second"].map(|word| {
            let out = work.join(format!("{word}.{ending}"));
            let ran = run(shim, &work, embed(&work, &out, word), None);
            assert!(ran.status.success(), "{}", ran.stderr);
            (fs::read(out).expect("a file"), ran.calls)
        });
        let last = first
            .1
            .iter()
            .rposition(|call| call.contains(" fsync "))
            .expect("synchronised");
        for at in 1..=second.1.len() {
            let (_folder, work) = folder();
            let out = work.join(&name);
            if older {
                fs::write(&out, "an older one").expect("written");
            }
            let later = Stopped::new(shim, &work, "second", embed(&work, &out, "second"), at);
            // The number of its last synchronisation may be another one where the file was there before.
            let earlier = Stopped::new(shim, &work, "first", embed(&work, &out, "first"), last);
            let what = format!("{name}, stopped before {:?}", second.1.get(at - 1));
            let (code, said) = later.go_on();
            let (first_code, first_said) = earlier.go_on();
            let expected = match (first_code, code) {
                (Some(0), Some(2)) => (&first.0, said),
                (Some(2), Some(0)) => (&second.0, first_said),
                // The second had ended, or not begun, before the first: one after another.
                (Some(0), Some(0)) => panic!("{what}: both took it: {said} {first_said}"),
                other => panic!("{what}: {other:?}: {said} {first_said}"),
            };
            assert!(
                expected.1.contains("is being written by another run"),
                "{what}: {}",
                expected.1
            );
            assert!(
                fs::read(&out).expect("a file") == *expected.0,
                "{what}: the output is not whole"
            );
            assert!(
                !work.join(format!("{name}.progress")).exists(),
                "{what}: a record is left"
            );
        }
    }
}
