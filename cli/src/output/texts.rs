//! The text of pictures: plain, as JSON, or in hOCR.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use isovec::{PictureText, hocr};
use serde::Serialize;

use super::Sink;
use crate::args::TextFormat;
use crate::error::{CliError, Result};
use crate::in_place::Draft;
use crate::input::Row;

/// The format that was asked for, or that a file's ending asks for.
pub(crate) fn format(asked: Option<TextFormat>, out: Option<&Path>) -> Result<TextFormat> {
    if let Some(asked) = asked {
        return Ok(asked);
    }
    let ending = out
        .and_then(|out| out.extension())
        .map(|ending| ending.to_string_lossy().to_lowercase());
    match ending.as_deref() {
        None | Some("txt") => Ok(TextFormat::Text),
        Some("json") => Ok(TextFormat::Json),
        Some("jsonl" | "ndjson") => Ok(TextFormat::Jsonl),
        Some("hocr" | "html" | "xhtml") => Ok(TextFormat::Hocr),
        Some(other) => Err(CliError::Usage(format!(
            "text is not written as .{other}; name a file that ends in .txt, .json, .jsonl or .hocr, or say --format"
        ))),
    }
}

/// Opens the sink: a draft, or standard output.
pub(crate) fn open(
    format: TextFormat,
    draft: Option<&Draft>,
) -> Result<Box<dyn Sink<PictureText>>> {
    let (writer, name): (Box<dyn Write>, _) = match draft {
        Some(draft) => (
            Box::new(BufWriter::new(draft.file()?)),
            draft.name().to_owned(),
        ),
        None => (Box::new(io::stdout()), "standard output".to_owned()),
    };
    Ok(Box::new(Texts {
        writer,
        name,
        format,
        pages: Vec::new(),
        count: 0,
    }))
}

struct Texts {
    writer: Box<dyn Write>,
    name: String,
    format: TextFormat,
    /// The pages so far, of a format that is written at the end.
    pages: Vec<(String, PictureText)>,
    count: u64,
}

/// A picture's object.
#[derive(Serialize)]
struct Object<'a> {
    image: &'a str,
    #[serde(flatten)]
    text: &'a PictureText,
}

impl Texts {
    fn put(&mut self, row: Row, text: PictureText) -> io::Result<()> {
        let is_first = self.count == 0;
        self.count += 1;
        let object = Object {
            image: &row.text,
            text: &text,
        };
        match self.format {
            TextFormat::Text => {
                let between = if is_first { "" } else { "\n" };
                write!(self.writer, "{between}{}", text.plain())
            }
            TextFormat::Jsonl => {
                serde_json::to_writer(&mut self.writer, &object)?;
                writeln!(self.writer)
            }
            TextFormat::Json => {
                write!(self.writer, "{}", if is_first { "[\n" } else { ",\n" })?;
                Ok(serde_json::to_writer(&mut self.writer, &object)?)
            }
            TextFormat::Hocr => {
                self.pages.push((row.text, text));
                Ok(())
            }
        }
    }

    fn end(&mut self) -> io::Result<()> {
        match self.format {
            TextFormat::Text | TextFormat::Jsonl => {}
            TextFormat::Json if self.count == 0 => writeln!(self.writer, "[]")?,
            TextFormat::Json => writeln!(self.writer, "\n]")?,
            TextFormat::Hocr => {
                let pages = self.pages.iter().map(|(name, text)| (name.as_str(), text));
                self.writer.write_all(hocr(pages).as_bytes())?;
            }
        }
        self.writer.flush()
    }
}

impl Sink<PictureText> for Texts {
    fn write(&mut self, row: Row, text: PictureText) -> Result<()> {
        let put = self.put(row, text);
        put.map_err(CliError::io(&self.name))
    }

    fn flush(&mut self) -> Result<()> {
        self.writer.flush().map_err(CliError::io(&self.name))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let ended = self.end();
        ended.map_err(CliError::io(&self.name))
    }
}
