//! The hash that identifies a model's weights.

use std::io;

use isovec_engine::content::Content;
use isovec_engine::weights::WeightsIdentity;

/// Computes a [`WeightsIdentity`]. Tensors are handed over in the order of their names, each name
/// once; the element type goes by the name that safetensors gives it (`F32`, `BF16`).
#[derive(Debug, Default)]
pub(crate) struct IdentityHasher(blake3::Hasher);

impl IdentityHasher {
    /// Of no tensor yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a tensor. Every part goes in with its length, so that no two sets of tensors give
    /// the same stream of bytes.
    pub(crate) fn tensor(
        &mut self,
        name: &str,
        dtype: &str,
        shape: impl ExactSizeIterator<Item = u64>,
        data: &[u8],
    ) {
        self.begin(name, dtype, shape, data.len());
        update(&mut self.0, data);
    }

    /// The same for a tensor that need not be in memory.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn content(
        &mut self,
        name: &str,
        dtype: &str,
        shape: impl ExactSizeIterator<Item = u64>,
        data: &Content,
    ) -> io::Result<()> {
        self.begin(name, dtype, shape, data.len());
        let add = |piece: &[u8]| {
            update(&mut self.0, piece);
            Ok(())
        };
        data.pieces(add, |error| error)
    }

    /// The hash, as 64 hexadecimal digits.
    pub(crate) fn finish(&self) -> WeightsIdentity {
        WeightsIdentity(self.0.finalize().to_hex().to_string())
    }

    fn begin(
        &mut self,
        name: &str,
        dtype: &str,
        shape: impl ExactSizeIterator<Item = u64>,
        bytes: usize,
    ) {
        self.text(name);
        self.text(dtype);
        self.number(shape.len() as u64);
        for extent in shape {
            self.number(extent);
        }
        self.number(bytes as u64);
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }
}

/// Hashes on all cores from where that pays (the figure is from BLAKE3's documentation).
#[cfg(feature = "parallel")]
fn update(hasher: &mut blake3::Hasher, data: &[u8]) {
    const WORTH_SHARING: usize = 128 << 10;
    if data.len() >= WORTH_SHARING {
        hasher.update_rayon(data);
    } else {
        hasher.update(data);
    }
}

#[cfg(not(feature = "parallel"))]
fn update(hasher: &mut blake3::Hasher, data: &[u8]) {
    hasher.update(data);
}
