//! Labels on their way out, in the format asked for.

mod csv;
mod json;
mod table;

use std::path::Path;

use isovec::Classified;

use super::objects::Frame;
use super::{Sink, ending, writer};
use crate::args::LabelsFormat;
use crate::error::{CliError, Result};
use crate::in_place::Draft;

/// What of a text's labels is written.
pub(crate) struct Shown<'a> {
    /// The names of all labels.
    pub(crate) names: &'a [String],
    /// Labels of each text, where somebody said how many.
    pub(crate) most: Option<usize>,
}

/// Opens a sink that writes into a file, or to standard output.
pub(crate) fn open(
    format: LabelsFormat,
    out: Option<&Draft>,
    shown: &Shown<'_>,
) -> Result<Box<dyn Sink<Classified>>> {
    let (writer, name) = writer(out)?;
    let most = shown.most;
    Ok(match format {
        LabelsFormat::Table => Box::new(table::Table::new(writer, name, shown.names, most)?),
        LabelsFormat::Jsonl => Box::new(json::Labels::new(writer, name, Frame::Lines, most)),
        LabelsFormat::Json => Box::new(json::Labels::new(writer, name, Frame::Array, most)),
        LabelsFormat::Csv => Box::new(csv::Records::new(writer, name, most)?),
    })
}

/// The format asked for, or the one that the file's ending says.
pub(crate) fn format(asked: Option<LabelsFormat>, out: Option<&Path>) -> Result<LabelsFormat> {
    match (asked, out) {
        (Some(format), _) => Ok(format),
        (None, None) => Ok(LabelsFormat::Table),
        (None, Some(path)) => match ending(path).as_deref() {
            Some("jsonl" | "ndjson") => Ok(LabelsFormat::Jsonl),
            Some("json") => Ok(LabelsFormat::Json),
            Some("csv") => Ok(LabelsFormat::Csv),
            Some("txt") => Ok(LabelsFormat::Table),
            _ => Err(CliError::Usage(format!(
                "the ending of {} says no format; add --format table|jsonl|json|csv",
                path.display()
            ))),
        },
    }
}
