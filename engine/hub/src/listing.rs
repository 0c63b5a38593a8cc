//! The list of files that a repository holds at one commit.
//!
//! It comes from `GET {endpoint}/api/models/{id}/revision/{revision}?blobs=true`, and is kept
//! beside the cached files in the format that Python's `huggingface_hub` uses for its own copy
//! (`{"format_version": 1, "files": {path: {size, blob_id, lfs_sha256, lfs_size}}}`).

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::checksum::Checksum;
use super::id::{is_commit, is_lower_hex, path_fault};
use crate::paths::ODD_END;

/// More files than any model repository has; past it the answer is refused.
const MAX_FILES: usize = 100_000;

/// One file of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoFile {
    /// Its size in bytes, where the hub says.
    pub size: Option<u64>,
    /// Its hash, if the hub states it.
    pub checksum: Option<Checksum>,
}

/// The files of a repository at one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The commit.
    pub commit: String,
    /// The files, by their checked paths, with `/` between folders.
    pub files: BTreeMap<String, RepoFile>,
}

#[derive(Deserialize)]
struct ApiModel {
    sha: String,
    #[serde(deserialize_with = "bounded")]
    siblings: Vec<ApiSibling>,
}

/// A list that is refused where it gets too long, and not after all of it is in memory.
fn bounded<'de, D: Deserializer<'de>>(list: D) -> Result<Vec<ApiSibling>, D::Error> {
    struct Bounded;

    impl<'de> Visitor<'de> for Bounded {
        type Value = Vec<ApiSibling>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of files")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut files = Vec::new();
            while let Some(file) = list.next_element()? {
                if files.len() >= MAX_FILES {
                    return Err(A::Error::custom(too_many()));
                }
                files.push(file);
            }
            Ok(files)
        }
    }

    list.deserialize_seq(Bounded)
}

fn too_many() -> String {
    format!("it has more than {MAX_FILES} files")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApiSibling {
    rfilename: String,
    size: Option<u64>,
    blob_id: Option<String>,
    lfs: Option<ApiLfs>,
}

#[derive(Deserialize)]
struct ApiLfs {
    sha256: Option<String>,
    size: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    format_version: u32,
    files: BTreeMap<String, StoredFile>,
}

#[derive(Serialize, Deserialize)]
struct StoredFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lfs_sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lfs_size: Option<u64>,
}

impl Listing {
    /// Reads the hub's answer.
    ///
    /// # Errors
    /// The fault, in words: not JSON, no commit, a file name that points outside the repository, a duplicate name, an
    /// invalid checksum.
    pub fn from_api(json: &[u8]) -> Result<Self, String> {
        let model: ApiModel = serde_json::from_slice(json).map_err(|error| {
            if looks_like_html(json) {
                "the answer is an HTML page, not a model's file list".to_owned()
            } else {
                format!("the answer is not a model's file list: {error}")
            }
        })?;
        Self::new(
            model.sha,
            model.siblings.into_iter().map(|sibling| {
                let (sha256, lfs_size) = sibling
                    .lfs
                    .map_or((None, None), |lfs| (lfs.sha256, lfs.size));
                (
                    sibling.rfilename,
                    lfs_size.or(sibling.size),
                    sha256,
                    sibling.blob_id,
                )
            }),
        )
    }

    /// Reads a listing from the cache.
    ///
    /// # Errors
    /// As [`from_api`](Self::from_api).
    pub fn from_stored(commit: &str, json: &[u8]) -> Result<Self, String> {
        let stored: Stored =
            serde_json::from_slice(json).map_err(|error| format!("not a file list: {error}"))?;
        if stored.format_version != 1 {
            return Err(format!("format version {} is not 1", stored.format_version));
        }
        Self::new(
            commit.to_owned(),
            stored.files.into_iter().map(|(path, file)| {
                (
                    path,
                    file.lfs_size.or(file.size),
                    file.lfs_sha256,
                    file.blob_id,
                )
            }),
        )
    }

    /// Writes the form that [`from_stored`](Self::from_stored) reads.
    pub fn to_stored(&self) -> Vec<u8> {
        let files = self
            .files
            .iter()
            .map(|(path, file)| {
                let (lfs_sha256, blob_id) = match &file.checksum {
                    Some(Checksum::Sha256(hex)) => (Some(hex.clone()), None),
                    Some(Checksum::GitBlob(hex)) => (None, Some(hex.clone())),
                    None => (None, None),
                };
                let stored = StoredFile {
                    size: file.size,
                    lfs_size: file.size.filter(|_| lfs_sha256.is_some()),
                    blob_id,
                    lfs_sha256,
                };
                (path.clone(), stored)
            })
            .collect();
        // A map of strings and numbers always has a JSON form.
        serde_json::to_vec(&Stored {
            format_version: 1,
            files,
        })
        .unwrap_or_default()
    }

