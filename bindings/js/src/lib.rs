//! The bindings that the TypeScript face (`bindings/js/ts`) stands on. Nothing here is meant to be called
//! by hand: names are raw, errors are plain `Error` objects with a `kind`.

mod choice;
mod embedder;
mod embeddings;
mod files;
mod panic;

pub use choice::choose_files;
pub use embedder::{RawCancel, RawEmbedder};
pub use embeddings::RawEmbeddings;
pub use panic::last_panic;
