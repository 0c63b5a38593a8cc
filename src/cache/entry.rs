//! A cache entry for a text, in memory and as a file.
//!
//! The file is a safetensors file (<https://github.com/huggingface/safetensors#format>), which many programs read.
//! All files of one dimension have the same header, to the last byte. This module writes and reads only that header,
//! so a page does not need the crate `safetensors` (40 KB).

use super::key::Key;

/// A text's vector, and what the model saw of the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) vector: Box<[f32]>,
    pub(crate) tokens: u32,
    pub(crate) truncated: bool,
}

impl Entry {
    /// A file of an embedding, the number of its tokens, whether they are all, and a checksum over everything.
    pub(crate) fn to_bytes(&self, key: Key) -> Vec<u8> {
        let mut bytes = header(self.vector.len());
        let start = bytes.len();
        bytes.extend(self.vector.iter().flat_map(|x| x.to_le_bytes()));
        bytes.extend(self.tokens.to_le_bytes());
        bytes.push(u8::from(self.truncated));
        let checksum = checksum(key, &bytes[start..]);
        bytes.extend(checksum);
        bytes
    }

    /// The entry of a key with vectors of so many components; nothing where the bytes are anything else, to the last bit.
    pub(crate) fn parse(bytes: &[u8], key: Key, dim: usize) -> Option<Self> {
        let data = bytes.strip_prefix(&header(dim)[..])?;
        let (data, sum) = data.split_last_chunk()?;
        if *sum != checksum(key, data) {
            return None;
        }
        let (vector, rest) = data.split_at_checked(dim * size_of::<f32>())?;
        let (tokens, truncated) = rest.split_first_chunk()?;
        let &[truncated @ (0 | 1)] = truncated else {
            return None;
        };
        let values = vector.as_chunks().0;
        Some(Self {
            vector: values.iter().map(|x| f32::from_le_bytes(*x)).collect(),
            tokens: u32::from_le_bytes(*tokens),
            truncated: truncated == 1,
        })
    }
}

/// What stands before the tensors' bytes: the header's length, and the header, filled up so that they begin at a multiple
/// of 8.
fn header(dim: usize) -> Vec<u8> {
    let mut end = 0;
    let mut tensor = |name: &str, dtype: &str, count: usize, size: usize| {
        let begin = end;
        end += count * size;
        format!(
            r#","{name}":{{"dtype":"{dtype}","shape":[{count}],"data_offsets":[{begin},{end}]}}"#
        )
    };
    let tensors = [
        tensor("embedding", "F32", dim, 4),
        tensor("tokens", "U32", 1, 4),
        tensor("truncated", "BOOL", 1, 1),
        tensor("checksum", "U8", 32, 1),
    ];
    let tensors = tensors.concat();
    let json = format!(r#"{{"__metadata__":{{"format":"isovec embedding 1"}}{tensors}}}"#);
    let length = json.len().next_multiple_of(8);
    let mut header = (length as u64).to_le_bytes().to_vec();
    header.extend(json.bytes());
    header.resize(size_of::<u64>() + length, b' ');
    header
}

/// Under the key, so that no other text's file can take this one's place.
fn checksum(key: Key, data: &[u8]) -> [u8; 32] {
    blake3::keyed_hash(&key.0, data).into()
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
        let bytes = entry().to_bytes(key);
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
    fn the_file_is_one_that_others_read() {
        let bytes = entry().to_bytes(Key([3; 32]));
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let tensor = |name: &str| file.tensor(name).unwrap();
        assert_eq!(tensor("embedding").shape(), [3]);
        assert_eq!(tensor("embedding").data()[..4], 0.5f32.to_le_bytes());
        assert_eq!(tensor("tokens").data(), 7u32.to_le_bytes());
        assert_eq!(tensor("truncated").data(), [1]);
        assert_eq!(tensor("checksum").data().len(), 32);
    }

    #[test]
    fn no_damage_is_served() {
        let key = Key([3; 32]);
        let bytes = entry().to_bytes(key);
        for at in 0..bytes.len() {
            assert_eq!(Entry::parse(&bytes[..at], key, 3), None, "cut at {at}");
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                assert_eq!(Entry::parse(&damaged, key, 3), None, "byte {at}, bit {bit}");
            }
        }
        assert_eq!(Entry::parse(b"", key, 3), None);
    }
}
