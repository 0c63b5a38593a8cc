//! The paths of the clone and of the cache outside it, and the variables that child processes get for both.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The model that the demo and the tests use: its published id and its folder in the cache.
pub(crate) const MODEL_ID: &str = "sentence-transformers/all-MiniLM-L6-v2";
pub(crate) const MODEL: &str = "all-MiniLM-L6-v2";
/// The ONNX Runtime that set-up brings.
pub(crate) const ONNXRUNTIME: &str = "1.31.1";

/// The clone and the cache folder that belongs to it.
pub(crate) struct Workspace {
    /// The repository's root.
    pub(crate) root: PathBuf,
    /// `$ISOVEC_CACHE`, else the platform's cache folder + `isovec`.
    pub(crate) cache: PathBuf,
    /// Where cargo builds: `$CARGO_TARGET_DIR` if the user set one, else inside the cache.
    pub(crate) target: PathBuf,
}

impl Workspace {
    /// Finds the clone this program was built from, and the cache.
    pub(crate) fn find() -> Result<Self> {
        // Cargo sets the variable for `cargo run`; the compiled-in path serves a direct call.
        let manifest = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest
            .parent()
            .context("xtask's folder has no parent: run it from the clone, as `cargo xtask`")?
            .to_path_buf();
        let cache = cache_folder(env::consts::OS, |name| env::var_os(name))?;
        std::fs::create_dir_all(&cache).with_context(|| {
            format!(
                "the cache folder {} cannot be made; set ISOVEC_CACHE to a folder that can be written",
                cache.display()
            )
        })?;
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(folder) if !folder.is_empty() => root.join(folder),
            _ => cache.join("target"),
        };
        Ok(Self {
            root,
            cache,
            target,
        })
    }

    /// The folder of tools that set-up installs by cargo; its `bin` goes in front of `PATH`.
    pub(crate) fn tools(&self) -> PathBuf {
        self.cache.join("tools")
    }

    /// The folder of the tests that run clients of others against the server.
    pub(crate) fn clients(&self) -> PathBuf {
        self.root.join("serve").join("tests").join("clients")
    }

    /// The test model's folder.
    pub(crate) fn model(&self) -> PathBuf {
        self.cache.join("models").join(MODEL)
    }

    /// The folder of the networks that read the text of pictures.
    pub(crate) fn ocr(&self) -> PathBuf {
        self.cache.join("models").join("pp-ocrv4")
    }

    /// The ONNX project's node tests, a folder each.
    pub(crate) fn node_tests(&self) -> PathBuf {
        self.cache.join("onnx-nodes").join("1.20.0")
    }

    /// The texts of the benchmarks, one a line.
    pub(crate) fn corpus(&self) -> PathBuf {
        self.cache.join("corpus.txt")
    }

    /// The Python environment with the programs that isovec is measured against.
    pub(crate) fn peers(&self) -> PathBuf {
        self.cache.join("peers")
    }

    /// The Python environment that builds and tests the Python package.
    pub(crate) fn python(&self) -> PathBuf {
        self.cache.join("python")
    }

    /// The interpreter of a Python environment.
    pub(crate) fn interpreter(environment: &Path) -> PathBuf {
        environment.join(match env::consts::OS {
            "windows" => "Scripts/python.exe",
            _ => "bin/python",
        })
    }

    /// ONNX Runtime's shared library, under the name that this platform gives it.
    pub(crate) fn onnxruntime(&self) -> PathBuf {
        self.cache
            .join("onnxruntime")
            .join(ONNXRUNTIME)
            .join(library_name(env::consts::OS))
    }

    /// The npm package's source folder.
    pub(crate) fn js(&self) -> PathBuf {
        self.root.join("bindings").join("js")
    }

    /// What every child process is told.
    pub(crate) fn environment(&self) -> Result<Vec<(&'static str, OsString)>> {
        let mut path = vec![self.tools().join("bin")];
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        let path = env::join_paths(path)
            .context("PATH holds a folder that cannot be written into PATH again")?;
        let mut all = vec![
            ("PATH", path),
            ("CARGO_TARGET_DIR", self.target.clone().into_os_string()),
            ("ISOVEC_CACHE", self.cache.clone().into_os_string()),
            ("ISOVEC_TEST_MODEL", self.model().into_os_string()),
        ];
        if self.ocr().is_dir() {
            all.push(("ISOVEC_TEST_OCR", self.ocr().into_os_string()));
        }
        // The tests take the pinned library; a library that the caller names himself wins.
        if env::var_os("ORT_DYLIB_PATH").is_none() && self.onnxruntime().is_file() {
            all.push(("ORT_DYLIB_PATH", self.onnxruntime().into_os_string()));
        }
        // The same for an interpreter with the benchmarks' peers.
        let python = Self::interpreter(&self.peers());
        if env::var_os("PYTHON").is_none() && python.is_file() {
            all.push(("PYTHON", python.into_os_string()));
        }
        Ok(all)
    }

    /// The same for a shell: a line for each variable, for PowerShell on Windows and for the shells of other systems.
    pub(crate) fn exports(&self, os: &str) -> Result<String> {
        let mut text = String::new();
        for (name, value) in self.environment()? {
            let value = value.to_str().with_context(|| {
                format!("{name} is not UTF-8, so that no shell can be told of it")
            })?;
            text.push_str(&match os {
                "windows" => format!("$env:{name} = '{}'\n", value.replace('\'', "''")),
                _ => format!("export {name}='{}'\n", value.replace('\'', r"'\''")),
            });
        }
        Ok(text)
    }
}

