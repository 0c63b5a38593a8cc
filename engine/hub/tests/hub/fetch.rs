//! Successful fetches: the requests, their headers, and the files on disk afterwards.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use isovec_engine::EngineError;
use isovec_engine::cancel::Cancel;
use isovec_hub::{FileSelection, WeightFiles};
use isovec_test_server::{Reply, Server};

use crate::repo::{COMMIT, ID, Repo, Reports, Site, TOKEN, WEIGHTS, assert_holds, assert_says};

#[test]
fn a_model_arrives_and_the_token_stays_with_the_hub() {
    let repo = Repo::embedder();
    let cdn = {
        let repo = repo.clone();
        Server::start(move |seen| {
            let (_, etag) = seen.target.split_once("/blob/").expect("a blob");
            let path = etag.split('?').next().expect("an etag");
            let bytes = repo
                .files
                .iter()
                .find(|(name, _)| repo.etag(name) == path)
                .expect("a blob of the repository")
                .1;
            // Its own entity tag, as object stores have; it must not be taken for the hub's.
            Reply::file(seen, bytes).with("ETag", "\"0123-5\"")
        })
    };
    let hub = repo.start_with({
        let cdn = cdn.url.clone();
        move |repo, seen| {
            let path = repo.asked(seen).filter(|path| Repo::is_lfs(path))?;
            let etag = repo.etag(path);
            Some(
                Reply::new(302, "")
                    .with("Location", format!("{cdn}/blob/{etag}?Signature=s3cret"))
                    .with("X-Repo-Commit", &repo.commit)
                    .with("X-Linked-Etag", format!("\"{etag}\""))
                    .with("X-Linked-Size", repo.files[path].len().to_string()),
            )
        }
    });
    let site = Site::new(&hub.url);
    let reports = Reports::default();
    let snapshot = site
        .hub()
        .fetch_blocking(
            ID,
            "main",
            &FileSelection::embedding(),
            |progress| reports.add(progress),
            &Cancel::new(),
        )
        .expect("all is well");

    assert_holds(&snapshot, &repo, &Repo::wanted());
    assert_eq!(
        snapshot.folder,
        site.repo_folder().join("snapshots").join(COMMIT)
    );
    for seen in hub.seen() {
        assert_eq!(
            seen.header("authorization"),
            Some(&*format!("Bearer {TOKEN}"))
        );
        assert_eq!(seen.header("accept-encoding"), Some("identity"));
        assert!(
            seen.header("user-agent")
                .is_some_and(|agent| agent.starts_with("isovec/"))
        );
    }
    let outside = cdn.seen();
    assert_eq!(outside.len(), 1);
    for seen in outside {
        for (name, value) in &seen.headers {
            assert!(!value.contains(TOKEN), "{name}: {value}");
        }
    }

    // Only what is needed was asked for, once.
    let asked: Vec<_> = hub.seen().iter().map(|seen| seen.target.clone()).collect();
    let unique: BTreeSet<_> = asked.iter().collect();
    assert_eq!(unique.len(), asked.len(), "{asked:?}");
    assert!(
        !asked
            .iter()
            .any(|target| target.contains("pytorch") || target.contains("README"))
    );

    let all = reports.all();
    let last = all.last().expect("reports");
    let total: usize = Repo::wanted()
        .iter()
        .map(|path| repo.files[*path].len())
        .sum();
    assert_eq!(last.bytes, total as u64);
    assert_eq!(
        (last.total_bytes, last.files_done, last.files),
        (total as u64, 6, 6)
    );
    assert!(
        all.iter()
            .any(|p| &*p.file == WEIGHTS && p.file_bytes > 0 && p.file_bytes < p.file_total),
        "reports come while a file arrives"
    );
}

#[test]
fn the_disk_looks_as_pythons_cache_does() {
    let repo = Repo::embedder();
    let hub = repo.start();
    let site = Site::new(&hub.url);
    let snapshot = site.fetch("main").expect("all is well");
    let folder = site.repo_folder();
    assert_eq!(
        std::fs::read_to_string(folder.join("refs/main")).expect("a ref"),
        COMMIT
    );
    for path in Repo::wanted() {
        let link = snapshot.folder.join(path);
        let target = std::fs::read_link(&link).expect("a link");
        let ups = "../".repeat(2 + path.matches('/').count());
        assert_eq!(
            target.to_str(),
            Some(&*format!("{ups}blobs/{}", repo.etag(path)))
        );
    }
    let mut blobs: Vec<String> = std::fs::read_dir(folder.join("blobs"))
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("unicode")
        })
        .collect();
    let mut expected: Vec<String> = Repo::wanted().iter().map(|path| repo.etag(path)).collect();
    blobs.sort();
    expected.sort();
    assert_eq!(blobs, expected, "nothing is left over");
    let lock = format!(
        "hub/.locks/models--acme--tiny-embedder/{}.lock",
        repo.etag(WEIGHTS)
    );
    assert!(site.folder.path().join(lock).is_file());
}

