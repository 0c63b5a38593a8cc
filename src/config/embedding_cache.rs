//! The configuration of the embedding cache.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A cache of vectors by their text, so that a text that was embedded before is not computed again. Off if neither
/// `memory` nor `disk` is set. An entry belongs to one model, precision, engine and set of knobs that affect a
/// vector, and is used for no other. Sizes are in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct EmbeddingCacheConfig {
    /// Bytes of vectors that an embedder caches in memory; the least recently used are removed first. They do not
    /// count towards `memory.memory_limit`. `None`: no cache in memory.
    pub memory: Option<u64>,
    /// Bytes of vectors that are cached for other embedders, processes and starts: natively a file for each text, in a
    /// page entries of the browser's cache, for the site's other tabs and the next visit. Without such a cache (node,
    /// pages without TLS) the value in effect is none. `None`: no such cache.
    pub disk: Option<u64>,
    /// The folder of those files, which several processes may share; a page has none. `None`: `embeddings` in isovec's
    /// cache folder.
    pub folder: Option<PathBuf>,
}

impl EmbeddingCacheConfig {
    /// Whether any vector is cached.
    pub fn is_on(&self) -> bool {
        self.memory.is_some() || self.disk.is_some()
    }

    pub(super) fn contradictions(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (knob, value) in [("memory", self.memory), ("disk", self.disk)] {
            if value == Some(0) {
                faults.push(format!(
                    "embedding_cache.{knob} is 0; leave it out to turn this cache off"
                ));
            }
        }
        match &self.folder {
            Some(folder) if folder.as_os_str().is_empty() => {
                faults.push("embedding_cache.folder is empty; leave it out for the default".into());
            }
            Some(_) if self.disk.is_none() => faults.push(
                "embedding_cache.folder is set, but embedding_cache.disk, the size of this cache, is not".into(),
            ),
            _ => {}
        }
        faults
    }
}