/// The name of ONNX Runtime's shared library on an operating system.
pub(crate) fn library_name(os: &str) -> &'static str {
    match os {
        "macos" => "libonnxruntime.dylib",
        "windows" => "onnxruntime.dll",
        _ => "libonnxruntime.so",
    }
}

/// The cache folder: `$ISOVEC_CACHE`, else the platform's cache folder + `isovec`.
fn cache_folder(os: &str, variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    let set = |name: &str| variable(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("ISOVEC_CACHE") {
        return std::path::absolute(&folder)
            .with_context(|| format!("ISOVEC_CACHE names {}, which is no path", folder.display()));
    }
    let platform = match os {
        "windows" => set("LOCALAPPDATA"),
        "macos" => set("HOME").map(|home| home.join("Library").join("Caches")),
        _ => set("XDG_CACHE_HOME")
            .filter(|folder| folder.is_absolute())
            .or_else(|| set("HOME").map(|home| home.join(".cache"))),
    };
    match platform {
        Some(folder) => Ok(folder.join("isovec")),
        None => bail!("no cache folder is known on this machine: set ISOVEC_CACHE to a folder"),
    }
}

/// The program of that name on `PATH`, tools from set-up first.
pub(crate) fn which(workspace: &Workspace, name: &str) -> Option<PathBuf> {
    let mut folders = vec![workspace.tools().join("bin")];
    folders.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    find_program(&folders, name)
}

fn find_program(folders: &[PathBuf], name: &str) -> Option<PathBuf> {
    let suffixes: &[&str] = if env::consts::OS == "windows" {
        &[".exe", ".cmd", ".bat"]
    } else {
        &[""]
    };
    folders
        .iter()
        .flat_map(|folder| {
            suffixes
                .iter()
                .map(move |s| folder.join(format!("{name}{s}")))
        })
        .find(|path: &PathBuf| Path::is_file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(os: &str, set: &[(&str, &str)]) -> Option<PathBuf> {
        cache_folder(os, |name| {
            set.iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| OsString::from(v))
        })
        .ok()
    }

    #[test]
    fn the_named_folder_wins_over_the_platforms() {
        let set = [
            ("ISOVEC_CACHE", "/named"),
            ("HOME", "/home/a"),
            ("XDG_CACHE_HOME", "/xdg"),
        ];
        assert_eq!(folder("linux", &set), Some(PathBuf::from("/named")));
        assert_eq!(
            folder("linux", &set[1..]),
            Some(PathBuf::from("/xdg/isovec"))
        );
        assert_eq!(
            folder("linux", &set[1..2]),
            Some(PathBuf::from("/home/a/.cache/isovec"))
        );
        assert_eq!(
            folder("macos", &set[1..]),
            Some(PathBuf::from("/home/a/Library/Caches/isovec"))
        );
        assert_eq!(
            folder("windows", &[("LOCALAPPDATA", "/local")]),
            Some(PathBuf::from("/local/isovec"))
        );
    }

    #[test]
    fn empty_and_relative_variables_do_not_count() {
        assert_eq!(
            folder(
                "linux",
                &[
                    ("ISOVEC_CACHE", ""),
                    ("XDG_CACHE_HOME", "cache"),
                    ("HOME", "/h")
                ]
            ),
            Some(PathBuf::from("/h/.cache/isovec"))
        );
        assert_eq!(folder("linux", &[]), None);
    }

    #[test]
    fn a_relative_named_folder_becomes_absolute() {
        let found = folder("linux", &[("ISOVEC_CACHE", "here")]).unwrap();
        assert!(found.is_absolute() && found.ends_with("here"));
    }

    #[test]
    fn a_shell_gets_every_variable_as_it_is() {
        let workspace = Workspace {
            root: PathBuf::from("/clone"),
            cache: PathBuf::from("/it's here"),
            target: PathBuf::from("/it's here/target"),
        };
        let sh = workspace.exports("linux").unwrap();
        assert!(sh.contains(r"export CARGO_TARGET_DIR='/it'\''s here/target'"));
        let windows = workspace.exports("windows").unwrap();
        assert!(windows.contains("$env:ISOVEC_CACHE = '/it''s here'"));
    }

    #[test]
    fn a_program_is_found_in_the_first_folder_that_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        let file = if env::consts::OS == "windows" {
            "tool.exe"
        } else {
            "tool"
        };
        for folder in [&a, &b] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(b.join(file), "").unwrap();
        assert_eq!(
            find_program(&[a.clone(), b.clone()], "tool"),
            Some(b.join(file))
        );
        assert_eq!(find_program(&[a], "tool"), None);
    }
}
