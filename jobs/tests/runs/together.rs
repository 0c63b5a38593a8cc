//! Two runs that work on the same unit at the same time.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Barrier};

use isovec_jobs::{Compute, Refusal, Report, run};
use serde_json::Value;

use crate::engine::{Counting, DIM, Notes};
use crate::folder::{Folder, expected, lines};

/// Begins to compute only when two runs do, at the first call.
struct Meeting {
    barrier: Barrier,
    calls: AtomicU32,
}

impl Compute for &Meeting {
    fn fingerprint(&self) -> Value {
        Counting::default().fingerprint()
    }

    fn dim(&self) -> usize {
        DIM
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<f32>, Refusal> {
        if self.calls.fetch_add(1, Relaxed) < 2 {
            self.barrier.wait();
        }
        Ok(texts
            .iter()
            .flat_map(|text| crate::engine::vector(text))
            .collect())
    }
}

#[test]
fn one_of_them_finishes_it_and_the_other_says_that_its_work_is_thrown_away() {
    let folder = Folder::new();
    folder.write("a.jsonl", lines(0, 20));
    let spec = folder.spec("out", "");
    let meeting = Meeting {
        barrier: Barrier::new(2),
        calls: AtomicU32::new(0),
    };
    let notes = [Arc::new(Notes::default()), Arc::new(Notes::default())];
    let reports: Vec<Report> = std::thread::scope(|scope| {
        let run = |notes: &Arc<Notes>| run(&spec, &&meeting, Arc::<Notes>::clone(notes)).unwrap();
        let runs = notes
            .each_ref()
            .map(|notes| scope.spawn(move || run(notes)));
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let count = |of: fn(&Report) -> u64| reports.iter().map(of).sum::<u64>();
    assert_eq!(
        (count(|report| report.finished), count(|report| report.lost)),
        (1, 1)
    );
    // Rows are counted by the run that finished them.
    assert_eq!(count(|report| report.rows), 20);
    for (report, notes) in reports.iter().zip(&notes) {
        let told = notes
            .all()
            .iter()
            .filter(|event| event.starts_with("Lost"))
            .count();
        assert_eq!(told as u64, report.lost);
    }
    assert_eq!(folder.rows("out"), expected(0, 20));
    assert_eq!(folder.names("out/manifest").len(), 1);
    assert_eq!(folder.output("out").len(), 1);
}

/// Lets another run do all that it can, while the first chunk of this one is computed.
struct Overtaken<'a> {
    folder: &'a Folder,
    more: &'a str,
    calls: AtomicU32,
}

impl Compute for Overtaken<'_> {
    fn fingerprint(&self) -> Value {
        Counting::default().fingerprint()
    }

    fn dim(&self) -> usize {
        DIM
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<f32>, Refusal> {
        if self.calls.fetch_add(1, Relaxed) == 0 {
            let spec = self.folder.spec("out", self.more);
            run(&spec, &Counting::default(), Arc::new(())).unwrap();
        }
        Counting::default().embed(texts)
    }
}

#[test]
fn what_another_run_finished_is_passed_over_and_counted() {
    for workers in [1, 3] {
        let folder = Folder::new();
        folder.write("a.jsonl", lines(0, 160));
        let more = format!("unit_rows = 4\nunit_bytes = 1\nworkers = {workers}");
        let overtaken = Overtaken {
            folder: &folder,
            more: &more,
            calls: AtomicU32::new(0),
        };
        let report = run(&folder.spec("out", &more), &overtaken, Arc::new(())).unwrap();
        assert_eq!(
            report.finished + report.elsewhere + report.lost,
            report.units,
            "{report:?}"
        );
        assert!(report.units >= 40 && report.elsewhere >= 30, "{report:?}");
        assert_eq!(folder.rows("out"), expected(0, 160));
    }
}
