//! Benchmarks that are kept and compared. No verdict rests on what was measured here: times of what is compared are
//! made up, a million times as long or as short, where they matter.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::{Value, json};

use crate::{isovec, stderr, stdout};

/// Few texts, for an instant; as many turns as prove something.
const SHORT: [&str; 6] = [
    "--seconds",
    "0.005",
    "--callers",
    "2",
    "--engine",
    "portable",
];
const TEXTS: [&str; 3] = ["a cat", "the end", "the cat sat on the mat"];

/// A folder for what is kept.
struct Kept(tempfile::TempDir);

impl Kept {
    /// With a benchmark of the name `base`.
    fn new() -> Self {
        let kept = Self(tempfile::tempdir().expect("a folder"));
        stdout(&mut kept.measure(&["--save", "base", "--rounds", "8"]));
        kept
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = isovec(&[&["bench"][..], args].concat());
        command.env("ISOVEC_CACHE", self.0.path());
        command
    }

    fn measure(&self, args: &[&str]) -> Command {
        self.command(&[&TEXTS[..], &SHORT, args].concat())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0
            .path()
            .join("benchmarks")
            .join(format!("{name}.json"))
    }

    fn base(&self) -> Value {
        serde_json::from_slice(&fs::read(self.path("base")).expect("kept")).expect("JSON")
    }

    /// Keeps what was made of `base` under another name.
    fn made(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut value = self.base();
        change(&mut value);
        fs::write(self.path(name), value.to_string()).expect("written");
    }

