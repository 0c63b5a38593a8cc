//! Vectors of texts in the browser's Cache API, which all tabs of a site share: an entry each, under keys beside those of
//! `kept_by_browser.rs`.
//!
//! Keys come in the order in which they were written, and an entry that was read is written again: the first is the one
//! that was not used for longest. Another model's entries have other sizes, so that a key begins with its components.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;

use futures_util::future::join_all;
use js_sys::{Array, Reflect, Uint8Array};
use wasm_bindgen::JsValue;
use web_sys::Response;

use super::kept::{NAME, ask, caches, key};
use crate::cache::{Entry, Key, ShelfCounts};

/// The kind of these entries, and how their keys begin.
const KIND: &str = "embeddings";
/// Bytes that an entry takes beside its vector, at most.
const BESIDE: u64 = 512;
/// The part of the limit that one tab may write before it looks at what others have written.
const UNSEEN: u64 = 16;
/// The part of the limit that is left free when room is made, so that it is not made for every entry.
const SPARE: u64 = 10;

/// The site's entries, as one page or worker sees them. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Shelf(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    limit: u64,
    dim: usize,
    cache: RefCell<Option<JsValue>>,
    /// Entries and bytes when they were last counted, with those that were written since.
    seen: Cell<Option<(u64, u64)>>,
    since: Cell<u64>,
    counts: Cell<ShelfCounts>,
}

impl Shelf {
    /// Why it is where it is.
    pub(crate) const WHY_THERE: &str = "a page has no folders";

    /// The shelf, or why there is none.
    pub(crate) fn open(
        _folder: Option<&Path>,
        limit: u64,
        dim: usize,
    ) -> Result<Self, &'static str> {
        if caches().is_ok_and(|caches| caches.is_object()) {
            return Ok(Self(Rc::new(Inner {
                limit,
                dim,
                cache: RefCell::default(),
                seen: Cell::default(),
                since: Cell::default(),
                counts: Cell::default(),
            })));
        }
        Err("there is no Cache API here: in pages it needs TLS, and node has none")
    }

    /// Where it is.
    pub(crate) fn place(&self) -> String {
        "the browser's Cache API".to_owned()
    }

    /// The entries of these keys, as far as they are there.
    pub(crate) async fn read(&self, keys: Vec<Key>) -> Vec<Option<Entry>> {
        let cache = match self.0.cache().await {
            Ok(cache) => cache,
            Err(error) => {
                self.0.failed(&error);
                return vec![None; keys.len()];
            }
        };
        join_all(keys.iter().map(|key| self.0.read(&cache, *key))).await
    }

    /// Keeps entries.
    pub(crate) async fn write(&self, entries: Vec<(Key, Entry)>) {
        if let Err(error) = self.0.write(entries).await {
            self.0.failed(&error);
        }
    }

    /// What is there and what was done.
    pub(crate) fn counts(&self) -> ShelfCounts {
        let (entries, bytes) = self.0.seen.get().unwrap_or_default();
        ShelfCounts {
            entries,
            bytes,
            ..self.0.counts.get()
        }
    }
}

impl Inner {
    async fn cache(&self) -> Result<JsValue, JsValue> {
        if let Some(cache) = &*self.cache.borrow() {
            return Ok(cache.clone());
        }
        let cache = ask(&caches()?, "open", &[NAME.into()]).await?;
        self.cache.replace(Some(cache.clone()));
        Ok(cache)
    }

    fn key(&self, of: Key) -> JsValue {
        key(KIND, &format!("{}-{}", self.dim, of.hex()))
    }

    /// What an entry with vectors of so many components takes, at most.
    fn size(dim: usize) -> u64 {
        (dim * size_of::<f32>()) as u64 + BESIDE
    }

