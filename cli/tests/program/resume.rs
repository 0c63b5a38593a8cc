//! `isovec embed --resume`: a run that was interrupted is gone on with, and nothing else is.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;

use crate::streaming::poisoned;
use crate::{isovec, model, stderr};

/// The formats that can be gone on with.
const ENDINGS: [&str; 2] = ["jsonl", "npy"];

/// An output in a folder of its own. Every text runs alone, so that the bytes are the same
/// wherever a run was interrupted.
struct Output {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Output {
    fn new(ending: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = "[session]\ndeterministic_compute = true\n";
        fs::write(folder.path().join("alone.toml"), config).expect("written");
        let path = folder.path().join(format!("out.{ending}"));
        Self { folder, path }
    }

    /// Options that read standard input and write this output.
    fn args(&self) -> Vec<String> {
        let config = self.folder.path().join("alone.toml");
        let args: [&dyn std::fmt::Display; 8] = [
            &"embed",
            &"-",
            &"--engine",
            &"portable",
            &"--config",
            &config.display(),
            &"--out",
            &self.path.display(),
        ];
        args.map(ToString::to_string).to_vec()
    }

    fn command(&self, more: &[&str], input: &[u8]) -> Command {
        let args = self.args();
        let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
        args.extend(more);
        let mut command = isovec(&args);
        command.write_stdin(input);
        command
    }

    /// Starts a run whose input stays open until the pipe is dropped.
    fn start(&self, input: &str) -> (Child, ChildStdin) {
        let mut child = std::process::Command::new(crate::program())
            .args(self.args())
            .env("ISOVEC_MODEL", model())
            .env_remove("ORT_DYLIB_PATH")
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut pipe = child.stdin.take().expect("a pipe");
        pipe.write_all(input.as_bytes()).expect("written");
        (child, pipe)
    }

    /// Leaves a run that ended after `rows` rows, because the next one cannot be read.
    fn interrupted_after(&self, rows: usize) {
        let input = [lines(rows).as_bytes(), b"\xff\n"].concat();
        let message = stderr(&mut self.command(&[], &input), 1);
        let row = format!("row {}: ", rows + 1);
        assert!(message.contains(&row), "{message}");
        let rows = format!("--resume goes on after {rows} rows");
        assert!(message.contains(&rows), "{message}");
    }

    fn record(&self) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(".progress");
        path.into()
    }

    fn recorded_rows(&self) -> u64 {
        let record = fs::read(self.record()).unwrap_or_default();
        let record: Value = serde_json::from_slice(&record).unwrap_or_default();
        record["rows"].as_u64().unwrap_or(0)
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap_or_default()
    }

    /// Rows that a reader finds in the output.
    fn rows(&self) -> usize {
        let bytes = self.bytes();
        if self
            .path
            .extension()
            .is_some_and(|ending| ending == "jsonl")
        {
            return bytes.iter().filter(|&&byte| byte == b'\n').count();
        }
        let header = String::from_utf8_lossy(bytes.get(..128).unwrap_or_default()).into_owned();
        let shape = header
            .split_once("'shape': (")
            .map_or("0,", |(_, rest)| rest);
        let (rows, _) = shape.split_once(',').expect("a shape");
        rows.parse().expect("a number")
    }

    /// The output is what a run without an interruption writes, and nothing is left beside it.
    fn assert_complete(&self, input: &str) {
        let ending = self.path.extension().and_then(|ending| ending.to_str());
        let whole = Output::new(ending.expect("an ending"));
        whole.command(&[], input.as_bytes()).assert().success();
        assert!(self.bytes() == whole.bytes(), "{:?} differs", self.path);
        let mut names: Vec<_> = fs::read_dir(self.folder.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name())
            .filter(|name| name != "poisoned")
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                "alone.toml".as_ref(),
                self.path.file_name().expect("a name")
            ]
        );
    }
}

/// So many different short texts, one a line.
fn lines(count: usize) -> String {
    (0..count).map(|n| format!("word {n}\n")).collect()
}

