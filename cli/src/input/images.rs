//! Pictures of files and folders, in a fixed order.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use isovec::image::Format;

use super::files_in;
use crate::error::{CliError, Result};

/// Bytes that tell a picture's format.
const HEAD: u64 = 16;

/// The files named, and those in the folders named that begin as pictures do.
pub(crate) fn collect(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut pictures = Vec::new();
    for path in paths {
        if !path.is_dir() {
            // Opened now, so that a wrong name fails before the model is loaded.
            head(path)?;
            pictures.push(path.clone());
            continue;
        }
        for file in files_in(path)? {
            if Format::of(&head(&file)?).is_some() {
                pictures.push(file);
            }
        }
    }
    match pictures.is_empty() {
        true => Err(CliError::Usage(
            "there is no picture in these folders; PNG, JPEG, WebP and GIF are read".into(),
        )),
        false => Ok(pictures),
    }
}

fn head(path: &Path) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.map_err(CliError::io(path.display().to_string()))?;
    Ok(head)
}
