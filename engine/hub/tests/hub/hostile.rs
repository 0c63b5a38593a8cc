//! Answers that are made to harm: bodies without end, headers without end, lists of everything.

use isovec_hub::FileSelection;
use isovec_test_server::{After, Reply, Server};

use crate::repo::{COMMIT, Repo, Site, WEIGHTS, assert_says};

fn list(siblings: String) -> Reply {
    Reply::new(
        200,
        format!(r#"{{"sha":"{COMMIT}","siblings":[{siblings}]}}"#),
    )
}

/// The list is answered by `reply`; everything else is as usual.
fn lists(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Server {
    Repo::embedder().start_with(move |_, seen| seen.target.starts_with("/api/").then(&reply))
}

/// The weights are answered by `reply`.
fn weights(reply: impl Fn(&[u8]) -> Reply + Send + Sync + 'static) -> Server {
    Repo::embedder().start_with(move |repo, seen| {
        (repo.asked(seen) == Some(WEIGHTS)).then(|| reply(&repo.files[WEIGHTS]))
    })
}

fn impatient(server: &Server) -> Site {
    let mut site = Site::new(&server.url);
    site.config.retry.retries = 1;
    site
}

#[test]
fn a_list_without_end_is_left() {
    let server = lists(|| {
        let mut reply = Reply::new(200, vec![b' '; 1 << 20]).without_length();
        reply.after = After::Again;
        reply
    });
    let error = assert_says(impatient(&server).fetch("main"), &["file list"]);
    assert_eq!(error.kind(), "InputTooLarge");
    assert_eq!(server.seen().len(), 1, "it would not be shorter next time");
}

#[test]
fn a_file_without_end_is_left_where_it_should_end() {
    let server = weights(|bytes| {
        let mut reply = Reply::new(200, bytes).without_length();
        reply.after = After::Again;
        reply
    });
    let site = impatient(&server);
    assert_says(site.fetch("main"), &[WEIGHTS, "more than the 300000 bytes"]);
    let partial = site.blob(&format!("{}.incomplete", Repo::embedder().etag(WEIGHTS)));
    let held = std::fs::metadata(partial).map_or(0, |meta| meta.len());
    assert_eq!(held, 0, "what is too long is not what was wanted");
}

#[test]
fn headers_without_end_are_left() {
    let long = || list(String::new()).with("X-Long", "x".repeat(1 << 20));
    let many = || {
        let mut reply = list(String::new());
        for at in 0..20_000 {
            reply = reply.with(&format!("X-{at}"), "x");
        }
        reply
    };
    for server in [lists(long), lists(many)] {
        assert_says(impatient(&server).fetch("main"), &["http://127.0.0.1"]);
        assert!(server.seen().len() <= 2);
    }
}

#[test]
fn an_answer_that_is_coded_is_not_taken_for_the_file() {
    // Anything will do: nothing is decoded.
    let coded = |body: &'static [u8]| Reply::new(200, body).with("Content-Encoding", "gzip");
    let server = lists(move || coded(b"\x1f\x8b\x08\x00"));
    assert_says(impatient(&server).fetch("main"), &["coded (gzip)"]);
    let server = weights(move |_| coded(b"\x1f\x8b\x08\x00"));
    let site = impatient(&server);
    assert_says(site.fetch("main"), &[WEIGHTS, "coded (gzip)"]);

    // Where the list names no checksum, its length would have been the coded one.
    let server = Repo::embedder().start_with(move |_, seen| {
        Some(if seen.target.starts_with("/api/") {
            list(r#"{"rfilename":"config.json"}"#.into())
        } else {
            coded(b"\x1f\x8b\x08\x00").with("ETag", "\"abc-gzip\"")
        })
    });
    let site = impatient(&server);
    let fetched = site.fetch_these("main", &FileSelection::files(["config.json"]));
    assert_says(fetched, &["coded (gzip)"]);
    assert!(!site.repo_folder().join("blobs").exists());
}

#[test]
fn a_file_of_unknown_length_is_refused_before_it_is_fetched() {
    let server = Repo::embedder().start_with(|_, seen| {
        Some(if seen.target.starts_with("/api/") {
            list(r#"{"rfilename":"config.json"}"#.into())
        } else {
            Reply::new(200, "{}")
                .without_length()
                .with("ETag", "\"abc\"")
        })
    });
    let site = impatient(&server);
    let fetched = site.fetch_these("main", &FileSelection::files(["config.json"]));
    assert_says(fetched, &["does not state the size"]);
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| seen.method != "GET" || seen.target.starts_with("/api/"))
    );
}

#[test]
fn a_blob_is_never_called_like_the_beginning_of_another() {
    // `a.incomplete` would be where the file `a` is fetched into.
    let server = Repo::embedder().start_with(|_, seen| {
        Some(if seen.target.starts_with("/api/") {
            list(r#"{"rfilename":"one"},{"rfilename":"two"}"#.into())
        } else if seen.target.ends_with("/one") {
            Reply::new(200, "1").with("ETag", "\"a.incomplete\"")
        } else {
            Reply::new(200, "22").with("ETag", "\"a\"")
        })
    });
    let site = impatient(&server);
    let fetched = site.fetch_these("main", &FileSelection::files(["one", "two"]));
    assert_says(fetched, &["ETag"]);
    assert!(!site.repo_folder().join("snapshots").exists());
}

#[test]
fn lists_of_everything_are_refused_by_name() {
    let name = |name: &str| format!(r#"{{"rfilename":{}}}"#, serde_json::json!(name));
    let many: Vec<String> = (0..1_000_000).map(|at| name(&at.to_string())).collect();
    let many = many.join(",");
    let deep = "[".repeat(100_000);
    let cases: Vec<(String, &str)> = vec![
        (many, "more than 100000 files"),
        (name("../../evil"), "leads out"),
        (name("a/../../evil"), "leads out"),
        (name("/etc/passwd"), "absolute"),
        (name("C:\\evil"), "backslash"),
        (name("a\0b"), "control"),
        (name("a//b"), "empty part"),
        (name(&"a/".repeat(600)), "1024 bytes"),
        (name(&"a".repeat(300)), "255 bytes"),
        (name(""), "is empty"),
        (format!("{},{}", name("a"), name("a")), "twice"),
        (format!(r#"{{"rfilename":"a","x":{deep}"#), "file list"),
        (r#"{"rfilename":"a","size":1e300}"#.into(), "file list"),
        (
            r#"{"rfilename":"a","size":18446744073709551616}"#.into(),
            "file list",
        ),
    ];
    for (siblings, said) in cases {
        let server = lists(move || list(siblings.clone()));
        let site = impatient(&server);
        assert_says(site.fetch("main"), &[said]);
        assert_eq!(server.seen().len(), 1, "{said}: nothing else is asked");
        assert!(!site.repo_folder().exists(), "{said}");
    }
}

#[test]
fn names_that_are_others_elsewhere_hurt_nobody() {
    // Two names that differ in case, and names that Windows would shorten: legal in git.
    let repo = Repo::embedder();
    let mut odd = repo.clone();
    for name in [
        "Config.json",
        "CONFIG.JSON",
        "config.json.",
        "config.json ",
        "a/.. /b",
    ] {
        odd.files.insert(name.into(), b"another".to_vec());
    }
    let server = odd.start();
    let site = Site::new(&server.url);
    let snapshot = site.fetch("main").expect("what is wanted is there");
    let read = |name: &str| std::fs::read(snapshot.folder.join(name)).expect(name);
    assert!(read("config.json") == repo.files["config.json"]);
    let asked = |name: &str| {
        let encoded = name.replace(' ', "%20");
        server
            .seen()
            .iter()
            .any(|seen| seen.target.ends_with(&encoded))
    };
    assert!(!asked("/CONFIG.JSON") && !asked("/config.json.") && !asked("/config.json "));
    // A path that needs the file `config.json` to be a folder.
    let server = lists(|| list(r#"{"rfilename":"a"},{"rfilename":"a/b"}"#.into()));
    let fetched = impatient(&server).fetch_these("main", &FileSelection::files(["a", "a/b"]));
    assert!(fetched.is_err());
}

#[test]
fn a_file_larger_than_any_number_is_refused_by_its_limit() {
    let server = lists(|| {
        list(format!(
            r#"{{"rfilename":"config.json","size":{0},"blobId":"{1}"}},{{"rfilename":"model.safetensors","size":{0},"lfs":{{"sha256":"{2}","size":{0}}}}}"#,
            u64::MAX,
            "a".repeat(40),
            "b".repeat(64)
        ))
    });
    let site = impatient(&server);
    assert_says(site.fetch("main"), &["18446744073709551615 bytes", "limit"]);
    assert_eq!(server.seen().len(), 1);
}
