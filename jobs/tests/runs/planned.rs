//! Real runs, and what the simulator says of them.

use std::sync::Arc;

use isovec_jobs::{Costs, Forecast, Spec, forecast, measure, run};

use crate::engine::Counting;
use crate::folder::Folder;

/// Lines of one length with the ids from `first` on.
fn lines(first: usize, count: usize) -> String {
    let line = |id: usize| format!("{{\"id\": \"{id:06}\", \"text\": \"text number {id:06}\"}}\n");
    (first..first + count).map(line).collect()
}

fn costs(more: &str) -> Costs {
    let line = lines(0, 1).len();
    let given = format!("texts_per_second = 1000\ninput_row_bytes = {line}\nfile_rows = 100");
    Costs::read(None, &[&given, more]).unwrap()
}

fn planned(spec: &Spec, costs: &Costs, texts: u64) -> Forecast {
    forecast(spec, costs, texts, 1, 7).unwrap()
}

#[test]
fn units_rows_bytes_and_objects_of_a_run_are_those_of_its_forecast() {
    // Lines have no part in where units end; some units have two files of output, and the last file of the input is short.
    for (more, files) in [
        ("unit_bytes = 500\nunit_rows = 4", &[100, 100, 50][..]),
        (
            "unit_bytes = 499\nunit_rows = 100\nworkers = 2",
            &[100, 100, 100],
        ),
        ("unit_bytes = 7\nunit_rows = 1", &[3]),
    ] {
        let folder = Folder::new();
        let mut rows = 0;
        for (file, &count) in files.iter().enumerate() {
            folder.write(&format!("{file}.jsonl"), lines(rows, count));
            rows += count;
        }
        let spec = folder.spec("out", more);
        let real = run(&spec, &Counting::default(), Arc::new(())).unwrap();
        let planned = planned(&spec, &costs(""), rows as u64);
        assert_eq!(
            (real.units, real.rows, real.bytes_read),
            (planned.units, planned.rows, planned.bytes_read),
            "{more}"
        );
        let mut objects = folder.names("out/rows").len() + folder.names("out/manifest").len();
        objects += usize::from(folder.path("out/job.json").exists());
        assert_eq!(objects as u64, planned.objects, "{more}");
        assert_eq!((planned.rows_again, planned.lost), (0, 0));
    }
}

#[cfg(feature = "s3")]
mod s3 {
    use ::parquet::basic::Compression;

    use super::*;
    use crate::killed::report;
    use crate::parquet::write;
    use crate::s3::done;
    use crate::server::{PAGE, Server};

    /// Runs a job against a server that counts.
    fn compare(server: &Server, toml: &str, costs: &Costs, texts: u64) -> Forecast {
        let real = report(&done(server, toml));
        let planned = planned(&Spec::parse(toml).unwrap(), costs, texts);
        let requests = &planned.requests;
        assert_eq!(
            server.held(|held| held.asked),
            [
                requests.lists,
                requests.looks,
                requests.reads,
                requests.writes
            ],
            "{toml}"
        );
        assert_eq!(
            (&real["units"], &real["rows"]),
            (&planned.units.into(), &planned.rows.into())
        );
        assert_eq!(server.under("vectors/out/").len() as u64, planned.objects);
        if toml.contains("jsonl") {
            assert_eq!(real["bytes_read"], planned.bytes_read);
        }
        planned
    }

    #[test]
    fn a_store_is_asked_as_often_as_the_forecast_says() {
        for more in ["", "workers = 3"] {
            let server = Server::start();
            for file in 0..9 {
                let name = format!("texts/in/{file}.jsonl");
                server.write(&name, lines(file * 100, 100));
            }
            let toml = format!(
                "input = 's3://texts/in/*.jsonl'\noutput = 's3://vectors/out'\nunit_bytes = 500\nunit_rows = 6\n{more}"
            );
            let costs = costs(&format!("page_names = {PAGE}"));
            let planned = compare(&server, &toml, &costs, 900);
            // Two pages of the input, and one each of an empty manifest and of no failures.
            assert_eq!(planned.requests.lists, 4);
        }
    }

    #[test]
    fn so_it_is_with_row_groups() {
        let (server, folder) = (Server::start(), Folder::new());
        for (file, groups) in [(0, &[40, 40, 20][..]), (1, &[40, 40, 20]), (2, &[40, 10])] {
            let name = format!("{file}.parquet");
            write(
                &folder,
                &name,
                file * 100,
                groups,
                Compression::UNCOMPRESSED,
            );
            let bytes = std::fs::read(folder.path("in").join(&name)).unwrap();
            server.write(&format!("texts/in/{name}"), bytes);
        }
        let toml = "input = 's3://texts/in/*.parquet'\noutput = 's3://vectors/out'\nkeep = ['id', 'text']\nunit_rows = 60";
        let costs = costs(&format!("page_names = {PAGE}\ngroup_rows = 40"));
        let planned = compare(&server, toml, &costs, 250);
        // Of the files of a hundred rows the last row groups are together.
        assert_eq!(planned.units, 5);
    }
}

#[test]
fn what_is_measured_is_that_of_the_input_and_leaves_nothing() {
    let folder = Folder::new();
    folder.write("a.jsonl", lines(0, 1000));
    folder.write("b.jsonl", lines(1000, 500));
    let spec = folder.spec("out", "unit_bytes = 5000");
    let engine = Counting::default();
    let costs = measure(&spec, &engine, 300, Arc::new(())).unwrap();
    assert_eq!(costs.input_row_bytes as usize, lines(0, 1).len());
    assert_eq!(costs.file_rows, 750);
    assert!(costs.texts_per_second > 0.0 && costs.request_seconds > 0.0);
    // A vector, an id, and what Parquet has around them.
    assert!((16..200).contains(&costs.output_row_bytes), "{costs:?}");
    // With those that warm the model up.
    let texts = engine.texts.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(texts, 316);
    // As after every write to a disk.
    assert_eq!(folder.names("out"), ["writing"]);
    assert!(folder.names("out/writing").is_empty());
}

#[test]
fn an_input_without_texts_measures_nothing() {
    let folder = Folder::new();
    folder.write("a.jsonl", "{\"text\": null}\n\n");
    let spec = folder.spec("out", "");
    let error = measure(&spec, &Counting::default(), 10, Arc::new(())).unwrap_err();
    assert!(error.to_string().contains("no texts"), "{error}");
}
