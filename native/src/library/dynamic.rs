//! Finds the shared library and examines it before the process uses it.
//!
//! `ort` loads one library for a process, and panics if the file is not ONNX Runtime. So every candidate is opened
//! and examined here first, and closed again if it is unsuitable.

use std::env::{self, consts};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ort::sys::{OrtApi, OrtApiBase};

use super::{Library, Problem};

/// The variable that names a library for every program on `ort`.
const VARIABLE: &str = "ORT_DYLIB_PATH";

const HOW_TO_GET: &str = "Get one with `cargo xtask setup` in a checkout of isovec; or with `pip \
    download --no-deps onnxruntime`, unpacking the library in its `onnxruntime/capi` folder, and \
    name it in ORT_DYLIB_PATH or onnxruntime_library; or build with the feature \
    `onnxruntime-download`";

/// The library that `ort` was given through this crate.
static COMMITTED: Mutex<Option<Library>> = Mutex::new(None);

/// A library that a package brings, beside which isovec is installed.
static OFFERED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Names a library to use where neither the options nor the variable name one. Without effect once one is in use.
pub fn offer(library: PathBuf) {
    *OFFERED.lock().unwrap_or_else(PoisonError::into_inner) = Some(library);
}

/// Finds a library that works, without making it the process's.
pub(crate) fn probe(asked: Option<&Path>) -> Result<Library, Problem> {
    let committed = COMMITTED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = &*committed {
        return agree(library, asked);
    }
    Ok(first(candidates(asked)?)?.0)
}

/// Finds a library that works and makes it the process's, or agrees with the one that is.
pub(crate) fn commit(asked: Option<&Path>) -> Result<Library, Problem> {
    let mut committed = COMMITTED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = &*committed {
        return agree(library, asked);
    }
    let (library, opened) = first(candidates(asked)?)?;
    let Some(path) = library.path.as_deref() else {
        return Ok(library);
    };
    // The builder that this returns is for `ort`'s environment, which is left to others.
    drop(ort::init_from(path).map_err(|error| Problem::new(error.to_string(), HOW_TO_GET))?);
    // Somebody else in this program may have been first, with another file. Then `ort` keeps
    // theirs and says nothing, but its function table is not the one of our file.
    if !std::ptr::eq(ort::api(), opened.api) {
        return Err(Problem::new(
            format!(
                "another part of this program has already loaded a different ONNX Runtime, and a \
                 process can use only one; {} was not used",
                path.display()
            ),
            format!("Name one library for the whole program, in {VARIABLE}"),
        ));
    }
    *committed = Some(library.clone());
    Ok(library)
}

/// The library in use, unless the caller insists on another one.
fn agree(library: &Library, asked: Option<&Path>) -> Result<Library, Problem> {
    let (Some(asked), Some(used)) = (asked, &library.path) else {
        return Ok(library.clone());
    };
    if same_file(asked, used) {
        return Ok(library.clone());
    }
    Err(Problem::new(
        format!(
            "this process already uses ONNX Runtime {} from {}, and a process can use only one; \
             {} was asked for",
            library.version,
            used.display(),
            asked.display()
        ),
        "Name the same library everywhere, or use a process for each",
    ))
}

fn same_file(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    a == b || matches!((real(a), real(b)), (Some(a), Some(b)) if a == b)
}

/// Where to look, best first: the one that was named, else the one that was offered and those in the cache.
fn candidates(asked: Option<&Path>) -> Result<Vec<PathBuf>, Problem> {
    if let Some(path) = asked {
        return Ok(vec![path.to_owned()]);
    }
    if let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return Ok(vec![path.into()]);
    }
    let mut found = Vec::from_iter(
        OFFERED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone(),
    );
    let cache = env::var_os("ISOVEC_CACHE")
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
        .or_else(|| dirs::cache_dir().map(|folder| folder.join("isovec")));
    let folder = cache.map(|cache| cache.join("onnxruntime"));
    found.extend(folder.iter().flat_map(|folder| in_cache(folder)));
    if !found.is_empty() {
        return Ok(found);
    }
    let Some(folder) = folder else {
        return Err(Problem::new(
            format!(
                "no library was named, and this user has no cache folder; {VARIABLE} is not set"
            ),
            HOW_TO_GET,
        ));
    };
    Err(Problem::new(
        format!(
            "no library was named in onnxruntime_library or {VARIABLE}, and {} has none",
            folder.display()
        ),
        HOW_TO_GET,
    ))
}

