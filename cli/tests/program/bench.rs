//! `isovec bench`, on a few texts and for an instant: that the figures are of these texts.

use serde_json::Value;

use crate::{isovec, stderr, stdout};

#[test]
fn every_table_is_of_the_texts_given() {
    let texts: String = (1..40).map(|words| "cat ".repeat(words) + "\n").collect();
    let args = ["bench", "-", "--engine", "portable", "--max-length", "32"];
    let mut command = isovec(&args);
    command.args([
        "--rounds",
        "1",
        "--seconds",
        "0.05",
        "--callers",
        "3",
        "--json",
    ]);
    let report = stdout(command.write_stdin(texts));
    let report: Value = serde_json::from_str(&report).expect("JSON");

    let offline = &report["offline"];
    assert_eq!(offline["given"], 39);
    let ways = offline["ways"].as_array().expect("ways");
    assert_eq!(ways.len(), 3);
    for way in ways {
        assert!(way["texts_per_second"].as_f64() > Some(0.0), "{way}");
        // This engine computes nothing for padding, whatever texts stand side by side.
        assert_eq!(way["padding"], 0.0, "{way}");
    }
    let chosen = offline["texts"].as_u64().expect("a number");
    let bands = offline["bands"].as_array().expect("bands");
    let in_bands: u64 = bands.iter().filter_map(|band| band["texts"].as_u64()).sum();
    assert_eq!(in_bands, chosen);
    let callers = &report["many_callers"];
    assert_eq!(callers["callers"], 3);
    assert!(callers["joined"]["texts_per_second"].as_f64() > Some(0.0));
}

#[test]
fn the_table_is_for_people() {
    let mut command = isovec(&["bench", "a cat", "the end", "--engine", "portable"]);
    command.args(["--rounds", "1", "--seconds", "0.01", "--callers", "2"]);
    let table = stdout(&mut command);
    for part in [
        "one text at a time",
        "padding",
        "2 callers",
        "DynamicBatcher",
    ] {
        assert!(table.contains(part), "{table}");
    }
}

#[test]
fn a_band_is_named_by_its_own_lengths_where_shorter_ones_have_no_texts() {
    let text = "cat ".repeat(20);
    let mut command = isovec(&["bench", &text, "--engine", "portable"]);
    command.args(["--rounds", "1", "--seconds", "0.01", "--callers", "2"]);
    let table = stdout(command.args(["--max-length", "32"]));
    assert!(
        table.lines().any(|line| line.starts_with("17 to 32 ")),
        "{table}"
    );
}

#[test]
fn what_cannot_be_measured_is_wrong_usage() {
    let said = stderr(isovec(&["bench", "-"]).write_stdin(""), 2);
    assert!(said.contains("no text"), "{said}");
    for option in ["--rounds", "--seconds", "--callers"] {
        stderr(&mut isovec(&["bench", "a cat", option, "0"]), 2);
    }
}