    fn files(&self) -> Vec<String> {
        files(&self.0.path().join("benchmarks"))
    }
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

/// Every turn of every figure, or of those of a name, takes so many times as long.
fn times(value: &mut Value, name: Option<&str>, factor: f64) {
    for figure in value["figures"].as_array_mut().expect("figures") {
        if name.is_none_or(|name| figure["name"] == name) {
            for seconds in figure["seconds"].as_array_mut().expect("turns") {
                *seconds = json!(seconds.as_f64().expect("a number") * factor);
            }
        }
    }
}

/// Turns that scatter by a percent, the same in every figure.
fn calm(value: &mut Value) {
    for figure in value["figures"].as_array_mut().expect("figures") {
        for (turn, seconds) in figure["seconds"]
            .as_array_mut()
            .expect("turns")
            .iter_mut()
            .enumerate()
        {
            *seconds = json!(0.1 + 0.000_1 * turn as f64);
        }
    }
}

#[test]
fn every_turn_is_kept_with_what_it_was_measured_on() {
    let kept = Kept::new();
    assert_eq!(kept.files(), ["base.json"]);
    let base = kept.base();
    assert_eq!(base["format"], "isovec-benchmark");
    assert_eq!(base["version"], 1);
    assert_eq!(base["options"]["rounds"], 8);
    assert_eq!(base["texts"]["count"], 3);
    assert!(
        base["provider"]
            .as_str()
            .is_some_and(|name| name.contains("portable")),
        "{base}"
    );
    assert_eq!(base["machine"]["id"].as_str().map(str::len), Some(16));
    assert!(base["fingerprint"]["identity"].is_object());
    assert!(
        base["effective_config"]
            .as_array()
            .is_some_and(|knobs| knobs.len() > 10)
    );
    let figures = base["figures"].as_array().expect("figures");
    for part in ["offline", "lengths", "callers"] {
        assert!(
            figures.iter().any(|figure| figure["part"] == part),
            "{part}"
        );
    }
    for figure in figures {
        assert_eq!(
            figure["seconds"].as_array().map(Vec::len),
            Some(8),
            "{figure}"
        );
    }

    fs::write(kept.path("broken"), "{\"format\": \"isovec-bench").expect("written");
    fs::write(kept.path("nul"), "no name").expect("written");
    let list: Value =
        serde_json::from_str(&stdout(&mut kept.command(&["--list", "--json"]))).expect("JSON");
    let names: Vec<_> = list
        .as_array()
        .expect("a list")
        .iter()
        .map(|line| &line["name"])
        .collect();
    assert_eq!(names, ["base", "broken"]);
    assert_eq!(list[0]["this_machine"], true);
    let list = stdout(&mut kept.command(&["--list"]));
    for words in ["base", "this machine", "broken", "ends in the middle"] {
        assert!(list.contains(words), "{list}");
    }
    let empty = tempfile::tempdir().expect("a folder");
    let list = stdout(kept.command(&["--list"]).env("ISOVEC_CACHE", empty.path()));
    assert!(list.contains("no benchmark is saved"), "{list}");
}

#[test]
fn what_is_measured_again_is_compared_with_the_same_work() {
    let kept = Kept::new();
    kept.made("slow", |value| times(value, None, 1e6));
    kept.made("fast", |value| times(value, None, 1e-6));
    let out = stdout(&mut kept.measure(&["--compare", "slow", "--json"]));
    let report: Value = serde_json::from_str(&out).expect("JSON");
    let figures = report["comparison"]["figures"].as_array().expect("figures");
    assert_eq!(
        figures.len(),
        kept.base()["figures"].as_array().map_or(0, Vec::len)
    );
    for figure in figures {
        assert_eq!(figure["verdict"], "faster", "{figure}");
        assert!(figure["high"].as_f64() < Some(0.01), "{figure}");
    }
    // The verdict comes after all that was measured, which is kept too.
    let said = stderr(
        &mut kept.measure(&["--compare", "fast", "--save", "now"]),
        4,
    );
    assert!(said.contains("slower than fast by more than 5 %"), "{said}");
    assert!(said.contains("one text at a time"), "{said}");
    assert_eq!(
        kept.files(),
        ["base.json", "fast.json", "now.json", "slow.json"]
    );
}

#[test]
fn two_that_are_kept_are_compared_without_a_model() {
    let kept = Kept::new();
    kept.made("calm", calm);
    kept.made("slower", |value| {
        calm(value);
        times(value, Some("one text at a time"), 1.2);
        value["provider"] = json!("another");
    });
    let compare = |one: &str, other: &str, more: &[&str]| {
        let mut command = kept.command(&[&["--compare", one, "--with", other][..], more].concat());
        command.env("ISOVEC_MODEL", "./nowhere");
        command
    };
    let said = stderr(&mut compare("calm", "slower", &[]), 4);
    assert!(
        said.contains("slower than calm by more than 5 %: one text at a time 1.2"),
        "{said}"
    );
    assert!(!said.contains(';'), "one figure alone: {said}");
    // The other way round it is faster; and with a larger threshold nothing is.
    let table = stdout(&mut compare("slower", "calm", &[]));
    assert!(table.contains("0 slower, 1 faster"), "{table}");
    assert!(table.contains("provider: another then, "), "{table}");
    let same: Value = serde_json::from_str(&stdout(&mut compare(
        "calm",
        "slower",
        &["--threshold", "30", "--json"],
    )))
    .expect("JSON");
    for figure in same["figures"].as_array().expect("figures") {
        let slow = figure["name"] == "one text at a time";
        assert_eq!(figure["verdict"], "same", "{figure}");
        assert_eq!(figure["ratio"].as_f64() > Some(1.1), slow, "{figure}");
    }
    // A name and a file are the same thing.
    let file = kept.path("calm").display().to_string();
    stdout(&mut compare(&file, "calm", &[]));
}

#[test]
fn a_baseline_of_something_else_is_refused_with_what_differs() {
    let kept = Kept::new();
    type Change = fn(&mut Value);
    let cases: [(&str, Change, &[&str]); 5] = [
        (
            "texts",
            |value| value["texts"]["hash"] = json!("0123"),
            &["3 texts", "0123"],
        ),
        (
            "rounds",
            |value| {
                value["options"]["rounds"] = json!(7);
                for figure in value["figures"].as_array_mut().expect("figures") {
                    figure["seconds"].as_array_mut().expect("turns").pop();
                }
            },
            &["--rounds 8 now, 7 then"],
        ),
        (
            "seconds",
            |value| value["options"]["seconds"] = json!(9.5),
            &["--seconds 0.005 now, 9.5 then"],
        ),
        (
            "model",
            |value| value["fingerprint"]["identity"]["pooling"] = json!("other"),
            &["the model's pooling"],
        ),
        (
            "work",
            |value| value["figures"][0]["texts"] = json!(77),
            &["measure the same work"],
        ),
    ];
    for (name, change, words) in cases {
        kept.made(name, change);
        let said = stderr(&mut kept.command(&["--compare", name, "--with", "base"]), 2);
        // Another machine may be allowed, nothing else.
        let allowed = ["--compare", name, "--with", "base", "--allow-other-machine"];
        assert_eq!(stderr(&mut kept.command(&allowed), 2), said);
        for word in words {
            assert!(said.contains(word), "{name}: {said}");
        }
    }
    // Where it would be measured it is said before it is.
    let said = stderr(
        &mut kept.measure(&["--compare", "base", "--rounds", "5"]),
        2,
    );
    assert!(said.contains("--rounds 5 now, 8 then"), "{said}");
    let said = stderr(
        &mut kept.command(&[&["other"][..], &SHORT, &["--compare", "base"]].concat()),
        2,
    );
    assert!(said.contains("1 texts"), "{said}");
    let mut long = kept.measure(&["--compare", "base", "--max-length", "20"]);
    let said = stderr(&mut long, 2);
    assert!(said.contains("the model's"), "{said}");

    kept.made("away", |value| {
        calm(value);
        value["machine"] = json!({"id": "feedfeedfeedfeed", "description": "elsewhere"});
    });
    kept.made("here", calm);
    let said = stderr(
        &mut kept.command(&["--compare", "away", "--with", "here"]),
        2,
    );
    for words in [
        "another machine",
        "elsewhere",
        "feedfeedfeedfeed",
        "--allow-other-machine",
    ] {
        assert!(said.contains(words), "{said}");
    }
    let args = [
        "--compare",
        "away",
        "--with",
        "here",
        "--allow-other-machine",
    ];
    let table = stdout(&mut kept.command(&args));
    assert!(table.contains("ANOTHER MACHINE: elsewhere"), "{table}");
}

#[test]
fn a_file_that_is_none_or_not_whole_is_named_with_what_is_wrong() {
    let kept = Kept::new();
    let whole = fs::read(kept.path("base")).expect("kept");
    fs::write(kept.path("cut"), &whole[..whole.len() / 2]).expect("written");
    fs::write(kept.path("empty"), "").expect("written");
    fs::write(kept.path("text"), "hello").expect("written");
    fs::write(kept.path("foreign"), "{\"benchmark\": [1, 2]}").expect("written");
    fs::write(kept.path("list"), "[]").expect("written");
    kept.made("newer", |value| value["version"] = json!(2));
    kept.made("negative", |value| {
        value["figures"][0]["seconds"][0] = json!(-1.0)
    });
    kept.made("fewer", |value| {
        value["figures"][0]["seconds"]
            .as_array_mut()
            .expect("turns")
            .pop();
    });
    kept.made("twice", |value| {
        let first = value["figures"][0].clone();
        value["figures"]
            .as_array_mut()
            .expect("figures")
            .push(first);
    });
    kept.made("none", |value| value["figures"] = json!([]));
    let cases = [
        ("absent", 1, "no benchmark has this name"),
        ("cut", 1, "ends in the middle"),
        ("empty", 1, "ends in the middle"),
        ("text", 1, "damaged"),
        ("foreign", 1, "not a benchmark of isovec"),
        ("list", 1, "not a benchmark of isovec"),
        (
            "newer",
            1,
            "version 2 of the format, and this isovec reads 1",
        ),
        ("negative", 1, "above 0"),
        ("fewer", 1, "7 turns"),
        ("twice", 1, "twice"),
        ("none", 1, "no figure"),
        ("..", 2, "a name has at most 64"),
        ("a..b", 2, "a name has at most 64"),
        ("", 2, "a name has at most 64"),
        ("./nowhere/x.json", 1, "no benchmark has this name"),
    ];
    for (name, code, words) in cases {
        let said = stderr(
            &mut kept.command(&["--compare", name, "--with", "base"]),
            code,
        );
        assert!(said.contains(words), "{name}: {said}");
        assert!(said.contains(name), "{name}: {said}");
    }
}

/// They would be done again: minutes or for ever, or end in a panic.
#[test]
fn options_and_points_that_no_benchmark_has_are_refused() {
    let kept = Kept::new();
    let with_point = |name: &str, change: fn(&mut Value)| {
        kept.made(name, |value| {
            let mut point = value["figures"][0].clone();
            point["part"] = json!("curves");
            point["name"] = json!("64 texts of 256 tokens");
            point["texts"] = json!(64);
            point["tokens"] = json!(256);
            point["calls"] = json!(1000);
            change(&mut point);
            let figures = value["figures"].as_array_mut().expect("figures");
            figures.push(point);
            value["options"]["curves"] = json!(true);
        });
    };
    // The largest that there is, so that what is refused below is refused for what was changed.
    with_point("largest", |_| {});
    let compare = |name: &str| kept.command(&["--compare", name, "--with", name]);
    stdout(&mut compare("largest"));

    let options: [(&str, Value, &str); 8] = [
        ("seconds", json!(-1), "--seconds is -1.0"),
        ("seconds", json!(0), "--seconds is 0.0"),
        ("seconds", json!(1e300), "--seconds is 1e300"),
        ("seconds", json!(3600.5), "at most 3600"),
        ("callers", json!(0), "--callers is 0"),
        ("callers", json!(1_000_000), "--callers is 1000000"),
        ("callers", json!(4097), "1 to 4096"),
        ("rounds", json!(0), "--rounds is 0"),
    ];
    for (option, wrong, words) in options {
        kept.made("wrong", |value| value["options"][option] = wrong);
        refused(&mut compare("wrong"), words);
    }
    kept.made("wrong", |value| {
        value["options"]["rounds"] = json!(1001);
        for figure in value["figures"].as_array_mut().expect("figures") {
            figure["seconds"] = json!([0.1].repeat(1001));
        }
    });
    refused(&mut compare("wrong"), "--rounds is 1001");

    type Change = fn(&mut Value);
    let points: [(Change, &str); 8] = [
        (
            |point| point["texts"] = json!(1_000_000_000_000_000_u64),
            "1000000000000000 texts of 256 tokens",
        ),
        (|point| point["texts"] = json!(63), "not a point"),
        (|point| point["tokens"] = json!(512), "of 512 tokens"),
        (|point| point["tokens"] = json!(null), "no tokens"),
        (|point| point["calls"] = json!(1001), "1001 calls"),
        (|point| point["calls"] = json!(0), "0 calls"),
        (|point| point["calls"] = json!(null), "no calls"),
        // Under names of their own there could be any number of them.
        (|point| point["name"] = json!("another"), "another has"),
    ];
    for (change, words) in points {
        with_point("wrong", change);
        refused(&mut compare("wrong"), words);
    }
}

fn refused(command: &mut Command, words: &str) {
    let said = stderr(command, 1);
    for words in [words, "damaged or was edited", "measure it again"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn what_cannot_be_written_is_said_before_anything_is_measured() {
    let kept = Kept::new();
    let folder = kept.0.path().display().to_string();
    let file = kept.path("base").display().to_string();
    for (option, place) in [
        ("--save", format!("{folder}/none/x.json")),
        ("--save", folder.clone() + "/"),
        // A file where a folder would have to be.
        ("--save", format!("{file}/x")),
        ("--html", format!("{folder}/none/x.html")),
    ] {
        // The model does not exist, and would be named if it had been asked for.
        let mut command = kept.measure(&[option, &place]);
        let said = stderr(command.env("ISOVEC_MODEL", "./nowhere"), 1);
        assert!(
            said.contains(&folder) && !said.contains("nowhere"),
            "{said}"
        );
    }
    let said = stderr(&mut kept.measure(&["--save", "few", "--rounds", "3"]), 2);
    assert!(said.contains("at least 6"), "{said}");
    let said = stderr(
        &mut kept.measure(&["--save", "few", "--rounds", "6", "--curves"]),
        2,
    );
    assert!(said.contains("at least 8"), "{said}");
    for args in [
        &["--with", "base"][..],
        &["a text", "--threshold", "7"],
        &["--list", "--compare", "base"],
        &["--list", "a text"],
    ] {
        stderr(&mut kept.command(args), 2);
    }
    assert_eq!(kept.files(), ["base.json"]);
}

/// A limit on the size of a file, which is met as a full disk is.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_older_one() {
    let kept = Kept::new();
    let before = fs::read(kept.path("base")).expect("kept");
    let ended = std::process::Command::new("bash")
        .args(["-c", "trap '' XFSZ; ulimit -f 1; \"$0\" \"$@\""])
        .arg(crate::program())
        .arg("bench")
        .args(TEXTS)
        .args(SHORT)
        .args(["--save", "base", "--rounds", "6"])
        .env("ISOVEC_CACHE", kept.0.path())
        .env("ISOVEC_MODEL", crate::model())
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("base.json"), "{said}");
    assert_eq!(fs::read(kept.path("base")).expect("kept"), before);
    assert_eq!(kept.files(), ["base.json"]);
}

/// Linux alone tells whether a process has come to where it catches the signal.
#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_in_the_middle_keeps_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = std::process::Command::new(crate::program())
        .args([
            "bench",
            "a cat",
            "--engine",
            "portable",
            "--seconds",
            "600",
            "--save",
            "base",
        ])
        .env("ISOVEC_CACHE", folder.path())
        .env("ISOVEC_MODEL", crate::model())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("starts");
    let status = format!("/proc/{}/status", child.id());
    let catches = || {
        let status = fs::read_to_string(&status).expect("it runs");
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask & 2 != 0)
    };
    while !catches() {
        std::thread::yield_now();
    }
    let interrupt = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupt.expect("kill runs").success());
    let ended = child.wait_with_output().expect("ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(files(&folder.path().join("benchmarks")).is_empty());
}

