//! The same bits: tests the promise of `deterministic_compute` for the portable engine, on every machine, in every
//! browser, in any batch and on any number of threads.

use isovec::config::EngineChoice;
use isovec::{Embedder, EmbeddingConfig};

use crate::reference::Reference;

/// Of the tiny model's reference texts.
pub const TINY: u64 = 0xdce1_61f7_b58f_8610;
/// Of all-MiniLM-L6-v2's.
pub const MINILM: u64 = 0xac92_209e_bd5a_6bd6;
/// Of the tiny model's, its weights stored in int8: sums of integers are exact, and everything around
/// them has one order.
pub const TINY_INT8: u64 = 0x8684_ac5e_aab8_7e33;
/// Of all-MiniLM-L6-v2's, its weights stored in int8.
pub const MINILM_INT8: u64 = 0x3cd7_7763_fff6_9f6c;
/// Of all-MiniLM-L6-v2's, with rounded activations as well: what groups give is added in their order.
pub const MINILM_INT8_FAST: u64 = 0xc627_dbcb_3d63_0f9e;

/// A configuration with the promise.
pub fn config() -> EmbeddingConfig {
    EmbeddingConfig::default()
        .with_engine(EngineChoice::Portable)
        .with_deterministic_compute(true)
}

/// FNV-1a over the bits of the reference texts' vectors, all asked for in one call
/// (<http://www.isthe.com/chongo/tech/comp/fnv/>).
///
/// # Errors
/// What the embedder could not do.
pub async fn hash(embedder: &Embedder, reference: &Reference) -> Result<u64, isovec::Error> {
    let vectors = embedder.embed(&reference.texts).await?;
    let bytes = vectors
        .as_slice()
        .iter()
        .flat_map(|value| value.to_bits().to_le_bytes());
    Ok(bytes.fold(0xcbf2_9ce4_8422_2325, |state, byte| {
        (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    }))
}
