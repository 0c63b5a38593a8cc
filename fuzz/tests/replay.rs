//! Every target, without libFuzzer: on the committed inputs, and on made-up ones from a fixed seed.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::panic;
use std::path::{Path, PathBuf};

use isovec_fuzz::targets::{TARGETS, Target};

/// One test, because memory is counted for the whole process.
#[test]
fn every_target_agrees_with_its_oracle() {
    let mut failed = Vec::new();
    for target in TARGETS {
        let committed = committed(target);
        assert!(!committed.is_empty(), "corpus/{} is empty", target.name);
        for path in committed {
            let data = fs::read(&path).unwrap();
            if panic::catch_unwind(|| (target.run)(&data)).is_err() {
                failed.push(path.display().to_string());
            }
        }
        for number in 0..target.random {
            let data = made_up(number as u64);
            if panic::catch_unwind(|| (target.run)(&data)).is_err() {
                failed.push(format!("{} on made-up input {number}", target.name));
                break;
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Programs, targets and folders are the same names.
#[test]
fn names_are_in_every_place() {
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert!(names.is_sorted());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(stems(&root.join("fuzz_targets")), names);
    assert_eq!(stems(&root.join("corpus")), names);
    for name in stems(&root.join("regressions")) {
        assert!(names.contains(&&*name), "regressions/{name}");
    }
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    for name in names {
        let line = format!("path = \"fuzz_targets/{name}.rs\"");
        assert!(manifest.lines().any(|l| l == line), "{line}");
    }
}

fn committed(target: &Target) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["corpus", "regressions"].map(|folder| root.join(folder).join(target.name));
    folders.iter().flat_map(|folder| entries(folder)).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(read) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut all: Vec<PathBuf> = read.map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

fn stems(folder: &Path) -> Vec<String> {
    let stem = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    entries(folder).iter().map(stem).collect()
}

/// Bytes that look random (SplitMix64, <https://prng.di.unimi.it/splitmix64.c>), the shorter the more often.
fn made_up(number: u64) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x2545_F491_4F6C_DD1D);
    let mut next = move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    let most = 1 << (next() % 12);
    let length = next() % (most + 1);
    (0..length).map(|_| next().to_le_bytes()[0]).collect()
}
