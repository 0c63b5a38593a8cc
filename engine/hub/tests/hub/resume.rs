//! Downloads that are interrupted, and servers that answer ranges oddly.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use isovec_engine::cancel::Cancel;
use isovec_hub::FileSelection;
use isovec_test_server::{Reply, Seen, Server};

use crate::repo::{ID, Repo, Reports, Site, WEIGHTS, assert_holds, assert_says};

/// Serves the repository, counting the requests for the weights and giving each to `answer`.
fn weights(
    repo: &Repo,
    answer: impl Fn(usize, &Seen, &[u8]) -> Reply + Send + Sync + 'static,
) -> Server {
    let count = AtomicUsize::new(0);
    repo.start_with(move |repo, seen| {
        (repo.asked(seen) == Some(WEIGHTS)).then(|| {
            answer(
                count.fetch_add(1, Ordering::SeqCst),
                seen,
                &repo.files[WEIGHTS],
            )
        })
    })
}

fn ranges(server: &Server) -> Vec<Option<usize>> {
    server
        .seen()
        .iter()
        .filter(|seen| seen.target.ends_with(WEIGHTS))
        .map(Seen::range_start)
        .collect()
}

#[test]
fn cut_connections_are_taken_up_where_they_stopped() {
    let repo = Repo::embedder();
    // Twelve cuts, more than there are retries: ground gained lets the count begin anew.
    let server = weights(&repo, |_, seen, bytes| {
        Reply::file(seen, bytes).cut_after(25_000)
    });
    let site = Site::new(&server.url);
    let reports = Reports::default();
    let snapshot = site
        .hub()
        .fetch_blocking(
            ID,
            "main",
            &FileSelection::embedding(),
            |p| reports.add(p),
            &Cancel::new(),
        )
        .expect("patience");
    assert_holds(&snapshot, &repo, &Repo::wanted());
    let ranges = ranges(&server);
    let expected: Vec<_> = (0..12).map(|i| (i > 0).then_some(i * 25_000)).collect();
    assert_eq!(ranges, expected, "not a byte is fetched twice");
}

#[test]
fn a_fetch_that_failed_is_continued_by_the_next() {
    let repo = Repo::embedder();
    let server = weights(&repo, |n, seen, bytes| {
        let reply = Reply::file(seen, bytes);
        if n == 0 {
            reply.cut_after(100_000)
        } else {
            reply
        }
    });
    let mut site = Site::new(&server.url);
    site.config.retry.retries = 0;
    assert_says(
        site.fetch("main"),
        &[
            WEIGHTS,
            "after 100000 of 300000 bytes",
            "the part that arrived is cached",
        ],
    );
    let partial = site.blob(&format!("{}.incomplete", repo.etag(WEIGHTS)));
    assert_eq!(std::fs::metadata(&partial).expect("kept").len(), 100_000);
    assert!(
        !site.repo_folder().join("refs/main").exists(),
        "a ref leads to whole snapshots only"
    );

    let reports = Reports::default();
    let snapshot = site
        .hub()
        .fetch_blocking(
            ID,
            "main",
            &FileSelection::embedding(),
            |p| reports.add(p),
            &Cancel::new(),
        )
        .expect("goes on");
    assert_holds(&snapshot, &repo, &Repo::wanted());
    assert_eq!(ranges(&server), [None, Some(100_000)]);
    assert!(!partial.exists());
    let first = reports
        .all()
        .into_iter()
        .find(|p| &*p.file == WEIGHTS && p.file_bytes > 0);
    assert_eq!(
        first.expect("a report").file_bytes,
        100_000,
        "what is held counts from the start"
    );
}

#[test]
fn a_beginning_that_is_wrong_costs_one_more_download() {
    let repo = Repo::embedder();
    let server = repo.start();
    let site = Site::new(&server.url);
    let partial = site.blob(&format!("{}.incomplete", repo.etag(WEIGHTS)));
    std::fs::create_dir_all(partial.parent().expect("a folder")).expect("a folder");
    for (held, expected) in [
        (vec![7; 1000], vec![Some(1000), None]),
        // As long as the file: nothing to ask for, but the checksum is not right.
        (vec![7; 300_000], vec![None]),
        // Longer than the file.
        (vec![7; 300_001], vec![None]),
    ] {
        let _ = std::fs::remove_file(site.blob(&repo.etag(WEIGHTS)));
        server.forget();
        std::fs::write(&partial, held).expect("written");
        let snapshot = site.fetch("main").expect("all is well in the end");
        assert_holds(&snapshot, &repo, &Repo::wanted());
        assert_eq!(ranges(&server), expected);
    }
}

