//! Connections that are cut at every place: what is visible afterwards is whole, and the resumed
//! file equals the undisturbed one byte for byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use isovec_hub::FileSelection;
use isovec_test_server::{Reply, Seen, Server};

use crate::repo::{COMMIT, ID, Repo, Site, WEIGHTS, assert_says};

/// A repository of one file.
fn single(name: &str, bytes: &[u8]) -> Repo {
    Repo {
        commit: COMMIT.into(),
        files: [(name.to_owned(), bytes.to_vec())].into(),
    }
}

/// Nothing is visible that is not whole.
fn assert_whole(site: &Site, repo: &Repo) {
    let snapshot = site.repo_folder().join("snapshots").join(COMMIT);
    for (name, bytes) in &repo.files {
        if let Ok(seen) = std::fs::read(snapshot.join(name)) {
            assert!(seen == *bytes, "{name} is visible and differs");
        }
        let etag = repo.etag(name);
        if let Ok(blob) = std::fs::read(site.blob(&etag)) {
            assert!(blob == *bytes, "the blob of {name} differs");
        }
    }
    if site.repo_folder().join("refs/main").exists() {
        for (name, bytes) in &repo.files {
            let seen = std::fs::read(snapshot.join(name)).expect("a ref leads to whole snapshots");
            assert!(seen == *bytes, "{name} differs");
        }
    }
}

/// The first answer for a file is cut, all others are not.
fn cut_once(repo: &Repo, name: &'static str, at: usize) -> Server {
    let count = AtomicUsize::new(0);
    repo.start_with(move |repo, seen| {
        let asked = repo.asked(seen) == Some(name);
        (asked && count.fetch_add(1, Ordering::SeqCst) == 0).then(|| repo.serve(seen).cut_after(at))
    })
}

/// Fetches without patience and then with, and checks the cache after each.
fn fetch_twice(repo: &Repo, name: &'static str, server: &Server, at: usize) {
    let mut site = Site::new(&server.url);
    let wanted = FileSelection::files([name]);
    site.config.retry.retries = 0;
    let first = site.fetch_these("main", &wanted);
    assert_whole(&site, repo);
    assert_eq!(first.is_ok(), at >= repo.files[name].len(), "cut at {at}");
    let partial = site.blob(&format!("{}.incomplete", repo.etag(name)));
    let held = std::fs::read(&partial).unwrap_or_default();
    assert!(repo.files[name].starts_with(&held), "cut at {at}");
    let second = site.fetch_these("main", &wanted).expect("all is well");
    let bytes = std::fs::read(second.folder.join(name)).expect("it is there");
    assert!(bytes == repo.files[name], "cut at {at}");
    assert_whole(&site, repo);
    // What had come was not asked for again.
    let ranges: Vec<_> = server
        .seen()
        .iter()
        .filter(|seen| repo.asked(seen) == Some(name))
        .map(Seen::range_start)
        .collect();
    let expected = match (first.is_ok(), held.len()) {
        (true, _) => vec![None],
        (false, 0) => vec![None, None],
        (false, held) => vec![None, Some(held)],
    };
    assert_eq!(ranges, expected, "cut at {at}");
}

