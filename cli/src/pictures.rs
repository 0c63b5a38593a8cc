//! Pictures on their way through a model: each becomes a row, and one that cannot be read is named and left out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Map;

use crate::error::{CliError, Result};
use crate::in_place::Draft;
use crate::input::{Row, images};
use crate::output::{self, Sink};
use crate::profile::{self, Profiling};
use crate::progress;

/// How many pictures became rows, and how many did not.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Written {
    pub(crate) rows: u64,
    pub(crate) unreadable: u64,
}

impl Written {
    /// An error where some could not be read.
    pub(crate) fn whole(self) -> Result<()> {
        match self.unreadable {
            0 => Ok(()),
            pictures => Err(CliError::Unreadable {
                pictures,
                of: pictures + self.rows,
            }),
        }
    }
}

/// The pictures of files and folders, none of which is the file that is written.
pub(crate) fn collect(paths: &[PathBuf], out: Option<&Path>) -> Result<Vec<PathBuf>> {
    let paths = images::collect(paths)?;
    let own = out.and_then(|out| out.canonicalize().ok());
    let is_own = |path: &PathBuf| path.canonicalize().is_ok_and(|path| Some(path) == own);
    match own.as_ref().filter(|_| paths.iter().any(is_own)) {
        Some(own) => Err(CliError::Usage(format!(
            "{} is read and would be overwritten; name another file to write to",
            own.display()
        ))),
        None => Ok(paths),
    }
}

/// Writes the result of each picture, as a row whose text is the picture's path.
pub(crate) fn write<R>(
    paths: &[PathBuf],
    results: impl Iterator<Item = isovec::Result<R>>,
    mut sink: Box<dyn Sink<R> + '_>,
    draft: Option<Draft>,
    profiling: Option<Profiling>,
) -> Result<Written> {
    let bar = progress::texts(Some(paths.len() as u64));
    let mut written = Written::default();
    // Whether every row that was made was written.
    let mut whole = true;
    let origin: Arc<str> = "the pictures".into();
    let mut numbered = (1..).zip(paths.iter().zip(results));
    let result = numbered.try_for_each(|(number, (path, result))| {
        let name = path.display().to_string();
        bar.inc(1);
        match result {
            Ok(result) => {
                let image = ("image".to_owned(), name.clone().into());
                let row = Row {
                    text: name,
                    fields: Map::from_iter([image]),
                    origin: Arc::clone(&origin),
                    number,
                };
                written.rows += 1;
                sink.write(row, result).inspect_err(|_| whole = false)
            }
            Err(error) => {
                let reason = unreadable(error)?;
                written.unreadable += 1;
                bar.suspend(|| eprintln!("isovec: {name}: {reason}"));
                Ok(())
            }
        }
    });
    bar.finish_and_clear();
    let finished = output::close(sink, draft, whole);
    let profiled = profile::finish(profiling);
    let ended = result.and(finished).and(profiled);
    ended
        .map(|()| written)
        .map_err(|error| match error.is_interrupt() {
            true => CliError::Interrupted(format!("{} pictures were written", written.rows)),
            false => error,
        })
}

/// Why a picture cannot be read. Any other error is the run's own.
fn unreadable(error: isovec::Error) -> Result<String> {
    match error {
        isovec::Error::Picture { source, .. } => Ok(source.to_string()),
        #[cfg(feature = "ocr")]
        isovec::Error::Reading { source, .. } => Ok(source.to_string()),
        error => Err(CliError::Sdk(error)),
    }
}
