//! The faults of a hub, and the caller's errors.

use std::sync::atomic::{AtomicUsize, Ordering};

use isovec_engine::EngineError;
use isovec_engine::cancel::Cancel;
use isovec_hub::{FileSelection, Hub, HubConfig};
use isovec_test_server::{Reply, Server};

use crate::repo::{COMMIT, ID, Repo, Site, TOKEN, WEIGHTS, assert_holds, assert_says, checksum};

/// Answers every request for a file list with this.
fn lists(reply: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Server {
    let count = AtomicUsize::new(0);
    Repo::embedder().start_with(move |_, seen| {
        seen.target
            .starts_with("/api/")
            .then(|| reply(count.fetch_add(1, Ordering::SeqCst)))
    })
}

/// Answers every request for the weights with this.
fn weights(reply: impl Fn(usize, &[u8]) -> Reply + Send + Sync + 'static) -> Server {
    let count = AtomicUsize::new(0);
    Repo::embedder().start_with(move |repo, seen| {
        (repo.asked(seen) == Some(WEIGHTS))
            .then(|| reply(count.fetch_add(1, Ordering::SeqCst), &repo.files[WEIGHTS]))
    })
}

fn files_asked(server: &Server) -> usize {
    let of_weights = |target: &str| target.ends_with(WEIGHTS);
    server
        .seen()
        .iter()
        .filter(|seen| of_weights(&seen.target))
        .count()
}

#[test]
fn an_id_that_cannot_be_one_is_refused_before_any_request() {
    let server = Repo::embedder().start();
    let hub = Site::new(&server.url).hub();
    let wanted = FileSelection::embedding();
    for id in [
        "",
        "../x",
        "a/b/c",
        "a b",
        "a--b",
        "https://huggingface.co/a/b",
        "a\\b",
    ] {
        let result = hub.fetch_blocking(id, "main", &wanted, |_| {}, &Cancel::new());
        assert_says(result, &["is not a model id", "organisation/name"]);
    }
    for revision in ["", "../x", "a b", "x?y"] {
        let result = hub.fetch_blocking(ID, revision, &wanted, |_| {}, &Cancel::new());
        assert_says(result, &["is not a revision"]);
    }
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn a_configuration_that_cannot_work_is_refused_at_once() {
    let build = |change: &dyn Fn(&mut HubConfig)| {
        let mut config = Site::new("http://127.0.0.1:1").config;
        change(&mut config);
        Hub::new(config)
    };
    for endpoint in [
        "huggingface.co",
        "ftp://x",
        "http://u:p@x",
        "http://x?y=1",
        "http://",
    ] {
        assert_says(build(&|c| c.endpoint = endpoint.into()), &["endpoint"]);
    }
    assert_says(build(&|c| c.token = Some("two words".into())), &["token"]);
    assert_says(build(&|c| c.cache_dir = None), &["HF_HOME"]);
    let error = assert_says(
        build(&|c| c.proxy.https = Some("gopher://me:pass@x".into())),
        &["proxy for https"],
    );
    assert!(!error.to_string().contains("pass"));
    assert_eq!(error.kind(), "Config");
    assert!(!format!("{:?}", Site::new("http://x").hub()).contains(TOKEN));
}

#[test]
fn what_is_not_found_is_named() {
    let repo = Repo::embedder();
    let server = repo.start();
    let mut site = Site::new(&server.url);
    let unknown = |site: &Site| {
        site.hub().fetch_blocking(
            "acme/unknown",
            "main",
            &FileSelection::embedding(),
            |_| {},
            &Cancel::new(),
        )
    };
    assert_says(
        unknown(&site),
        &[
            "model acme/unknown was not found (404)",
            "the token may read it",
        ],
    );
    assert_says(
        site.fetch("v9"),
        &["revision v9 of acme/tiny-embedder was not found (404)"],
    );
    site.config.token = None;
    assert_says(unknown(&site), &["404", "HF_TOKEN"]);
    let wanted = FileSelection::files(["config.json", "weights.gguf"]);
    let error = assert_says(
        site.fetch_these("main", &wanted),
        &["weights.gguf", "config.json"],
    );
    assert_eq!(error.kind(), "MissingFile");
    // Listed, but not served.
    let server = weights(|_, _| Reply::new(404, "").with("X-Error-Code", "EntryNotFound"));
    let site = Site::new(&server.url);
    assert_says(
        site.fetch("main"),
        &["model.safetensors of acme/tiny-embedder", "404"],
    );
    assert_eq!(files_asked(&server), 1, "a 404 is not tried again");
}

#[test]
fn a_private_or_gated_model_says_what_to_do() {
    let server = lists(|_| {
        Reply::new(401, "")
            .with("X-Error-Code", "RepoNotFound")
            .with("X-Error-Message", "Invalid username or password.")
    });
    let mut site = Site::new(&server.url);
    assert_says(
        site.fetch("main"),
        &["401", "Invalid username", "does not accept the token"],
    );
    site.config.token = None;
    assert_says(
        site.fetch("main"),
        &["does not exist, or needs a token", "HF_TOKEN"],
    );
    let server = weights(|_, _| Reply::new(403, "").with("X-Error-Code", "GatedRepo"));
    let site = Site::new(&server.url);
    let page = format!("{}/{ID}", server.url);
    assert_says(site.fetch("main"), &["403", "accept its terms", &page]);
}

#[test]
fn a_hub_in_trouble_is_asked_again_and_then_given_up() {
    for status in [429, 500, 502, 503, 504] {
        let repo = Repo::embedder();
        let server = lists(move |n| {
            if n < 3 {
                Reply::new(status, "")
            } else {
                Repo::embedder().api()
            }
        });
        let site = Site::new(&server.url);
        let snapshot = site.fetch("main").expect("the fourth time");
        assert_holds(&snapshot, &repo, &Repo::wanted());
        let server = weights(move |n, bytes| {
            if n < 3 {
                Reply::new(status, "")
            } else {
                Reply::new(200, bytes)
            }
        });
        let site = Site::new(&server.url);
        let snapshot = site.fetch("main").expect("the fourth time");
        assert_holds(&snapshot, &repo, &Repo::wanted());
    }
    let server = lists(|_| Reply::new(500, "oops"));
    assert_says(
        Site::new(&server.url).fetch("main"),
        &["in trouble (500)", "HF_HUB_OFFLINE"],
    );
    assert_eq!(server.seen().len(), 6, "once and five times again");
    let server = weights(|_, _| Reply::new(503, ""));
    assert_says(Site::new(&server.url).fetch("main"), &["in trouble (503)"]);
    assert_eq!(files_asked(&server), 6);
}

#[test]
fn retry_after_is_heeded_and_too_long_a_wait_is_an_error() {
    let server = lists(|n| match n {
        0 => Reply::new(429, "").with("Retry-After", "0"),
        1 => Reply::new(429, "")
            .with("Date", "Sat, 21 Nov 2026 10:00:00 GMT")
            .with("Retry-After", "Sat, 21 Nov 2026 09:59:00 GMT"),
        _ => Repo::embedder().api(),
    });
    Site::new(&server.url)
        .fetch("main")
        .expect("after the wait");
    for after in ["3600", "Sat, 21 Nov 2026 11:00:00 GMT"] {
        let server = lists(move |_| {
            Reply::new(429, "")
                .with("Date", "Sat, 21 Nov 2026 10:00:00 GMT")
                .with("Retry-After", after)
        });
        assert_says(
            Site::new(&server.url).fetch("main"),
            &["too many requests (429)"],
        );
        assert_eq!(server.seen().len(), 1, "nobody waits for an hour");
    }
}

#[test]
fn a_web_page_is_not_a_model() {
    let page = || {
        Reply::new(
            200,
            "<!DOCTYPE html><title>Sign in to the guest network</title>",
        )
    };
    let server = lists(move |_| page().with("Content-Type", "text/html; charset=utf-8"));
    assert_says(
        Site::new(&server.url).fetch("main"),
        &["HTML page", "HF_ENDPOINT"],
    );
    let server = lists(move |_| page());
    assert_says(Site::new(&server.url).fetch("main"), &["HTML page"]);
    let server = weights(move |_, _| page().with("Content-Type", "text/html"));
    let site = Site::new(&server.url);
    assert_says(site.fetch("main"), &["HTML page", WEIGHTS]);
    assert!(!site.blob(&Repo::embedder().etag(WEIGHTS)).exists());
    let server = lists(|_| Reply::new(200, "{\"sha\": 5}"));
    assert_says(
        Site::new(&server.url).fetch("main"),
        &["not a model's file list"],
    );
}

#[test]
fn half_a_file_is_never_taken_for_one() {
    // A length that is honest about the half, and no length at all.
    for declared in [true, false] {
        let server = weights(move |_, bytes| {
            let mut reply = Reply::new(200, &bytes[..150_000]);
            if !declared {
                reply.declared = None;
            }
            reply
        });
        let site = Site::new(&server.url);
        let said = if declared {
            "sends 150000 bytes where 300000 are due"
        } else {
            "after 150000 of 300000 bytes"
        };
        assert_says(site.fetch("main"), &[WEIGHTS, said]);
        assert!(!site.blob(&Repo::embedder().etag(WEIGHTS)).exists());
        assert!(
            !site
                .repo_folder()
                .join("snapshots")
                .join(COMMIT)
                .join(WEIGHTS)
                .exists()
        );
    }
}

#[test]
fn more_bytes_than_declared_are_refused() {
    let server = weights(|_, bytes| {
        let mut long = bytes.to_vec();
        long.extend_from_slice(b"and more");
        let mut reply = Reply::new(200, long);
        reply.declared = None;
        reply
    });
    let site = Site::new(&server.url);
    assert_says(site.fetch("main"), &["more than the 300000 bytes"]);
    assert!(!site.blob(&Repo::embedder().etag(WEIGHTS)).exists());
}

#[test]
fn wrong_bytes_are_fetched_once_more_and_then_refused_with_both_checksums() {
    let wrong = |bytes: &[u8]| {
        let mut wrong = bytes.to_vec();
        wrong[123_456] ^= 1;
        wrong
    };
    let server = weights(move |n, bytes| {
        Reply::new(200, if n == 0 { wrong(bytes) } else { bytes.to_vec() })
    });
    let site = Site::new(&server.url);
    let snapshot = site.fetch("main").expect("right the second time");
    assert_holds(&snapshot, &Repo::embedder(), &Repo::wanted());

    let server = weights(move |_, bytes| Reply::new(200, wrong(bytes)));
    let site = Site::new(&server.url);
    let repo = Repo::embedder();
    let bad = checksum(&wrong(&repo.files[WEIGHTS]), true);
    assert_says(site.fetch("main"), &[&bad, &repo.etag(WEIGHTS), "twice"]);
    assert_eq!(files_asked(&server), 2);
    assert!(!site.blob(&repo.etag(WEIGHTS)).exists());
    let partial = site.blob(&format!("{}.incomplete", repo.etag(WEIGHTS)));
    assert_eq!(
        std::fs::metadata(partial)
            .map(|meta| meta.len())
            .unwrap_or(0),
        0
    );
    assert!(
        !site
            .repo_folder()
            .join("snapshots")
            .join(COMMIT)
            .join(WEIGHTS)
            .exists()
    );

    // Small files have git's checksum.
    let server = Repo::embedder().start_with(|repo, seen| {
        (repo.asked(seen) == Some("tokenizer.json"))
            .then(|| Reply::new(200, r#"{"version":"1.1"}"#))
    });
    let etag = repo.etag("tokenizer.json");
    assert_says(
        Site::new(&server.url).fetch("main"),
        &["git blob", &etag, "tokenizer.json"],
    );
}

#[test]
fn a_hub_that_contradicts_itself_is_not_believed() {
    let other = "9".repeat(40);
    let server = weights({
        let other = other.clone();
        move |_, bytes| Reply::new(200, bytes).with("X-Repo-Commit", &other)
    });
    assert_says(
        Site::new(&server.url).fetch("main"),
        &["commit", &other, COMMIT],
    );
    let server = weights(|_, bytes| {
        Reply::new(200, bytes).with("X-Linked-Etag", format!("\"{}\"", "8".repeat(64)))
    });
    assert_says(
        Site::new(&server.url).fetch("main"),
        &["checksum", &"8".repeat(64)],
    );
    // A commit is asked for, and another comes.
    let server = Repo::embedder()
        .start_with(|repo, seen| seen.target.starts_with("/api/").then(|| repo.api()));
    assert_says(
        Site::new(&server.url).fetch(&other),
        &["answers with commit", COMMIT],
    );
}

#[test]
fn hostile_names_reach_neither_disk_nor_server() {
    for (name, said) in [
        ("../../../../tmp/evil", "leads out"),
        ("/etc/cron.d/evil", "absolute"),
        ("a\\\\..\\\\evil", "backslash"),
        ("a\\u0000b", "control"),
    ] {
        let server = lists(move |_| {
            Reply::new(
                200,
                format!(r#"{{"sha":"{COMMIT}","siblings":[{{"rfilename":"{name}"}}]}}"#),
            )
        });
        let site = Site::new(&server.url);
        assert_says(site.fetch("main"), &[said]);
        assert_eq!(files_asked(&server), 0);
        assert!(!site.repo_folder().exists());
    }
    // An entity tag that is a path.
    let server = Repo::embedder().start_with(|repo, seen| {
        if seen.target.starts_with("/api/") {
            let names: Vec<_> = repo
                .files
                .keys()
                .map(|p| format!(r#"{{"rfilename":"{p}"}}"#))
                .collect();
            let json = format!(r#"{{"sha":"{COMMIT}","siblings":[{}]}}"#, names.join(","));
            return Some(Reply::new(200, json));
        }
        Some(Reply::new(200, "x").with("ETag", "\"../../evil\""))
    });
    let site = Site::new(&server.url);
    assert_says(site.fetch("main"), &["ETag has characters"]);
    assert!(!site.repo_folder().exists());
}

#[test]
fn redirects_in_a_circle_end() {
    let server = lists(|_| Reply::new(302, "").with("Location", "/api/again"));
    assert_says(
        Site::new(&server.url).fetch("main"),
        &["redirected more than 10 times"],
    );
    let server = lists(|_| Reply::new(302, "").with("Location", "file:///etc/passwd"));
    assert_says(Site::new(&server.url).fetch("main"), &["302", "no address"]);
}

#[test]
fn limits_hold_before_anything_large_is_fetched() {
    let server = Repo::embedder().start();
    let mut site = Site::new(&server.url);
    site.config.max_file_bytes = 299_999;
    assert_says(
        site.fetch("main"),
        &[WEIGHTS, "300000 bytes", "299999", "max_file_bytes"],
    );
    assert_eq!(files_asked(&server), 0);
    let mut site = Site::new(&server.url);
    site.config.max_files = 5;
    assert_says(site.fetch("main"), &["6 files", "limit of 5", "max_files"]);
    assert_eq!(files_asked(&server), 0);
}

#[test]
fn a_repository_without_weights_says_what_it_has() {
    let mut repo = Repo::embedder();
    repo.files.remove(WEIGHTS);
    repo.files.remove("onnx/model.onnx");
    let server = repo.start();
    let error = assert_says(
        Site::new(&server.url).fetch("main"),
        &["pytorch_model.bin", "safetensors", "ONNX"],
    );
    assert_eq!(error.kind(), "MissingFile");
}

#[test]
fn no_hub_at_all() {
    // Bound and dropped: nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port")
        .port();
    let mut site = Site::new(&format!("http://127.0.0.1:{port}"));
    site.config.retry.retries = 1;
    let error = assert_says(site.fetch("main"), &["connection failed", "HF_HUB_OFFLINE"]);
    assert_eq!(error.kind(), "Hub");
    assert!(matches!(error, EngineError::Hub { .. }));
}
