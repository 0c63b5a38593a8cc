//! Vectors of texts in the browser's Cache API, which all tabs of a site share: an entry each, under keys beside those of
//! `cache_in_browser.rs`.
//!
//! The browser lists keys in the order in which they were written. An entry is written again when it is read, so the
//! first key is the least recently used. Entries of different models differ in size, so a key begins with the number
//! of components.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;

use js_sys::{Array, Promise, Reflect, Uint8Array};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;
use web_sys::Response;

use super::cache::{NAME, ask, asked, caches, key};
use crate::cache::{Entry, Key, ShelfCounts};

/// The kind of these entries, and how their keys begin.
const KIND: &str = "embeddings";
/// Bytes that an entry takes beside its vector, at most.
const BESIDE: u64 = 512;
/// Entries that the browser is asked for at the same time.
const AT_ONCE: usize = 512;
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

    /// What an entry with vectors of so many components takes, at most.
    pub(crate) fn size(dim: usize) -> u64 {
        (dim * size_of::<f32>()) as u64 + BESIDE
    }

    /// Where it is.
    pub(crate) fn place(&self) -> String {
        "the browser's Cache API".to_owned()
    }

    /// The entries of these keys, as far as they are there.
    pub(crate) async fn read(&self, keys: Vec<Key>) -> Vec<Option<Entry>> {
        let mut entries = vec![None; keys.len()];
        for (keys, entries) in keys.chunks(AT_ONCE).zip(entries.chunks_mut(AT_ONCE)) {
            if let Err(error) = self.0.read(keys, entries).await {
                self.0.failed(&error);
            }
        }
        entries
    }

    /// Keeps entries.
    pub(crate) async fn write(&self, entries: Vec<(Key, Entry)>) {
        for entries in entries.chunks(AT_ONCE) {
            if let Err(error) = self.0.write(entries).await {
                self.0.failed(&error);
            }
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

    async fn read(&self, keys: &[Key], entries: &mut [Option<Entry>]) -> Result<(), JsValue> {
        let cache = self.cache().await?;
        let asking: Result<Array, JsValue> = keys
            .iter()
            .map(|of| asked(&cache, "match", &[self.key(*of)]))
            .collect();
        let found = all(&asking?).await?;
        let (mut places, contents) = (Vec::new(), Array::new());
        for (place, response) in found.iter().enumerate() {
            if !response.is_undefined() {
                contents.push(&asked(&response, "arrayBuffer", &[])?);
                places.push(place);
            }
        }
        let after = Array::new();
        for (place, buffer) in places.into_iter().zip(all(&contents).await?.iter()) {
            let (of, bytes) = (keys[place], Uint8Array::new(&buffer));
            let entry = Entry::parse(&bytes.to_vec(), of, self.dim);
            after.push(&match &entry {
                // Now the one that was used last.
                Some(_) => put(&cache, &self.key(of), &bytes)?,
                None => {
                    tracing::warn!(target: "isovec", "a cached embedding is damaged, and is computed again");
                    self.count(|counts| counts.rejected += 1);
                    asked(&cache, "delete", &[self.key(of)])?
                }
            });
            entries[place] = entry;
        }
        all(&after).await?;
        Ok(())
    }

    fn count(&self, change: impl FnOnce(&mut ShelfCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    async fn write(&self, entries: &[(Key, Entry)]) -> Result<(), JsValue> {
        let cache = self.cache().await?;
        // What there is has to be known before there is more.
        if self.seen.get().is_none() {
            self.look(&cache).await?;
        }
        let puts = Array::new();
        for (of, entry) in entries {
            let bytes = Uint8Array::from(&entry.to_bytes(*of)[..]);
            puts.push(&put(&cache, &self.key(*of), &bytes)?);
        }
        // Those of which one fails are counted at the next look.
        all(&puts).await?;
        let written = entries.len() as u64;
        let bytes = written * Shelf::size(self.dim);
        let (had, took) = self.seen.get().unwrap_or_default();
        self.seen.set(Some((had + written, took + bytes)));
        self.since.set(self.since.get() + bytes);
        if took + bytes > self.limit || self.since.get() > self.limit / UNSEEN {
            self.look(&cache).await?;
        }
        Ok(())
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
                Some((Shelf::size(dim), request))
            })
            .collect();
        let (mut entries, mut bytes) = (theirs.len() as u64, theirs.iter().map(|one| one.0).sum());
        let room = match bytes > self.limit {
            true => self.limit - self.limit / SPARE,
            false => self.limit,
        };
        let gone = Array::new();
        for (size, request) in &theirs {
            if bytes <= room {
                break;
            }
            gone.push(&asked(cache, "delete", std::slice::from_ref(request))?);
            (entries, bytes) = (entries - 1, bytes - size);
        }
        self.count(|counts| counts.evictions += u64::from(gone.length()));
        self.seen.set(Some((entries, bytes)));
        self.since.set(0);
        all(&gone).await?;
        Ok(())
    }

    /// A store that fails costs time, and nobody's vectors.
    fn failed(&self, why: &JsValue) {
        if self.counts.get().failures == 0 {
            tracing::warn!(target: "isovec", "embeddings cannot be cached by the browser: {why:?}");
        }
        self.count(|counts| counts.failures += 1);
    }
}

fn put(cache: &JsValue, key: &JsValue, bytes: &Uint8Array) -> Result<JsValue, JsValue> {
    let response = Response::new_with_opt_js_u8_array(Some(bytes))?;
    asked(cache, "put", &[key.clone(), response.into()])
}

/// What all of them come to, or the first failure.
async fn all(promises: &Array) -> Result<Array, JsValue> {
    Ok(JsFuture::from(Promise::all(promises)).await?.into())
}
