//! What is kept of a text, in memory and as a file.

use std::borrow::Cow;
use std::collections::HashMap;

use safetensors::{Dtype, SafeTensors, View};

use super::key::Key;

/// A text's vector, and what the model saw of the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) vector: Box<[f32]>,
    pub(crate) tokens: u32,
    pub(crate) truncated: bool,
}

/// The tensor's name, and those of what stands beside it.
const VECTOR: &str = "embedding";
const KEY: &str = "isovec.key";
const TOKENS: &str = "isovec.tokens";
const TRUNCATED: &str = "isovec.truncated";
const CHECKSUM: &str = "isovec.checksum";

impl Entry {
    /// A safetensors file of one tensor, with a checksum over everything in it.
    pub(crate) fn to_bytes(&self, key: Key) -> Option<Vec<u8>> {
        let data: Vec<u8> = self.vector.iter().flat_map(|x| x.to_le_bytes()).collect();
        let metadata = [
            (KEY, key.hex()),
            (TOKENS, self.tokens.to_string()),
            (TRUNCATED, self.truncated.to_string()),
            (CHECKSUM, checksum(key, self.tokens, self.truncated, &data)),
        ];
        let metadata: HashMap<String, String> = metadata
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let vector = Vector {
            shape: [self.vector.len()],
            data: &data,
        };
        safetensors::serialize([(VECTOR, vector)], Some(metadata)).ok()
    }

    /// The entry of a key with vectors of so many components; nothing where the bytes are anything else, to the last bit.
    pub(crate) fn parse(bytes: &[u8], key: Key, dim: usize) -> Option<Self> {
        let (_, header) = SafeTensors::read_metadata(bytes).ok()?;
        let metadata = header.metadata().as_ref()?;
        let tokens: u32 = metadata.get(TOKENS)?.parse().ok()?;
        let truncated: bool = metadata.get(TRUNCATED)?.parse().ok()?;
        let file = SafeTensors::deserialize(bytes).ok()?;
        let vector = file.tensor(VECTOR).ok()?;
        if vector.dtype() != Dtype::F32 || vector.shape() != [dim] {
            return None;
        }
        if *metadata.get(CHECKSUM)? != checksum(key, tokens, truncated, vector.data()) {
            return None;
        }
        let values = vector.data().as_chunks::<4>().0;
        Some(Self {
            vector: values.iter().map(|x| f32::from_le_bytes(*x)).collect(),
            tokens,
            truncated,
        })
    }
}

/// Under the key, so that no other text's file can take this one's place.
fn checksum(key: Key, tokens: u32, truncated: bool, vector: &[u8]) -> String {
    let mut hash = blake3::Hasher::new_keyed(&key.0);
    hash.update(&tokens.to_le_bytes());
    hash.update(&[u8::from(truncated)]);
    hash.update(vector);
    hash.finalize().to_hex().to_string()
}

struct Vector<'a> {
    shape: [usize; 1],
    data: &'a [u8],
}

impl View for Vector<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.data.into()
    }

    fn data_len(&self) -> usize {
        self.data.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            vector: [0.5, -0.0, f32::MIN_POSITIVE].into(),
            tokens: 7,
            truncated: true,
        }
    }

    #[test]
    fn what_was_written_is_read_to_the_last_bit() {
        let key = Key([3; 32]);
        let bytes = entry().to_bytes(key).unwrap();
        let read = Entry::parse(&bytes, key, 3).unwrap();
        assert_eq!(read, entry());
        assert!(read.vector[1].is_sign_negative());
        assert_eq!(
            Entry::parse(&bytes, Key([4; 32]), 3),
            None,
            "another text's"
        );
        assert_eq!(Entry::parse(&bytes, key, 4), None, "another model's");
    }

    #[test]
    fn no_damage_is_served() {
        let key = Key([3; 32]);
        let bytes = entry().to_bytes(key).unwrap();
        for at in 0..bytes.len() {
            assert_eq!(Entry::parse(&bytes[..at], key, 3), None, "cut at {at}");
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                if let Some(read) = Entry::parse(&damaged, key, 3) {
                    // White space of the header, or the key's own copy, which nothing is read from.
                    assert_eq!(read, entry(), "byte {at}, bit {bit}");
                }
            }
        }
        assert_eq!(Entry::parse(b"", key, 3), None);
    }
}
