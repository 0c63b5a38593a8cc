//! The cache of rows by their item: a text that was embedded before is not computed again.
//!
//! `key.rs` has the keys, `entry.rs` the entries, and `memory.rs` the entries in memory. Entries on disk depend on
//! the target (`src/backend/entries_on_disk.rs`). Every path to vectors goes through `Model::cached`: it calls
//! [`EmbeddingCache::look`] before the computation and [`EmbeddingCache::complete`] after it. Nothing is locked in
//! between.

mod entry;
mod key;
mod memory;

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isovec_engine::cancel::Cancel;
use isovec_engine::engine::Engine;

pub(crate) use entry::Entry;
pub(crate) use key::{Key, Scope};

use crate::backend;
use crate::backend::entries::Shelf;
use crate::config::EmbeddingCacheConfig;
use crate::effective::EffectiveConfig;
use crate::error::{Error, Result};
use crate::model::rows::Rows;
use crate::model::{FlowOptions, Item, Lead, Model, OwnCancel, OwnedItem};
use crate::stats::EmbeddingCacheStats;
use memory::Memory;

/// Items that are looked up before others get at the memory.
const AT_ONCE: usize = 1024;
/// Bytes of text that are hashed where the caller polls: less than waking another thread takes.
const AT_HAND: usize = 32 << 10;

/// The content of the disk, as far as this process knows, and the counts of operations on it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ShelfCounts {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) evictions: u64,
    pub(crate) rejected: u64,
    pub(crate) failures: u64,
}

/// A model's cached vectors.
#[derive(Debug)]
pub(crate) struct EmbeddingCache {
    scope: Scope,
    memory: Option<Mutex<Memory>>,
    shelf: Option<Shelf>,
    hits: AtomicU64,
    disk_hits: AtomicU64,
    misses: AtomicU64,
}

/// Items of a call, with the rows of the cached ones.
#[derive(Debug)]
pub(crate) struct Looked<I> {
    /// Those that have none, each once.
    pub(crate) wanted: Vec<I>,
    rows: Rows,
    missing: Vec<Missing>,
    /// The engine for the missing ones, if its vectors may be cached.
    engine: Option<Arc<dyn Engine>>,
}

/// An item whose row is not in memory, and its places in the call.
#[derive(Debug)]
struct Missing {
    key: Key,
    places: Vec<usize>,
}

impl EmbeddingCache {
    /// Makes the cache that the configuration asks for, if any, and notes the values in effect. `dim`: the components of every row;
    /// `None` for packed rows, each of which has its own, and which are kept in memory alone.
    ///
    /// # Errors
    /// [`Error::Config`] where not even one vector would fit.
    pub(crate) fn open(
        config: &EmbeddingCacheConfig,
        dim: Option<usize>,
        scope: Scope,
        effective: &mut EffectiveConfig,
    ) -> Result<Option<Self>> {
        for (knob, bytes, one) in [
            ("memory", config.memory, dim.map_or(0, Memory::size)),
            ("disk", config.disk, dim.map_or(0, Shelf::size)),
        ] {
            if let Some(bytes) = bytes.filter(|&bytes| bytes < one) {
                return Err(Error::Config(vec![format!(
                    "embedding_cache.{knob} is {bytes} bytes, and one vector of this model takes {one} there"
                )]));
            }
        }
        let opened = config.disk.map(|bytes| match dim {
            Some(dim) => Shelf::open(config.folder.as_deref(), bytes, dim),
            None => Err("sparse vectors and vectors of tokens are kept in memory alone"),
        });
        note(effective, config, opened.as_ref());
        let shelf = opened.and_then(Result::ok);
        let memory = config.memory.map(|bytes| Mutex::new(Memory::new(bytes)));
        Ok((memory.is_some() || shelf.is_some()).then(|| Self {
            scope,
            memory,
            shelf,
            hits: AtomicU64::new(0),
            disk_hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }))
    }

