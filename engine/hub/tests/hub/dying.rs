//! A process that dies in the middle of a fetch, at every report of its progress: the remaining file is whole where
//! it is visible, and the next process goes on from it.

use std::process::Command;

use isovec_engine::cancel::Cancel;
use isovec_hub::{FileSelection, Hub, HubConfig};
use isovec_test_server::Seen;

use crate::repo::{COMMIT, ID, Repo, Site, TOKEN, WEIGHTS, assert_holds};

const AT: &str = "ISOVEC_TEST_DIE_AT";
const ENDPOINT: &str = "ISOVEC_TEST_ENDPOINT";
const CACHE: &str = "ISOVEC_TEST_CACHE";

/// The process that dies. As a test of its own it does nothing.
#[test]
fn a_child_that_dies() {
    let Some(at) = std::env::var(AT)
        .ok()
        .and_then(|at| at.parse::<usize>().ok())
    else {
        return;
    };
    let mut config = HubConfig::from_lookup(&|_| None, None);
    config.endpoint = std::env::var(ENDPOINT).expect("an endpoint");
    config.cache_dir = std::env::var_os(CACHE).map(Into::into);
    config.token = Some(TOKEN.into());
    let reports = std::sync::atomic::AtomicUsize::new(0);
    let hub = Hub::new(config).expect("a usable configuration");
    let fetched = hub.fetch_blocking(
        ID,
        "main",
        &FileSelection::embedding(),
        |_| {
            if reports.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == at {
                // No destructor runs, and nothing is flushed.
                std::process::abort();
            }
        },
        &Cancel::new(),
    );
    fetched.expect("it lived");
}

#[test]
fn what_a_dead_process_leaves_is_whole_or_gone_on_with() {
    let repo = Repo::embedder();
    let server = repo.start();
    // Until a child lives to the end; there are a few reports for each of six files.
    for at in 0..1000 {
        let site = Site::new(&server.url);
        server.forget();
        let child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "dying::a_child_that_dies"])
            .env(AT, at.to_string())
            .env(ENDPOINT, &server.url)
            .env(CACHE, site.folder.path().join("hub"))
            .output()
            .expect("it starts");
        let snapshot = site.repo_folder().join("snapshots").join(COMMIT);
        let mut visible = 0;
        for name in Repo::wanted() {
            if let Ok(bytes) = std::fs::read(snapshot.join(name)) {
                assert!(bytes == repo.files[name], "{name} is visible and not whole");
                visible += 1;
            }
        }
        let is_said_to_be_whole = site.repo_folder().join("refs/main").exists();
        assert!(!is_said_to_be_whole || visible == Repo::wanted().len());
        let partial = site.blob(&format!("{}.incomplete", repo.etag(WEIGHTS)));
        let held = std::fs::read(partial).unwrap_or_default();
        assert!(repo.files[WEIGHTS].starts_with(&held));

        server.forget();
        let fetched = site.fetch("main").expect("the next one goes on");
        assert_holds(&fetched, &repo, &Repo::wanted());
        let ranges: Vec<_> = server
            .seen()
            .iter()
            .filter(|seen| repo.asked(seen) == Some(WEIGHTS))
            .map(Seen::range_start)
            .collect();
        if !held.is_empty() && held.len() < repo.files[WEIGHTS].len() {
            assert_eq!(ranges, [Some(held.len())], "died at {at}");
        }
        if child.status.success() {
            assert!(at > 6, "it died at least once for each file");
            return;
        }
    }
    panic!("the child never came to an end");
}
