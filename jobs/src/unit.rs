//! Units of work.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

/// How a file holds texts, by its ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    JsonLines,
    Parquet,
}

impl Kind {
    /// The kind of a file, if there is one for its ending.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let (_, ending) = name.rsplit_once('.')?;
        match &*ending.to_ascii_lowercase() {
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }
}

/// A file of the input as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    /// Its place in the store of the input.
    pub(crate) at: object_store::path::Path,
    /// What messages call it.
    pub(crate) name: String,
    /// What the store says its content is known by. It changes with the content.
    pub(crate) etag: String,
    pub(crate) size: u64,
    pub(crate) kind: Kind,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Part {
    /// The lines that begin at these bytes.
    Bytes { start: u64, end: u64 },
    /// These row groups. `row` is the number of their first row in the file, from 0.
    Groups { first: u32, end: u32, row: u64 },
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes { start, end } => write!(f, "bytes {start} to {end}"),
            Self::Groups { first, end, .. } if end - first == 1 => write!(f, "row group {first}"),
            Self::Groups { first, end, .. } => write!(f, "row groups {first} to {}", end - 1),
        }
    }
}

/// A part of a file, to be turned into vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) file: Arc<File>,
    pub(crate) part: Part,
}

impl Unit {
    /// The name of what becomes of it under these settings.
    ///
    /// The first 16 bytes of the BLAKE3 hash over: the settings, the file's name, its etag and its size, the part; each
    /// preceded by its length as a little-endian u64.
    pub(crate) fn id(&self, settings: &str) -> UnitId {
        let size = self.file.size.to_string();
        let part = match &self.part {
            Part::Bytes { start, end } => format!("bytes {start} {end}"),
            Part::Groups { first, end, row } => format!("groups {first} {end} {row}"),
        };
        UnitId::over(&[settings, &self.file.name, &self.file.etag, &size, &part])
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.file.name, self.part)
    }
}

/// The name of a unit: 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitId([u8; 16]);

impl UnitId {
    /// The hash of texts, each preceded by its length.
    pub(crate) fn over(texts: &[&str]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for text in texts {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        let mut id = [0; 16];
        id.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Self(id)
    }

    /// Reads an id as it is written; nothing where a text is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = u128::from_str_radix(text, 16).ok().filter(|_| digits);
        id.map(|id| Self(id.to_be_bytes()))
    }
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for UnitId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Debug for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit() -> Unit {
        Unit {
            file: Arc::new(File {
                at: "a.jsonl".into(),
                name: "a.jsonl".into(),
                etag: "1".into(),
                size: 9,
                kind: Kind::JsonLines,
            }),
            part: Part::Bytes { start: 0, end: 9 },
        }
    }

    #[test]
    fn everything_that_decides_the_output_decides_the_id() {
        let id = unit().id("s");
        assert_eq!(id, unit().id("s"));
        let changed = |change: &dyn Fn(&mut File)| {
            let mut file = File::clone(&unit().file);
            change(&mut file);
            let file = Arc::new(file);
            Unit { file, ..unit() }.id("s")
        };
        let part = |part| Unit { part, ..unit() }.id("s");
        let others = [
            unit().id("t"),
            changed(&|file| file.name = "b.jsonl".into()),
            changed(&|file| file.etag = "2".into()),
            changed(&|file| file.size = 10),
            part(Part::Bytes { start: 1, end: 9 }),
            part(Part::Bytes { start: 0, end: 8 }),
            part(Part::Groups {
                first: 0,
                end: 9,
                row: 0,
            }),
        ];
        for (at, other) in others.iter().enumerate() {
            assert_ne!(id, *other, "{at}");
        }
    }

    #[test]
    fn an_id_is_read_as_it_is_written() {
        let id = unit().id("s");
        assert_eq!(UnitId::parse(&id.to_string()), Some(id));
        for wrong in [
            "",
            "00",
            &format!("{id}0"),
            "+0000000000000000000000000000001",
        ] {
            assert_eq!(UnitId::parse(wrong), None, "{wrong}");
        }
    }
}
