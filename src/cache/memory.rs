//! The entries in memory: the most recently used ones, as many as fit.

use lru::LruCache;

use super::entry::Entry;
use super::key::Key;

/// What an entry takes beside its vector, about: its key twice, its links, its place in the table.
const BESIDE: usize = 160;

/// Bounded by bytes; whoever was not used for longest goes first.
#[derive(Debug)]
pub(super) struct Memory {
    entries: LruCache<Key, Entry>,
    limit: u64,
    bytes: u64,
    evictions: u64,
}

impl Memory {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            entries: LruCache::unbounded(),
            limit,
            bytes: 0,
            evictions: 0,
        }
    }

    /// What an entry of so many components takes.
    pub(super) fn size(dim: usize) -> u64 {
        (dim * size_of::<f32>() + BESIDE) as u64
    }

    /// An entry, which is now the one that was used last.
    pub(super) fn get(&mut self, key: &Key) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Takes an entry in, and lets go of others as far as it needs their room.
    pub(super) fn put(&mut self, key: Key, entry: Entry) {
        self.bytes += Self::size(entry.vector.len());
        if let Some(same) = self.entries.put(key, entry) {
            self.bytes -= Self::size(same.vector.len());
        }
        while self.bytes > self.limit {
            let Some((_, gone)) = self.entries.pop_lru() else {
                break;
            };
            self.bytes -= Self::size(gone.vector.len());
            self.evictions += 1;
        }
    }

    /// Lets go of all.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }

    /// Entries, their bytes, and how many had to go.
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        (self.entries.len() as u64, self.bytes, self.evictions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> Key {
        Key([number; 32])
    }

    fn entry(value: f32) -> Entry {
        Entry {
            vector: [value; 4].into(),
            tokens: 1,
            truncated: false,
        }
    }

    #[test]
    fn the_bound_holds_and_the_least_recently_used_goes_first() {
        let mut memory = Memory::new(3 * Memory::size(4));
        for number in 0..3 {
            memory.put(key(number), entry(0.0));
        }
        assert_eq!(memory.counts(), (3, 3 * Memory::size(4), 0));
        assert!(memory.get(&key(0)).is_some(), "used again");
        memory.put(key(3), entry(1.0));
        assert_eq!(memory.counts(), (3, 3 * Memory::size(4), 1));
        assert!(memory.get(&key(1)).is_none(), "not used for longest");
        assert!(memory.get(&key(0)).is_some() && memory.get(&key(2)).is_some());
        // In its place, at no cost.
        memory.put(key(3), entry(2.0));
        assert_eq!(memory.counts(), (3, 3 * Memory::size(4), 1));
        assert_eq!(memory.get(&key(3)), Some(&entry(2.0)));
    }

    #[test]
    fn what_is_larger_than_all_is_not_kept() {
        let mut memory = Memory::new(Memory::size(4) - 1);
        memory.put(key(0), entry(0.0));
        assert_eq!(memory.counts(), (0, 0, 1));
    }
}
