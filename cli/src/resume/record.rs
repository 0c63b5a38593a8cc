//! The record of a run: the part that is on the disk, and the options.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use clap::ValueEnum;
use isovec::fingerprint::Fingerprint;
use serde::{Deserialize, Serialize};

use crate::args::{OutputFormat, RoleArg};
use crate::error::{CliError, Result};
use crate::in_place;
use crate::input::Row;

/// The record's own format.
const VERSION: u32 = 1;

/// With what every record begins, which is how one is told from a user's file: the first of its fields, as it is written.
const BEGINS: &str = "{\n  \"version\": ";

/// What decides how a row looks, beside the row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Made {
    format: String,
    role: String,
    fingerprint: Fingerprint,
}

impl Made {
    /// `prompt` is the one of the model's that was asked for by its name.
    pub(crate) fn new(
        format: OutputFormat,
        role: RoleArg,
        prompt: Option<&str>,
        fingerprint: &Fingerprint,
    ) -> Self {
        Self {
            format: name(format),
            role: prompt.map_or_else(|| name(role), str::to_owned),
            fingerprint: fingerprint.clone(),
        }
    }

    /// In what a run that made this differs from one that makes `now`.
    fn differences(&self, now: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        for (what, then, now) in [
            ("--format", &self.format, &now.format),
            ("--role or --prompt", &self.role, &now.role),
        ] {
            if then != now {
                differences.push(format!("{what}: {then} then, {now} now"));
            }
        }
        let (then, now) = (&self.fingerprint, &now.fingerprint);
        if then.precision != now.precision {
            differences.push(format!(
                "precision: {:?} then, {:?} now",
                then.precision, now.precision
            ));
        }
        let show = |value: Option<String>| value.unwrap_or_else(|| "nothing".into());
        differences.extend(then.differences(now).into_iter().map(|difference| {
            format!(
                "{}: {} then, {} now",
                difference.key,
                show(difference.here),
                show(difference.there)
            )
        }));
        differences
    }
}

/// The name that the command line has for a value.
fn name(value: impl ValueEnum) -> String {
    value
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

/// What a run has brought onto the disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    version: u32,
    /// Rows that are complete in the output.
    pub(crate) rows: u64,
    /// Bytes of the output that hold them; what follows is a row cut short, or will come again.
    pub(crate) bytes: u64,
    /// BLAKE3 over these rows of the input, in hexadecimal.
    pub(crate) input: String,
    #[serde(flatten)]
    made: Made,
}

impl Record {
    pub(crate) fn new(made: Made) -> Self {
        Self {
            version: VERSION,
            rows: 0,
            bytes: 0,
            input: InputHash::default().hex(),
            made,
        }
    }

    /// Reads a record; `None` if there is none.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>> {
        let name = path.display().to_string();
        let text = match fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(CliError::io(&name))?,
        };
        let unusable = |detail: String| {
            CliError::Usage(format!(
                "{name} cannot be used ({detail}); run without --resume to begin again"
            ))
        };
        let record: Self =
            serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))?;
        if record.version != VERSION {
            let detail = format!("version {} of its format", record.version);
            return Err(unusable(detail));
        }
        Ok(Some(record))
    }

    /// Sees to it that what is in the record's place is one: its name is made of the output's, and a file of the user's may
    /// be called so.
    ///
    /// # Errors
    /// [`CliError::Usage`] for anything else.
    pub(crate) fn check_place(path: &Path) -> Result<()> {
        let mut start = Vec::new();
        let read = |start: &mut Vec<u8>| {
            File::open(path)?
                .take(BEGINS.len() as u64)
                .read_to_end(start)
        };
        match read(&mut start) {
            Ok(_) if start == BEGINS.as_bytes() => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Ok(_) => Err(CliError::Usage(format!(
                "{} is no record of a run, and one is kept there while the output is written; move it away, or name \
                 another output",
                path.display()
            ))),
            Err(error) => Err(CliError::io(path.display().to_string())(error)),
        }
    }

    /// Writes the record in place of an older one, so that at any moment the one or the other is
    /// on the disk.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        in_place::write(path, |file| {
            serde_json::to_writer_pretty(&mut *file, self)?;
            file.write_all(b"\n")
        })
    }

    /// Whether a run that makes `now` may go on with what this one left in `out`.
    ///
    /// # Errors
    /// [`CliError::Usage`] with everything that differs.
    pub(crate) fn check(&self, now: &Made, out: &Path) -> Result<()> {
        let differences = self.made.differences(now);
        if differences.is_empty() {
            return Ok(());
        }
        Err(CliError::Usage(format!(
            "{} was begun differently ({}); use the same options and model, or run without \
             --resume to begin again",
            out.display(),
            differences.join("; ")
        )))
    }
}

