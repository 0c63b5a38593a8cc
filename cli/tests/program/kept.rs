//! Tests of what processes share by files: vectors, and hashes of weights.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::model;

const TEXTS: u64 = 300;
/// The file of the texts.
const NAME: &str = "texts.txt";

/// A folder with the texts. They are written once: a process may still be reading them when the next one starts.
fn folder_of_texts() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let lines: Vec<String> = (0..TEXTS)
        .map(|at| format!("the end of cat {at}"))
        .collect();
    fs::write(folder.path().join(NAME), lines.join("\n")).expect("written");
    folder
}

/// A run over the texts of a folder, with kept vectors or without.
fn run(folder: &Path, more: &[&str]) -> std::process::Child {
    Command::new(crate::program())
        .args(["embed", "--engine", "portable", "--stats", "--file"])
        .arg(folder.join(NAME))
        .args(more)
        .env("ISOVEC_MODEL", model())
        .env_remove("ORT_DYLIB_PATH")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts")
}

/// What it wrote, and the statistics of its kept vectors.
fn done(child: std::process::Child) -> (String, Value) {
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().expect("ends");
    let stderr = String::from_utf8(stderr).expect("UTF-8");
    assert!(status.success(), "{stderr}");
    let line = stderr.lines().find(|line| line.starts_with("{\"stats\""));
    let stats: Value = serde_json::from_str(line.unwrap_or_default()).expect("statistics");
    let stdout = String::from_utf8(stdout).expect("UTF-8");
    (stdout, stats["stats"]["embedding_cache"].clone())
}

fn keeping(folder: &Path, disk: u64) -> PathBuf {
    let config = folder.join(format!("{disk}.toml"));
    let kept = folder.join("kept");
    let text = format!("[embedding_cache]\ndisk = {disk}\nfolder = {kept:?}\n");
    fs::write(&config, text).expect("written");
    config
}

#[test]
fn processes_share_a_folder_and_get_the_vectors_that_they_would_compute() {
    let folder = folder_of_texts();
    let config = keeping(folder.path(), 1 << 22);
    let config = ["--config", config.to_str().expect("UTF-8")];
    let (expected, none) = done(run(folder.path(), &[]));
    assert_eq!(none, Value::Null);
    let both = [run(folder.path(), &config), run(folder.path(), &config)];
    for one in both {
        let (vectors, stats) = done(one);
        assert_eq!(vectors, expected);
        assert_eq!(stats["disk_rejected"], 0, "{stats}");
        assert_eq!(stats["disk_failures"], 0, "{stats}");
    }
    let (vectors, stats) = done(run(folder.path(), &config));
    assert_eq!(vectors, expected);
    assert_eq!(
        (&stats["misses"], &stats["disk_hits"]),
        (&0.into(), &TEXTS.into())
    );
    // Vectors of another length are another's.
    let shorter = [config[0], config[1], "--dimension", "8"];
    let (vectors, stats) = done(run(folder.path(), &shorter));
    assert_ne!(vectors, expected);
    assert_eq!(stats["misses"], TEXTS);
    let (plain, _) = done(run(folder.path(), &["--dimension", "8"]));
    assert_eq!(vectors, plain);
}

#[test]
fn processes_that_make_room_at_the_same_time_keep_the_bound_and_their_vectors() {
    let folder = folder_of_texts();
    let disk = 20_000;
    let config = keeping(folder.path(), disk);
    let config = ["--config", config.to_str().expect("UTF-8")];
    let (expected, _) = done(run(folder.path(), &[]));
    let all = [(); 3].map(|()| run(folder.path(), &config));
    for one in all {
        let (vectors, stats) = done(one);
        assert_eq!(vectors, expected);
        assert_eq!(stats["disk_failures"], 0, "{stats}");
    }
    let (vectors, stats) = done(run(folder.path(), &config));
    assert_eq!(vectors, expected);
    assert!(stats["disk_bytes"].as_u64() <= Some(disk), "{stats}");
    let shards = fs::read_dir(folder.path().join("kept")).expect("a folder");
    let files = shards
        .flatten()
        .flat_map(|shard| fs::read_dir(shard.path()).into_iter().flatten().flatten());
    let bytes: u64 = files
        .map(|file| file.metadata().map_or(0, |about| about.len()))
        .sum();
    assert!(bytes > 0 && bytes <= disk, "{bytes}");
}

/// What `info` says of the model, its cache in a folder.
#[cfg(unix)] // Elsewhere nothing tells that a file is the same.
fn info(cache: &Path, more: &[&str]) -> Value {
    let mut command = crate::isovec(&["info", "--json", "--engine", "portable"]);
    let output = command.args(more).env("ISOVEC_CACHE", cache).assert();
    serde_json::from_slice(&output.success().get_output().stdout).expect("JSON")
}

#[test]
#[cfg(unix)]
fn weights_are_hashed_once_and_again_where_that_is_asked_for() {
    let cache = tempfile::tempdir().expect("a folder");
    let weights = |info: &Value| info["fingerprint"]["identity"]["weights"].to_string();
    let own = info(cache.path(), &[]);
    assert_eq!(crate::used(&own, "model.verify"), "\"false\"");
    let kept = fs::read_dir(cache.path().join("identities")).expect("kept");
    let kept: Vec<PathBuf> = kept.map(|entry| entry.expect("an entry").path()).collect();
    let [entry] = &kept[..] else {
        panic!("{kept:?}");
    };
    let text = fs::read_to_string(entry).expect("text");
    let hash = text.lines().nth(1).expect("a hash");
    let other = hash.chars().rev().collect::<String>();
    fs::write(entry, text.replace(hash, &other)).expect("written");
    assert!(weights(&info(cache.path(), &[])).contains(&other));
    let verified = info(cache.path(), &["--verify-weights"]);
    assert_eq!(weights(&verified), weights(&own));
    assert_eq!(crate::used(&verified, "model.verify"), "\"true\"");
}
