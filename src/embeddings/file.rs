//! Saved embeddings: a safetensors file, written here and read in Rust and JavaScript alike.
//! The layout is specified in `docs/embeddings-format.md`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use isovec_engine::fingerprint::Fingerprint;
use safetensors::{Dtype, SafeTensorError, SafeTensors, View};
use serde::{Deserialize, Serialize};

use super::{Embeddings, Parts};
use crate::error::{Error, Result};
use crate::similarity::Similarity;

/// The key of the header's `__metadata__` that holds [`Metadata`] as JSON.
const METADATA_KEY: &str = "isovec.embeddings";

/// The version that is written, and the newest that is read.
const FORMAT_VERSION: u32 = 1;

/// Every tensor that a file of this version may hold; the last two only together.
const TENSORS: [&str; 5] = [
    "embeddings",
    "token_counts",
    "truncated",
    "label_ends",
    "label_text",
];

/// What the file says about its tensors.
#[derive(Debug, Serialize, Deserialize)]
struct Metadata {
    format_version: u32,
    model: String,
    #[serde(with = "super::shared")]
    fingerprint: Arc<Fingerprint>,
    similarity: Similarity,
    prompt: Option<String>,
}

impl Embeddings {
    /// Writes the set to a file: beside it first, then renamed, so that a full disk or a crash
    /// leaves no half file and an older one stays whole.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be written; [`Error::InvalidEmbeddings`] when the labels take
    /// 4 GiB or more.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let (tensors, metadata) = self.tensors()?;
        let absolute = std::path::absolute(path).map_err(|source| Error::io(path, source))?;
        safetensors::serialize_to_file(tensors, Some(metadata), &absolute).map_err(|error| {
            match error {
                SafeTensorError::IoError(source) => Error::io(path, source),
                other => invalid(&path.display().to_string(), other),
            }
        })
    }

    /// The file's bytes.
    ///
    /// # Errors
    /// [`Error::InvalidEmbeddings`] when the labels take 4 GiB or more.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let (tensors, metadata) = self.tensors()?;
        safetensors::serialize(tensors, Some(metadata)).map_err(|error| invalid("this set", error))
    }

    /// Writes the file's bytes.
    ///
    /// # Errors
    /// [`Error::Io`] from the writer; as [`to_bytes`](Self::to_bytes).
    pub fn write_to(&self, mut writer: impl Write) -> Result<()> {
        let bytes = self.to_bytes()?;
        writer
            .write_all(&bytes)
            .and_then(|()| writer.flush())
            .map_err(|source| Error::io("writer", source))
    }

    /// Reads a file that [`save`](Self::save) or the JavaScript package wrote.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be read; [`Error::InvalidEmbeddings`] when it is cut short,
    /// damaged, or something else.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|source| Error::io(path, source))?;
        parse(&path.display().to_string(), &bytes)
    }

    /// Reads the file's bytes.
    ///
    /// # Errors
    /// [`Error::InvalidEmbeddings`] when they are cut short, damaged, or something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        parse("this file", bytes)
    }

    /// Reads to the end and takes what it read as the file's bytes.
    ///
    /// # Errors
    /// [`Error::Io`] from the reader; as [`from_bytes`](Self::from_bytes).
    pub fn read_from(mut reader: impl Read) -> Result<Self> {
        let mut bytes = Vec::new();
        reader
            .read_to_end(&mut bytes)
            .map_err(|source| Error::io("reader", source))?;
        Self::from_bytes(&bytes)
    }

    fn tensors(&self) -> Result<(Tensors<'_>, HashMap<String, String>)> {
        let rows = self.len();
        let truncated: Vec<u8> = self.truncated.iter().copied().map(u8::from).collect();
        let mut tensors = vec![
            (
                "embeddings",
                Column::words(
                    &self.values,
                    f32::to_le_bytes,
                    Dtype::F32,
                    vec![rows, self.dim],
                ),
            ),
            (
                "token_counts",
                Column::words(&self.token_counts, u32::to_le_bytes, Dtype::U32, vec![rows]),
            ),
            (
                "truncated",
                Column {
                    dtype: Dtype::U8,
                    shape: vec![rows],
                    data: truncated.into(),
                },
            ),
        ];
        if let Some(labels) = &self.labels {
            let text = labels.concat();
            let mut end = 0u32;
            let ends: Option<Vec<u32>> = labels
                .iter()
                .map(|label| {
                    end = end.checked_add(u32::try_from(label.len()).ok()?)?;
                    Some(end)
                })
                .collect();
            let ends = ends.ok_or_else(|| invalid("this set", "the labels take 4 GiB or more"))?;
            let shape = vec![text.len()];
            tensors.push((
                "label_ends",
                Column::words(&ends, u32::to_le_bytes, Dtype::U32, vec![rows]).into_owned(),
            ));
            tensors.push((
                "label_text",
                Column {
                    dtype: Dtype::U8,
                    shape,
                    data: text.into_bytes().into(),
                },
            ));
        }
        let metadata = Metadata {
            format_version: FORMAT_VERSION,
            model: self.model.clone(),
            fingerprint: Arc::clone(&self.fingerprint),
            similarity: self.similarity,
            prompt: self.prompt.clone(),
        };
        let json = serde_json::to_string(&metadata).map_err(|error| invalid("this set", error))?;
        Ok((tensors, HashMap::from([(METADATA_KEY.to_owned(), json)])))
    }
}

