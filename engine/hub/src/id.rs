//! Names that go into a URL and onto the disk: model ids, revisions, paths inside a repository.
//!
//! All are checked before any request is made or any file touched. The rules for ids are those
//! of the hub itself, which Python's `huggingface_hub` applies as well.

use std::fmt;

use isovec_engine::error::Result;

use super::hub_error;

pub use crate::paths::path_fault;

/// A model's id: `name` or `organisation/name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelId(String);

impl ModelId {
    /// Checks an id: one or two parts of at most 96 ASCII letters, digits, `-`, `_` and `.`, each
    /// beginning and ending with a letter, a digit or `_`; no `--`, no `..`, no `.git` at the end.
    ///
    /// # Errors
    /// [`EngineError::Hub`](isovec_engine::EngineError::Hub), naming the rule that is broken.
    pub fn parse(id: &str) -> Result<Self> {
        let fault = |why: &str| {
            Err(hub_error(
                format!("{id:?}"),
                format!("is not a model id: {why}"),
                "A model id looks like `organisation/name`; to load a folder, give a path that exists",
            ))
        };
        if id.is_empty() {
            return fault("it is empty");
        }
        let mut parts = 0;
        for part in id.split('/') {
            parts += 1;
            if part.is_empty() {
                return fault("a part is empty");
            }
            if part.len() > 96 {
                return fault("a part is longer than 96 characters");
            }
            if let Some(wrong) = part
                .chars()
                .find(|&c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
            {
                return fault(&format!("{wrong:?} may not be in it"));
            }
            let edge = |c: Option<char>| matches!(c, Some('-' | '.'));
            if edge(part.chars().next()) || edge(part.chars().next_back()) {
                return fault("a part begins or ends with `-` or `.`");
            }
        }
        if parts > 2 {
            return fault("it has more than one `/`");
        }
        if id.contains("--") || id.contains("..") {
            return fault("it has `--` or `..` in it");
        }
        if id.ends_with(".git") {
            return fault("it ends with `.git`");
        }
        Ok(Self(id.to_owned()))
    }

    /// The id as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The parts between the slashes: one or two.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A branch, a tag, a `refs/...` name, or a commit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Revision(String);

impl Revision {
    /// Checks a revision by the rules of `git check-ref-format`, which also keep it inside the
    /// cache's `refs` folder.
    ///
    /// # Errors
    /// [`EngineError::Hub`](isovec_engine::EngineError::Hub), naming the rule that is broken.
    pub fn parse(revision: &str) -> Result<Self> {
        let fault = |why: &str| {
            Err(hub_error(
                format!("revision {revision:?}"),
                format!("is not a revision: {why}"),
                "Give a branch such as `main`, a tag, or a commit of 40 hexadecimal digits",
            ))
        };
        if revision.is_empty() {
            return fault("it is empty");
        }
        if revision.len() > 250 {
            return fault("it is longer than 250 bytes");
        }
        if revision.chars().any(|c| {
            c.is_control()
                || matches!(
                    c,
                    ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\' | '"' | '<' | '>' | '|'
                )
        }) {
            return fault(
                "it holds a character that git or a file system refuses (spaces, control characters, any of ~^:?*[\\\"<>|)",
            );
        }
        if revision.contains("..") || revision.contains("@{") {
            return fault("it has `..` or `@{` in it");
        }
        for part in revision.split('/') {
            if part.is_empty() {
                return fault("a part between slashes is empty");
            }
            if part.starts_with(['.', '-']) || part.ends_with('.') || part.ends_with(".lock") {
                return fault("a part begins with `.` or `-`, or ends with `.` or `.lock`");
            }
        }
        Ok(Self(revision.to_owned()))
    }

    /// The revision as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The commit, where the revision is one in full: 40 lower-case hexadecimal digits.
    pub fn commit(&self) -> Option<&str> {
        is_commit(&self.0).then_some(self.0.as_str())
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether this is a git commit in full.
pub fn is_commit(text: &str) -> bool {
    is_lower_hex(text, 40)
}

pub(super) fn is_lower_hex(text: &str, digits: usize) -> bool {
    text.len() == digits
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_the_hubs_rules() {
        for good in [
            "bert-base-uncased",
            "sentence-transformers/all-MiniLM-L6-v2",
            "BAAI/bge-small-en-v1.5",
            "123",
            "_a/b_",
        ] {
            assert_eq!(
                ModelId::parse(good).map(|id| id.0).ok().as_deref(),
                Some(good)
            );
        }
        for bad in [
            "",
            "/",
            "a/",
            "/a",
            "a/b/c",
            "datasets/foo/bar",
            "../etc/passwd",
            "a/..",
            "a..b",
            "foo--bar",
            ".hidden",
            "a/-b",
            "a/b.",
            "foo.git",
            "a b",
            "a\\b",
            "a/b?x",
            "a/b#x",
            "a\n/b",
            "café/x",
            "http://x/y",
            &"x".repeat(97),
        ] {
            let error = ModelId::parse(bad).expect_err(bad);
            assert!(error.to_string().contains("is not a model id"), "{error}");
        }
    }

    #[test]
    fn revisions_stay_inside_their_folder() {
        for good in ["main", "v1.0", "refs/pr/1", "feature/x_y", "1e2d3c"] {
            assert!(Revision::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "", "..", "a/../b", "/a", "a/", "a//b", ".a", "a/.b", "-x", "a b", "a\\b", "a:b", "a?",
            "x.lock", "a@{1}", "a\0", "C:\\x",
        ] {
            assert!(Revision::parse(bad).is_err(), "{bad}");
        }
        let commit = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(
            Revision::parse(commit).expect("fine").commit(),
            Some(commit)
        );
        assert_eq!(Revision::parse("main").expect("fine").commit(), None);
    }
}