    fn new(
        commit: String,
        entries: impl Iterator<Item = (String, Option<u64>, Option<String>, Option<String>)>,
    ) -> Result<Self, String> {
        if !is_commit(&commit) {
            return Err(format!("{commit:?} is not a commit"));
        }
        let mut files = BTreeMap::new();
        for (path, size, sha256, blob_id) in entries {
            if files.len() >= MAX_FILES {
                return Err(too_many());
            }
            // A colon, or a dot at the end, is legal in git and on Unix, so it does not make the
            // list hostile; such a file is only never one that isovec asks for.
            match path_fault(&path.replace(':', "_")) {
                None if !path.contains(':') => {}
                None | Some(ODD_END) => continue,
                Some(fault) => {
                    return Err(format!("it holds a file named {path:?}, which {fault}"));
                }
            }
            let checksum = match (sha256, blob_id) {
                (Some(hex), _) if is_lower_hex(&hex, 64) => Some(Checksum::Sha256(hex)),
                (None, Some(hex)) if is_lower_hex(&hex, 40) => Some(Checksum::GitBlob(hex)),
                (None, None) => None,
                (Some(hex), _) | (None, Some(hex)) => {
                    return Err(format!("{path} has the invalid checksum {hex:?}"));
                }
            };
            if files.contains_key(&path) {
                return Err(format!("it names {path} twice"));
            }
            files.insert(path, RepoFile { size, checksum });
        }
        Ok(Self { commit, files })
    }
}

/// Whether bytes begin like a web page.
pub(super) fn looks_like_html(bytes: &[u8]) -> bool {
    let start: Vec<u8> = bytes
        .iter()
        .copied()
        .skip_while(u8::is_ascii_whitespace)
        .take(14)
        .collect();
    let start = start.to_ascii_lowercase();
    start.starts_with(b"<!doctype html") || start.starts_with(b"<html")
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn api(siblings: &str) -> Vec<u8> {
        format!(r#"{{"id":"a/b","sha":"{COMMIT}","siblings":[{siblings}]}}"#).into_bytes()
    }

    #[test]
    fn an_answer_survives_being_stored() {
        let blob = "ce013625030ba8dba906f756967f9e9ca394464a";
        let sha = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
        let listing = Listing::from_api(&api(&format!(
            r#"{{"rfilename":"config.json","size":6,"blobId":"{blob}"}},
               {{"rfilename":"model.safetensors","size":9,"blobId":"{blob}","lfs":{{"sha256":"{sha}","size":9,"pointerSize":134}}}},
               {{"rfilename":"odd:name"}},
               {{"rfilename":"README.md"}}"#
        )))
        .expect("a usual answer");
        assert_eq!(listing.commit, COMMIT);
        assert_eq!(
            listing.files["config.json"],
            RepoFile {
                size: Some(6),
                checksum: Some(Checksum::GitBlob(blob.into()))
            }
        );
        assert_eq!(
            listing.files["model.safetensors"].checksum,
            Some(Checksum::Sha256(sha.into()))
        );
        assert_eq!(
            listing.files["README.md"],
            RepoFile {
                size: None,
                checksum: None
            }
        );
        assert_eq!(listing.files.len(), 3);
        let again = Listing::from_stored(COMMIT, &listing.to_stored()).expect("what was written");
        assert_eq!(again, listing);
    }

    #[test]
    fn pythons_own_copy_is_read() {
        let json = br#"{"format_version":1,"files":{"m.bin":{"size":7,"blob_id":"ce013625030ba8dba906f756967f9e9ca394464a","lfs_sha256":"5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03","lfs_size":7,"xet_hash":"x"}}}"#;
        let listing = Listing::from_stored(COMMIT, json).expect("its format");
        assert!(matches!(
            listing.files["m.bin"].checksum,
            Some(Checksum::Sha256(_))
        ));
        assert!(Listing::from_stored(COMMIT, br#"{"format_version":2,"files":{}}"#).is_err());
    }

    #[test]
    fn a_hostile_answer_is_refused_with_the_reason() {
        for (siblings, reason) in [
            (r#"{"rfilename":"../../x"}"#, "leads out"),
            (r#"{"rfilename":"/etc/passwd"}"#, "absolute"),
            (r#"{"rfilename":"a\\b"}"#, "backslash"),
            (r#"{"rfilename":"a\u0000b"}"#, "control"),
            (r#"{"rfilename":"a"},{"rfilename":"a"}"#, "twice"),
            (r#"{"rfilename":"a","blobId":"../x"}"#, "checksum"),
            (r#"{"rfilename":"a","size":-1}"#, "not a model's file list"),
        ] {
            let error = Listing::from_api(&api(siblings)).expect_err(siblings);
            assert!(error.contains(reason), "{siblings}: {error}");
        }
        let html = Listing::from_api(b"\n<!DOCTYPE html><title>Sign in</title>").expect_err("html");
        assert!(html.contains("HTML"), "{html}");
        assert!(Listing::from_api(br#"{"sha":"../..","siblings":[]}"#).is_err());
        assert!(Listing::from_api(br#"{"siblings":[]}"#).is_err());
    }
}
