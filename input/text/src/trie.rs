//! A read-only map from byte strings to `u32`, laid out as a trie in three flat arrays.
//!
//! The vocabulary of a multilingual model has a quarter of a million pieces. A map of strings
//! costs over a hundred bytes a piece and a tree of hash maps ten times that; here a node takes
//! nine bytes (label, first child, value), the children of a node lie side by side, and the
//! whole of a 250,000-piece vocabulary takes less than the JSON it was read from. Because nodes
//! share prefixes, one walk along a text meets every piece that starts there, which is all that
//! Unigram and WordPiece ever ask.

use std::collections::{HashMap, HashSet};

/// Index of a node; the root is 0.
pub(crate) type Node = u32;

/// The root: the empty string.
pub(crate) const ROOT: Node = 0;

/// No value, or no such child.
const NONE: u32 = u32::MAX;

/// Above this many children a binary search beats a scan.
const SCAN_LIMIT: usize = 8;

/// Strings kept end to end in one buffer.
#[derive(Debug, Default, Clone)]
pub(crate) struct Pieces {
    bytes: String,
    ends: Vec<u32>,
}

impl Pieces {
    /// Adds a string; `false` when the buffer is full (4 GiB) and nothing was added.
    pub(crate) fn push(&mut self, piece: &str) -> bool {
        let Ok(end) = u32::try_from(self.bytes.len() + piece.len()) else {
            return false;
        };
        self.bytes.push_str(piece);
        self.ends.push(end);
        true
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The string at `index`; empty past the end.
    pub(crate) fn get(&self, index: usize) -> &str {
        let start = match index.checked_sub(1) {
            Some(before) => self.ends.get(before).copied().unwrap_or(0),
            None => 0,
        };
        let end = self.ends.get(index).copied().unwrap_or(start);
        self.bytes
            .get(start as usize..end as usize)
            .unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|index| self.get(index))
    }
}

/// The map. See the module's words for the layout.
#[derive(Debug, Clone)]
pub(crate) struct Trie {
    /// The children of node `n` are `first_child[n]..first_child[n + 1]`.
    first_child: Box<[u32]>,
    /// The byte that leads to a node; unused for the root.
    label: Box<[u8]>,
    /// What the string that ends at a node maps to.
    value: Box<[u32]>,
    /// The root's children by byte: every walk starts there, and there are many.
    root: Box<[u32; 256]>,
    keys: usize,
    longest: usize,
}

impl Trie {
    /// Builds the map from `pieces[i]` to `value(i)`. Where a string occurs twice the later value
    /// stays, as it does in a map that is filled in order. Values of `u32::MAX` are dropped.
    pub(crate) fn build(pieces: &Pieces, value: impl Fn(usize) -> u32) -> Self {
        let order = sorted_unique(pieces);
        let key = |position: usize| pieces.get(order[position] as usize).as_bytes();

        // Breadth first: each level is a list of ranges of the sorted keys, one for each node.
        let mut first_child = Vec::with_capacity(order.len() * 2);
        let mut label = vec![0_u8];
        let mut values = Vec::with_capacity(order.len() * 2);
        let mut level = vec![(0_u32, order.len() as u32)];
        let mut next = Vec::new();
        let mut depth = 0;
        while !level.is_empty() {
            for &(low, high) in &level {
                let (mut low, high) = (low as usize, high as usize);
                first_child.push(label.len() as u32);
                if low < high && key(low).len() == depth {
                    values.push(value(order[low] as usize));
                    low += 1;
                } else {
                    values.push(NONE);
                }
                while low < high {
                    let byte = key(low)[depth];
                    let mut end = low + 1;
                    while end < high && key(end)[depth] == byte {
                        end += 1;
                    }
                    label.push(byte);
                    next.push((low as u32, end as u32));
                    low = end;
                }
            }
            std::mem::swap(&mut level, &mut next);
            next.clear();
            depth += 1;
        }
        first_child.push(label.len() as u32);

        let mut root = Box::new([NONE; 256]);
        let children = 1..first_child.get(1).copied().unwrap_or(1);
        for child in children {
            root[usize::from(label[child as usize])] = child;
        }
        Self {
            first_child: first_child.into_boxed_slice(),
            label: label.into_boxed_slice(),
            value: values.into_boxed_slice(),
            root,
            keys: order.len(),
            longest: depth.saturating_sub(1),
        }
    }

    /// How many different strings the map holds.
    pub(crate) fn len(&self) -> usize {
        self.keys
    }

    /// How many bytes the longest string has: no walk is longer.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// The node that `byte` leads to from `node`.
    #[inline]
    pub(crate) fn child(&self, node: Node, byte: u8) -> Option<Node> {
        if node == ROOT {
            let child = self.root[usize::from(byte)];
            return (child != NONE).then_some(child);
        }
        let low = self.first_child[node as usize] as usize;
        let high = self.first_child[node as usize + 1] as usize;
        let labels = &self.label[low..high];
        let found = if labels.len() <= SCAN_LIMIT {
            labels.iter().position(|&label| label == byte)
        } else {
            labels.binary_search(&byte).ok()
        };
        found.map(|offset| (low + offset) as Node)
    }

