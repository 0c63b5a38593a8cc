//! The cases: everything that the program writes.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::driver::{Case, Found, isovec, try_all};

/// Files of the user's under the names that come to mind for what is written beside theirs.
fn own_files(work: &Path, name: &str) {
    for ending in ["new", "tmp", "part", "partial~", "lock", "bak"] {
        fs::write(work.join(format!("{name}.{ending}")), "a user's").expect("written");
    }
}

fn path(work: &Path, name: &str) -> String {
    work.join(name).display().to_string()
}

/// Beside the folder whose calls are disturbed: what a run is told is no part of what it writes.
fn config(work: &Path) -> String {
    work.with_extension("toml").display().to_string()
}

fn lines(count: usize) -> Vec<u8> {
    (0..count)
        .map(|n| format!("word {n}\n"))
        .collect::<String>()
        .into_bytes()
}

/// A command that writes one file, in place of an older one or where there was none.
struct OneFile {
    name: &'static str,
    args: &'static [&'static str],
    older: bool,
}

impl Case for OneFile {
    fn prepare(&self, work: &Path) {
        own_files(work, self.name);
        if self.older {
            fs::write(work.join(self.name), "an older one").expect("written");
        }
    }

    fn command(&self, work: &Path) -> (Command, Vec<u8>) {
        let out = path(work, self.name);
        let args = self
            .args
            .iter()
            .map(|&arg| if arg == "OUT" { &out } else { arg });
        (isovec(work, &args.collect::<Vec<_>>()), lines(3))
    }
}

#[test]
fn an_output_that_is_completed_at_its_end() {
    for name in ["out.parquet", "out.arrow", "out.safetensors"] {
        for older in [false, true] {
            let args = &["embed", "-", "--engine", "portable", "--out", "OUT"];
            try_all(&OneFile { name, args, older });
        }
    }
}

#[test]
fn a_graph_and_a_page() {
    let args = &["graph", "--format", "json", "--out", "OUT"];
    try_all(&OneFile {
        name: "graph.json",
        args,
        older: true,
    });
}

/// A command that writes what it measured, which is never the same.
struct Measured {
    name: &'static str,
    args: &'static [&'static str],
}

impl Measured {
    /// Every cut of JSON is seen, where TOML hides one between two lines.
    fn is_whole(text: &str) -> bool {
        serde_json::from_str::<serde_json::Value>(text).is_ok()
    }
}

impl Case for Measured {
    fn prepare(&self, work: &Path) {
        own_files(work, self.name);
        fs::write(work.join(self.name), "an older one").expect("written");
    }

    fn command(&self, work: &Path) -> (Command, Vec<u8>) {
        let out = path(work, self.name);
        let args = self.args.iter().copied().chain([out.as_str()]);
        (isovec(work, &args.collect::<Vec<_>>()), lines(3))
    }

    fn repeats(&self) -> bool {
        false
    }

    fn is_sound(
        &self,
        name: &str,
        found: &[u8],
        before: Option<&Found>,
        _after: Option<&Found>,
    ) -> bool {
        let was = matches!(before, Some(Found::File(bytes)) if bytes == found);
        let is_whole = || std::str::from_utf8(found).is_ok_and(Self::is_whole);
        was || (name == self.name && is_whole())
    }

    fn may_differ(&self, name: &str) -> bool {
        name == self.name
    }
}

#[test]
fn what_was_measured() {
    let bench = &[
        "bench",
        "-",
        "--engine",
        "portable",
        "--rounds",
        "6",
        "--seconds",
        "0.01",
        "--callers",
        "1",
        "--save",
    ];
    try_all(&Measured {
        name: "bench.json",
        args: bench,
    });
    let tune = &[
        "tune", "-", "--engine", "portable", "--time", "0.1", "--out",
    ];
    try_all(&Measured {
        name: "tuned.json",
        args: tune,
    });
}

/// An output that grows, and can be gone on with.
struct Growing {
    name: &'static str,
    older: bool,
    /// Rows that an earlier run left.
    begun: usize,
    /// Whether a row cannot be read, so that the run ends in the middle.
    stops: bool,
}

const ROWS: usize = 6;

impl Growing {
    fn run(&self, work: &Path, resume: bool) -> Command {
        let config = config(work);
        let out = path(work, self.name);
        let mut args = vec![
            "embed", "-", "--engine", "portable", "--config", &config, "--out", &out,
        ];
        args.extend(resume.then_some("--resume"));
        isovec(work, &args)
    }
}

