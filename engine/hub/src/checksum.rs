//! The two checksums by which a hub names its files.

use std::fmt;

use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::id::is_lower_hex;

/// The expected hash of a file's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checksum {
    /// Of a large file: SHA-256 of its bytes, as git LFS writes it.
    Sha256(String),
    /// Of a small file: git's blob id, SHA-1 of `blob <size>\0` and the bytes.
    GitBlob(String),
}

impl Checksum {
    /// Tells by the length which checksum an entity tag is; `None` when it is neither.
    pub fn from_etag(etag: &str) -> Option<Self> {
        if is_lower_hex(etag, 64) {
            Some(Self::Sha256(etag.to_owned()))
        } else if is_lower_hex(etag, 40) {
            Some(Self::GitBlob(etag.to_owned()))
        } else {
            None
        }
    }

    /// The digits.
    pub fn hex(&self) -> &str {
        match self {
            Self::Sha256(hex) | Self::GitBlob(hex) => hex,
        }
    }

    /// Begins to hash a file of `size` bytes in the same way.
    pub fn hasher(&self, size: u64) -> Hasher {
        match self {
            Self::Sha256(_) => Hasher::Sha256(Sha256::new()),
            Self::GitBlob(_) => {
                let mut sha1 = Sha1::new();
                sha1.update(format!("blob {size}\0"));
                Hasher::GitBlob(sha1)
            }
        }
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sha256(hex) => write!(f, "sha256 {hex}"),
            Self::GitBlob(hex) => write!(f, "git blob {hex}"),
        }
    }
}

/// A checksum under way.
#[derive(Debug, Clone)]
pub enum Hasher {
    /// See [`Checksum::Sha256`].
    Sha256(Sha256),
    /// See [`Checksum::GitBlob`].
    GitBlob(Sha1),
}

impl Hasher {
    /// Takes in more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hash) => hash.update(bytes),
            Self::GitBlob(hash) => hash.update(bytes),
        }
    }

    /// The checksum of all that was taken in.
    pub fn finish(self) -> Checksum {
        match self {
            Self::Sha256(hash) => Checksum::Sha256(to_hex(&hash.finalize())),
            Self::GitBlob(hash) => Checksum::GitBlob(to_hex(&hash.finalize())),
        }
    }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_agree_with_git_and_sha256sum() {
        // `printf 'hello\n' | git hash-object --stdin` and `printf 'hello\n' | sha256sum`.
        let git =
            Checksum::from_etag("ce013625030ba8dba906f756967f9e9ca394464a").expect("40 digits");
        let sha =
            Checksum::from_etag("5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03")
                .expect("64 digits");
        for wanted in [git, sha] {
            let mut hasher = wanted.hasher(6);
            hasher.update(b"hel");
            hasher.update(b"lo\n");
            assert_eq!(hasher.finish(), wanted);
        }
        assert_eq!(
            Checksum::from_etag("5d41402abc4b2a76b9719d911017c592-3"),
            None
        );
        assert_eq!(
            Checksum::from_etag("CE013625030BA8DBA906F756967F9E9CA394464A"),
            None
        );
    }
}