    /// What the string that ends at `node` maps to.
    #[inline]
    pub(crate) fn value(&self, node: Node) -> Option<u32> {
        let value = self.value[node as usize];
        (value != NONE).then_some(value)
    }

    /// The node that the whole of `bytes` leads to from `node`.
    pub(crate) fn descend(&self, node: Node, bytes: &[u8]) -> Option<Node> {
        bytes
            .iter()
            .try_fold(node, |node, &byte| self.child(node, byte))
    }

    /// What exactly this string maps to.
    pub(crate) fn get(&self, key: &str) -> Option<u32> {
        self.value(self.descend(ROOT, key.as_bytes())?)
    }

    /// The strings that map to these values, which are found in one walk through all nodes. Of several strings of one value
    /// it is the last in the order of levels.
    pub(crate) fn keys(&self, wanted: &HashSet<u32>) -> HashMap<u32, String> {
        let mut parent = vec![ROOT; self.value.len()];
        let mut found = HashMap::new();
        for node in 0..self.value.len() {
            let children = self.first_child[node] as usize..self.first_child[node + 1] as usize;
            parent[children].fill(node as Node);
            let Some(value) = self.value(node as Node).filter(|v| wanted.contains(v)) else {
                continue;
            };
            let mut bytes = Vec::new();
            let mut at = node;
            while at != ROOT as usize {
                bytes.push(self.label[at]);
                at = parent[at] as usize;
            }
            bytes.reverse();
            found.insert(value, String::from_utf8_lossy(&bytes).into_owned());
        }
        found
    }

    /// The largest value.
    pub(crate) fn max_value(&self) -> Option<u32> {
        self.value.iter().copied().filter(|&v| v != NONE).max()
    }
}

/// Indices of the different strings in byte order; of equal ones, the last.
///
/// Comparing the first eight bytes as one number settles nearly every comparison without
/// touching the strings, which is where sorting a quarter of a million of them spends its time.
fn sorted_unique(pieces: &Pieces) -> Vec<u32> {
    let mut order: Vec<(u64, u32)> = pieces
        .iter()
        .enumerate()
        .map(|(index, piece)| {
            let mut head = [0_u8; 8];
            let bytes = piece.as_bytes();
            let taken = bytes.len().min(8);
            head[..taken].copy_from_slice(&bytes[..taken]);
            (u64::from_be_bytes(head), index as u32)
        })
        .collect();
    let text = |index: u32| pieces.get(index as usize).as_bytes();
    // In a page std is made for size, and its stable sort is then the fast one.
    order.sort_by(|a, b| {
        a.0.cmp(&b.0)
            .then_with(|| text(a.1).cmp(text(b.1)))
            .then_with(|| a.1.cmp(&b.1))
    });
    let mut unique: Vec<u32> = Vec::with_capacity(order.len());
    let mut previous_head = None;
    for (head, index) in order {
        match unique.last_mut() {
            Some(last) if previous_head == Some(head) && text(*last) == text(index) => {
                *last = index;
            }
            _ => unique.push(index),
        }
        previous_head = Some(head);
    }
    unique
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn build(words: &[String]) -> Trie {
        let mut pieces = Pieces::default();
        for word in words {
            assert!(pieces.push(word));
        }
        Trie::build(&pieces, |index| index as u32)
    }

    #[test]
    fn an_empty_map_holds_nothing() {
        let trie = build(&[]);
        assert_eq!(trie.len(), 0);
        assert_eq!(trie.get(""), None);
        assert_eq!(trie.get("a"), None);
        assert_eq!(trie.max_value(), None);
    }

    #[test]
    fn the_empty_string_is_a_key_like_any_other() {
        let trie = build(&["".into(), "a".into()]);
        assert_eq!(trie.get(""), Some(0));
        assert_eq!(trie.get("a"), Some(1));
    }

    proptest! {
        #[test]
        fn behaves_like_a_map(
            words in prop::collection::vec("[a-c\u{0}éÿ\u{10ffff}]{0,12}", 0..200),
            others in prop::collection::vec("[a-c\u{0}éÿ\u{10ffff}]{0,12}", 0..50),
        ) {
            let trie = build(&words);
            let mut map = BTreeMap::new();
            for (index, word) in words.iter().enumerate() {
                map.insert(word.as_str(), index as u32);
            }
            let wanted = map.iter().map(|(word, &value)| (value, word.to_string()));
            prop_assert_eq!(trie.keys(&map.values().copied().collect()), wanted.collect());
            prop_assert_eq!(trie.len(), map.len());
            prop_assert_eq!(trie.longest(), words.iter().map(String::len).max().unwrap_or(0));
            for word in words.iter().chain(&others) {
                prop_assert_eq!(trie.get(word), map.get(word.as_str()).copied());
            }
            prop_assert_eq!(trie.max_value(), map.values().copied().max());
        }
    }
}
