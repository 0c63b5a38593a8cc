//! What files of sets have in common: a safetensors file whose header describes the set (`docs/embeddings-format.md`).

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use isovec_engine::fingerprint::Fingerprint;
use isovec_engine::fresh::Fresh;
use isovec_model::safetensors::{Header, Malformed, header_of, place_of_header, read_header};
use serde::{Deserialize, Serialize};

use super::once::name_twice;
use crate::error::{Error, Result};
use crate::similarity::Similarity;

/// The key of the header's `__metadata__` that holds [`Metadata`] as JSON.
const METADATA_KEY: &str = "isovec.embeddings";

/// The version of files with vectors in f32.
pub(crate) const PLAIN: u32 = 1;
/// The version of files with vectors in a compact form.
pub(crate) const COMPACT: u32 = 2;
/// The version of files with a vector for each token.
pub(crate) const TOKENS: u32 = 3;
/// The version of files with weights of words, the newest that is read.
pub(crate) const SPARSE: u32 = 4;

/// Element types by their names in the header.
pub(crate) const F32: &str = "F32";
pub(crate) const U32: &str = "U32";
pub(crate) const U8: &str = "U8";
pub(crate) const I8: &str = "I8";

/// What the file says about its tensors.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) format_version: u32,
    pub(crate) model: String,
    #[serde(with = "super::shared")]
    pub(crate) fingerprint: Arc<Fingerprint>,
    #[serde(rename = "similarity")]
    pub(crate) metric: Similarity,
    pub(crate) prompt: Option<String>,
    /// Components of a vector, where the shape does not say it: bits fill whole bytes, and of a sparse one only a few are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dimension: Option<usize>,
}

/// One tensor on its way into the file.
pub(crate) struct Column<'a> {
    pub(crate) name: &'static str,
    pub(crate) dtype: &'static str,
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Cow<'a, [u8]>,
}

/// Where each label ends, and the labels one after another.
///
/// # Errors
/// [`Error::InvalidEmbeddings`] when they take 4 GiB or more.
pub(crate) fn of_labels(labels: &[String]) -> Result<[Column<'static>; 2]> {
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
    Ok([
        Column {
            name: "label_ends",
            dtype: U32,
            shape: vec![ends.len()],
            data: words(&ends, u32::to_le_bytes).into_owned().into(),
        },
        Column {
            name: "label_text",
            dtype: U8,
            shape: vec![text.len()],
            data: text.into_bytes().into(),
        },
    ])
}

/// The column of how many entries each row has, of rows that end at offsets.
///
/// # Errors
/// [`Error::InvalidEmbeddings`] for a row of 2^32 entries or more.
pub(crate) fn of_rows(name: &'static str, offsets: &[usize]) -> Result<Column<'static>> {
    let counts = offsets
        .windows(2)
        .map(|ends| u32::try_from(ends[1] - ends[0]));
    let counts: Vec<u32> = counts
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| invalid("this set", error))?;
    Ok(Column {
        name,
        dtype: U32,
        shape: vec![counts.len()],
        data: words(&counts, u32::to_le_bytes).into_owned().into(),
    })
}

/// The file, one part after another: its header, and the tensors.
pub(crate) fn file<'a>(
    metadata: &Metadata,
    tensors: Vec<Column<'a>>,
) -> Result<Vec<Cow<'a, [u8]>>> {
    let head = head(metadata, &tensors).map_err(|error| invalid("this set", error))?;
    let data = tensors.into_iter().map(|tensor| tensor.data);
    Ok(std::iter::once(head.into()).chain(data).collect())
}