/// A hash over everything of the input that rows of the output show.
#[derive(Debug, Clone, Default)]
pub(crate) struct InputHash(blake3::Hasher);

impl InputHash {
    /// Adds the next row: its text, and its fields as JSON, each preceded by its length.
    pub(crate) fn add(&mut self, row: &Row) {
        // A map with text keys has a JSON form.
        let fields = serde_json::to_vec(&row.fields).unwrap_or_default();
        for bytes in [row.text.as_bytes(), &fields] {
            self.0.update(&(bytes.len() as u64).to_le_bytes());
            self.0.update(bytes);
        }
    }

    pub(crate) fn hex(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(role: RoleArg, weights: &str) -> Made {
        let mut fingerprint = Fingerprint::default();
        fingerprint
            .identity
            .insert("weights".into(), weights.into());
        Made::new(OutputFormat::Jsonl, role, None, &fingerprint)
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.jsonl.progress");
        assert_eq!(Record::read(&path).unwrap(), None);
        let mut record = Record::new(made(RoleArg::Query, "a"));
        record.write(&path).unwrap();
        record.rows = 7;
        record.write(&path).unwrap();
        assert_eq!(Record::read(&path).unwrap(), Some(record));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_record_is_told_from_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.jsonl.progress");
        Record::check_place(&path).unwrap();
        Record::new(made(RoleArg::Query, "a")).write(&path).unwrap();
        Record::check_place(&path).unwrap();
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..20]).unwrap();
        Record::check_place(&path).unwrap();
        for other in ["", "12 % done\n", "{\"version\": 1}", "{\n  \"name\": 1\n}"] {
            fs::write(&path, other).unwrap();
            let error = Record::check_place(&path).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert_eq!(fs::read(&path).unwrap(), other.as_bytes());
        }
    }

    #[test]
    fn a_record_that_cannot_be_understood_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        let record = Record {
            version: VERSION + 1,
            ..Record::new(made(RoleArg::Query, "a"))
        };
        record.write(&path).unwrap();
        let error = Record::read(&path).unwrap_err();
        assert!(matches!(&error, CliError::Usage(text) if text.contains("version 2")));
        fs::write(&path, "{\"version\": 1, \"ro").unwrap();
        let error = Record::read(&path).unwrap_err();
        assert!(matches!(&error, CliError::Usage(text) if text.contains("begin again")));
    }

    #[test]
    fn everything_that_differs_is_named() {
        let record = Record::new(made(RoleArg::Query, "a"));
        let out = Path::new("out.jsonl");
        record.check(&made(RoleArg::Query, "a"), out).unwrap();
        let named = Made {
            role: "topic".into(),
            ..made(RoleArg::Query, "a")
        };
        assert_eq!(
            Made::new(
                OutputFormat::Jsonl,
                RoleArg::Default,
                Some("topic"),
                &named.fingerprint
            ),
            named
        );
        record.check(&named, out).unwrap_err();
        let error = record.check(&made(RoleArg::Passage, "b"), out);
        let error = error.unwrap_err().to_string();
        for words in [
            "out.jsonl",
            "--role or --prompt: query then, passage now",
            "weights: a then, b now",
        ] {
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn the_hash_sees_texts_fields_and_where_a_row_ends() {
        let hash = |rows: &[(&str, &[&str])]| {
            let mut hash = InputHash::default();
            for (text, fields) in rows {
                hash.add(&Row {
                    text: (*text).into(),
                    fields: fields
                        .iter()
                        .map(|&field| (field.to_owned(), 1.into()))
                        .collect(),
                    origin: "test".into(),
                    number: 1,
                });
            }
            hash.hex()
        };
        let ab = hash(&[("a", &[]), ("b", &[])]);
        assert_eq!(ab, hash(&[("a", &[]), ("b", &[])]));
        for other in [
            hash(&[("ab", &[])]),
            hash(&[("b", &[]), ("a", &[])]),
            hash(&[("a", &[]), ("b", &["id"])]),
        ] {
            assert_ne!(ab, other);
        }
    }
}