/// The libraries of set-up, `<folder>/<version>/<file>`, newest version first.
fn in_cache(folder: &Path) -> Vec<PathBuf> {
    let file = format!("{}onnxruntime{}", consts::DLL_PREFIX, consts::DLL_SUFFIX);
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<(Vec<u64>, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let version: Option<Vec<u64>> = name
                .to_str()?
                .split('.')
                .map(|part| part.parse().ok())
                .collect();
            Some((version?, entry.path().join(&file)))
        })
        .filter(|(_, path)| path.is_file())
        .collect();
    found.sort_by(|a, b| b.0.cmp(&a.0));
    found.into_iter().map(|(_, path)| path).collect()
}

/// The first candidate that works; when none does, what is wrong with the first.
fn first(candidates: Vec<PathBuf>) -> Result<(Library, Opened), Problem> {
    let mut problem = None;
    for path in candidates {
        match open(&path) {
            Ok(found) => {
                if let Some(Problem { reason, .. }) = problem {
                    tracing::warn!("{reason}; using {} instead", path.display());
                }
                return Ok(found);
            }
            Err(found) => problem = problem.or(Some(found)),
        }
    }
    Err(problem.unwrap_or_else(|| Problem::new("no library was named", HOW_TO_GET)))
}

/// A library that is mapped into the process for as long as this lives.
struct Opened {
    /// Its function table, there as long as the library is mapped.
    api: *const OrtApi,
    _library: libloading::Library,
}

fn open(path: &Path) -> Result<(Library, Opened), Problem> {
    let fail = |reason: String| Problem::new(reason, HOW_TO_GET);
    // The loader takes a bare name for one to search the system for; an absolute path it opens.
    let path =
        std::path::absolute(path).map_err(|error| fail(format!("{}: {error}", path.display())))?;
    let about = path.display();
    match fs::metadata(&path) {
        Err(error) => return Err(fail(format!("{about}: {error}"))),
        Ok(metadata) if metadata.is_dir() => {
            return Err(fail(format!("{about} is a folder, not a shared library")));
        }
        Ok(_) => {}
    }
    // SAFETY: runs the initialisers of the file that the user has named (or set-up has made) as
    // a library to load: trusting it is what naming it means.
    let library = unsafe { libloading::Library::new(&path) }
        .map_err(|error| fail(format!("{about} cannot be loaded: {}", chain(&error))))?;
    // SAFETY: the symbol has this type in every version of ONNX Runtime, and no other library
    // has reason to use the name.
    let get_base = unsafe {
        library.get::<unsafe extern "system" fn() -> *const OrtApiBase>(b"OrtGetApiBase")
    }
    .map_err(|_| fail(format!("{about} is a shared library, but not ONNX Runtime")))?;
    // SAFETY: no preconditions.
    let base = unsafe { get_base() };
    // SAFETY: the library is open until the end of this function, and longer where it is kept.
    let version = unsafe { super::version(base) }
        .map_err(|reason| fail(format!("{about} cannot be used: {reason}")))?;
    // SAFETY: `version` has shown that the table is there and knows this interface.
    let api = unsafe { ((*base).GetApi)(ort::MINOR_VERSION) };
    let found = Library {
        path: Some(path.clone()),
        version,
    };
    Ok((
        found,
        Opened {
            api,
            _library: library,
        },
    ))
}

/// An error with its causes; the loader's own words are among them.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_in_the_cache_is_first_and_strangers_are_not_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = format!("{}onnxruntime{}", consts::DLL_PREFIX, consts::DLL_SUFFIX);
        for version in ["1.9.0", "1.31.1", "1.100.0", "partial", "1.24.0"] {
            fs::create_dir(folder.path().join(version)).unwrap();
            if version != "1.24.0" {
                fs::write(folder.path().join(version).join(&file), "").unwrap();
            }
        }
        let found: Vec<_> = in_cache(folder.path())
            .into_iter()
            .map(|path| path.parent().unwrap().file_name().unwrap().to_owned())
            .collect();
        assert_eq!(found, ["1.100.0", "1.31.1", "1.9.0"]);
        assert!(in_cache(&folder.path().join("absent")).is_empty());
    }
}
