//! Shared parts of the benchmarks: the model, the peer, texts, and measuring in turns.

mod corpus;
mod memory;
mod parts;
mod raw;
mod texts;
mod turns;
mod unpooled;
mod wanted;

use std::path::PathBuf;

pub use corpus::{BANDS, Corpus};
pub use memory::{Memory, memory};
pub use parts::{PART, run_part};
pub use raw::{Raw, environment};
pub use texts::Texts;
pub use turns::{Contestant, Medians, median, take_turns};
pub use unpooled::export_unpooled;
pub use wanted::Wanted;

/// Whatever goes wrong in a benchmark ends it.
pub type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Sixteen WordPiece tokens with the two special ones.
pub const TEXT: &str = "semantic search finds what you mean, not only the words that you wrote";

/// The folder of all-MiniLM-L6-v2, which `cargo xtask setup` fetches.
///
/// # Errors
/// When it is not there.
pub fn minilm() -> Result<PathBuf, AnyError> {
    isovec::cache_dir()
        .map(|cache| cache.join("models/all-MiniLM-L6-v2"))
        .filter(|folder| folder.is_dir())
        .ok_or_else(|| "run `cargo xtask setup` first: all-MiniLM-L6-v2 is not there".into())
}
