//! The model that is served.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use isovec::{DynamicBatcher, Embedder};

/// A loaded model with its queue.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) embedder: Embedder,
    pub(crate) batcher: DynamicBatcher,
    /// As requests name it.
    pub(crate) name: String,
    /// When it was loaded, in seconds since 1970.
    pub(crate) since: u64,
}

impl Served {
    pub(crate) fn new(embedder: Embedder, name: Option<String>) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            batcher: DynamicBatcher::new(&embedder),
            name: name.unwrap_or_else(|| public_name(embedder.model_name())),
            since: since.map_or(0, |since| since.as_secs()),
            embedder,
        }
    }
}

/// A model id as it is, and of a folder only its own name: clients have no business with the server's paths.
fn public_name(name: &str) -> String {
    let path = Path::new(name);
    let is_path = path.is_absolute() || name.starts_with('.') || path.is_dir();
    match path.file_name().filter(|_| is_path) {
        Some(name) => name.to_string_lossy().into_owned(),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_known_by_its_own_name() {
        for (name, public) in [
            (
                "sentence-transformers/all-MiniLM-L6-v2",
                "sentence-transformers/all-MiniLM-L6-v2",
            ),
            ("./models/minilm", "minilm"),
            (env!("CARGO_MANIFEST_DIR"), "serve"),
        ] {
            assert_eq!(public_name(name), public);
        }
    }
}