#[test]
fn a_small_file_that_is_cut_at_every_byte() {
    let repo = single("config.json", br#"{"architectures":["BertModel"]}"#);
    for at in 0..=repo.files["config.json"].len() {
        let server = cut_once(&repo, "config.json", at);
        fetch_twice(&repo, "config.json", &server, at);
    }
}

#[test]
fn a_large_file_that_is_cut_around_the_edges_of_chunks() {
    let weights = Repo::embedder().files[WEIGHTS].clone();
    let repo = single(WEIGHTS, &weights);
    // Chunks of the transport, of the server's socket, and the end.
    let edges = [0, 1 << 10, 1 << 14, 1 << 16, 1 << 17, 1 << 18, 300_000];
    for edge in edges {
        for at in [edge.max(1) - 1, edge, edge + 1] {
            let server = cut_once(&repo, WEIGHTS, at);
            fetch_twice(&repo, WEIGHTS, &server, at);
        }
    }
}

#[test]
fn a_list_that_is_cut_at_every_byte() {
    let repo = single("config.json", b"{}");
    let whole = repo.api().body.len();
    for (at, has_length) in (0..=whole).flat_map(|at| [(at, true), (at, false)]) {
        let count = AtomicUsize::new(0);
        let server = repo.start_with(move |repo, seen| {
            let asked = seen.target.starts_with("/api/");
            (asked && count.fetch_add(1, Ordering::SeqCst) == 0).then(|| {
                let reply = repo.api().cut_after(at);
                if has_length {
                    reply
                } else {
                    reply.without_length()
                }
            })
        });
        let site = Site::new(&server.url);
        let fetched = site.fetch_these("main", &FileSelection::files(["config.json"]));
        // Without a length nobody can tell a cut list from one that is no list.
        assert_eq!(
            fetched.is_ok(),
            has_length || at == whole,
            "cut at {at}: {fetched:?}"
        );
        assert_whole(&site, &repo);
    }
}

/// The listing says nothing of sizes and checksums, so that only headers tell states apart.
fn without_checksums(seen: &Seen, name: &str) -> Option<Reply> {
    seen.target.starts_with("/api/").then(|| {
        Reply::new(
            200,
            format!(r#"{{"sha":"{COMMIT}","siblings":[{{"rfilename":"{name}"}}]}}"#),
        )
    })
}

#[test]
fn a_file_that_changes_between_two_parts_is_never_put_together() {
    let (old, new) = (vec![b'o'; 5000], vec![b'n'; 5000]);
    let etags = [Some("\"old-1\""), Some("\"new-1\""), None];
    for later in etags {
        let count = Arc::new(AtomicUsize::new(0));
        let server = single("f.bin", &old).start_with({
            let (old, new, count) = (old.clone(), new.clone(), Arc::clone(&count));
            move |_, seen| {
                if let Some(list) = without_checksums(seen, "f.bin") {
                    return Some(list);
                }
                let tagged = |reply: Reply, etag: Option<&str>| match etag {
                    Some(etag) => reply.with("ETag", etag),
                    None => reply,
                };
                Some(match (seen.method.as_str(), count.load(Ordering::SeqCst)) {
                    ("HEAD", 0) => tagged(Reply::file(seen, &old), etags[0]),
                    ("HEAD", _) => tagged(Reply::file(seen, &new), Some("\"new-1\"")),
                    (_, 0) => {
                        count.store(1, Ordering::SeqCst);
                        tagged(Reply::file(seen, &old), etags[0]).cut_after(2000)
                    }
                    // It changed; what it is called may have changed with it.
                    _ => tagged(Reply::file(seen, &new), later),
                })
            }
        });
        let site = Site::new(&server.url);
        let fetched = site.fetch_these("main", &FileSelection::files(["f.bin"]));
        let blobs = site.repo_folder().join("blobs");
        for entry in std::fs::read_dir(&blobs).expect("a folder").flatten() {
            let name = entry.file_name().into_string().expect("unicode");
            let bytes = std::fs::read(entry.path()).expect("a file");
            if !name.ends_with(".incomplete") && later != etags[0] {
                assert!(
                    bytes == old || bytes == new,
                    "{later:?}: {name} has two halves"
                );
            }
        }
        if later == Some("\"new-1\"") {
            assert_says(fetched, &["new-1", "old-1", "contradicts itself"]);
            // The next fetch asks anew what the file is.
            let again = site.fetch_these("main", &FileSelection::files(["f.bin"]));
            let folder = again.expect("the new state").folder;
            assert!(std::fs::read(folder.join("f.bin")).expect("a file") == new);
        }
    }
}

#[test]
fn answers_that_fit_nothing_end_and_leave_nothing_visible() {
    let weights = Repo::embedder().files[WEIGHTS].clone();
    let repo = single(WEIGHTS, &weights);
    let ranges = [
        "bytes 0-299999/300000",
        "bytes 1001-299999/300000",
        "bytes 1000-299999/299999",
        "bytes 1000-299998/300000",
        "bytes 1000-999/300000",
        "bytes 1000-18446744073709551615/300000",
        "bytes 1000-/300000",
        "bytes */300000",
        "lines 1000-299999/300000",
        "bytes=1000-299999/300000",
        "",
    ];
    for range in ranges {
        let first = AtomicUsize::new(0);
        let server = repo.start_with(move |repo, seen| {
            repo.asked(seen)?;
            let bytes = &repo.files[WEIGHTS];
            Some(match first.fetch_add(1, Ordering::SeqCst) {
                0 => Reply::new(200, bytes.clone()).cut_after(1000),
                // Whatever is asked, and the part that the range would be of.
                _ => Reply::new(206, &bytes[1000..]).with("Content-Range", range),
            })
        });
        let mut site = Site::new(&server.url);
        site.config.retry.retries = 2;
        let fetched = site.fetch_these("main", &FileSelection::files([WEIGHTS]));
        assert_says(fetched, &[WEIGHTS]);
        assert_whole(&site, &repo);
        assert!(!site.blob(&repo.etag(WEIGHTS)).exists(), "{range}");
        // A server that behaves brings it to an end.
        let server = repo.start();
        site.config.endpoint = server.url.clone();
        site.fetch_these("main", &FileSelection::files([WEIGHTS]))
            .expect("all is well");
        assert_whole(&site, &repo);
    }
}

#[test]
fn a_server_that_sends_less_than_was_asked_for_is_asked_for_the_rest() {
    // RFC 9110, section 14.2: a server may send a part of the range.
    let weights = Repo::embedder().files[WEIGHTS].clone();
    let repo = single(WEIGHTS, &weights);
    let server = repo.start_with(|repo, seen| {
        repo.asked(seen)?;
        let bytes = &repo.files[WEIGHTS];
        let from = seen.range_start().unwrap_or(0);
        let to = (from + 100_000).min(bytes.len());
        if from == 0 {
            return Some(Reply::new(200, bytes.clone()).cut_after(to));
        }
        let range = format!("bytes {from}-{}/{}", to - 1, bytes.len());
        Some(Reply::new(206, &bytes[from..to]).with("Content-Range", range))
    });
    let site = Site::new(&server.url);
    site.fetch_these("main", &FileSelection::files([WEIGHTS]))
        .expect("in three parts");
    assert_whole(&site, &repo);
    let asked: Vec<_> = server
        .seen()
        .iter()
        .filter(|seen| repo.asked(seen).is_some())
        .map(Seen::range_start)
        .collect();
    assert_eq!(asked, [None, Some(100_000), Some(200_000)]);
    assert!(server.seen()[0].target.contains(ID));
}

#[test]
fn an_answer_for_the_whole_that_cannot_be_it_costs_nothing_that_was_held() {
    let weights = Repo::embedder().files[WEIGHTS].clone();
    let repo = single(WEIGHTS, &weights);
    let first = AtomicUsize::new(0);
    let server = repo.start_with(move |repo, seen| {
        repo.asked(seen)?;
        let bytes = &repo.files[WEIGHTS];
        match first.fetch_add(1, Ordering::SeqCst) {
            0 => Some(Reply::new(200, bytes.clone()).cut_after(200_000)),
            1 => Some(Reply::new(200, "a page that is no file")),
            _ => None,
        }
    });
    let site = Site::new(&server.url);
    site.fetch_these("main", &FileSelection::files([WEIGHTS]))
        .expect("the third time");
    assert_whole(&site, &repo);
    let last = server.seen().last().and_then(Seen::range_start);
    assert_eq!(last, Some(200_000));
}

#[test]
fn two_clients_and_a_server_that_cuts_both_fill_one_cache() {
    let repo = Repo::embedder();
    let count = AtomicUsize::new(0);
    let server = repo.start_with(move |repo, seen| {
        (repo.asked(seen) == Some(WEIGHTS)).then(|| {
            // Each connection brings another part, by whichever client it is.
            let cut = 10_000 + 7_001 * count.fetch_add(1, Ordering::SeqCst);
            repo.serve(seen).cut_after(cut)
        })
    });
    let site = Site::new(&server.url);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            // Hubs of their own, as two processes have.
            scope.spawn(|| site.fetch("main").expect("all is well"));
        }
    });
    let mut wanted = repo.clone();
    wanted
        .files
        .retain(|name, _| Repo::wanted().contains(&name.as_str()));
    assert_whole(&site, &wanted);
    let mut next = 0;
    for seen in server.seen() {
        if repo.asked(&seen) == Some(WEIGHTS) {
            let from = seen.range_start().unwrap_or(0);
            assert!(from >= next, "{from} was fetched before, up to {next}");
            next = from;
        }
    }
}