/// Waits until the running program has done something.
fn wait_until(child: &mut Child, mut done: impl FnMut() -> bool) {
    while !done() {
        let ended = child.try_wait().expect("a state");
        assert!(ended.is_none(), "the program ended: {ended:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(unix)]
#[test]
fn what_ctrl_c_interrupted_is_gone_on_with() {
    for ending in ENDINGS {
        let output = Output::new(ending);
        let (mut child, pipe) = output.start(&lines(100));
        // They come out though the pipe is open: nobody waits for more.
        wait_until(&mut child, || output.rows() == 100);
        let interrupt = std::process::Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status();
        assert!(interrupt.expect("kill runs").success());
        let ended = child.wait_with_output().expect("ends");
        drop(pipe);
        let message = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(130), "{message}");
        for words in ["interrupted; 100 texts", "--resume goes on after 100 rows"] {
            assert!(message.contains(words), "{message}");
        }
        assert_eq!((output.rows(), output.recorded_rows()), (100, 100));

        let mut resume = output.command(&["--resume", "--json"], lines(150).as_bytes());
        let summary: Value = serde_json::from_str(&stderr(&mut resume, 0)).expect("JSON");
        assert_eq!(summary["texts"], 50);
        assert_eq!(summary["resumed_after"], 100);
        output.assert_complete(&lines(150));
    }
}

#[test]
fn what_was_killed_is_gone_on_with_from_what_is_on_the_disk() {
    for ending in ENDINGS {
        let output = Output::new(ending);
        let (mut child, pipe) = output.start(&lines(5000));
        wait_until(&mut child, || output.recorded_rows() > 0);
        child.kill().expect("killed");
        child.wait().expect("ends");
        drop(pipe);
        // A row that was half written when it happened.
        let mut half = fs::OpenOptions::new()
            .append(true)
            .open(&output.path)
            .expect("opens");
        half.write_all(b"{\"embedding\":[0.1,").expect("written");

        output
            .command(&["--resume"], lines(5100).as_bytes())
            .assert()
            .success();
        output.assert_complete(&lines(5100));
    }
}

#[test]
fn what_was_killed_before_its_first_record_begins_again() {
    let output = Output::new("jsonl");
    let (mut child, pipe) = output.start(&lines(10));
    wait_until(&mut child, || output.rows() == 10);
    child.kill().expect("killed");
    child.wait().expect("ends");
    drop(pipe);
    assert_eq!(output.recorded_rows(), 0);
    output
        .command(&["--resume"], lines(20).as_bytes())
        .assert()
        .success();
    output.assert_complete(&lines(20));
}

/// A limit on the size of a file, which is met as a full disk is.
#[cfg(unix)]
#[test]
fn what_a_full_disk_ended_is_gone_on_with() {
    for ending in ENDINGS {
        let output = Output::new(ending);
        let input = lines(3000);
        let text = output.folder.path().join("in.txt");
        fs::write(&text, &input).expect("written");
        let kib = if ending == "npy" { "300" } else { "1000" };
        let limited = std::process::Command::new("bash")
            .args(["-c", "trap '' XFSZ; ulimit -f $1; shift; \"$@\" <$0"])
            .arg(&text)
            .arg(kib)
            .arg(crate::program())
            .args(output.args())
            .env("ISOVEC_MODEL", model())
            .output();
        let limited = limited.expect("runs");
        let message = String::from_utf8_lossy(&limited.stderr);
        assert_eq!(limited.status.code(), Some(1), "{message}");
        assert!(
            message.contains(&*output.path.to_string_lossy()),
            "{message}"
        );
        assert!(message.contains("--resume goes on after"), "{message}");
        let recorded = output.recorded_rows();
        assert!((1..3000).contains(&recorded), "{recorded}");
        fs::remove_file(&text).expect("removed");

        output
            .command(&["--resume"], input.as_bytes())
            .assert()
            .success();
        output.assert_complete(&input);
    }
}

#[test]
fn a_row_that_could_not_be_read_is_corrected_and_gone_on_with() {
    for ending in ENDINGS {
        let output = Output::new(ending);
        output.interrupted_after(1100);
        assert_eq!(output.rows(), 1100);
        output
            .command(&["--resume"], lines(1200).as_bytes())
            .assert()
            .success();
        output.assert_complete(&lines(1200));
    }
}

/// Not alone: going on at the end of a window makes the same batches.
#[test]
fn a_text_that_failed_is_corrected_and_gone_on_with_to_the_same_bits() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = poisoned(folder.path(), "cat");
    let embed = |name: &str, input: &str, more: &[&str]| {
        let path = folder.path().join(name).display().to_string();
        let args = [
            "embed", "-", "--engine", "portable", "--model", &model, "-o", &path,
        ];
        let mut command = isovec(&[&args[..], more].concat());
        command.write_stdin(input);
        command
    };
    let bytes = |name: &str| fs::read(folder.path().join(name)).expect("a file");
    let good = lines(2000);
    let bad = good.replace("word 1500\n", "a cat\n");
    let message = stderr(&mut embed("out.jsonl", &bad, &[]), 1);
    assert!(message.contains("standard input, row 1501: "), "{message}");
    assert!(message.contains("goes on after 1024 rows"), "{message}");
    let written = bytes("out.jsonl");
    assert_eq!(written.iter().filter(|&&byte| byte == b'\n').count(), 1500);

    embed("out.jsonl", &good, &["--resume"]).assert().success();
    embed("whole.jsonl", &good, &[]).assert().success();
    assert!(bytes("out.jsonl") == bytes("whole.jsonl"));
}

#[test]
fn what_differs_is_refused_and_nothing_is_touched() {
    for ending in ENDINGS {
        let output = Output::new(ending);
        output.interrupted_after(3);
        let before = (output.bytes(), fs::read(output.record()).expect("a record"));
        let other_model = poisoned(output.folder.path(), "cat");
        let other_format = if ending == "npy" { "jsonl" } else { "npy" };
        let (input, changed) = (lines(5), lines(5).replace("word 1", "word one"));
        let formats = format!("--format: {ending} then, {other_format} now");
        let cases: [(&[&str], &str, &str); 7] = [
            (&[], &changed, "the first 3 rows of the input"),
            (&[], &lines(2), "the input has 2 rows, but 3"),
            (
                &["--role", "query"],
                &input,
                "--role or --prompt: default then, query now",
            ),
            (
                &["--prompt", "document"],
                &input,
                "--role or --prompt: default then, document now",
            ),
            (&["--dimension", "16"], &input, "dimension"),
            (&["--format", other_format], &input, &formats),
            (&["--model", &other_model], &input, "weights"),
        ];
        for (more, input, words) in cases {
            let more = [&["--resume"], more].concat();
            let message = stderr(&mut output.command(&more, input.as_bytes()), 2);
            assert!(message.contains(words), "{more:?}: {message}");
            assert!(message.contains("run without --resume"), "{message}");
            let after = (output.bytes(), fs::read(output.record()).expect("a record"));
            assert!(after == before, "{more:?} changed files");
        }
        output
            .command(&["--resume"], input.as_bytes())
            .assert()
            .success();
        output.assert_complete(&input);
    }
}

#[test]
fn a_field_of_a_row_that_changed_is_a_changed_input() {
    let output = Output::new("jsonl");
    let row = |id: u32| format!("{{\"id\": {id}, \"text\": \"a cat\"}}\n");
    let json = ["--input-format", "jsonl"];
    stderr(&mut output.command(&json, (row(1) + "{\n").as_bytes()), 1);
    let resume = [&json[..], &["--resume"]].concat();
    let changed = row(7) + &row(2);
    let message = stderr(&mut output.command(&resume, changed.as_bytes()), 2);
    assert!(message.contains("the first 1 rows"), "{message}");
    let same = row(1) + &row(2);
    output.command(&resume, same.as_bytes()).assert().success();
    assert_eq!(output.rows(), 2);
}

#[test]
fn an_output_that_is_damaged_or_gone_is_not_gone_on_with() {
    let output = Output::new("jsonl");
    output.interrupted_after(3);
    let (bytes, record) = (output.bytes(), fs::read(output.record()).expect("a record"));
    let refused = |words: &str| {
        let message = stderr(&mut output.command(&["--resume"], lines(5).as_bytes()), 2);
        assert!(message.contains(words), "{message}");
    };
    fs::write(&output.path, &bytes[..100]).expect("written");
    refused("has 100 bytes, but");
    fs::remove_file(&output.path).expect("removed");
    refused("is gone, though");
    fs::write(output.record(), &record[..20]).expect("written");
    refused("out.jsonl.progress cannot be used");
    fs::write(output.record(), &record).expect("written");
    fs::write(&output.path, &bytes).expect("written");
    output
        .command(&["--resume"], lines(5).as_bytes())
        .assert()
        .success();
    output.assert_complete(&lines(5));
}

#[test]
fn a_complete_output_is_left_alone_and_none_begins_one() {
    for ending in ENDINGS {
        let output = Output::new(ending);
        output
            .command(&["--resume"], lines(3).as_bytes())
            .assert()
            .success();
        output.assert_complete(&lines(3));
        let message = stderr(&mut output.command(&["--resume"], lines(4).as_bytes()), 2);
        assert!(message.contains("nothing to resume"), "{message}");
        output.assert_complete(&lines(3));
    }
}

#[test]
fn without_resume_an_interrupted_output_is_written_anew() {
    let output = Output::new("jsonl");
    output.interrupted_after(3);
    output.command(&[], lines(2).as_bytes()).assert().success();
    output.assert_complete(&lines(2));
}

#[test]
fn what_cannot_be_cut_back_cannot_be_gone_on_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    for out in [
        vec![],
        vec!["-o".to_owned(), file("out.parquet")],
        vec!["-o".to_owned(), file("out.arrow")],
        vec!["-o".to_owned(), file("out.safetensors")],
    ] {
        let out: Vec<&str> = out.iter().map(String::as_str).collect();
        let args = [
            &["embed", "a", "--engine", "portable", "--resume"],
            &out[..],
        ]
        .concat();
        let message = stderr(&mut isovec(&args), 2);
        assert!(message.contains("--resume needs --out"), "{message}");
    }
    assert!(is_empty(folder.path()));
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).expect("a folder").next().is_none()
}