#[test]
fn a_second_call_fetches_no_file() {
    let repo = Repo::embedder();
    let hub = repo.start();
    let site = Site::new(&hub.url);
    site.fetch("main").expect("all is well");
    hub.forget();
    let reports = Reports::default();
    let again = site
        .hub()
        .fetch_blocking(
            ID,
            "main",
            &FileSelection::embedding(),
            |p| reports.add(p),
            &Cancel::new(),
        )
        .expect("cached");
    assert_holds(&again, &repo, &Repo::wanted());
    let seen = hub.seen();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen[0].target.starts_with("/api/"));
    let last = reports.all().pop().expect("reports");
    assert_eq!((last.bytes, last.files_done), (last.total_bytes, 6));
}

#[test]
fn a_commit_that_is_cached_needs_no_request() {
    let repo = Repo::embedder();
    let hub = repo.start();
    let site = Site::new(&hub.url);
    site.fetch("main").expect("all is well");
    hub.forget();
    let reports = Reports::default();
    let again = site
        .hub()
        .fetch_blocking(
            ID,
            COMMIT,
            &FileSelection::embedding(),
            |p| reports.add(p),
            &Cancel::new(),
        )
        .expect("cached");
    assert_holds(&again, &repo, &Repo::wanted());
    assert_eq!(hub.seen().len(), 0);
    assert_eq!(reports.all().pop().expect("reports").files_done, 6);

    // Another choice of files of the same commit: the file, and no list.
    let onnx = FileSelection::embedding().weights(WeightFiles::Onnx("onnx/model.onnx".into()));
    let snapshot = site.fetch_these(COMMIT, &onnx).expect("all is well");
    assert!(snapshot.folder.join("onnx/model.onnx").is_file());
    let seen = hub.seen();
    assert_eq!(seen.len(), 1);
    assert!(seen[0].target.ends_with("/onnx/model.onnx"));
}

#[test]
fn a_revision_that_moves_fetches_what_changed() {
    let old = Repo::embedder();
    let mut new = old.clone();
    new.commit = "2".repeat(40);
    new.files.insert("config.json".into(), b"{}".to_vec());
    let moved = Arc::new(AtomicUsize::new(0));
    let hub = Server::start({
        let (old, new, moved) = (old.clone(), new.clone(), Arc::clone(&moved));
        move |seen| [&old, &new][moved.load(Ordering::SeqCst)].serve(seen)
    });
    let site = Site::new(&hub.url);
    site.fetch("main").expect("all is well");
    moved.store(1, Ordering::SeqCst);
    hub.forget();
    let snapshot = site.fetch("main").expect("all is well");
    assert_holds(&snapshot, &new, &Repo::wanted());
    let asked: Vec<_> = hub.seen().into_iter().map(|seen| seen.target).collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked[1].ends_with("/config.json"));
    // The old commit is still whole.
    let pinned = site.fetch(COMMIT).expect("cached");
    assert_holds(&pinned, &old, &Repo::wanted());
}

#[test]
fn two_threads_fetch_a_model_once() {
    let repo = Repo::embedder();
    let hub = repo.start();
    let site = Site::new(&hub.url);
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                barrier.wait();
                let snapshot = site.fetch("main").expect("all is well");
                assert_holds(&snapshot, &repo, &Repo::wanted());
            });
        }
    });
    for path in Repo::wanted() {
        let count = hub
            .seen()
            .iter()
            .filter(|seen| seen.target.ends_with(&format!("/{path}")))
            .count();
        // `1_Pooling/config.json` ends with `/config.json` as well.
        let expected = match path {
            "special_tokens_map.json" => 0,
            "config.json" => 2,
            _ => 1,
        };
        assert_eq!(count, expected, "{path}");
    }
}

