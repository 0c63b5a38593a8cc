//! Places, as specs name them.

use std::path::{Path as LocalPath, PathBuf};
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::path::Path;

use crate::error::{Error, Result};

/// What opens an object store.
pub(crate) struct Place {
    pub(crate) inner: Arc<dyn ObjectStore>,
    /// The folder in it.
    pub(crate) under: Path,
    /// What messages put before a name, with a slash at its end.
    pub(crate) shown: String,
    /// The folder on the disk, if it is on one.
    pub(crate) disk: Option<PathBuf>,
}

/// Opens a folder of a disk or a store.
///
/// # Errors
/// [`Error::Place`] where there is no such scheme, and where a folder of the disk is not there or cannot be made.
pub(crate) fn open(url: &str, create: bool) -> Result<Place> {
    let fault = |detail: String| Error::Place {
        url: url.to_owned(),
        detail,
    };
    match url.split_once("://") {
        None => local(url, create).map_err(fault),
        #[cfg(feature = "s3")]
        Some(("s3", rest)) => s3(rest).map_err(fault),
        #[cfg(not(feature = "s3"))]
        Some(("s3", _)) => Err(fault(
            "this program was built without stores; build it with the feature `s3`".into(),
        )),
        Some((scheme, _)) => Err(fault(format!(
            "there are no stores of the scheme {scheme}; write a path, or s3://bucket/folder"
        ))),
    }
}

fn local(path: &str, create: bool) -> Result<Place, String> {
    let path = match path {
        "" => LocalPath::new("."),
        path => LocalPath::new(path),
    };
    if create {
        std::fs::create_dir_all(path).map_err(|error| format!("cannot be made: {error}"))?;
    }
    let path = std::fs::canonicalize(path).map_err(|error| error.to_string())?;
    let shown = path.display().to_string();
    let inner = LocalFileSystem::new_with_prefix(&path).map_err(|error| error.to_string())?;
    Ok(Place {
        inner: Arc::new(inner),
        under: Path::default(),
        disk: Some(path),
        shown: format!("{}/", shown.trim_end_matches('/')),
    })
}

/// Who may read and write, the region and the endpoint are said by the variables `AWS_…` that other programs read.
#[cfg(feature = "s3")]
fn s3(rest: &str) -> Result<Place, String> {
    use object_store::RetryConfig;
    use object_store::aws::AmazonS3Builder;

    let (bucket, folder) = rest.split_once('/').unwrap_or((rest, ""));
    let under = Path::parse(folder.trim_matches('/')).map_err(|error| error.to_string())?;
    // Retries are this crate's own: they are counted, told, and end when the run does.
    let once = RetryConfig {
        max_retries: 0,
        ..RetryConfig::default()
    };
    let inner = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        .with_retry(once)
        .with_http_connector(crate::http::Connector)
        .build()
        .map_err(|error| error.to_string())?;
    let shown = match &*under.to_string() {
        "" => format!("s3://{bucket}/"),
        under => format!("s3://{bucket}/{under}/"),
    };
    Ok(Place {
        inner: Arc::new(inner),
        under,
        shown,
        disk: None,
    })
}

/// What stands for other characters in a pattern.
const WILD: [char; 4] = ['*', '?', '[', '{'];

/// The folder of a pattern, and what is to be found in it.
pub(crate) fn split(pattern: &str) -> (&str, &str) {
    let plain = pattern.find(WILD).unwrap_or(pattern.len());
    match pattern[..plain].rfind('/') {
        // The root of a disk is a folder too.
        Some(0) => ("/", &pattern[1..]),
        Some(slash) => (&pattern[..slash], &pattern[slash + 1..]),
        None => ("", pattern),
    }
}

/// Whether a name has to be looked for.
pub(crate) fn is_pattern(name: &str) -> bool {
    name.contains(WILD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_folder_and_names_in_it() {
        for (pattern, folder, names) in [
            ("a.jsonl", "", "a.jsonl"),
            ("/a.jsonl", "/", "a.jsonl"),
            ("/x/y/a.jsonl", "/x/y", "a.jsonl"),
            ("x/*/a.jsonl", "x", "*/a.jsonl"),
            ("x/part-?/*.parquet", "x", "part-?/*.parquet"),
            ("s3://b/x/**/*.parquet", "s3://b/x", "**/*.parquet"),
            ("s3://b/*.parquet", "s3://b", "*.parquet"),
        ] {
            assert_eq!(split(pattern), (folder, names), "{pattern}");
        }
    }

    #[test]
    fn a_scheme_without_a_store_is_an_error_that_says_what_there_is() {
        let error = open("ftp://host/x", false)
            .err()
            .map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.contains("ftp") && error.contains("s3://")));
    }

    #[test]
    fn a_folder_that_is_not_there_is_made_only_to_write_into() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new");
        let path = path.to_str().unwrap();
        assert!(open(path, false).is_err());
        assert!(open(path, true).is_ok());
        assert!(open(path, false).is_ok());
    }
}