impl Case for Growing {
    fn prepare(&self, work: &Path) {
        own_files(work, self.name);
        // Every text alone: the same bytes wherever a run ended.
        let alone = "[session]\ndeterministic_compute = true\n";
        fs::write(config(work), alone).expect("written");
        if self.older {
            fs::write(work.join(self.name), "an older one").expect("written");
        }
        if self.begun > 0 {
            let input = [lines(self.begun), b"\xff\n".to_vec()].concat();
            let mut command = assert_cmd::Command::from_std(self.run(work, false));
            command.write_stdin(input).assert().code(1);
        }
    }

    fn command(&self, work: &Path) -> (Command, Vec<u8>) {
        let rows = match self.stops {
            true => [lines(ROWS / 2), b"\xff\n".to_vec()].concat(),
            false => lines(ROWS),
        };
        (self.run(work, self.begun > 0), rows)
    }

    fn code(&self) -> i32 {
        i32::from(self.stops)
    }

    /// What was begun is gone on with; what had not been, or is complete, is made anew.
    fn again(&self, work: &Path) -> (Command, Vec<u8>) {
        let begun = work.join(format!("{}.progress", self.name)).exists();
        (self.run(work, begun), lines(ROWS))
    }

    /// While it grows it is the beginning of what it will be, with as many whole rows as its record says.
    fn is_sound(
        &self,
        name: &str,
        found: &[u8],
        before: Option<&Found>,
        after: Option<&Found>,
    ) -> bool {
        let was = matches!(before, Some(Found::File(bytes)) if bytes == found);
        if was || matches!(after, Some(Found::File(bytes)) if bytes == found) {
            return true;
        }
        if name == format!("{}.progress", self.name) {
            let record: Result<serde_json::Value, _> = serde_json::from_slice(found);
            return record.is_ok_and(|record| record["rows"].is_u64());
        }
        let Some(Found::File(after)) = after else {
            return false;
        };
        // The header of a .npy file says how many rows there are so far.
        let header = if name.ends_with(".npy") {
            128.min(found.len())
        } else {
            0
        };
        name == self.name
            && after
                .get(header..found.len())
                .is_some_and(|whole| whole == &found[header..])
    }
}

#[test]
fn an_output_that_grows() {
    for name in ["out.jsonl", "out.npy"] {
        let case = Growing {
            name,
            older: false,
            begun: 0,
            stops: false,
        };
        try_all(&case);
        try_all(&Growing {
            older: true,
            ..case
        });
    }
}

#[test]
fn an_output_that_is_gone_on_with() {
    for name in ["out.jsonl", "out.npy"] {
        let case = Growing {
            name,
            older: false,
            begun: 3,
            stops: false,
        };
        try_all(&case);
        try_all(&Growing {
            begun: 0,
            stops: true,
            ..case
        });
    }
}

/// A model's folder.
struct Export {
    /// Whether it holds one in other weights.
    older: bool,
}

impl Case for Export {
    fn prepare(&self, work: &Path) {
        own_files(work, "model.onnx");
        if self.older {
            let out = path(work, "out");
            let mut command = isovec(work, &["export", "--dtype", "f16", "--out", &out]);
            assert!(command.output().expect("runs").status.success());
            own_files(&work.join("out"), "model.onnx");
            own_files(&work.join("out"), "config.json");
        }
    }

    fn command(&self, work: &Path) -> (Command, Vec<u8>) {
        let out = path(work, "out");
        (isovec(work, &["export", "--out", &out]), Vec::new())
    }
}

#[test]
fn an_exported_model() {
    try_all(&Export { older: false });
    try_all(&Export { older: true });
}

/// Vectors and weights that are kept for the next run: a disk that fails costs time, and nobody's answer.
struct Kept {
    args: &'static [&'static str],
    config: &'static str,
}

impl Case for Kept {
    fn prepare(&self, work: &Path) {
        let text = self.config.replace("WORK", &work.display().to_string());
        fs::write(config(work), text).expect("written");
        fs::create_dir(work.join("kept")).expect("made");
        own_files(&work.join("kept"), "notes");
    }

    fn command(&self, work: &Path) -> (Command, Vec<u8>) {
        let config = config(work);
        let args = [self.args, &["--config", &config]].concat();
        (isovec(work, &args), lines(3))
    }

    fn forgives(&self) -> bool {
        true
    }
}

#[test]
fn vectors_and_weights_that_are_kept() {
    try_all(&Kept {
        args: &["embed", "-", "--engine", "portable"],
        config: "[embedding_cache]\ndisk = 1048576\nfolder = \"WORK/kept\"\n",
    });
    try_all(&Kept {
        args: &["embed", "-", "--engine", "portable", "--dtype", "int8"],
        config: "",
    });
}