/// The file's tensors by name, in their order.
type Tensors<'a> = Vec<(&'static str, Column<'a>)>;

/// One tensor on its way into the file.
struct Column<'a> {
    dtype: Dtype,
    shape: Vec<usize>,
    data: Cow<'a, [u8]>,
}

impl<'a> Column<'a> {
    /// Four-byte elements, borrowed where the machine already holds them as the file does.
    fn words<T: bytemuck::Pod>(
        values: &'a [T],
        to_le: fn(T) -> [u8; 4],
        dtype: Dtype,
        shape: Vec<usize>,
    ) -> Self {
        let data = if 1u16 == u16::from_le(1) {
            Cow::Borrowed(bytemuck::cast_slice(values))
        } else {
            Cow::Owned(values.iter().copied().flat_map(to_le).collect())
        };
        Self { dtype, shape, data }
    }

    fn into_owned(self) -> Column<'static> {
        Column {
            dtype: self.dtype,
            shape: self.shape,
            data: Cow::Owned(self.data.into_owned()),
        }
    }
}

impl View for Column<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.data)
    }

    fn data_len(&self) -> usize {
        self.data.len()
    }
}

fn invalid(origin: &str, detail: impl std::fmt::Display) -> Error {
    Error::InvalidEmbeddings {
        origin: origin.to_owned(),
        detail: detail.to_string(),
    }
}

