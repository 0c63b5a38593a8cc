//! A repository of a model, as a hub serves it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use isovec_engine::cancel::Cancel;
use isovec_engine::{EngineError, Result};
use isovec_hub::checksum::Checksum;
use isovec_hub::{FileSelection, Hub, HubConfig, Progress, Snapshot};
use isovec_test_server::{Reply, Seen, Server};

pub(crate) const ID: &str = "acme/tiny-embedder";
pub(crate) const COMMIT: &str = "1111111111111111111111111111111111111111";
pub(crate) const TOKEN: &str = "hf_thisIsASecret";
pub(crate) const WEIGHTS: &str = "model.safetensors";

#[derive(Debug, Clone)]
pub(crate) struct Repo {
    pub(crate) commit: String,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl Repo {
    /// What an embedding model's repository holds, with weights of 300 kB.
    pub(crate) fn embedder() -> Self {
        let text = |text: &str| text.as_bytes().to_vec();
        let weights = (0..300_000u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        let files = [
            (".gitattributes", text("*.safetensors lfs")),
            (
                "1_Pooling/config.json",
                text(r#"{"pooling_mode_mean_tokens":true}"#),
            ),
            ("README.md", text("# Tiny")),
            ("config.json", text(r#"{"architectures":["BertModel"]}"#)),
            (WEIGHTS, weights),
            (
                "modules.json",
                text(
                    r#"[{"idx":0,"name":"0","path":"","type":"Transformer"},{"idx":1,"name":"1","path":"1_Pooling","type":"Pooling"}]"#,
                ),
            ),
            ("onnx/model.onnx", text("an onnx file")),
            ("pytorch_model.bin", text("a pickle")),
            ("tokenizer.json", text(r#"{"version":"1.0"}"#)),
            ("special_tokens_map.json", Vec::new()),
            ("vocab.txt", text("what tokenizer.json says as well")),
        ];
        Self {
            commit: COMMIT.into(),
            files: files.map(|(path, bytes)| (path.to_owned(), bytes)).into(),
        }
    }

    /// What [`FileSelection::embedding`] takes of it.
    pub(crate) fn wanted() -> [&'static str; 6] {
        [
            "1_Pooling/config.json",
            "config.json",
            WEIGHTS,
            "modules.json",
            "special_tokens_map.json",
            "tokenizer.json",
        ]
    }

    pub(crate) fn is_lfs(path: &str) -> bool {
        [".safetensors", ".onnx", ".bin"]
            .iter()
            .any(|ending| path.ends_with(ending))
    }

    /// The file's checksum, which is also its entity tag.
    pub(crate) fn etag(&self, path: &str) -> String {
        checksum(&self.files[path], Self::is_lfs(path))
    }

    /// The answer to `/api/models/{id}/revision/{revision}?blobs=true`.
    pub(crate) fn api(&self) -> Reply {
        let siblings: Vec<String> = self
            .files
            .iter()
            .map(|(path, bytes)| {
                let size = bytes.len();
                let blob = checksum(bytes, false);
                if Self::is_lfs(path) {
                    let sha = checksum(bytes, true);
                    format!(r#"{{"rfilename":"{path}","size":{size},"blobId":"{blob}","lfs":{{"sha256":"{sha}","size":{size},"pointerSize":134}}}}"#)
                } else {
                    format!(r#"{{"rfilename":"{path}","size":{size},"blobId":"{blob}"}}"#)
                }
            })
            .collect();
        Reply::new(
            200,
            format!(
                r#"{{"id":"{ID}","private":false,"sha":"{}","siblings":[{}]}}"#,
                self.commit,
                siblings.join(",")
            ),
        )
        .with("Content-Type", "application/json")
    }

    /// The path of a file that a request wants, if it wants one of this commit.
    pub(crate) fn asked<'a>(&self, seen: &'a Seen) -> Option<&'a str> {
        seen.target
            .strip_prefix(&format!("/{ID}/resolve/{}/", self.commit))
    }

    /// Answers as the hub does, large files served from here as well.
    pub(crate) fn serve(&self, seen: &Seen) -> Reply {
        let api = format!("/api/models/{ID}/revision/");
        if let Some(revision) = seen.target.strip_prefix(&api) {
            let known = ["main?blobs=true", &format!("{}?blobs=true", self.commit)];
            return if known.contains(&revision) {
                self.api()
            } else {
                Reply::new(404, "{}").with("X-Error-Code", "RevisionNotFound")
            };
        }
        match self.asked(seen).map(|path| (path, self.files.get(path))) {
            Some((path, Some(bytes))) => Reply::file(seen, bytes)
                .with("X-Repo-Commit", &self.commit)
                .with("ETag", format!("\"{}\"", self.etag(path))),
            Some((_, None)) => Reply::new(404, "").with("X-Error-Code", "EntryNotFound"),
            None => Reply::new(404, "{}").with("X-Error-Code", "RepoNotFound"),
        }
    }

    pub(crate) fn start(&self) -> Server {
        let repo = self.clone();
        Server::start(move |seen| repo.serve(seen))
    }

    /// Serves all but what `special` answers.
    pub(crate) fn start_with(
        &self,
        special: impl Fn(&Self, &Seen) -> Option<Reply> + Send + Sync + 'static,
    ) -> Server {
        let repo = self.clone();
        Server::start(move |seen| special(&repo, seen).unwrap_or_else(|| repo.serve(seen)))
    }
}

pub(crate) fn checksum(bytes: &[u8], lfs: bool) -> String {
    let kind = "0".repeat(if lfs { 64 } else { 40 });
    let mut hasher = Checksum::from_etag(&kind)
        .expect("a checksum")
        .hasher(bytes.len() as u64);
    hasher.update(bytes);
    hasher.finish().hex().to_owned()
}

/// A cache of one test, and a hub that uses it.
pub(crate) struct Site {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) config: HubConfig,
}

impl Site {
    pub(crate) fn new(endpoint: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // No variable of this process is read.
        let mut config = HubConfig::from_lookup(&|_| None, None);
        config.endpoint = endpoint.to_owned();
        config.token = Some(TOKEN.to_owned());
        config.cache_dir = Some(folder.path().join("hub"));
        config.retry.first_wait = Duration::from_millis(1);
        config.retry.longest_wait = Duration::from_secs(2);
        Self { folder, config }
    }

    pub(crate) fn hub(&self) -> Hub {
        Hub::new(self.config.clone()).expect("a usable configuration")
    }

    pub(crate) fn fetch(&self, revision: &str) -> Result<Snapshot> {
        self.fetch_these(revision, &FileSelection::embedding())
    }

    pub(crate) fn fetch_these(&self, revision: &str, wanted: &FileSelection) -> Result<Snapshot> {
        self.hub()
            .fetch_blocking(ID, revision, wanted, |_| {}, &Cancel::new())
    }

    pub(crate) fn repo_folder(&self) -> PathBuf {
        self.folder.path().join("hub/models--acme--tiny-embedder")
    }

    pub(crate) fn blob(&self, etag: &str) -> PathBuf {
        self.repo_folder().join("blobs").join(etag)
    }
}

/// Collects reports and checks that they never go back.
#[derive(Default)]
pub(crate) struct Reports(Mutex<Vec<Progress>>);

impl Reports {
    pub(crate) fn add(&self, progress: &Progress) {
        let mut all = self.0.lock().expect("no panic");
        if let Some(last) = all.last() {
            assert!(progress.bytes >= last.bytes, "{progress:?} after {last:?}");
            assert!(progress.files_done >= last.files_done);
            assert_eq!(progress.total_bytes, last.total_bytes);
            assert_eq!(progress.files, last.files);
            if progress.file == last.file {
                assert!(progress.file_bytes >= last.file_bytes);
            }
        }
        assert!(progress.file_bytes <= progress.file_total);
        assert!(progress.bytes <= progress.total_bytes);
        all.push(progress.clone());
    }

    pub(crate) fn all(&self) -> Vec<Progress> {
        self.0.lock().expect("no panic").clone()
    }
}

/// The snapshot holds these files with the repository's bytes.
pub(crate) fn assert_holds(snapshot: &Snapshot, repo: &Repo, paths: &[&str]) {
    assert_eq!(snapshot.files, paths);
    assert_eq!(snapshot.commit, repo.commit);
    for path in paths {
        let bytes = std::fs::read(snapshot.folder.join(path)).expect(path);
        assert!(bytes == repo.files[*path], "{path} differs");
    }
}

/// The error is of the hub, and says each of these.
pub(crate) fn assert_says<T: std::fmt::Debug>(result: Result<T>, words: &[&str]) -> EngineError {
    let error = result.expect_err("this must fail");
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
    assert!(!text.contains(TOKEN), "the token is in: {text}");
    error
}
