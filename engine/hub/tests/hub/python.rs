//! The cache is shared with Python's `huggingface_hub`: each finds the files that the other fetched.
//!
//! Needs a Python that has `huggingface_hub`: `ISOVEC_PYTHON` names it, else it is `python3`.
//! `cargo test -p isovec-hub --features fetch --test hub -- --ignored python`

use std::process::Command;

use isovec_test_server::Seen;

use crate::repo::{COMMIT, ID, Repo, Site, assert_holds};

fn python(site: &Site, endpoint: &str, offline: bool, program: &str) -> String {
    let python = std::env::var("ISOVEC_PYTHON").unwrap_or_else(|_| "python3".into());
    let output = Command::new(&python)
        .args(["-c", program])
        .env("HF_HUB_CACHE", site.folder.path().join("hub"))
        .env("HF_HOME", site.folder.path())
        .env("HF_ENDPOINT", endpoint)
        .env("HF_HUB_OFFLINE", if offline { "1" } else { "0" })
        .env("HF_HUB_DISABLE_XET", "1")
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .expect("a Python with huggingface_hub");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .expect("text")
        .trim()
        .into()
}

#[test]
#[ignore = "needs a Python with huggingface_hub"]
fn python_finds_what_isovec_fetched() {
    let repo = Repo::embedder();
    let server = repo.start();
    let site = Site::new(&server.url);
    let snapshot = site.fetch("main").expect("all is well");
    server.forget();
    let found = python(
        &site,
        &server.url,
        true,
        &format!(
            "from huggingface_hub import hf_hub_download, snapshot_download, scan_cache_dir\n\
             for file in {:?}:\n\
             \x20   for revision in ['main', '{COMMIT}']:\n\
             \x20       hf_hub_download('{ID}', file, revision=revision)\n\
             info = scan_cache_dir()\n\
             assert not info.warnings, info.warnings\n\
             repo, = info.repos\n\
             revision, = repo.revisions\n\
             assert (repo.repo_id, revision.commit_hash, set(revision.refs)) == ('{ID}', '{COMMIT}', {{'main'}})\n\
             print(snapshot_download('{ID}'))",
            Repo::wanted()
        ),
    );
    assert_eq!(found, snapshot.folder.to_str().expect("unicode"));
    assert_eq!(server.seen().len(), 0);
}

#[test]
#[ignore = "needs a Python with huggingface_hub"]
fn isovec_finds_what_python_fetched() {
    let repo = Repo::embedder();
    // Python asks for the files of a branch by its name.
    let server = repo.start_with(|repo, seen| {
        let target = seen
            .target
            .replace("/resolve/main/", &format!("/resolve/{COMMIT}/"));
        Some(repo.serve(&Seen {
            target,
            ..seen.clone()
        }))
    });
    let mut site = Site::new(&server.url);
    python(
        &site,
        &server.url,
        false,
        &format!(
            "from huggingface_hub import hf_hub_download\n\
             for file in {:?}:\n\
             \x20   hf_hub_download('{ID}', file)",
            Repo::wanted()
        ),
    );
    server.forget();
    site.config.offline = true;
    let snapshot = site.fetch("main").expect("cached by Python");
    assert_holds(&snapshot, &repo, &Repo::wanted());
    site.config.offline = false;
    let snapshot = site.fetch("main").expect("cached by Python");
    assert_holds(&snapshot, &repo, &Repo::wanted());
    assert_eq!(server.seen().len(), 1, "the list alone");
}