    /// Looks items up: cached rows are put in their places, and the rest is [`Looked::wanted`], each item once.
    pub(crate) async fn look<I: OwnedItem>(
        &self,
        model: &Model,
        items: Vec<I>,
        options: &FlowOptions,
    ) -> Result<Looked<I>> {
        let (lead, prompt) = model.prompts.resolve(&options.prompt)?;
        let cancel = OwnCancel::linked(options.cancel.as_ref());
        cancel.0.check()?;
        let mut rows = model.new_rows(items.len(), prompt)?;
        let items = Arc::new(items);
        let keys = self
            .keys(&items, lead, model.reader.lowercase(), &cancel.0)
            .await?;
        let mut missing = self.at_hand(&keys, &mut rows);
        self.on_the_shelf(&mut missing, &mut rows).await;
        self.misses.fetch_add(missing.len() as u64, Relaxed);
        let hits = items.len() - missing.len();
        self.hits.fetch_add(hits as u64, Relaxed);
        let wanted = missing.iter().map(|item| items[item.places[0]].clone());
        Ok(Looked {
            wanted: wanted.collect(),
            rows,
            missing,
            engine: model.engines.as_first().cloned(),
        })
    }

    /// Puts what was computed of the missing items in their places, keeps it, and gives all rows. Nothing is kept of what
    /// failed.
    pub(crate) async fn complete<I>(
        &self,
        model: &Model,
        looked: Looked<I>,
        made: Result<Rows>,
    ) -> Result<Rows> {
        let Looked {
            mut rows,
            missing,
            engine,
            ..
        } = looked;
        let place = |at: usize| missing.get(at).map_or(at, |item| item.places[0]);
        let made = made.map_err(|error| error.moved(place))?;
        let mut entries = Vec::with_capacity(missing.len());
        for (item, (vector, tokens, truncated)) in missing.iter().zip(made.iter()) {
            let entry = Entry {
                vector: vector.into(),
                tokens,
                truncated,
            };
            entry.place(&mut rows, &item.places);
            entries.push((item.key, entry));
        }
        // What computes in a lost device's place rounds otherwise, be it for a part of the call.
        if engine.is_some_and(|engine| Arc::ptr_eq(&engine, model.engines.current())) {
            self.keep(entries).await;
        }
        Ok(rows)
    }

    /// Empties the cache in memory.
    pub(crate) fn forget(&self) {
        if let Some(memory) = &self.memory {
            lock(memory).clear();
        }
    }

    /// The counts so far, and the size of the cache now.
    pub(crate) fn stats(&self) -> EmbeddingCacheStats {
        let (entries, bytes, evictions) = self
            .memory
            .as_ref()
            .map(|memory| lock(memory).counts())
            .unwrap_or_default();
        let disk = self.shelf.as_ref().map(Shelf::counts).unwrap_or_default();
        EmbeddingCacheStats {
            hits: self.hits.load(Relaxed),
            disk_hits: self.disk_hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            entries,
            bytes,
            evictions,
            disk_entries: disk.entries,
            disk_bytes: disk.bytes,
            disk_evictions: disk.evictions,
            disk_rejected: disk.rejected,
            disk_failures: disk.failures,
        }
    }

    async fn keys<I: OwnedItem>(
        &self,
        items: &Arc<Vec<I>>,
        lead: Lead,
        lowercase: bool,
        cancel: &Cancel,
    ) -> Result<Vec<Key>> {
        let scope = lead.scope(&self.scope);
        let all = Arc::clone(items);
        let key = move |at: usize| all[at].key(&scope, &lead, lowercase);
        if items.iter().map(Item::bytes).sum::<usize>() <= AT_HAND {
            return Ok((0..items.len()).map(key).collect());
        }
        let places: Vec<usize> = (0..items.len()).collect();
        let hash = move |places: &[usize]| Ok(places.iter().map(|&at| key(at)).collect());
        backend::in_slices("looking texts up", places, cancel.clone(), hash).await
    }

