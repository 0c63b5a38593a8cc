//! Input and output in a store that speaks S3's protocol.

use std::process::{Command, Output};
use std::sync::Arc;

use isovec_jobs::run;

use crate::engine::Counting;
use crate::folder::{Folder, OutputRow, expected, lines, rows};
use crate::killed::{Random, kill, program, report, said};
use crate::server::{Fault, Server};

/// Units of about ten rows.
const SMALL: &str = "unit_bytes = 500\nunit_rows = 4\nretry_wait = '1ms'\nkeep = ['id']";

fn spec(out: &str, more: &str) -> String {
    format!("input = 's3://texts/in/*.jsonl'\noutput = 's3://vectors/{out}'\n{SMALL}\n{more}\n")
}

fn process(server: &Server, toml: &str, pause: u64) -> Command {
    let mut command = program(toml, pause);
    command
        .env("AWS_ENDPOINT", format!("http://{}", server.address))
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_ACCESS_KEY_ID", "a key")
        .env("AWS_SECRET_ACCESS_KEY", "a secret");
    command
}

pub(crate) fn done(server: &Server, toml: &str) -> Output {
    process(server, toml, 0).output().unwrap()
}

fn filled(count: usize) -> Server {
    let server = Server::start();
    server.write("texts/in/a.jsonl", lines(0, count / 2));
    server.write("texts/in/b.jsonl", lines(count / 2, count - count / 2));
    server.write("texts/in/deeper/c.jsonl", lines(count, 5));
    server
}

fn stored(server: &Server, out: &str) -> Vec<OutputRow> {
    let files = server.under(&format!("vectors/{out}/rows/")).into_values();
    let mut rows: Vec<OutputRow> = files.flat_map(rows).collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows
}

#[test]
fn every_row_is_in_the_output_once_and_a_resume_reads_no_input() {
    let server = filled(200);
    let first = report(&done(&server, &spec("out", "workers = 2")));
    assert_eq!(
        (&first["rows"], &first["failures"]),
        (&200.into(), &0.into())
    );
    assert_eq!(stored(&server, "out"), expected(0, 200));
    // The server counts what it sends.
    let size = lines(0, 200).len() as u64;
    assert!(server.held(|held| held.sent) >= size);
    server.held(|held| held.sent = 0);
    let again = report(&done(&server, &spec("out", "")));
    assert_eq!(
        (&again["before"], &again["finished"]),
        (&first["units"], &0.into())
    );
    // The settings of the job, and nothing else.
    let job = server
        .under("vectors/out/job.json")
        .into_values()
        .next()
        .unwrap();
    assert_eq!(server.held(|held| held.sent), job.len() as u64);
}

#[test]
fn the_rows_are_those_of_a_disk() {
    let server = filled(60);
    report(&done(&server, &spec("out", "")));
    let folder = Folder::new();
    folder.write("a.jsonl", lines(0, 30));
    folder.write("b.jsonl", lines(30, 30));
    run(&folder.spec("out", ""), &Counting::default(), Arc::new(())).unwrap();
    assert_eq!(stored(&server, "out"), folder.rows("out"));
}

#[test]
fn killed_processes_that_work_at_once_double_nothing_and_leave_the_bytes_of_one() {
    let server = filled(300);
    report(&done(&server, &spec("whole", "")));
    let mut random = Random(0xbeef);
    let mut kills = 0;
    for _ in 0..6 {
        let children = [(); 2].map(|()| process(&server, &spec("out", ""), 1).spawn().unwrap());
        for child in children {
            kills += u32::from(kill(child, &mut random));
        }
    }
    assert!(kills > 2, "{kills} kills");
    report(&done(&server, &spec("out", "")));
    assert_eq!(stored(&server, "out"), expected(0, 300));
    assert!(server.under("vectors/out/rows/") == server.under("vectors/whole/rows/"));
}

#[test]
fn a_store_that_answers_503_is_tried_again() {
    let server = filled(20);
    server.faults(|put| match put {
        2..5 => Fault::Refused,
        _ => Fault::None,
    });
    let output = done(&server, &spec("out", "retries = 3"));
    assert_eq!(report(&output)["rows"], 20);
    assert_eq!(said(&output, "EVENT Retrying").len(), 3);
    assert_eq!(stored(&server, "out"), expected(0, 20));
}

#[test]
fn a_store_that_goes_on_so_ends_the_run_with_the_unit_and_nothing_half_written() {
    let server = filled(20);
    // `job.json` is written, and then nothing more.
    server.faults(|put| match put {
        0 => Fault::None,
        _ => Fault::Refused,
    });
    let output = done(&server, &spec("out", "retries = 2"));
    let errors = said(&output, "ERROR ");
    for part in [
        "unit ",
        "s3://texts/in/",
        ", bytes ",
        "s3://vectors/out/rows/",
        "tried 3 times",
        "503",
    ] {
        assert!(errors[0].contains(part), "{part}: {errors:?}");
    }
    assert_eq!(server.held(|held| held.puts), 4);
    assert_eq!(server.under("vectors/out/").len(), 1);
    server.faults(|_| Fault::None);
    report(&done(&server, &spec("out", "")));
    assert_eq!(stored(&server, "out"), expected(0, 20));
}

#[test]
fn a_write_that_was_done_and_answered_with_an_error_is_neither_doubled_nor_lost() {
    let server = filled(20);
    // Every other write: the settings, outputs, and entries of the manifest.
    for (out, faults) in [
        (
            "even",
            (|put| {
                if put % 2 == 0 {
                    Fault::Hidden
                } else {
                    Fault::None
                }
            }) as fn(u64) -> Fault,
        ),
        ("odd", |put| {
            if put % 2 == 1 {
                Fault::Hidden
            } else {
                Fault::None
            }
        }),
        ("third", |put| {
            if put % 3 == 1 {
                Fault::Hidden
            } else {
                Fault::None
            }
        }),
    ] {
        server.faults(faults);
        let report = report(&done(&server, &spec(out, "")));
        assert_eq!(
            (&report["rows"], &report["lost"]),
            (&20.into(), &0.into()),
            "{out}"
        );
        assert_eq!(stored(&server, out), expected(0, 20));
    }
}

#[test]
fn a_changed_object_is_other_units_and_the_stale_outputs_are_told() {
    let server = filled(20);
    let before = report(&done(&server, &spec("out", "")));
    server.write("texts/in/b.jsonl", lines(10, 12));
    let after = report(&done(&server, &spec("out", "")));
    assert_eq!((&after["rows"], &before["stale"]), (&12.into(), &0.into()));
    assert!(after["stale"].as_u64() > Some(0), "{after}");
}
