//! Where a model comes from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
pub use isovec_engine::content::{ByteSource, Content};

/// Where a model comes from.
///
/// A string is a model id of the hub (`intfloat/e5-small-v2`) unless it is written as a path:
/// starting with `.`, `/`, `~/` or a drive letter, holding a backslash, or having more than one
/// `/`. The file system is not asked, so the same string means the same thing everywhere; a
/// [`Path`] always means a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelSource {
    /// A model id in a Hugging Face style hub, or in its local cache.
    Hub(String),
    /// A folder that holds the model's files.
    Folder(PathBuf),
    /// Files by their path inside the model (`tokenizer.json`, `1_Pooling/config.json`), which
    /// may lie anywhere.
    Files(BTreeMap<String, PathBuf>),
    /// The files' contents by their path inside the model, in memory or, as in the browser, stored elsewhere.
    Contents {
        /// A name for messages.
        origin: String,
        /// The contents.
        files: BTreeMap<String, Content>,
    },
}

impl ModelSource {
    /// The files' contents under a name for messages.
    pub fn bytes(
        origin: impl Into<String>,
        files: impl IntoIterator<Item = (String, Bytes)>,
    ) -> Self {
        let files = files.into_iter();
        Self::contents(origin, files.map(|(name, bytes)| (name, bytes.into())))
    }

    /// The same for contents that need not be in memory: from a safetensors checkpoint that is stored elsewhere, the
    /// portable engine copies one tensor at a time from there, large tables in pieces.
    ///
    /// ```
    /// use std::io;
    ///
    /// use isovec::source::{ByteSource, Content};
    /// use isovec::ModelSource;
    /// /// A file on another machine.
    /// #[derive(Debug)]
    /// struct Remote(Vec<u8>);
    ///
    /// impl ByteSource for Remote {
    ///     fn size(&self) -> usize {
    ///         self.0.len()
    ///     }
    ///
    ///     fn read(&self, from: usize, into: &mut [u8]) -> io::Result<()> {
    ///         let bytes = self.0.get(from..from + into.len());
    ///         into.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let weights = Content::elsewhere(Remote(vec![0; 8]));
    /// let config = Content::from(b"{}".to_vec());
    /// let files = [("model.safetensors".to_owned(), weights), ("config.json".to_owned(), config)];
    /// let source = ModelSource::contents("a model of mine", files);
    /// ```
    pub fn contents(
        origin: impl Into<String>,
        files: impl IntoIterator<Item = (String, Content)>,
    ) -> Self {
        Self::Contents {
            origin: origin.into(),
            files: files.into_iter().collect(),
        }
    }

    /// Files by their path inside the model.
    pub fn files(files: impl IntoIterator<Item = (String, PathBuf)>) -> Self {
        Self::Files(files.into_iter().collect())
    }
}

impl From<&str> for ModelSource {
    fn from(text: &str) -> Self {
        if is_path(text) {
            Self::Folder(expand_home(text))
        } else {
            Self::Hub(text.to_owned())
        }
    }
}

impl From<String> for ModelSource {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&String> for ModelSource {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<PathBuf> for ModelSource {
    fn from(path: PathBuf) -> Self {
        Self::Folder(path)
    }
}

impl From<&Path> for ModelSource {
    fn from(path: &Path) -> Self {
        Self::Folder(path.to_path_buf())
    }
}

impl From<&PathBuf> for ModelSource {
    fn from(path: &PathBuf) -> Self {
        Self::Folder(path.clone())
    }
}

impl fmt::Display for ModelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hub(id) => f.write_str(id),
            Self::Folder(path) => write!(f, "{}", path.display()),
            Self::Files(files) => write!(f, "{} named files", files.len()),
            Self::Contents { origin, .. } => f.write_str(origin),
        }
    }
}

fn is_path(text: &str) -> bool {
    let drive = matches!(text.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    drive
        || text == "~"
        || text.starts_with(['.', '/'])
        || text.starts_with("~/")
        || text.contains('\\')
        || text.matches('/').count() > 1
}

fn expand_home(text: &str) -> PathBuf {
    match (text.strip_prefix('~'), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_an_id_unless_it_is_written_as_a_path() {
        for id in [
            "sentence-transformers/all-MiniLM-L6-v2",
            "bert-base-uncased",
            "a/b",
        ] {
            assert_eq!(ModelSource::from(id), ModelSource::Hub(id.into()));
        }
        for path in ["./a", "../a/b", "/a", "a/b/c", "C:/m", r"m\n", "."] {
            assert_eq!(ModelSource::from(path), ModelSource::Folder(path.into()));
        }
        assert_eq!(
            ModelSource::from(Path::new("a/b")),
            ModelSource::Folder("a/b".into())
        );
    }
}
