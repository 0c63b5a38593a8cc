//! The ONNX project's tests on every engine, compared with its list.

use std::collections::BTreeSet;
use std::path::Path;
use std::thread;

use isovec_nodes::cases::{Case, folder, names, read};
use isovec_nodes::engines;
use isovec_nodes::engines::{run_all, run_share};
use isovec_nodes::lists::{Fates, Verdict, are_written, committed, hold};

fn check(engine: &str, run: Option<&dyn Fn(&Case) -> Verdict>, folder: &Path) {
    if let Some(run) = run {
        hold(engine, &run_all(folder, run));
    }
}

/// Of what encoders are made of, isovec's own engines run what tract runs, or say why they do not.
/// The book has the numbers.
#[test]
fn encoders_operators_are_right_or_refused() {
    let Some(folder) = folder().filter(|_| !are_written()) else {
        return;
    };
    let names = names(&folder);
    let own: Vec<_> = names
        .iter()
        .filter(|name| read(&folder, name).is_of_encoders())
        .collect();
    let passes = |engine: &str| -> BTreeSet<_> {
        let list = committed(engine);
        let all = own
            .iter()
            .filter(|name| list.get(**name) == Some(&Verdict::Passes));
        all.copied().collect()
    };
    let [onnxruntime, tract, portable, wgpu] =
        ["onnxruntime", "tract", "portable", "wgpu"].map(passes);
    let both = tract.intersection(&wgpu).count();
    let counts = [onnxruntime.len(), tract.len(), portable.len(), wgpu.len()];
    println!(
        "{} tests of encoders: {counts:?} pass, {both} on tract and wgpu",
        own.len()
    );
    let book = include_str!("../../../docs/parity.md");
    let row = counts.map(|count| count.to_string()).join(" | ");
    let row = format!("| the {} of encoders' operators | {row} |", own.len());
    assert!(book.contains(&row), "docs/parity.md does not say {row}");
    let said = format!(
        "Of the {} tests of them that tract passes, {both} pass on wgpu",
        tract.len()
    );
    assert!(book.contains(&said), "docs/parity.md does not say: {said}");
    let all = ["onnxruntime", "tract", "portable", "wgpu"].map(|engine| {
        let list = committed(engine);
        let passes = list.values().filter(|own| **own == Verdict::Passes).count();
        match passes / 1000 {
            0 => passes.to_string(),
            thousands => format!("{thousands},{:03}", passes % 1000),
        }
    });
    let row = format!("| all tests | {} |", all.join(" | "));
    assert!(book.contains(&row), "docs/parity.md does not say {row}");
    for engine in ["portable", "wgpu"] {
        let list = committed(engine);
        let wrong = tract
            .iter()
            .filter(|name| matches!(list.get(**name), Some(Verdict::Differs(_))));
        assert_eq!(
            wrong.collect::<Vec<_>>(),
            Vec::<&&String>::new(),
            "{engine} computes something else"
        );
    }
}

#[test]
fn onnxruntime_passes_what_it_did() {
    let Some(folder) = folder() else { return };
    let run = engines::onnxruntime();
    check("onnxruntime", run.as_ref().map(|run| run as _), &folder);
}

/// What it passes it passes after all passes over the graph.
#[test]
fn onnxruntime_passes_what_is_simplified() {
    let Some(folder) = folder().filter(|_| !are_written()) else {
        return;
    };
    let Some(run) = engines::simplified() else {
        return;
    };
    let list = committed("onnxruntime");
    let passes = list
        .iter()
        .filter(|(_, verdict)| **verdict == Verdict::Passes);
    let found = passes.filter_map(|(name, _)| Some((name, run(&read(&folder, name))?)));
    let (right, wrong): (Vec<_>, Vec<_>) =
        found.partition(|(_, verdict)| *verdict == Verdict::Passes);
    println!("{} graphs are simplified", right.len());
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(right.len() > 150, "{}", right.len());
}

#[test]
fn tract_passes_what_it_did() {
    let Some(folder) = folder() else { return };
    check("tract", Some(&engines::tract()), &folder);
}

#[test]
fn portable_passes_what_it_did() {
    let Some(folder) = folder() else { return };
    check("portable", Some(&engines::portable()), &folder);
}

#[test]
fn wgpu_passes_what_it_did() {
    let Some(folder) = folder() else { return };
    // A kernel is compiled by the thread that asks for it, and this is nearly all that is done here.
    const SHARES: usize = 2;
    let shares: Option<Vec<Fates>> = thread::scope(|scope| {
        let own = (0..SHARES).map(|share| {
            let folder = &folder;
            scope.spawn(move || {
                let run = engines::wgpu(folder)?;
                Some(run_share(folder, &run, [share, SHARES]))
            })
        });
        let own: Vec<_> = own.collect();
        own.into_iter().map(|own| own.join().unwrap()).collect()
    });
    if let Some(shares) = shares {
        hold("wgpu", &shares.into_iter().flatten().collect());
    }
}