#[test]
fn curves_are_of_texts_of_exactly_that_length_and_are_measured_again_with_the_same_calls() {
    let kept = Kept(tempfile::tempdir().expect("a folder"));
    let args = [
        "--curves",
        "--save",
        "base",
        "--rounds",
        "8",
        "--max-length",
        "40",
        "--json",
    ];
    let report: Value = serde_json::from_str(&stdout(&mut kept.measure(&args))).expect("JSON");
    let points = report["curves"].as_array().expect("points");
    let lengths: std::collections::BTreeSet<u64> = points
        .iter()
        .filter_map(|point| point["tokens"].as_u64())
        .collect();
    // The model sees 40 tokens, so that 64 cannot be measured.
    assert!(
        lengths.contains(&16) && lengths.iter().all(|&length| length <= 40),
        "{lengths:?}"
    );
    assert_eq!(points[0]["texts"], 1);
    for point in points {
        assert!(
            point["p99_milliseconds"].as_f64() >= point["p50_milliseconds"].as_f64(),
            "{point}"
        );
        assert!(point["calls"].as_u64() >= Some(3), "{point}");
    }
    kept.made("slow", |value| times(value, None, 1e6));
    let again = ["--compare", "slow", "--max-length", "40", "--json"];
    let again: Value = serde_json::from_str(&stdout(&mut kept.measure(&again))).expect("JSON");
    let work = |report: &Value| -> Vec<(Value, Value, Value)> {
        let points = report["curves"].as_array().expect("points");
        let work = points.iter().map(|point| {
            (
                point["tokens"].clone(),
                point["texts"].clone(),
                point["calls"].clone(),
            )
        });
        work.collect()
    };
    assert_eq!(work(&again), work(&report));
    assert_eq!(
        again["comparison"]["figures"].as_array().map(Vec::len),
        kept.base()["figures"].as_array().map(Vec::len)
    );
}

