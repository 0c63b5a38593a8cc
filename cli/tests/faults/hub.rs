//! Faults while a model is fetched: every visible file in the cache is complete, and a later fetch completes the
//! rest.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use isovec_test_server::{Reply, Seen, Server};
use sha1::{Digest as _, Sha1};
use sha2::Sha256;

use crate::driver::{Case, Found, isovec, try_all};

const ID: &str = "acme/tiny";
const COMMIT: &str = "1111111111111111111111111111111111111111";

/// The small model's files as a hub serves them.
fn serve() -> Server {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/tiny-bert");
    let files = crate::driver::look(&model);
    let files: BTreeMap<String, Vec<u8>> = files
        .into_iter()
        .filter_map(|(name, found)| match found {
            Found::File(bytes) => Some((name, bytes)),
            Found::Link(_) => None,
        })
        .collect();
    Server::start(move |seen| answer(&files, seen))
}

fn answer(files: &BTreeMap<String, Vec<u8>>, seen: &Seen) -> Reply {
    if seen.target.starts_with("/api/models/") {
        let siblings: Vec<String> = files
            .iter()
            .map(|(name, bytes)| {
                let (blob, size) = (git(bytes), bytes.len());
                let lfs = match is_large(name) {
                    true => format!(
                        r#","lfs":{{"sha256":"{}","size":{size},"pointerSize":134}}"#,
                        sha256(bytes)
                    ),
                    false => String::new(),
                };
                format!(r#"{{"rfilename":"{name}","size":{size},"blobId":"{blob}"{lfs}}}"#)
            })
            .collect();
        let siblings = siblings.join(",");
        let json =
            format!(r#"{{"id":"{ID}","private":false,"sha":"{COMMIT}","siblings":[{siblings}]}}"#);
        return Reply::new(200, json).with("Content-Type", "application/json");
    }
    let name = seen
        .target
        .strip_prefix(&format!("/{ID}/resolve/{COMMIT}/"));
    match name.and_then(|name| Some((name, files.get(name)?))) {
        Some((name, bytes)) => {
            let etag = if is_large(name) {
                sha256(bytes)
            } else {
                git(bytes)
            };
            Reply::file(seen, bytes)
                .with("X-Repo-Commit", COMMIT)
                .with("ETag", format!("\"{etag}\""))
        }
        None => Reply::new(404, "").with("X-Error-Code", "EntryNotFound"),
    }
}

fn is_large(name: &str) -> bool {
    name.ends_with(".safetensors")
}

fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn sha256(bytes: &[u8]) -> String {
    hex(Sha256::digest(bytes))
}

/// Git's hash of a file.
fn git(bytes: &[u8]) -> String {
    let mut hash = Sha1::new();
    hash.update(format!("blob {}\0", bytes.len()));
    hash.update(bytes);
    hex(hash.finalize())
}

struct Fetch {
    server: Server,
}

impl Case for Fetch {
    fn prepare(&self, work: &Path) {
        fs::write(work.join("notes.txt"), "a user's").expect("written");
    }

    fn command(&self, work: &Path) -> (Command, Vec<u8>) {
        let mut command = isovec(work, &["embed", "-", "--engine", "portable", "--model", ID]);
        command.env("HF_ENDPOINT", &self.server.url);
        (command, b"a cat\n".to_vec())
    }

    /// A blob is what its name says; what is being fetched is the beginning of it.
    fn is_sound(
        &self,
        name: &str,
        found: &[u8],
        before: Option<&Found>,
        after: Option<&Found>,
    ) -> bool {
        let same = |one: Option<&Found>| matches!(one, Some(Found::File(bytes)) if bytes == found);
        let last = name.rsplit('/').next().unwrap_or(name);
        if name.contains("/blobs/") && !last.ends_with(".incomplete") {
            return last == sha256(found) || last == git(found);
        }
        // A copy, where there could be no link.
        if let Some(Found::Link(blob)) = after {
            return blob.ends_with(sha256(found)) || blob.ends_with(git(found));
        }
        same(before) || same(after) || last.ends_with(".incomplete") || last.ends_with(".lock")
    }

    /// Whether the lock's file is there says nothing, nor whether a file is a link or a copy: its bytes were embedded with.
    fn may_differ(&self, name: &str) -> bool {
        name.ends_with(".lock") || name.contains("/snapshots/")
    }
}

#[test]
fn a_model_that_is_fetched() {
    try_all(&Fetch { server: serve() });
}