#[test]
fn a_hub_that_names_no_checksums_is_asked_for_headers() {
    let repo = Repo::embedder();
    let hub = repo.start_with(|repo, seen| {
        seen.target.starts_with("/api/").then(|| {
            let names: Vec<_> = repo
                .files
                .keys()
                .map(|path| format!(r#"{{"rfilename":"{path}"}}"#))
                .collect();
            let json = format!(r#"{{"sha":"{COMMIT}","siblings":[{}]}}"#, names.join(","));
            Reply::new(200, json)
        })
    });
    let site = Site::new(&hub.url);
    let snapshot = site.fetch("main").expect("all is well");
    assert_holds(&snapshot, &repo, &Repo::wanted());
    let heads = hub
        .seen()
        .iter()
        .filter(|seen| seen.method == "HEAD")
        .count();
    assert!(heads >= 6, "{heads}");
    assert!(site.blob(&repo.etag(WEIGHTS)).is_file());
}

#[test]
fn a_model_that_was_renamed_is_found() {
    let repo = Repo::embedder();
    let hub = repo.start_with(|_, seen| {
        let renamed = seen.target.replace("acme/old-name", ID);
        (renamed != seen.target).then(|| Reply::new(307, "").with("Location", renamed))
    });
    let site = Site::new(&hub.url);
    let snapshot = site
        .hub()
        .fetch_blocking(
            "acme/old-name",
            "main",
            &FileSelection::embedding(),
            |_| {},
            &Cancel::new(),
        )
        .expect("redirects on the hub itself are followed");
    assert_holds(&snapshot, &repo, &Repo::wanted());
    assert!(
        hub.seen()
            .iter()
            .all(|seen| seen.header("authorization").is_some())
    );
}

#[test]
fn a_config_that_is_refused_leads_to_onnx_before_anything_large_is_fetched() {
    let repo = Repo::embedder();
    let hub = repo.start();
    let site = Site::new(&hub.url);
    let refuse = || {
        FileSelection::embedding().accept_safetensors_if(|config| {
            assert_eq!(config, br#"{"architectures":["BertModel"]}"#);
            Err(EngineError::UnsupportedModel {
                origin: "config.json".into(),
                reason: "not today".into(),
                hint: "Choose another".into(),
            })
        })
    };
    let snapshot = site.fetch_these("main", &refuse()).expect("by ONNX");
    assert!(snapshot.files.iter().any(|path| path == "onnx/model.onnx"));
    assert!(!snapshot.files.iter().any(|path| path == WEIGHTS));

    let mut bare = repo;
    bare.files.remove("onnx/model.onnx");
    let hub = bare.start();
    let site = Site::new(&hub.url);
    assert_says(site.fetch_these("main", &refuse()), &["not today"]);
    assert!(!hub.seen().iter().any(|seen| seen.target.ends_with(WEIGHTS)));
}

#[test]
fn a_proxy_is_used_unless_the_host_is_excepted() {
    let repo = Repo::embedder();
    let hub = repo.start();
    let tunnels = Arc::new(AtomicUsize::new(0));
    let proxy = tunnel(&tunnels);
    let mut site = Site::new(&hub.url);
    site.config.proxy.http = Some(proxy.clone());
    let snapshot = site.fetch("main").expect("through the proxy");
    assert_holds(&snapshot, &repo, &Repo::wanted());
    let used = tunnels.load(Ordering::SeqCst);
    assert_eq!(used, hub.seen().len(), "each request came through it");

    let mut site = Site::new(&hub.url);
    site.config.proxy.http = Some(proxy);
    site.config.proxy.no_proxy = vec!["127.0.0.0/8".into()];
    site.fetch("main").expect("directly");
    assert_eq!(tunnels.load(Ordering::SeqCst), used);
}

/// A proxy that knows `CONNECT`; counts.
fn tunnel(count: &Arc<AtomicUsize>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let count = Arc::clone(count);
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let count = Arc::clone(&count);
            thread::spawn(move || {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") {
                    if !matches!(client.read(&mut byte), Ok(1)) {
                        return;
                    }
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let target = head
                    .strip_prefix("CONNECT ")
                    .and_then(|rest| rest.split(' ').next())
                    .expect("only CONNECT is asked");
                let mut server = TcpStream::connect(target).expect("the hub");
                count.fetch_add(1, Ordering::SeqCst);
                let _ = client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n");
                let (mut from, mut to) = (
                    client.try_clone().expect("clone"),
                    server.try_clone().expect("clone"),
                );
                thread::spawn(move || std::io::copy(&mut from, &mut to));
                let _ = std::io::copy(&mut server, &mut client);
                let _ = client.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    format!("http://{address}")
}

#[test]
fn the_future_fetches_too_and_stops_when_dropped() {
    let repo = Repo::embedder();
    let hub = repo.start();
    let site = Site::new(&hub.url);
    let fetch = site.hub().fetch(
        ID,
        "main",
        &FileSelection::embedding(),
        |_| {},
        &Cancel::new(),
    );
    assert_holds(
        &pollster::block_on(fetch).expect("all is well"),
        &repo,
        &Repo::wanted(),
    );

    // A server that never ends its answer: only giving up ends the fetch.
    let (arrived, wait) = std::sync::mpsc::channel();
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let (arrived, held) = (std::sync::Mutex::new(arrived), std::sync::Mutex::new(held));
    let stuck = repo.start_with(move |repo, seen| {
        if repo.asked(seen) == Some(WEIGHTS) {
            let _ = arrived.lock().expect("no panic").send(());
            let _ = held.lock().expect("no panic").recv();
        }
        None
    });
    let site = Site::new(&stuck.url);
    let cancel = Cancel::new();
    let fetch = site
        .hub()
        .fetch(ID, "main", &FileSelection::embedding(), |_| {}, &cancel);
    let waiter = thread::spawn(move || pollster::block_on(fetch));
    wait.recv().expect("the weights are asked for");
    cancel.cancel();
    let result = waiter.join().expect("no panic");
    assert!(matches!(result, Err(EngineError::Cancelled)), "{result:?}");
    drop(let_go);
    // What had arrived is usable, and nothing is locked.
    let snapshot = site.fetch("main").expect("goes on");
    assert_holds(&snapshot, &repo, &Repo::wanted());
}