#[test]
fn an_input_is_not_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.jsonl");
    fs::write(&input, "{\"text\": \"a cat\"}\n").expect("written");
    let (name, other) = (
        input.display().to_string(),
        folder.path().join("link.jsonl"),
    );
    let mut outs = vec![name.clone()];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&input, &other).expect("a link");
        outs.push(other.display().to_string());
    }
    for out in outs {
        let args = ["embed", "-f", &name, "-o", &out, "--engine", "portable"];
        let said = stderr(&mut isovec(&args), 2);
        assert!(said.contains("would be overwritten"), "{said}");
        let text = fs::read_to_string(&input).expect("still there");
        assert_eq!(text, "{\"text\": \"a cat\"}\n");
    }
}

#[test]
fn an_output_has_one_writer() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out.jsonl");
    fs::write(&out, "before").expect("written");
    let held = fs::OpenOptions::new().write(true).open(&out).expect("open");
    held.try_lock().expect("nobody else has it");
    let name = out.display().to_string();
    let args = ["embed", "a cat", "-o", &name, "--engine", "portable"];
    let said = stderr(&mut isovec(&args), 2);
    assert!(said.contains("written by another run"), "{said}");
    assert_eq!(fs::read(&out).expect("a file"), b"before");
    drop(held);
    isovec(&args).assert().success();
}