    async fn read(&self, cache: &JsValue, of: Key) -> Option<Entry> {
        let key = self.key(of);
        let read = async {
            let found = ask(cache, "match", std::slice::from_ref(&key)).await?;
            if found.is_undefined() {
                return Ok(None);
            }
            let buffer = ask(&found, "arrayBuffer", &[]).await?;
            Ok::<_, JsValue>(Some(Uint8Array::new(&buffer)))
        };
        let bytes = read.await.unwrap_or_else(|error| {
            self.failed(&error);
            None
        })?;
        let entry = Entry::parse(&bytes.to_vec(), of, self.dim);
        let done = match &entry {
            // Now the one that was used last.
            Some(_) => put(cache, &key, &bytes).await,
            None => {
                tracing::warn!(target: "isovec", "a kept embedding is damaged, and is made anew");
                let counts = self.counts.get();
                self.counts.set(ShelfCounts {
                    rejected: counts.rejected + 1,
                    ..counts
                });
                ask(cache, "delete", &[key]).await.map(|_| ())
            }
        };
        if let Err(error) = done {
            self.failed(&error);
        }
        entry
    }

    async fn write(&self, entries: Vec<(Key, Entry)>) -> Result<(), JsValue> {
        let cache = self.cache().await?;
        // What there is has to be known before there is more.
        if self.seen.get().is_none() {
            self.look(&cache).await?;
        }
        let puts = entries.iter().map(|(of, entry)| {
            let (cache, key, bytes) = (&cache, self.key(*of), entry.to_bytes(*of));
            async move { put(cache, &key, &Uint8Array::from(&bytes[..])).await }
        });
        let puts = join_all(puts).await;
        let written = puts.iter().filter(|put| put.is_ok()).count() as u64;
        let bytes = written * Self::size(self.dim);
        let (had, took) = self.seen.get().unwrap_or_default();
        self.seen.set(Some((had + written, took + bytes)));
        self.since.set(self.since.get() + bytes);
        if took + bytes > self.limit || self.since.get() > self.limit / UNSEEN {
            self.look(&cache).await?;
        }
        puts.into_iter().collect()
    }

    /// Counts the entries, and makes room where there are more than allowed.
    async fn look(&self, cache: &JsValue) -> Result<(), JsValue> {
        let start = key(KIND, "").as_string().unwrap_or_default();
        let requests = Array::from(&ask(cache, "keys", &[]).await?);
        let theirs: Vec<(u64, JsValue)> = requests
            .iter()
            .filter_map(|request| {
                let url = Reflect::get(&request, &"url".into()).ok()?.as_string()?;
                let dim = url.strip_prefix(&start)?.split('-').next()?.parse().ok()?;
                Some((Self::size(dim), request))
            })
            .collect();
        let (mut entries, mut bytes) = (theirs.len() as u64, theirs.iter().map(|one| one.0).sum());
        let room = match bytes > self.limit {
            true => self.limit - self.limit / SPARE,
            false => self.limit,
        };
        let mut gone = Vec::new();
        for (size, request) in &theirs {
            if bytes <= room {
                break;
            }
            gone.push(ask(cache, "delete", std::slice::from_ref(request)));
            (entries, bytes) = (entries - 1, bytes - size);
        }
        let counts = self.counts.get();
        self.counts.set(ShelfCounts {
            evictions: counts.evictions + gone.len() as u64,
            ..counts
        });
        self.seen.set(Some((entries, bytes)));
        self.since.set(0);
        join_all(gone)
            .await
            .into_iter()
            .try_for_each(|one| one.map(|_| ()))
    }

    /// A store that fails costs time, and nobody's vectors.
    fn failed(&self, why: &JsValue) {
        let counts = self.counts.get();
        self.counts.set(ShelfCounts {
            failures: counts.failures + 1,
            ..counts
        });
        if counts.failures == 0 {
            tracing::warn!(target: "isovec", "embeddings cannot be kept by the browser: {why:?}");
        }
    }
}

async fn put(cache: &JsValue, key: &JsValue, bytes: &Uint8Array) -> Result<(), JsValue> {
    let response = Response::new_with_opt_js_u8_array(Some(bytes))?;
    ask(cache, "put", &[key.clone(), response.into()]).await?;
    Ok(())
}
