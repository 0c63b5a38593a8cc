//! [`Hub`]: a model's id in, a folder with its files out.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures_channel::oneshot;
use isovec_engine::cancel::Cancel;
use isovec_engine::error::{EngineError, Result};
use isovec_engine::maybe_send::EngineFuture;

use super::cache::RepoCache;
use super::client::HubClient;
use super::config::HubConfig;
use super::download::RemoteFile;
use super::http::HttpTransport;
use super::hub_error;
use super::id::{ModelId, Revision};
use super::listing::Listing;
use super::progress::{Progress, ProgressReport, Tracker};
use super::select::{FileSelection, Listed, unread};
use super::transport::Transport;
use crate::choice::{Answer, Question};

/// Files that decide the choice are read whole; real ones are some megabytes at most.
const MAX_DECIDING_BYTES: u64 = 64 << 20;

/// Who may be silent for so long may take so many times as long for the least that is sent in it.
const SILENCES: u32 = 6;

/// A model hub, and the cache of its files. Cheap to clone.
#[derive(Clone)]
pub struct Hub(Arc<Inner>);

struct Inner {
    client: HubClient,
    cache_dir: PathBuf,
    config: HubConfig,
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hub").field(&self.0.config).finish()
    }
}

/// A model's files at one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The requested id of the model.
    pub model_id: String,
    /// The commit, in full.
    pub commit: String,
    /// The folder. Files that were fetched for another purpose may lie in it as well.
    pub folder: PathBuf,
    /// The requested files, by their paths in the folder, sorted.
    pub files: Vec<String>,
}

impl Hub {
    /// A hub and a cache as the [usual variables](HubConfig) say.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_env() -> Result<Self> {
        Self::new(HubConfig::from_env())
    }

    /// A hub and a cache. Makes no request and creates no file.
    ///
    /// # Errors
    /// [`EngineError::Config`] when the endpoint, the token or a proxy cannot be one, or no
    /// folder for the cache is known.
    pub fn new(config: HubConfig) -> Result<Self> {
        let transport = HttpTransport::new(
            config.proxy.clone(),
            config.connect_timeout,
            config.read_timeout,
        )?;
        Self::with_transport(config, Arc::new(transport))
    }

    /// As [`new`](Self::new), over a transport of the caller's own.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_transport(config: HubConfig, transport: Arc<dyn Transport>) -> Result<Self> {
        let Some(cache_dir) = config.cache_dir.clone() else {
            return Err(EngineError::Config(vec![
                "no folder for models is known, since there is no home folder; set HF_HOME".into(),
            ]));
        };
        let client = HubClient::new(
            transport,
            &config.endpoint,
            config.token.clone(),
            config.retry.clone(),
        )?
        .with_slowest(config.read_timeout.saturating_mul(SILENCES));
        Ok(Self(Arc::new(Inner {
            client,
            cache_dir,
            config,
        })))
    }

    /// The configuration.
    pub fn config(&self) -> &HubConfig {
        &self.0.config
    }

    /// Makes a model's files available on disk, fetching those that the cache lacks, on a thread of its own. Dropping
    /// the future stops the fetch; the part that arrived is kept.
    ///
    /// A revision that is a commit in full and is cached needs no request. If the hub cannot be reached, the cached
    /// files are used, with a warning.
    ///
    /// # Errors
    /// As [`fetch_blocking`](Self::fetch_blocking).
    pub fn fetch(
        &self,
        model_id: &str,
        revision: &str,
        wanted: &FileSelection,
        progress: impl Fn(&Progress) + Send + Sync + 'static,
        cancel: &Cancel,
    ) -> EngineFuture<'static, Snapshot> {
        let hub = self.clone();
        let (model_id, revision) = (model_id.to_owned(), revision.to_owned());
        let (wanted, outer) = (wanted.clone(), cancel.clone());
        Box::pin(async move {
            let inner = Cancel::new();
            let _outer = outer.on_cancel({
                let inner = inner.clone();
                move || inner.cancel()
            });
            let _dropped = CancelOnDrop(inner.clone());
            let (done, result) = oneshot::channel();
            let lost = |detail: String| {
                hub_error(
                    model_id.clone(),
                    detail,
                    "This is a fault of the program; please report it",
                )
            };
            std::thread::Builder::new()
                .name("isovec-hub".into())
                .spawn({
                    let model_id = model_id.clone();
                    move || {
                        let snapshot =
                            hub.fetch_blocking(&model_id, &revision, &wanted, progress, &inner);
                        // Nobody may be listening any more.
                        let _ = done.send(snapshot);
                    }
                })
                .map_err(|error| lost(format!("cannot start a thread: {error}")))?;
            result
                .await
                .map_err(|_| lost("the thread that fetches ended early".into()))?
        })
    }

    /// As [`fetch`](Self::fetch), on the calling thread, which it blocks.
    ///
    /// # Errors
    /// [`EngineError::Hub`] when the id or the revision cannot be one, is not found, needs a
    /// token, or when the hub fails or sends something else than it promised;
    /// [`EngineError::MissingFile`] when the repository, or the cache while offline, lacks a file
    /// that is needed; [`EngineError::Io`] when the cache cannot be written;
    /// [`EngineError::Cancelled`].
    pub fn fetch_blocking(
        &self,
        model_id: &str,
        revision: &str,
        wanted: &FileSelection,
        progress: impl Fn(&Progress) + Send + Sync,
        cancel: &Cancel,
    ) -> Result<Snapshot> {
        let fetch = self.start(model_id, revision, wanted)?;
        pollster::block_on(fetch.run(&progress, cancel))
    }

    /// The model's files if all are in the cache; makes no request.
    ///
    /// # Errors
    /// [`EngineError::Hub`] when the revision is not in the cache, [`EngineError::MissingFile`]
    /// when a file of it is not.
    pub fn cached(
        &self,
        model_id: &str,
        revision: &str,
        wanted: &FileSelection,
    ) -> Result<Snapshot> {
        let fetch = self.start(model_id, revision, wanted)?;
        fetch.find_cached(false)
    }

    fn start<'a>(
        &'a self,
        model_id: &str,
        revision: &str,
        wanted: &'a FileSelection,
    ) -> Result<Fetch<'a>> {
        let id = ModelId::parse(model_id)?;
        let revision = Revision::parse(revision)?;
        Ok(Fetch {
            cache: RepoCache::new(&self.0.cache_dir, &id, self.0.config.symlinks),
            hub: &self.0,
            id,
            revision,
            wanted,
        })
    }
}

struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// One fetch.
struct Fetch<'a> {
    hub: &'a Inner,
    cache: RepoCache,
    id: ModelId,
    revision: Revision,
    wanted: &'a FileSelection,
}

impl Fetch<'_> {
    async fn run(&self, report: &dyn ProgressReport, cancel: &Cancel) -> Result<Snapshot> {
        cancel.check()?;
        if self.hub.config.offline {
            let snapshot = self.find_cached(false)?;
            self.report_cached(&snapshot, report);
            return Ok(snapshot);
        }
        // A commit never changes: with its list of files there is nothing to ask.
        if self.revision.commit().is_some()
            && let Ok(snapshot) = self.find_cached(true)
        {
            self.report_cached(&snapshot, report);
            return Ok(snapshot);
        }
        let listing = match self.list(cancel).await {
            Ok(Some(listing)) => listing,
            Ok(None) => {
                let snapshot = self.find_cached(false)?;
                self.report_cached(&snapshot, report);
                return Ok(snapshot);
            }
            Err(error) => return Err(error),
        };
        self.fetch_all(&listing, report, cancel).await
    }

    /// Asks the hub for the list of files; `None` when it cannot be reached but the cache will do.
    async fn list(&self, cancel: &Cancel) -> Result<Option<Listing>> {
        if let Some(commit) = self.revision.commit()
            && let Some(listing) = self.cache.read_listing(commit)
        {
            return Ok(Some(listing));
        }
        let cached = self.find_cached(false).is_ok();
        // With the files at hand nobody should wait long for a hub that is down.
        let retries = if cached { 1 } else { u32::MAX };
        let retries = retries.min(self.hub.config.retry.retries);
        match self
            .hub
            .client
            .list(&self.id, &self.revision, retries, cancel)
            .await
        {
            Ok(listing) => match self.revision.commit() {
                Some(commit) if commit != listing.commit => Err(hub_error(
                    self.origin(),
                    format!("the hub answers with commit {}", listing.commit),
                    "The hub contradicts itself; check HF_ENDPOINT",
                )),
                _ => Ok(Some(listing)),
            },
            Err(refusal) if refusal.unreachable && cached => {
                tracing::warn!(error = %refusal.error, model = %self.id, "using the cached model, which may be out of date");
                Ok(None)
            }
            Err(refusal) => Err(refusal.error),
        }
    }

    async fn fetch_all(
        &self,
        listing: &Listing,
        report: &dyn ProgressReport,
        cancel: &Cancel,
    ) -> Result<Snapshot> {
        let silent = |_: &Progress| {};
        let mut fetched = false;
        let origin = self.origin();
        let known = Listed {
            origin: &origin,
            listing,
            read: &|path| self.read(listing, path),
        };
        let mut asked = BTreeSet::new();
        let paths = loop {
            let questions = match self.wanted.next(&known)? {
                Answer::Chosen(choice) => break choice.files,
                Answer::Ask(questions) => questions,
            };
            for Question { path, .. } in &questions {
                // It was fetched, and still cannot be read.
                if !asked.insert(path.clone()) {
                    return Err(unread(&origin, &questions));
                }
                let file = self.locate(listing, path, cancel).await?;
                if file.size > MAX_DECIDING_BYTES {
                    return Err(self.too_large(
                        &file,
                        MAX_DECIDING_BYTES,
                        "no real model has one so large",
                    ));
                }
                let mut tracker = Tracker::new(&silent, 1, file.size);
                tracker.begin(path, file.size);
                fetched |= self.bring(listing, &file, &mut tracker, cancel).await?;
            }
        };
        if paths.len() > self.hub.config.max_files {
            return Err(hub_error(
                self.origin(),
                format!(
                    "{} files are needed, past the limit of {}",
                    paths.len(),
                    self.hub.config.max_files
                ),
                "Raise HubConfig::max_files if the model is to be trusted",
            ));
        }
        let mut files = Vec::with_capacity(paths.len());
        for path in &paths {
            let file = self.locate(listing, path, cancel).await?;
            if file.size > self.hub.config.max_file_bytes {
                return Err(self.too_large(
                    &file,
                    self.hub.config.max_file_bytes,
                    "raise HubConfig::max_file_bytes if the model is to be trusted",
                ));
            }
            files.push(file);
        }
        let total = files
            .iter()
            .fold(0, |sum: u64, file| sum.saturating_add(file.size));
        let mut tracker = Tracker::new(report, files.len(), total);
        for file in &files {
            tracker.begin(&file.path, file.size);
            fetched |= self.bring(listing, file, &mut tracker, cancel).await?;
            tracker.end();
        }
        // Last, so that a ref never leads to a snapshot that is not whole.
        let noted = self
            .cache
            .write_listing(listing)
            .and_then(|()| self.cache.write_ref(&self.revision, &listing.commit));
        match noted {
            Ok(()) => {}
            // A cache that cannot be written, but had everything, serves all the same.
            Err(error) if !fetched => tracing::debug!(%error, "the cache is not updated"),
            Err(error) => return Err(error),
        }
        Ok(self.snapshot(&listing.commit, paths))
    }

    async fn locate(&self, listing: &Listing, path: &str, cancel: &Cancel) -> Result<RemoteFile> {
        let Some(listed) = listing.files.get(path) else {
            return Err(self.missing(path, "The hub's list does not have it"));
        };
        self.hub
            .client
            .locate(&self.id, &listing.commit, path, listed, cancel)
            .await
    }

    /// Sees to it that a file is in the snapshot; true when bytes had to be fetched.
    async fn bring(
        &self,
        listing: &Listing,
        file: &RemoteFile,
        tracker: &mut Tracker<'_>,
        cancel: &Cancel,
    ) -> Result<bool> {
        let commit = &listing.commit;
        let is_there = || self.cache.size(commit, &file.path) == Some(file.size);
        if is_there() {
            return Ok(false);
        }
        let _lock = self.cache.lock(&file.etag, cancel)?;
        // Another thread or process may have been at it while this one waited.
        if is_there() {
            return Ok(false);
        }
        let fetch = !self.cache.has_blob(&file.etag, file.size);
        if fetch {
            let mut sink = self.cache.open_incomplete(&file.etag)?;
            self.hub
                .client
                .download(&self.id, commit, file, &mut sink, tracker, cancel)
                .await?;
            self.cache.complete(&file.etag, sink)?;
        }
        self.cache.link(&file.etag, commit, &file.path)?;
        Ok(fetch)
    }

    /// The snapshot from the cache alone. `strict`: only where a list of files tells that
    /// nothing is missing; else what the folder holds is judged by what a model must have.
    fn find_cached(&self, strict: bool) -> Result<Snapshot> {
        let commit = match self.revision.commit() {
            Some(commit) => Some(commit.to_owned()),
            None => self.cache.read_ref(&self.revision),
        };
        let Some(commit) = commit.filter(|commit| self.cache.snapshot(commit).is_dir()) else {
            return Err(hub_error(
                self.origin(),
                format!(
                    "it is not in the cache ({}), and no request is made",
                    self.hub.cache_dir.display()
                ),
                "Unset HF_HUB_OFFLINE and fetch the model once, or set HF_HOME to the cache that has it",
            ));
        };
        const HINT: &str =
            "The cache has only a part of the model; unset HF_HUB_OFFLINE and fetch it once";
        let kept = self.cache.read_listing(&commit);
        let is_kept = kept.is_some();
        let listing = match kept {
            Some(listing) => listing,
            None if strict => return Err(self.missing("a list of its files", HINT)),
            None => self
                .cache
                .scan(&commit)
                .ok_or_else(|| self.missing("any file", HINT))?,
        };
        let there = |path: &str| match (self.cache.size(&commit, path), listing.files.get(path)) {
            (Some(is), Some(listed)) => listed.size.is_none_or(|size| size == is),
            (is, _) => is.is_some(),
        };
        let origin = self.origin();
        let known = Listed {
            origin: &origin,
            listing: &listing,
            read: &|path| match there(path) {
                true => self.read(&listing, path),
                false => Ok(None),
            },
        };
        if !is_kept {
            for alternatives in self.wanted.essentials(&known) {
                let found = alternatives
                    .iter()
                    .any(|path| there(path) || self.cache.is_known_absent(&commit, path));
                if !found {
                    return Err(self.missing(&alternatives.join(" or "), HINT));
                }
            }
        }
        let paths = match self.wanted.next(&known)? {
            Answer::Chosen(choice) => choice.files,
            Answer::Ask(questions) => {
                let path = questions.first().map_or("", |asked| &asked.path);
                return Err(self.missing(path, HINT));
            }
        };
        match paths.iter().find(|path| !there(path)) {
            Some(path) => Err(self.missing(path, HINT)),
            None => Ok(self.snapshot(&commit, paths)),
        }
    }

    fn report_cached(&self, snapshot: &Snapshot, report: &dyn ProgressReport) {
        let size = |path: &String| self.cache.size(&snapshot.commit, path).unwrap_or(0);
        let total = snapshot.files.iter().map(size).sum();
        let mut tracker = Tracker::new(report, snapshot.files.len(), total);
        for path in &snapshot.files {
            tracker.begin(path, size(path));
            tracker.end();
        }
    }

    /// A deciding file's bytes, from the snapshot; nothing where it is not there yet. One that is there and cannot be read
    /// says nothing of what is needed: that is an error, and not a file without content.
    fn read(&self, listing: &Listing, path: &str) -> Result<Option<Vec<u8>>> {
        use std::io::ErrorKind::{NotADirectory, NotFound};
        let pointer = self.cache.pointer(&listing.commit, path);
        match std::fs::read(&pointer) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
            Err(error) => Err(EngineError::io(&pointer, error)),
        }
    }

    fn snapshot(&self, commit: &str, files: Vec<String>) -> Snapshot {
        Snapshot {
            model_id: self.id.to_string(),
            commit: commit.to_owned(),
            folder: self.cache.snapshot(commit),
            files,
        }
    }

    fn origin(&self) -> String {
        format!("{} at {}", self.id, self.revision)
    }

    fn missing(&self, file: &str, hint: &str) -> EngineError {
        EngineError::MissingFile {
            origin: self.origin(),
            file: file.to_owned(),
            hint: hint.to_owned(),
        }
    }

    fn too_large(&self, file: &RemoteFile, limit: u64, hint: &str) -> EngineError {
        hub_error(
            format!("{} of {}", file.path, self.origin()),
            format!("it has {} bytes, past the limit of {limit}", file.size),
            hint,
        )
    }
}
