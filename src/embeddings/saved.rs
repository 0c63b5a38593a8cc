//! What every set of vectors does with its file.

/// Gives a set the methods of its file. The set has a method `file`, which makes the file's parts, and `$parse` reads its bytes.
macro_rules! saved_as_file {
    ($set:ty, $parse:path, too_large: $too_large:literal) => {
        impl $set {
            /// Writes the set to a file: beside it first, then renamed, so that a full disk or a crash leaves no half file and an
            /// older one stays whole.
            ///
            /// # Errors
            /// [`Error::Io`](crate::Error::Io) when it cannot be written; as [`to_bytes`](Self::to_bytes).
            pub fn save(&self, path: impl AsRef<std::path::Path>) -> crate::Result<()> {
                crate::embeddings::layout::save(path.as_ref(), &self.file()?)
            }

            /// The file's bytes.
            ///
            /// # Errors
            #[doc = concat!("[`Error::InvalidEmbeddings`](crate::Error::InvalidEmbeddings) when ", $too_large, ".")]
            pub fn to_bytes(&self) -> crate::Result<Vec<u8>> {
                Ok(self.file()?.concat())
            }

            /// Writes the file's bytes.
            ///
            /// # Errors
            /// [`Error::Io`](crate::Error::Io) from the writer; as [`to_bytes`](Self::to_bytes).
            pub fn write_to(&self, writer: impl std::io::Write) -> crate::Result<()> {
                crate::embeddings::layout::write(writer, &self.file()?)
            }

            /// Reads a file of such a set, in whatever language it was written.
            ///
            /// # Errors
            /// [`Error::Io`](crate::Error::Io) when it cannot be read; as [`from_bytes`](Self::from_bytes).
            pub fn load(path: impl AsRef<std::path::Path>) -> crate::Result<Self> {
                let path = path.as_ref();
                let bytes =
                    std::fs::read(path).map_err(|source| crate::Error::io(path, source))?;
                $parse(&path.display().to_string(), &bytes)
            }

            /// Reads the file's bytes.
            ///
            /// # Errors
            /// [`Error::InvalidEmbeddings`](crate::Error::InvalidEmbeddings) when they are cut short, damaged, or something else.
            pub fn from_bytes(bytes: &[u8]) -> crate::Result<Self> {
                $parse("this file", bytes)
            }
        }
    };
}
pub(crate) use saved_as_file;
