//! Writes vectors and labels in the requested format.

#[cfg(feature = "columns")]
mod columns;
mod jsonl;
pub(crate) mod labels;
mod npy;
mod objects;
mod safetensors;
mod sparse;
pub(crate) mod start;
#[cfg(feature = "ocr")]
pub(crate) mod texts;
mod tokens;

pub(crate) use sparse::SparseJsonl;
pub(crate) use tokens::{TokensIndex, TokensJsonl};

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use isovec::{CompactForm, Embedded, Embeddings};

use crate::args::{CompactArg, OutputFormat};
use crate::error::{CliError, Result};
use crate::in_place::Draft;
use crate::input::Row;
use crate::resume::Keeper;

/// Something that takes rows and what became of them, one after another.
pub(crate) trait Sink<R> {
    /// Takes the next row and what became of it.
    fn write(&mut self, row: Row, result: R) -> Result<()>;

    /// Hands over what is held back, so that a reader sees every row so far; only of a format that
    /// can be read before it is complete.
    fn flush(&mut self) -> Result<()>;

    /// Completes the file; without this call it may lack its end.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Completes a sink in any case, so that the written rows can be read. Puts the draft in its place only if every row was
/// written.
pub(crate) fn close<R>(
    sink: Box<dyn Sink<R> + '_>,
    draft: Option<Draft>,
    every_row: bool,
) -> Result<()> {
    sink.finish()?;
    match draft {
        Some(draft) if every_row => draft.complete(),
        _ => Ok(()),
    }
}

/// What a sink is opened with.
pub(crate) struct Target<'a> {
    pub(crate) out: Option<&'a Path>,
    pub(crate) format: OutputFormat,
    /// The form of the vectors in a set, if not f32.
    pub(crate) compact: Option<CompactForm>,
    /// A set without vectors, for what its vectors will share.
    pub(crate) empty: Embeddings,
    /// Who keeps `out`, and has opened it, if anybody does.
    pub(crate) keeper: Option<&'a Keeper>,
    /// Otherwise what becomes `out` when it is complete.
    pub(crate) draft: Option<&'a Draft>,
}

impl Target<'_> {
    /// Opens the sink.
    pub(crate) fn open(self) -> Result<Box<dyn Sink<Embedded>>> {
        if let Some(form) = self.compact {
            // A model whose vectors have no such form is known before they are computed.
            self.empty.compact(form)?;
        }
        Ok(match self.format {
            OutputFormat::Jsonl => Box::new(jsonl::Jsonl::new(self.writer()?, self.name())),
            OutputFormat::Npy => {
                let rows = self.keeper.map_or(0, Keeper::rows);
                let npy = npy::Npy::new(self.file()?, self.name(), self.empty.dim(), rows);
                Box::new(npy?)
            }
            #[cfg(feature = "columns")]
            OutputFormat::Parquet => Box::new(columns::parquet(&self)?),
            #[cfg(feature = "columns")]
            OutputFormat::Arrow if self.out.is_some() => Box::new(columns::arrow_file(&self)?),
            #[cfg(feature = "columns")]
            OutputFormat::Arrow => Box::new(columns::arrow_stream(&self)?),
            OutputFormat::Safetensors => Box::new(safetensors::Index::new(
                self.writer()?,
                self.name(),
                self.empty,
                self.compact,
            )),
        })
    }

    fn name(&self) -> String {
        self.out.map_or_else(
            || "standard output".into(),
            |path| path.display().to_string(),
        )
    }

    fn file(&self) -> Result<File> {
        if let Some(keeper) = self.keeper {
            return keeper.output();
        }
        let draft = self.draft.ok_or_else(|| {
            CliError::Usage("this format is completed at its beginning, which a pipe cannot do; name a file with --out".into())
        })?;
        draft.file()
    }

    fn writer(&self) -> Result<Box<dyn Write + Send>> {
        Ok(match self.out {
            Some(_) => buffered(self.file()?),
            None => buffered(std::io::stdout()),
        })
    }
}

/// Where rows are written: a draft or standard output. And what errors call it.
fn writer(out: Option<&Draft>) -> Result<(Box<dyn Write + Send>, String)> {
    Ok(match out {
        Some(draft) => (buffered(draft.file()?), draft.name().to_owned()),
        None => (buffered(std::io::stdout()), "standard output".to_owned()),
    })
}

fn buffered(out: impl Write + Send + 'static) -> Box<dyn Write + Send> {
    Box::new(BufWriter::with_capacity(1 << 16, out))
}

/// The ending of a file's name, in small letters.
fn ending(path: &Path) -> Option<String> {
    let ending = path.extension()?.to_str()?;
    Some(ending.to_ascii_lowercase())
}

/// The form of the vectors that was asked for, which only one format has.
pub(crate) fn compact(
    asked: Option<CompactArg>,
    format: OutputFormat,
) -> Result<Option<CompactForm>> {
    match asked {
        Some(_) if format != OutputFormat::Safetensors => Err(CliError::Usage(
            "--compact is a form of isovec's own sets; name a file that ends in .safetensors with --out, or ask for --format safetensors".into(),
        )),
        asked => Ok(asked.map(CompactArg::form)),
    }
}

/// The format asked for, or the one that the file's ending says.
pub(crate) fn format(asked: Option<OutputFormat>, out: Option<&Path>) -> Result<OutputFormat> {
    if let Some(format) = asked {
        return Ok(format);
    }
    let Some(path) = out else {
        return Ok(OutputFormat::Jsonl);
    };
    match ending(path).as_deref() {
        Some("jsonl" | "ndjson" | "json") => Ok(OutputFormat::Jsonl),
        Some("npy") => Ok(OutputFormat::Npy),
        #[cfg(feature = "columns")]
        Some("parquet") => Ok(OutputFormat::Parquet),
        #[cfg(feature = "columns")]
        Some("arrow" | "arrows" | "feather") => Ok(OutputFormat::Arrow),
        #[cfg(not(feature = "columns"))]
        Some(ending @ ("parquet" | "arrow" | "arrows" | "feather")) => {
            Err(CliError::Usage(format!(
                "this program was built without .{ending} files; build it with the feature `columns`, which is on by default"
            )))
        }
        Some("safetensors") => Ok(OutputFormat::Safetensors),
        _ => Err(CliError::Usage(format!(
            "the ending of {} is not a known format; add --format jsonl|npy|parquet|arrow|safetensors",
            path.display()
        ))),
    }
}