/// Writes a file's parts to a writer, and flushes it.
pub(crate) fn write(mut writer: impl Write, parts: &[Cow<'_, [u8]>]) -> Result<()> {
    let written = parts.iter().try_for_each(|part| writer.write_all(part));
    written
        .and_then(|()| writer.flush())
        .map_err(|source| Error::io("writer", source))
}

/// Writes a file's parts: beside it first, then renamed, so that a full disk or a crash leaves no half file and an older one
/// stays whole.
pub(crate) fn save(path: &Path, parts: &[Cow<'_, [u8]>]) -> Result<()> {
    let write = || {
        let (fresh, file) = Fresh::file(path)?;
        let mut writer = BufWriter::with_capacity(1 << 18, file);
        parts.iter().try_for_each(|part| writer.write_all(part))?;
        writer.flush()?;
        writer.get_ref().sync_all()?;
        // Some systems rename no file that is open.
        drop(writer);
        fresh.replace(path)
    };
    write().map_err(|source| Error::io(path, source))
}

/// Four-byte elements, borrowed where the machine already holds them as the file does.
pub(crate) fn words<T: bytemuck::Pod>(values: &[T], to_le: fn(T) -> [u8; 4]) -> Cow<'_, [u8]> {
    if 1u16 == u16::from_le(1) {
        Cow::Borrowed(bytemuck::cast_slice(values))
    } else {
        Cow::Owned(values.iter().copied().flat_map(to_le).collect())
    }
}

/// What stands before the tensors' bytes.
fn head(metadata: &Metadata, tensors: &[Column<'_>]) -> serde_json::Result<Vec<u8>> {
    let json = serde_json::to_string(metadata)?;
    let entries = BTreeMap::from([(METADATA_KEY, json)]);
    let tensors = tensors.iter();
    let places = tensors.map(|one| (one.name, one.dtype, &one.shape[..], one.data.len()));
    header_of(&entries, &places.collect::<Vec<_>>())
}

pub(crate) fn invalid(origin: &str, detail: impl std::fmt::Display) -> Error {
    Error::InvalidEmbeddings {
        origin: origin.to_owned(),
        detail: detail.to_string(),
    }
}

/// A file whose header was read.
pub(crate) struct File<'a> {
    origin: &'a str,
    bytes: &'a [u8],
    header: Header<HashMap<String, String>>,
}

impl<'a> File<'a> {
    /// Reads the header, and what it says of the set.
    pub(crate) fn open(origin: &'a str, bytes: &'a [u8]) -> Result<(Self, Metadata)> {
        let fail = |detail: String| invalid(origin, detail);
        let malformed = |error: Malformed| invalid(origin, error);
        let at = place_of_header(bytes, bytes.len()).map_err(malformed)?;
        let behind = at.end;
        let text = &bytes[at];
        let header: Header<HashMap<String, String>> =
            read_header(text, behind, bytes.len()).map_err(malformed)?;
        let once = |place: &str, json: &str| match name_twice(json) {
            Some(name) => Err(fail(format!("{place} has the name {name:?} twice"))),
            None => Ok(()),
        };
        // Nothing is lost: what is not UTF-8 was no header.
        once("its header", &String::from_utf8_lossy(text))?;
        let json = header.metadata.as_ref().and_then(|entries| entries.get(METADATA_KEY)).ok_or_else(|| {
            fail(format!("its header has no `{METADATA_KEY}`; it is a safetensors file that isovec did not write"))
        })?;
        // Not `from_str`: one reader of JSON keeps the page's module small.
        let metadata: Metadata = serde_json::from_slice(json.as_bytes())
            .map_err(|error| fail(format!("`{METADATA_KEY}`: {error}")))?;
        once(&format!("`{METADATA_KEY}`"), json)?;
        if metadata.format_version > SPARSE {
            return Err(fail(format!(
                "it has format version {}, and this isovec reads up to {SPARSE}; update isovec",
                metadata.format_version
            )));
        }
        let file = Self {
            origin,
            bytes,
            header,
        };
        Ok((file, metadata))
    }

    /// The error for a file of another version, which says what opens it.
    pub(crate) fn other(&self, version: u32) -> Error {
        self.fail(match version {
            COMPACT => "its vectors are in a compact form; open it as CompactEmbeddings",
            TOKENS => "it holds a vector for each token; open it as MultiVectorEmbeddings",
            SPARSE => "it holds weights of words; open it as SparseEmbeddings",
            _ => "it holds a vector for each text; open it as Embeddings",
        })
    }

    /// A tensor's shape and bytes.
    pub(crate) fn tensor(
        &self,
        name: &str,
        dtype: &str,
        size: usize,
        rank: usize,
    ) -> Result<(Vec<usize>, &'a [u8])> {
        let place = self
            .header
            .tensors
            .iter()
            .find(|place| place.name == name)
            .ok_or_else(|| self.fail(format!("it has no tensor `{name}`")))?;
        if place.dtype != dtype || place.shape.len() != rank {
            let (got, shape) = (&place.dtype, &place.shape);
            return Err(self.fail(format!(
                "`{name}` is {got} {shape:?}, not {dtype} of rank {rank}"
            )));
        }
        let shape = place
            .shape_of(size)
            .map_err(|error| invalid(self.origin, error))?;
        Ok((shape, &self.bytes[place.range.clone()]))
    }

    /// Refuses a tensor of another name: a damaged name must not make a part of the set vanish; new parts raise the version.
    pub(crate) fn has_only(&self, names: &[&str]) -> Result<()> {
        let mut found = self.header.tensors.iter().map(|place| place.name.as_str());
        match found.find(|name| !names.contains(name)) {
            Some(name) => Err(self.fail(format!(
                "it holds `{name}`, which this version does not know"
            ))),
            None => Ok(()),
        }
    }

    /// A tensor's element type, if there is such a tensor.
    pub(crate) fn dtype(&self, name: &str) -> Option<&str> {
        let mut places = self.header.tensors.iter();
        let place = places.find(|place| place.name == name)?;
        Some(&place.dtype)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.header.tensors.iter().any(|place| place.name == name)
    }

    /// The labels, if it has any.
    pub(crate) fn labels(&self) -> Result<Option<Vec<String>>> {
        if !["label_ends", "label_text"]
            .iter()
            .any(|name| self.has(name))
        {
            return Ok(None);
        }
        let (_, text) = self.tensor("label_text", U8, 1, 1)?;
        let text = std::str::from_utf8(text)
            .map_err(|error| self.fail(format!("`label_text`: {error}")))?;
        let (_, ends) = self.tensor("label_ends", U32, 4, 1)?;
        let mut start = 0;
        let mut labels = Vec::new();
        for end in u32s(ends) {
            let end = end as usize;
            let label = text.get(start..end).ok_or_else(|| {
                self.fail(format!(
                    "`label_ends` cuts {start}..{end} out of {} bytes of text",
                    text.len()
                ))
            })?;
            labels.push(label.to_owned());
            start = end;
        }
        if start != text.len() {
            return Err(self.fail(format!(
                "{} bytes of `label_text` belong to no label",
                text.len() - start
            )));
        }
        Ok(Some(labels))
    }

    /// Where each row begins, and the end of the last, by the column of how many entries each has.
    pub(crate) fn offsets(&self, counts: &str) -> Result<Vec<usize>> {
        let (_, own) = self.tensor(counts, U32, 4, 1)?;
        let mut end = 0usize;
        let mut offsets = vec![end];
        for count in u32s(own) {
            let next = end.checked_add(count as usize);
            end = next
                .ok_or_else(|| self.fail(format!("`{counts}` add up to more than there can be")))?;
            offsets.push(end);
        }
        Ok(offsets)
    }

    pub(crate) fn fail(&self, detail: impl std::fmt::Display) -> Error {
        invalid(self.origin, detail)
    }
}

/// The marks of texts of which the model saw only a part.
pub(crate) fn marks(file: &File<'_>) -> Result<Vec<bool>> {
    let (_, marks) = file.tensor("truncated", U8, 1, 1)?;
    let marks = marks.iter().map(|&byte| match byte {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(file.fail(format!(
            "`truncated` holds {other}, which is neither 0 nor 1"
        ))),
    });
    marks.collect()
}

/// Whether a row of signs has bits where it has no component: they would count as signs that differ.
pub(crate) fn has_loose_bits(codes: &[u8], dim: usize) -> bool {
    let used = dim % 8;
    let mut last = codes.chunks_exact(dim.div_ceil(8)).filter_map(<[u8]>::last);
    used != 0 && last.any(|byte| byte << used != 0)
}

/// Four-byte numbers as the file has them.
pub(crate) fn f32s(bytes: &[u8]) -> Vec<f32> {
    let words = bytes.as_chunks().0;
    words
        .iter()
        .map(|bytes| f32::from_le_bytes(*bytes))
        .collect()
}

/// Four-byte numbers as the file has them.
pub(crate) fn u32s(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let words = bytes.as_chunks().0;
    words.iter().map(|bytes| u32::from_le_bytes(*bytes))
}