#[test]
fn the_page_needs_nothing_but_itself() {
    let kept = Kept::new();
    kept.made("odd", |value| {
        calm(value);
        value["model"] = json!("<script src='http://x'>&</script>");
        value["figures"][0]["name"] = json!("one text at a time\u{0}");
    });
    let page = kept.0.path().join("page.html");
    let path = page.display().to_string();
    for args in [
        ["--compare", "odd", "--with", "odd"],
        ["--compare", "base", "--with", "base"],
    ] {
        stdout(&mut kept.command(&[&args[..], &["--html", &path]].concat()));
        check(&fs::read_to_string(&page).expect("a page"), 4);
    }
    let own = kept
        .measure(&["--curves", "--rounds", "1", "--html", &path])
        .assert();
    own.success();
    let text = fs::read_to_string(&page).expect("a page");
    check(&text, 4);
    assert!(
        text.contains("Latency against throughput") && text.contains("prefers-color-scheme: dark")
    );
}

/// That every tag is closed in order, each chart has a name and a table behind it, and nothing is fetched.
fn check(page: &str, charts: usize) {
    assert!(page.starts_with("<!doctype html>"));
    assert!(page.contains("default-src 'none'"));
    let mut open: Vec<&str> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    let body = page.split_once('>').expect("a doctype").1;
    for tag in body.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').expect("a tag ends");
        assert!(
            !text.contains('>') || open.last() == Some(&"style"),
            "{text}"
        );
        let name = tag
            .split([' ', '/', '\n'])
            .find(|part| !part.is_empty())
            .expect("a name");
        for forbidden in [
            " src=", " href=", "url(", "@import", "http:", "https:", " on",
        ] {
            assert!(!tag.contains(forbidden), "<{tag}>");
        }
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "<{tag}>");
        } else if !tag.ends_with('/') && name != "meta" {
            open.push(name);
        }
        if name == "svg" && !tag.starts_with('/') {
            assert!(
                tag.contains("role=\"img\"") && tag.contains("aria-label="),
                "<{tag}>"
            );
        }
        if !tag.starts_with('/') && matches!(name, "svg" | "table") {
            seen.push(name);
        }
        assert!(
            !["script", "iframe", "object", "link", "img"].contains(&name),
            "<{tag}>"
        );
        assert!(!tag.contains("NaN") && !tag.contains("inf "), "<{tag}>");
    }
    assert!(open.is_empty(), "{open:?} are not closed");
    // The last table is the configuration's.
    let expected = ["svg", "table"].repeat(charts);
    assert_eq!(seen[..seen.len() - 1], expected[..], "{seen:?}");
    let style = page
        .split_once("<style>")
        .expect("a style")
        .1
        .split_once("</style>")
        .expect("its end")
        .0;
    assert!(!style.contains("url(") && !style.contains("@import") && !style.contains("http"));
}
