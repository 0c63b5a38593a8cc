//! Passages of files, with the place where each stands.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::files_in;
use crate::args::Unit;
use crate::error::{CliError, Result};

/// A piece of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Passage {
    pub(crate) path: PathBuf,
    /// The first line's number, from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// The passages of all files under the paths, in a fixed order.
pub(crate) fn collect(paths: &[PathBuf], by: Unit) -> Result<Vec<Passage>> {
    let mut passages = Vec::new();
    for path in paths {
        if !path.is_dir() {
            let bytes = std::fs::read(path).map_err(CliError::io(path.display().to_string()))?;
            let text = String::from_utf8(bytes).map_err(|_| CliError::Row {
                name: path.display().to_string(),
                row: 1,
                detail: "the file is not UTF-8 text".into(),
            })?;
            split(path, &text, by, &mut passages);
            continue;
        }
        for file in files_in(path)? {
            // In a folder, what is no text is passed over.
            let bytes = std::fs::read(&file).map_err(CliError::io(file.display().to_string()))?;
            if let Ok(text) = String::from_utf8(bytes)
                && !text.contains('\0')
            {
                split(&file, &text, by, &mut passages);
            }
        }
    }
    Ok(passages)
}

fn split(path: &Path, text: &str, by: Unit, into: &mut Vec<Passage>) {
    let mut open: Option<Passage> = None;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            into.extend(open.take());
            continue;
        }
        match (&mut open, by) {
            (Some(passage), Unit::Paragraph) => {
                passage.text.push('\n');
                passage.text.push_str(line);
            }
            _ => {
                into.extend(open.take());
                open = Some(Passage {
                    path: path.to_owned(),
                    line: number,
                    text: line.to_owned(),
                });
            }
        }
    }
    into.extend(open);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str, by: Unit) -> Vec<(usize, String)> {
        let mut passages = Vec::new();
        split(Path::new("x"), text, by, &mut passages);
        passages
            .into_iter()
            .map(|passage| (passage.line, passage.text))
            .collect()
    }

    #[test]
    fn paragraphs_and_lines_know_where_they_stand() {
        let text = "\none\ntwo\n \n\nthree";
        assert_eq!(
            places(text, Unit::Paragraph),
            [(2, "one\ntwo".into()), (6, "three".into())]
        );
        assert_eq!(
            places(text, Unit::Line),
            [(2, "one".into()), (3, "two".into()), (6, "three".into())]
        );
        assert!(places("", Unit::Line).is_empty());
    }
}