    /// Puts what is in memory where it belongs, and gives the rest, each item once.
    fn at_hand(&self, keys: &[Key], rows: &mut Rows) -> Vec<Missing> {
        let mut missing: Vec<Missing> = Vec::new();
        let mut known: HashMap<Key, usize> = HashMap::new();
        for (part, keys) in keys.chunks(AT_ONCE).enumerate() {
            let mut memory = self.memory.as_ref().map(lock);
            for (offset, key) in keys.iter().enumerate() {
                let place = part * AT_ONCE + offset;
                if let Some(entry) = memory.as_mut().and_then(|memory| memory.get(key)) {
                    entry.place(rows, &[place]);
                    continue;
                }
                match known.entry(*key) {
                    Slot::Occupied(at) => missing[*at.get()].places.push(place),
                    Slot::Vacant(free) => {
                        free.insert(missing.len());
                        missing.push(Missing {
                            key: *key,
                            places: vec![place],
                        });
                    }
                }
            }
        }
        missing
    }

    /// Puts what lies on the disk where it belongs, and leaves the rest.
    async fn on_the_shelf(&self, missing: &mut Vec<Missing>, rows: &mut Rows) {
        let Some(shelf) = self.shelf.as_ref().filter(|_| !missing.is_empty()) else {
            return;
        };
        let keys = missing.iter().map(|item| item.key).collect();
        let mut found = shelf.read(keys).await.into_iter();
        let mut entries = Vec::new();
        missing.retain(|item| match found.next().flatten() {
            None => true,
            Some(entry) => {
                entry.place(rows, &item.places);
                entries.push((item.key, entry));
                false
            }
        });
        self.disk_hits.fetch_add(entries.len() as u64, Relaxed);
        self.remember(entries);
    }

    async fn keep(&self, entries: Vec<(Key, Entry)>) {
        match &self.shelf {
            None => self.remember(entries),
            Some(shelf) => {
                self.remember(entries.clone());
                shelf.write(entries).await;
            }
        }
    }

    fn remember(&self, entries: Vec<(Key, Entry)>) {
        let Some(memory) = &self.memory else { return };
        let mut entries = entries.into_iter().peekable();
        while entries.peek().is_some() {
            let mut memory = lock(memory);
            for (key, entry) in entries.by_ref().take(AT_ONCE) {
                memory.put(key, entry);
            }
        }
    }
}

impl Entry {
    fn place(&self, rows: &mut Rows, places: &[usize]) {
        for &place in places {
            rows.set(place, &self.vector, self.tokens, self.truncated);
        }
    }
}

fn lock(memory: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note(
    effective: &mut EffectiveConfig,
    config: &EmbeddingCacheConfig,
    shelf: Option<&std::result::Result<Shelf, &'static str>>,
) {
    let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "none".to_owned(), |n| n.to_string());
    effective.note_own(
        "embedding_cache.memory",
        config.memory.as_ref(),
        bytes(config.memory),
        "the default",
    );
    let folder = config
        .folder
        .as_ref()
        .map(|path| path.display().to_string());
    match shelf {
        Some(Ok(shelf)) => {
            effective.note_own(
                "embedding_cache.disk",
                config.disk.as_ref(),
                bytes(config.disk),
                "the default",
            );
            let place = shelf.place();
            let why = match folder.as_ref() == Some(&place) {
                true => "the configuration",
                false => Shelf::WHY_THERE,
            };
            effective.note("embedding_cache.folder", folder, place, why);
        }
        Some(Err(why)) => {
            effective.note_unused("embedding_cache.disk", config.disk, *why);
            effective.note_unused("embedding_cache.folder", folder, *why);
        }
        None => {
            effective.note_unused("embedding_cache.disk", config.disk, "the default");
            let why = "no cache is configured";
            effective.note_unused("embedding_cache.folder", folder, why);
        }
    }
}

#[cfg(test)]
mod tests;