#[test]
fn a_beginning_that_is_the_whole_needs_no_request() {
    let repo = Repo::embedder();
    let server = repo.start();
    let site = Site::new(&server.url);
    let partial = site.blob(&format!("{}.incomplete", repo.etag(WEIGHTS)));
    std::fs::create_dir_all(partial.parent().expect("a folder")).expect("a folder");
    std::fs::write(&partial, &repo.files[WEIGHTS]).expect("written");
    let snapshot = site.fetch("main").expect("all is well");
    assert_holds(&snapshot, &repo, &Repo::wanted());
    assert_eq!(ranges(&server), []);
}

#[test]
fn a_server_that_ignores_ranges_sends_all_again() {
    let repo = Repo::embedder();
    let server = weights(&repo, |n, _, bytes| {
        let reply = Reply::new(200, bytes);
        if n == 0 {
            reply.cut_after(123_456)
        } else {
            reply
        }
    });
    let site = Site::new(&server.url);
    let reports = Reports::default();
    let snapshot = site
        .hub()
        .fetch_blocking(
            ID,
            "main",
            &FileSelection::embedding(),
            |p| reports.add(p),
            &Cancel::new(),
        )
        .expect("from the start");
    assert_holds(&snapshot, &repo, &Repo::wanted());
    assert_eq!(ranges(&server), [None, Some(123_456)]);
}

#[test]
fn a_server_that_ignores_ranges_and_always_cuts_is_given_up() {
    let repo = Repo::embedder();
    let server = weights(&repo, |_, _, bytes| {
        Reply::new(200, bytes).cut_after(200_000)
    });
    let site = Site::new(&server.url);
    assert_says(site.fetch("main"), &["after 200000 of 300000 bytes"]);
    // The first attempt, five retries, and one more since the first had gained ground.
    assert!(ranges(&server).len() <= 7, "{:?}", ranges(&server));
}

#[test]
fn ranges_that_are_not_what_was_asked_for_begin_again() {
    let repo = Repo::embedder();
    for odd in ["416", "shifted", "no range", "other total"] {
        let server = weights(&repo, move |n, seen, bytes| match (n, odd) {
            (0, _) => Reply::new(200, bytes).cut_after(1_000),
            (1, "416") => Reply::new(416, ""),
            (1, "shifted") => {
                Reply::new(206, &bytes[999..]).with("Content-Range", "bytes 999-299999/300000")
            }
            (1, "no range") => Reply::new(206, &bytes[1000..]),
            (1, _) => {
                Reply::new(206, &bytes[1000..]).with("Content-Range", "bytes 1000-299999/300001")
            }
            _ => Reply::file(seen, bytes),
        });
        let site = Site::new(&server.url);
        let snapshot = site.fetch("main").expect(odd);
        assert_holds(&snapshot, &repo, &Repo::wanted());
        assert_eq!(ranges(&server), [None, Some(1_000), None], "{odd}");
    }
}

#[test]
fn cancelling_in_the_middle_keeps_what_arrived() {
    let repo = Repo::embedder();
    let server = weights(&repo, |_, seen, bytes| Reply::file(seen, bytes));
    let site = Site::new(&server.url);
    let cancel = Cancel::new();
    let held = Arc::new(AtomicUsize::new(0));
    let result = site.hub().fetch_blocking(
        ID,
        "main",
        &FileSelection::embedding(),
        |progress| {
            if &*progress.file == WEIGHTS && progress.file_bytes > 0 {
                held.store(progress.file_bytes as usize, Ordering::SeqCst);
                cancel.cancel();
            }
        },
        &cancel,
    );
    let held = held.load(Ordering::SeqCst);
    if held < 300_000 {
        assert!(
            matches!(result, Err(isovec_engine::EngineError::Cancelled)),
            "{result:?}"
        );
        let partial = site.blob(&format!("{}.incomplete", repo.etag(WEIGHTS)));
        assert_eq!(std::fs::metadata(partial).expect("kept").len(), held as u64);
    }
    let snapshot = site.fetch("main").expect("goes on");
    assert_holds(&snapshot, &repo, &Repo::wanted());
    if held < 300_000 {
        assert_eq!(ranges(&server).last(), Some(&Some(held)));
    }
}
