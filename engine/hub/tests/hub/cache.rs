//! The cache without the hub: offline, read-only, full, made by Python, or damaged.

use std::fs;
use std::path::Path;

use isovec_engine::cancel::Cancel;
use isovec_hub::{FileSelection, WeightFiles};
use isovec_test_server::{Reply, Server};

use crate::repo::{COMMIT, ID, Repo, Site, WEIGHTS, assert_holds, assert_says, checksum};

#[test]
fn offline_makes_no_request() {
    let repo = Repo::embedder();
    let server = repo.start();
    let mut site = Site::new(&server.url);
    site.config.offline = true;
    let error = assert_says(
        site.fetch("main"),
        &[ID, "not in the cache", "HF_HUB_OFFLINE"],
    );
    assert_eq!(error.kind(), "Hub");
    assert_eq!(server.seen().len(), 0);
    assert!(!site.repo_folder().exists(), "looking creates nothing");

    site.config.offline = false;
    site.fetch("main").expect("all is well");
    server.forget();
    site.config.offline = true;
    for revision in ["main", COMMIT] {
        assert_holds(
            &site.fetch(revision).expect("cached"),
            &repo,
            &Repo::wanted(),
        );
    }
    assert_says(site.fetch("v2"), &[ID, "v2", "not in the cache"]);
    let onnx = FileSelection::embedding().weights(WeightFiles::Onnx("onnx/model.onnx".into()));
    let error = assert_says(
        site.fetch_these("main", &onnx),
        &["onnx/model.onnx", "only a part"],
    );
    assert_eq!(error.kind(), "MissingFile");
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn offline_names_the_file_that_is_missing() {
    let server = Repo::embedder().start();
    let mut site = Site::new(&server.url);
    let snapshot = site.fetch("main").expect("all is well");
    site.config.offline = true;
    for path in [
        "tokenizer.json",
        WEIGHTS,
        "1_Pooling/config.json",
        "modules.json",
    ] {
        let aside = site.folder.path().join("aside");
        fs::rename(snapshot.folder.join(path), &aside).expect("moved");
        let error = assert_says(site.fetch("main"), &[path, "fetch it once"]);
        assert_eq!(error.kind(), "MissingFile");
        fs::rename(&aside, snapshot.folder.join(path)).expect("moved back");
    }
    site.fetch("main").expect("whole again");
}

#[test]
fn a_hub_that_is_down_does_not_matter_when_the_model_is_cached() {
    let repo = Repo::embedder();
    let server = repo.start();
    let mut site = Site::new(&server.url);
    site.fetch("main").expect("all is well");
    for reply in [
        Reply::new(503, ""),
        Reply::new(200, "<html>").with("Content-Type", "text/html"),
        Reply::new(200, "").cut_after(0),
    ] {
        let mut reply = reply;
        if reply.cut_after == Some(0) {
            reply.declared = Some(500);
        }
        let down = Server::start(move |_| reply.clone());
        site.config.endpoint = down.url.clone();
        assert_holds(&site.fetch("main").expect("cached"), &repo, &Repo::wanted());
        assert!(down.seen().len() <= 2, "nobody waits long");
    }
    // A refusal is not an outage: the model may have been withdrawn.
    let refusing = Server::start(|_| Reply::new(403, ""));
    site.config.endpoint = refusing.url.clone();
    assert_says(site.fetch("main"), &["403"]);
}

/// Lays a model out as Python's `huggingface_hub` does, without isovec's own list of files.
fn as_python_does(site: &Site, repo: &Repo, paths: &[&str]) {
    let folder = site.repo_folder();
    fs::create_dir_all(folder.join("blobs")).expect("made");
    fs::create_dir_all(folder.join("refs")).expect("made");
    fs::write(folder.join("refs/main"), COMMIT).expect("written");
    for path in paths {
        fs::write(
            folder.join("blobs").join(repo.etag(path)),
            &repo.files[*path],
        )
        .expect("written");
        let link = folder.join("snapshots").join(COMMIT).join(path);
        fs::create_dir_all(link.parent().expect("a folder")).expect("made");
        let ups = "../".repeat(2 + path.matches('/').count());
        symlink::symlink_file(format!("{ups}blobs/{}", repo.etag(path)), link).expect("linked");
    }
}

#[test]
fn what_python_has_cached_is_used() {
    let repo = Repo::embedder();
    let server = repo.start();
    let mut site = Site::new(&server.url);
    as_python_does(&site, &repo, &Repo::wanted());
    site.config.offline = true;
    assert_holds(&site.fetch("main").expect("cached"), &repo, &Repo::wanted());
    assert_holds(&site.fetch(COMMIT).expect("cached"), &repo, &Repo::wanted());
    // With a network: the list is asked for once, and no file.
    site.config.offline = false;
    assert_holds(&site.fetch(COMMIT).expect("cached"), &repo, &Repo::wanted());
    assert_eq!(server.seen().len(), 1);
    assert_holds(&site.fetch(COMMIT).expect("cached"), &repo, &Repo::wanted());
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn pythons_list_of_files_serves_as_well_as_our_own() {
    let repo = Repo::embedder();
    let server = repo.start();
    let site = Site::new(&server.url);
    as_python_does(&site, &repo, &Repo::wanted());
    let files: Vec<String> = repo
        .files
        .iter()
        .map(|(path, bytes)| {
            let size = bytes.len();
            let blob = checksum(bytes, false);
            let lfs = if Repo::is_lfs(path) {
                format!(
                    r#","lfs_sha256":"{}","lfs_size":{size},"xet_hash":"{}""#,
                    repo.etag(path),
                    "a".repeat(64)
                )
            } else {
                String::new()
            };
            format!(r#""{path}":{{"size":{size},"blob_id":"{blob}"{lfs}}}"#)
        })
        .collect();
    let trees = site.repo_folder().join("trees");
    fs::create_dir_all(&trees).expect("made");
    fs::write(
        trees.join(format!("{COMMIT}.json")),
        format!(r#"{{"format_version":1,"files":{{{}}}}}"#, files.join(",")),
    )
    .expect("written");
    assert_holds(&site.fetch(COMMIT).expect("cached"), &repo, &Repo::wanted());
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn a_part_that_python_has_cached_is_not_taken_for_the_whole() {
    // transformers fetches no modules.json: without a list of files nobody can tell whether the
    // model has one, and without it the pooling would be guessed.
    let repo = Repo::embedder();
    let server = repo.start();
    let mut site = Site::new(&server.url);
    as_python_does(&site, &repo, &["config.json", WEIGHTS, "tokenizer.json"]);
    site.config.offline = true;
    assert_says(site.fetch("main"), &["modules.json"]);
    // Python notes what it has found not to be there.
    let absent = site.repo_folder().join(".no_exist").join(COMMIT);
    fs::create_dir_all(&absent).expect("made");
    fs::write(absent.join("modules.json"), "").expect("written");
    assert_holds(
        &site.fetch("main").expect("judged whole"),
        &repo,
        &["config.json", WEIGHTS, "tokenizer.json"],
    );
    // With a network the rest is fetched, and nothing twice.
    site.config.offline = false;
    assert_holds(
        &site.fetch("main").expect("completed"),
        &repo,
        &Repo::wanted(),
    );
    assert!(
        !server
            .seen()
            .iter()
            .any(|seen| seen.target.ends_with(WEIGHTS))
    );
}

/// They have no config.json, which nobody notes to be absent.
#[test]
fn static_embeddings_that_python_has_cached_are_used() {
    let class = "sentence_transformers.models.StaticEmbedding";
    let mut repo = Repo::embedder();
    let step = |path: &str| format!(r#"[{{"path":"{path}","type":"{class}"}}]"#).into_bytes();
    let text = |text: &str| text.as_bytes().to_vec();
    let folder = [
        ("0_StaticEmbedding/model.safetensors", text("a table")),
        ("0_StaticEmbedding/tokenizer.json", text("{}")),
        ("modules.json", step("0_StaticEmbedding")),
    ];
    let names = folder.each_ref().map(|(name, _)| *name);
    repo.files = folder.map(|(name, bytes)| (name.to_owned(), bytes)).into();
    let mut site = Site::new("http://127.0.0.1:1");
    site.config.offline = true;
    as_python_does(&site, &repo, &names[..1]);
    as_python_does(&site, &repo, &names[2..]);
    assert_says(site.fetch("main"), &["0_StaticEmbedding/tokenizer.json"]);
    as_python_does(&site, &repo, &names[1..2]);
    assert_holds(&site.fetch("main").expect("whole"), &repo, &names);

    // In the root they may be Model2Vec's, which config.json says.
    let mut root = Repo::embedder();
    root.files.insert("modules.json".into(), step("."));
    let mut site = Site::new("http://127.0.0.1:1");
    site.config.offline = true;
    as_python_does(&site, &root, &[WEIGHTS, "modules.json", "tokenizer.json"]);
    assert_says(site.fetch("main"), &["config.json"]);
}

#[test]
fn damage_that_shows_is_repaired() {
    let repo = Repo::embedder();
    let server = repo.start();
    let site = Site::new(&server.url);
    site.fetch("main").expect("all is well");
    // Cut short; gone, so that the link leads nowhere; the link itself gone; not a commit.
    fs::write(site.blob(&repo.etag(WEIGHTS)), b"short").expect("written");
    fs::remove_file(site.blob(&repo.etag("config.json"))).expect("removed");
    let link = site
        .repo_folder()
        .join("snapshots")
        .join(COMMIT)
        .join("tokenizer.json");
    fs::remove_file(&link).expect("removed");
    fs::write(site.repo_folder().join("refs/main"), "half a com").expect("written");
    server.forget();
    assert_holds(
        &site.fetch(COMMIT).expect("repaired"),
        &repo,
        &Repo::wanted(),
    );
    let asked: Vec<_> = server.seen().into_iter().map(|seen| seen.target).collect();
    assert_eq!(
        asked.len(),
        2,
        "the list is known, the link's blob was there: {asked:?}"
    );
    assert_holds(
        &site.fetch("main").expect("all is well"),
        &repo,
        &Repo::wanted(),
    );
    assert_eq!(
        fs::read_to_string(site.repo_folder().join("refs/main")).expect("a ref"),
        COMMIT
    );
}

#[test]
fn without_links_the_files_are_there_all_the_same() {
    let repo = Repo::embedder();
    let server = repo.start();
    let mut site = Site::new(&server.url);
    site.config.symlinks = false;
    let snapshot = site.fetch("main").expect("all is well");
    assert_holds(&snapshot, &repo, &Repo::wanted());
    for path in Repo::wanted() {
        assert!(
            fs::symlink_metadata(snapshot.folder.join(path))
                .expect(path)
                .is_file()
        );
    }
    site.config.offline = true;
    assert_holds(&site.fetch("main").expect("cached"), &repo, &Repo::wanted());
}

#[test]
fn a_cache_that_cannot_be_written_is_named_with_a_way_out() {
    let server = Repo::embedder().start();
    let mut site = Site::new(&server.url);
    // Under a file no folder can be made, whoever asks: permissions do not bind every user.
    let file = site.folder.path().join("file");
    fs::write(&file, "").expect("written");
    site.config.cache_dir = Some(file.join("hub"));
    let error = assert_says(site.fetch("main"), &["file/hub", "HF_HOME"]);
    assert_eq!(error.kind(), "Io");
    assert!(
        !server
            .seen()
            .iter()
            .any(|seen| seen.target.ends_with(WEIGHTS))
    );
}

#[test]
fn a_read_only_cache_that_has_the_model_serves() {
    let repo = Repo::embedder();
    let server = repo.start();
    let site = Site::new(&server.url);
    site.fetch("main").expect("all is well");
    // Nothing new can be written: the places of the list and of the ref are taken by folders.
    let list = site.repo_folder().join(".isovec");
    fs::remove_dir_all(&list).expect("removed");
    fs::write(&list, "not a folder").expect("written");
    assert_holds(&site.fetch("main").expect("cached"), &repo, &Repo::wanted());
}

#[test]
fn a_full_disk_is_named_with_a_way_out() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return;
    }
    let repo = Repo::embedder();
    let server = repo.start();
    let site = Site::new(&server.url);
    let partial = site.blob(&format!("{}.incomplete", repo.etag(WEIGHTS)));
    fs::create_dir_all(partial.parent().expect("a folder")).expect("made");
    symlink::symlink_file(full, &partial).expect("linked");
    let error = assert_says(
        site.fetch("main"),
        &["incomplete", "free some space", "HF_HOME"],
    );
    assert_eq!(error.kind(), "Io");
    // With space again, the fetch goes on.
    fs::remove_file(&partial).expect("removed");
    assert_holds(
        &site.fetch("main").expect("goes on"),
        &repo,
        &Repo::wanted(),
    );
}

#[test]
fn a_lock_of_another_process_is_waited_for_and_can_be_given_up() {
    let repo = Repo::embedder();
    let server = repo.start();
    let site = Site::new(&server.url);
    let locks = site
        .folder
        .path()
        .join("hub/.locks/models--acme--tiny-embedder");
    fs::create_dir_all(&locks).expect("made");
    let lock = fs::File::create(locks.join(format!("{}.lock", repo.etag(WEIGHTS)))).expect("made");
    lock.lock().expect("free");
    let cancel = Cancel::new();
    let hub = site.hub();
    let result = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            hub.fetch_blocking(
                ID,
                "main",
                &FileSelection::embedding(),
                |progress| {
                    if &*progress.file == WEIGHTS {
                        cancel.cancel();
                    }
                },
                &cancel,
            )
        });
        waiting.join().expect("no panic")
    });
    assert!(
        matches!(result, Err(isovec_engine::EngineError::Cancelled)),
        "{result:?}"
    );
    assert!(
        !server
            .seen()
            .iter()
            .any(|seen| seen.target.ends_with(WEIGHTS))
    );
    drop(lock);
    assert_holds(
        &site.fetch("main").expect("free again"),
        &repo,
        &Repo::wanted(),
    );
}
