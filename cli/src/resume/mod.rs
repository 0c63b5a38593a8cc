//! Continues an interrupted `isovec embed`.
//!
//! While an output grows, a small file beside it records how much of it is safely on the disk, the input, and the
//! options. The file is removed when the output is complete.

mod keeper;
mod kept;
mod record;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::args::OutputFormat;
use crate::error::{CliError, Result};

pub(crate) use keeper::Keeper;
pub(crate) use kept::Kept;
pub(crate) use record::{Made, Record};

/// The place of an output's record, if the output is one that can be gone on with: in a format
/// that only grows, in a file that can be cut back.
pub(crate) fn record_path(out: Option<&Path>, format: OutputFormat) -> Result<Option<PathBuf>> {
    let Some(out) = out else { return Ok(None) };
    if !matches!(format, OutputFormat::Jsonl | OutputFormat::Npy) {
        return Ok(None);
    }
    match fs::metadata(out) {
        Ok(metadata) if !metadata.is_file() => return Ok(None),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(CliError::io(out.display().to_string())(error));
        }
        Ok(_) | Err(_) => {}
    }
    let mut path = out.as_os_str().to_owned();
    path.push(".progress");
    Ok(Some(path.into()))
}

/// What an interrupted run left, for `--resume`; nothing when no run has begun.
///
/// # Errors
/// [`CliError::Usage`] when there is nothing that could be gone on with.
pub(crate) fn look(out: Option<&Path>, record: Option<&Path>) -> Result<Option<Record>> {
    let (Some(out), Some(path)) = (out, record) else {
        return Err(CliError::Usage(
            "--resume needs --out with a .jsonl or .npy file: other formats are completed at their \
             end, and standard output and devices cannot be cut back; run without --resume"
                .into(),
        ));
    };
    let record = Record::read(path)?;
    match (record, out.exists()) {
        (None, false) => Ok(None),
        // Made, and ended before its record was: it holds no row.
        (None, true) if fs::metadata(out).is_ok_and(|out| out.len() == 0) => Ok(None),
        (None, true) => Err(CliError::Usage(format!(
            "there is nothing to resume: {} has no {} beside it, so it is complete, or not from \
             this program; to make it anew, run without --resume",
            out.display(),
            path.display()
        ))),
        (Some(record), false) if record.rows > 0 => Err(CliError::Usage(format!(
            "{} is gone, though {} says that it has {} rows; put it back, or run without --resume \
             to begin again",
            out.display(),
            path.display(),
            record.rows
        ))),
        (record, _) => Ok(record),
    }
}
