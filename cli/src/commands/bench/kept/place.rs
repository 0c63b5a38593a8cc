//! The place of a saved benchmark: a name in isovec's folder, or a file of the user.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::KeptError;
use crate::error::{CliError, Result};
use crate::in_place;

const LONGEST: usize = 64;
/// What no file may be called on Windows, whatever its ending.
const RESERVED: [&str; 4] = ["con", "prn", "aux", "nul"];

/// A name, and its file.
#[derive(Debug, Clone)]
pub(in crate::commands::bench) struct Place {
    name: String,
    path: PathBuf,
    own_folder: bool,
}

impl Place {
    /// A file for what has a separator or ends in `.json`, else one in isovec's folder.
    pub(in crate::commands::bench) fn new(name: &str) -> Result<Self> {
        let ends = Path::new(name)
            .extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
        if ends || name.contains(std::path::is_separator) {
            return Ok(Self {
                name: name.to_owned(),
                path: PathBuf::from(name),
                own_folder: false,
            });
        }
        if !is_name(name) {
            return Err(CliError::Kept {
                name: name.to_owned(),
                error: KeptError::Name,
            });
        }
        let folder = folder().ok_or_else(|| {
            CliError::Usage(format!(
                "no folder for caches is known here, so that {name} has to be a file, such as ./{name}.json; or set \
                 ISOVEC_CACHE"
            ))
        })?;
        Ok(Self {
            name: name.to_owned(),
            path: folder.join(format!("{name}.json")),
            own_folder: true,
        })
    }

    pub(in crate::commands::bench) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes sure that it can be written, before minutes are spent.
    pub(in crate::commands::bench) fn prepare(&self) -> Result<()> {
        if let (true, Some(folder)) = (self.own_folder, self.path.parent()) {
            fs::create_dir_all(folder).map_err(CliError::io(folder.display().to_string()))?;
        }
        in_place::check(&self.path)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Where benchmarks with names are.
pub(super) fn folder() -> Option<PathBuf> {
    Some(isovec::cache_dir()?.join("benchmarks"))
}

/// Whether every system can have a file of that name.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let stem = name
        .split('.')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let numbered = stem.strip_prefix("com").or(stem.strip_prefix("lpt"));
    let numbered =
        numbered.is_some_and(|rest| rest.len() == 1 && rest != "0" && rest.parse::<u8>().is_ok());
    name.len() <= LONGEST
        && name.chars().all(plain)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !name.contains("..")
        && !name.ends_with('.')
        && !RESERVED.contains(&stem.as_str())
        && !numbered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_files_are_told_from_them() {
        for name in ["main", "v0.1.0", "2026-11-22_a", "command", "com10", "A"] {
            assert!(is_name(name), "{name}");
        }
        let long = "a".repeat(65);
        for name in [
            "", ".", "..", "a..b", ".hidden", "-x", "a b", "a.", "ä", "a\0", "nul", "CON.txt",
            "com1", "lpt9.x", &long,
        ] {
            assert!(!is_name(name), "{name}");
            let error = Place::new(name).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{error}");
        }
        for file in ["./a", "a/b", "../x", "a.json", "A.JSON"] {
            let place = Place::new(file).unwrap();
            assert_eq!(place.path(), Path::new(file));
        }
    }
}
