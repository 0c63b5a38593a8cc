//! An object store for callers that block, with retries and counts.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{
    Error as StoreError, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt as _,
    PutMode, PutOptions, PutPayload,
};

use crate::context::Context;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::unit::File;
use crate::url;

/// Whether an object is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Created {
    New,
    /// There was one already, which stays as it is.
    Before,
}

/// A folder of a disk or of an object store.
pub(crate) struct Store {
    inner: Arc<dyn ObjectStore>,
    under: Path,
    shown: String,
    disk: Option<Disk>,
    context: Context,
    read: AtomicU64,
}

impl Store {
    /// Opens a folder that is read.
    pub(crate) fn open(url: &str, context: &Context) -> Result<Self> {
        Ok(Self::of(url::open(url, false)?, context))
    }

    /// Opens a folder that is written to, and clears what killed runs left half written.
    pub(crate) fn create_folder(url: &str, context: &Context) -> Result<Self> {
        let store = Self::of(url::open(url, true)?, context);
        if let Some(disk) = &store.disk {
            disk.sweep();
        }
        Ok(store)
    }

    fn of(place: url::Place, context: &Context) -> Self {
        Self {
            inner: place.inner,
            under: place.under,
            shown: place.shown,
            disk: place.disk.map(Disk::new),
            context: context.clone(),
            read: AtomicU64::new(0),
        }
    }

    /// The place of a name. On a disk some characters are escaped in it; a store's names are as they are.
    pub(crate) fn at(&self, name: &str) -> Path {
        let plain = match self.disk {
            Some(_) => None,
            None => Path::parse(name).ok(),
        };
        let inside = plain.unwrap_or_else(|| Path::from(name));
        self.under.parts().chain(inside.parts()).collect()
    }

    /// What messages call an object.
    pub(crate) fn shown(&self, at: &Path) -> String {
        let inside = at.prefix_match(&self.under);
        let inside: Path = inside.map_or_else(|| at.clone(), |parts| parts.collect());
        format!("{}{inside}", self.shown)
    }

    /// What messages call the folder.
    pub(crate) fn name(&self) -> &str {
        &self.shown
    }

    /// Bytes of objects that were read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.read.load(Relaxed)
    }

    /// Does something with the store, and tries again what may pass.
    fn tried<T>(
        &self,
        doing: &'static str,
        name: impl Fn() -> String,
        once: impl AsyncFn() -> object_store::Result<T>,
    ) -> Result<T> {
        let retried = self
            .context
            .retry
            .run(&name(), may_pass, || self.context.runtime.block_on(once()));
        retried.map_err(|(source, tries)| Error::Store {
            name: name(),
            doing,
            tries,
            source: Box::new(source),
        })
    }

    /// An object as the store knows it; nothing where there is none.
    pub(crate) fn find(&self, at: &Path) -> Result<Option<ObjectMeta>> {
        let name = || self.shown(at);
        absent(self.tried("looked for", name, async || self.inner.head(at).await))
    }

    /// A whole object; nothing where there is none.
    pub(crate) fn get(&self, at: &Path) -> Result<Option<Bytes>> {
        let name = || self.shown(at);
        let got = absent(self.tried("read", name, async || {
            self.inner.get(at).await?.bytes().await
        }))?;
        if let Some(bytes) = &got {
            self.read.fetch_add(bytes.len() as u64, Relaxed);
        }
        Ok(got)
    }

    /// Bytes of a file, if it is still the one that was listed.
    pub(crate) fn range(&self, file: &File, range: Range<u64>) -> Result<Bytes> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let options = GetOptions {
            if_match: Some(file.etag.clone()),
            range: Some(GetRange::Bounded(range.clone())),
            ..GetOptions::default()
        };
        let name = || file.name.clone();
        let bytes = self.tried("read", name, async || {
            let got = self.inner.get_opts(&file.at, options.clone()).await?;
            got.bytes().await
        })?;
        self.read.fetch_add(bytes.len() as u64, Relaxed);
        if bytes.len() as u64 != range.end - range.start {
            return Err(Error::Input {
                file: file.name.clone(),
                detail: format!(
                    "ends before byte {}, but had {} bytes when it was listed; run the job again",
                    range.end, file.size
                ),
            });
        }
        Ok(bytes)
    }

    /// Stores a whole object where there is none. Nobody sees a part of it.
    pub(crate) fn create(&self, at: &Path, bytes: Bytes) -> Result<Created> {
        match self.put(at, bytes, PutMode::Create) {
            Ok(()) => Ok(Created::New),
            Err(Error::Store { source, .. }) if is_before(&source) => Ok(Created::Before),
            Err(error) => Err(error),
        }
    }

    /// Stores a whole object in place of what there was.
    pub(crate) fn replace(&self, at: &Path, bytes: Bytes) -> Result<()> {
        self.put(at, bytes, PutMode::Overwrite)
    }

    fn put(&self, at: &Path, bytes: Bytes, mode: PutMode) -> Result<()> {
        let name = || self.shown(at);
        if let Some(disk) = &self.disk {
            return self.tried("written", name, async || {
                disk.put(at.as_ref(), &bytes, &mode)
            });
        }
        let payload = PutPayload::from(bytes);
        self.tried("written", name, async || {
            let options = PutOptions::from(mode.clone());
            self.inner.put_opts(at, payload.clone(), options).await
        })
        .map(drop)
    }

    /// Removes an object, if it is there.
    pub(crate) fn remove(&self, at: &Path) -> Result<()> {
        let name = || self.shown(at);
        absent(self.tried("removed", name, async || self.inner.delete(at).await)).map(drop)
    }

    /// What is in a folder, in no order. `deep` also goes into its folders.
    pub(crate) fn list(&self, folder: &Path, deep: bool) -> Result<Vec<ObjectMeta>> {
        // A listing that fails in its middle begins again, so what it has named is held.
        self.tried(
            "listed",
            || self.shown(folder),
            async || match deep {
                true => self.inner.list(Some(folder)).try_collect().await,
                false => {
                    let found = self.inner.list_with_delimiter(Some(folder)).await?;
                    Ok(found.objects)
                }
            },
        )
    }
}

/// Whether a second try may succeed.
fn may_pass(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Generic { .. } | StoreError::JoinError { .. }
    )
}

fn is_before(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }
    )
}

/// Nothing in place of the error that there is nothing.
fn absent<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::Store { source, .. }) if matches!(*source, StoreError::NotFound { .. }) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