fn parse(origin: &str, bytes: &[u8]) -> Result<Embeddings> {
    let fail = |detail: String| invalid(origin, detail);
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| fail(error.to_string()))?;
    let file = SafeTensors::deserialize(bytes).map_err(|error| fail(error.to_string()))?;
    let json = header.metadata().as_ref().and_then(|entries| entries.get(METADATA_KEY)).ok_or_else(|| {
        fail(format!("its header has no `{METADATA_KEY}`; it is a safetensors file that isovec did not write"))
    })?;
    let metadata: Metadata =
        serde_json::from_str(json).map_err(|error| fail(format!("`{METADATA_KEY}`: {error}")))?;
    if metadata.format_version > FORMAT_VERSION {
        return Err(fail(format!(
            "it has format version {}, and this isovec reads up to {FORMAT_VERSION}; update isovec",
            metadata.format_version
        )));
    }

    let tensor = |name: &str, dtype: Dtype, rank: usize| {
        let tensor = file.tensor(name).map_err(|error| fail(error.to_string()))?;
        if tensor.dtype() != dtype || tensor.shape().len() != rank {
            let (got, shape) = (tensor.dtype(), tensor.shape());
            return Err(fail(format!(
                "`{name}` is {got:?} {shape:?}, not {dtype:?} of rank {rank}"
            )));
        }
        Ok(tensor)
    };
    let words = |data: &[u8]| -> Vec<[u8; 4]> { data.as_chunks().0.to_vec() };

    let embeddings = tensor("embeddings", Dtype::F32, 2)?;
    let (rows, dim) = match *embeddings.shape() {
        [rows, dim] => (rows, dim),
        _ => return Err(fail("`embeddings` is not of rank 2".into())),
    };
    let values: Vec<f32> = words(embeddings.data())
        .into_iter()
        .map(f32::from_le_bytes)
        .collect();
    let counts = tensor("token_counts", Dtype::U32, 1)?;
    let token_counts: Vec<u32> = words(counts.data())
        .into_iter()
        .map(u32::from_le_bytes)
        .collect();
    let truncated: Vec<bool> = tensor("truncated", Dtype::U8, 1)?
        .data()
        .iter()
        .map(|&byte| match byte {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(fail(format!(
                "`truncated` holds {other}, which is neither 0 nor 1"
            ))),
        })
        .collect::<Result<_>>()?;
    if [token_counts.len(), truncated.len()] != [rows, rows] {
        return Err(fail(format!(
            "`token_counts` or `truncated` does not have {rows} entries"
        )));
    }

    // A damaged name must not make a part of the set vanish; new parts raise the version.
    if let Some(name) = file
        .names()
        .into_iter()
        .find(|name| !TENSORS.contains(name))
    {
        return Err(fail(format!(
            "it holds `{name}`, which this version does not know"
        )));
    }
    let has_labels = ["label_ends", "label_text"]
        .iter()
        .any(|name| header.info(name).is_some());
    let labels = if has_labels {
        let text = tensor("label_text", Dtype::U8, 1)?.data();
        let text =
            std::str::from_utf8(text).map_err(|error| fail(format!("`label_text`: {error}")))?;
        let ends = tensor("label_ends", Dtype::U32, 1)?;
        let mut start = 0;
        let mut labels = Vec::new();
        for end in words(ends.data()) {
            let end = u32::from_le_bytes(end) as usize;
            let label = text.get(start..end).ok_or_else(|| {
                fail(format!(
                    "`label_ends` cuts {start}..{end} out of {} bytes of text",
                    text.len()
                ))
            })?;
            labels.push(label.to_owned());
            start = end;
        }
        if start != text.len() {
            return Err(fail(format!(
                "{} bytes of `label_text` belong to no label",
                text.len() - start
            )));
        }
        Some(labels)
    } else {
        None
    };

    let Metadata {
        model,
        fingerprint,
        similarity,
        prompt,
        ..
    } = metadata;
    let parts = Parts {
        dim,
        values,
        token_counts,
        truncated,
        labels,
        fingerprint,
        similarity,
        prompt,
        model,
    };
    Embeddings::from_parts(origin, parts)
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_gives_back_what_went_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.safetensors");
        for set in [
            sample(),
            sample().with_labels(["a", "", "日本語"]).unwrap(),
            Embeddings::new(384, Vec::new(), Fingerprint::default()).unwrap(),
        ] {
            set.save(&path).unwrap();
            assert_eq!(Embeddings::load(&path).unwrap(), set);
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!(set.to_bytes().unwrap(), bytes);
            assert_eq!(Embeddings::read_from(&bytes[..]).unwrap(), set);
            let mut written = Vec::new();
            set.write_to(&mut written).unwrap();
            assert_eq!(written, bytes);
        }
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            1,
            "no temporary file is left"
        );
    }

    #[test]
    fn the_same_set_gives_the_same_bytes_with_the_vectors_aligned() {
        let set = sample().with_labels(["a", "b", "c"]).unwrap();
        let bytes = set.to_bytes().unwrap();
        assert_eq!(bytes, set.to_bytes().unwrap());
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let start =
            file.tensor("embeddings").unwrap().data().as_ptr() as usize - bytes.as_ptr() as usize;
        assert_eq!(start % 4, 0, "JavaScript views the values in place");
    }

    #[test]
    fn a_folder_that_is_not_there_and_a_file_that_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("none").join("index.safetensors");
        assert_eq!(sample().save(&missing).unwrap_err().kind(), "Io");
        let error = Embeddings::load(&missing).unwrap_err();
        assert_eq!(error.kind(), "Io");
        assert!(error.to_string().contains("index.safetensors"), "{error}");
    }

    #[test]
    fn every_cut_is_refused() {
        let bytes = sample()
            .with_labels(["a", "b", "c"])
            .unwrap()
            .to_bytes()
            .unwrap();
        for len in 0..bytes.len() {
            assert_eq!(
                Embeddings::from_bytes(&bytes[..len]).unwrap_err().kind(),
                "InvalidEmbeddings",
                "{len}"
            );
        }
    }

    #[test]
    fn other_safetensors_and_newer_versions_are_named() {
        let other = safetensors::serialize(Vec::<(&str, Column<'_>)>::new(), None).unwrap();
        let error = Embeddings::from_bytes(&other).unwrap_err();
        assert!(
            error.to_string().contains("isovec did not write"),
            "{error}"
        );

        let bytes = sample().to_bytes().unwrap();
        let at = bytes
            .windows(17)
            .position(|window| window == b"format_version\\\":")
            .unwrap();
        let mut newer = bytes;
        newer[at + 17] = b'9';
        let error = Embeddings::from_bytes(&newer).unwrap_err();
        assert!(error.to_string().contains("update isovec"), "{error}");
    }

    proptest! {
        /// A flipped byte is either refused or changes a value; it never panics.
        #[test]
        fn flipped_bytes_never_panic(at in any::<prop::sample::Index>(), flip in 1u8..) {
            let mut bytes = sample().with_labels(["a", "b", "c"]).unwrap().to_bytes().unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            if let Ok(set) = Embeddings::from_bytes(&bytes) {
                prop_assert_eq!((set.len(), set.truncated().len(), set.labels().map(<[String]>::len)), (3, 3, Some(3)));
                prop_assert!(set.as_slice().iter().all(|value| value.is_finite()));
            }
        }
    }
}
