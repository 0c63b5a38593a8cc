//! Saved embeddings: a safetensors file, written here and read in Rust and JavaScript alike.
//! The layout is specified in `docs/embeddings-format.md`.

use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;

use super::layout::{self, Column, F32, File, Metadata, PLAIN, U8, U32, f32s, marks, u32s, words};
use super::saved::saved_as_file;
use super::{Embeddings, Parts};
use crate::error::{Error, Result};

/// Every tensor that a file of this version may hold; the last two only together.
const TENSORS: [&str; 5] = [
    "embeddings",
    "token_counts",
    "truncated",
    "label_ends",
    "label_text",
];

saved_as_file!(Embeddings, parse, too_large: "the labels take 4 GiB or more");

impl Embeddings {
    /// Reads to the end, and parses the bytes as a file.
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

    /// The file, one part after another: its header, and the tensors.
    fn file(&self) -> Result<Vec<Cow<'_, [u8]>>> {
        let rows = self.len();
        let truncated: Vec<u8> = self.truncated.iter().copied().map(u8::from).collect();
        // Larger elements first, so that all lie at multiples of their size.
        let mut tensors = vec![
            Column {
                name: "embeddings",
                dtype: F32,
                shape: vec![rows, self.dim],
                data: words(&self.values, f32::to_le_bytes),
            },
            Column {
                name: "token_counts",
                dtype: U32,
                shape: vec![rows],
                data: words(&self.token_counts, u32::to_le_bytes),
            },
            Column {
                name: "truncated",
                dtype: U8,
                shape: vec![rows],
                data: truncated.into(),
            },
        ];
        if let Some(labels) = &self.labels {
            let [ends, text] = layout::of_labels(labels)?;
            tensors.insert(1, ends);
            tensors.insert(3, text);
        }
        let metadata = Metadata {
            format_version: PLAIN,
            model: self.model.clone(),
            fingerprint: Arc::clone(&self.fingerprint),
            metric: self.metric,
            prompt: self.prompt.clone(),
            dimension: None,
        };
        layout::file(&metadata, tensors)
    }
}

fn parse(origin: &str, bytes: &[u8]) -> Result<Embeddings> {
    let (file, metadata) = File::open(origin, bytes)?;
    if metadata.format_version > PLAIN {
        return Err(file.other(metadata.format_version));
    }
    let (shape, values) = file.tensor("embeddings", F32, 4, 2)?;
    let [rows, dim] = shape[..] else {
        return Err(file.fail("`embeddings` is not of rank 2"));
    };
    let values = f32s(values);
    let (_, counts) = file.tensor("token_counts", U32, 4, 1)?;
    let token_counts: Vec<u32> = u32s(counts).collect();
    let truncated = marks(&file)?;
    if [token_counts.len(), truncated.len()] != [rows, rows] {
        return Err(file.fail(format!(
            "`token_counts` or `truncated` does not have {rows} entries"
        )));
    }
    file.has_only(&TENSORS)?;
    let labels = file.labels()?;
    let parts = Parts {
        dim,
        values,
        token_counts,
        truncated,
        labels,
        fingerprint: metadata.fingerprint,
        metric: metadata.metric,
        prompt: metadata.prompt,
        model: metadata.model,
    };
    Embeddings::from_parts(origin, parts)
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;
    use isovec_engine::fingerprint::Fingerprint;
    use proptest::prelude::*;
    use safetensors::SafeTensors;

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
        let none = Vec::<(&str, safetensors::tensor::TensorView<'_>)>::new();
        let other = safetensors::serialize(none, None).unwrap();
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

    /// A file of a header and so many bytes behind it.
    fn crafted(header: &str, bytes: usize) -> Vec<u8> {
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.bytes());
        file.resize(file.len() + bytes, 0);
        file
    }

    #[test]
    fn what_is_written_is_what_the_reference_implementation_writes() {
        for set in [sample(), sample().with_labels(["a", "b", "c"]).unwrap()] {
            let bytes = set.to_bytes().unwrap();
            let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
            let read = SafeTensors::deserialize(&bytes).unwrap();
            let metadata = header.metadata().clone();
            assert_eq!(
                safetensors::serialize(read.tensors(), metadata).unwrap(),
                bytes
            );
        }
    }

    /// Numbers whose sums and products pass what machines count to.
    #[test]
    fn crafted_headers_are_refused() {
        let whole = sample().to_bytes().unwrap();
        let length = u64::from_le_bytes(*whole.first_chunk().unwrap()) as usize;
        let header = std::str::from_utf8(&whole[8..8 + length])
            .unwrap()
            .trim_end();
        let data = whole.len() - 8 - length;
        Embeddings::from_bytes(&crafted(header, data)).unwrap();
        let (end, max) = (data as u64, u64::MAX);
        let entry = |name: &str, shape: &str, from: u64, to: u64| {
            format!(r#","{name}":{{"dtype":"U8","shape":{shape},"data_offsets":[{from},{to}]}}}}"#)
        };
        let with = |entry: String| format!("{}{entry}", &header[..header.len() - 1]);
        let cases = [
            // The reference implementation adds the header's length to where the last tensor ends.
            (
                with(entry("x", &format!("[{}]", max - end), end, max)),
                "lies at bytes",
            ),
            (
                with(entry("x", &format!("[{}]", max - end - 8), end, max - 8)),
                "lies at bytes",
            ),
            (with(entry("x", "[0]", max, max)), "lies at bytes"),
            (with(entry("x", "[0]", end, end)), "does not know"),
            (with(entry("truncated", "[0]", end, end)), "truncated twice"),
            (
                header.replace("[3,2]", "[9223372036854775808,2]"),
                "more than 2^64",
            ),
            (
                header.replace("[3,2]", "[4294967296,4294967296]"),
                "more than 2^64",
            ),
            (
                header.replace("[3,2]", "[3,2,18446744073709551615,0]"),
                "rank 2",
            ),
            (
                header.replace("[3,2]", "[0,18446744073709551615]"),
                "takes 0 bytes",
            ),
            (
                header.replace("[3,2]", "[18446744073709551616,2]"),
                "header is not",
            ),
            (header.replace("[3,2]", "[-3,2]"), "header is not"),
            (header.replace(r#""F32""#, r#""F64""#), "not F32"),
            (
                header.replace(r#""__metadata__":"#, r#""__metadata__":{},"__metadata__":"#),
                "twice",
            ),
            (
                header.replace(r#""__metadata__":"#, r#""metadata":"#),
                "header is not",
            ),
            ("{}".into(), "follow the last tensor"),
            ("[".repeat(1 << 16), "header is not"),
        ];
        for (header, words) in cases {
            let error = Embeddings::from_bytes(&crafted(&header, data)).unwrap_err();
            assert_eq!(error.kind(), "InvalidEmbeddings", "{header}");
            assert!(error.to_string().contains(words), "{header}: {error}");
        }
        for length in [
            u64::MAX,
            u64::MAX - 7,
            1 << 63,
            200_000_000,
            whole.len() as u64,
        ] {
            let mut file = whole.clone();
            file[..8].copy_from_slice(&length.to_le_bytes());
            let error = Embeddings::from_bytes(&file).unwrap_err();
            assert!(error.to_string().contains("claims a header"), "{error}");
        }
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
