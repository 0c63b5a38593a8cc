//! The pictures that Pillow has written, and what it makes of them. They are compiled in: a browser has no disk.
#![allow(dead_code, reason = "each test takes its part")]

use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// A test that runs natively and in a browser.
macro_rules! test_everywhere {
    (fn $name:ident() $body:block) => {
        #[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
        #[cfg_attr(not(target_arch = "wasm32"), test)]
        fn $name() $body
    };
}
pub(crate) use test_everywhere;

#[cfg(target_arch = "wasm32")]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);

/// What Pillow makes of a picture. Hashes are [`hash`].
#[derive(Debug, Deserialize)]
pub(crate) struct About {
    pub(crate) name: String,
    at: usize,
    bytes: usize,
    /// Width and height, not turned.
    pub(crate) size: (usize, usize),
    pub(crate) channels: usize,
    /// Of the pixels, not turned.
    pub(crate) pixels: String,
    /// Width and height, turned.
    pub(crate) upright: (usize, usize),
    /// Of the pixels, turned, without alpha.
    pub(crate) rgb: String,
    /// Of the pixels, turned, laid on white, where there is alpha.
    pub(crate) white: Option<String>,
}

/// A picture's file, with what Pillow makes of it.
pub(crate) struct Picture {
    pub(crate) about: About,
    pub(crate) file: &'static [u8],
}

pub(crate) struct Pictures(Vec<Picture>);

impl Pictures {
    pub(crate) fn all() -> Self {
        let files: &[u8] = include_bytes!("../data/pictures.bin");
        let all: Vec<About> = serde_json::from_str(include_str!("../data/pictures.json")).unwrap();
        let picture = |about: About| Picture {
            file: &files[about.at..][..about.bytes],
            about,
        };
        Self(all.into_iter().map(picture).collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Picture> {
        self.0.iter()
    }

    /// The file of a name.
    pub(crate) fn of(&self, name: &str) -> &'static [u8] {
        let mut found = self.0.iter().filter(|picture| picture.about.name == name);
        found
            .next()
            .unwrap_or_else(|| panic!("no picture {name}"))
            .file
    }
}

/// A picture that was resized.
#[derive(Debug, Deserialize)]
pub(crate) struct Resized {
    pub(crate) from: String,
    pub(crate) size: (usize, usize),
    pub(crate) filter: u64,
    pub(crate) weights: String,
    pub(crate) pixels: String,
}

impl Resized {
    pub(crate) fn all() -> Vec<Self> {
        serde_json::from_str(include_str!("../data/resized.json")).unwrap()
    }
}

/// A picture that a processor was given.
#[derive(Debug, Deserialize)]
pub(crate) struct Processed {
    pub(crate) from: String,
    pub(crate) config: Value,
    pub(crate) reference: String,
    pub(crate) shape: [usize; 3],
    pub(crate) values: String,
}

impl Processed {
    pub(crate) fn all() -> Vec<Self> {
        serde_json::from_str(include_str!("../data/processed.json")).unwrap()
    }
}

/// The first 16 bytes of SHA-256, in hex digits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
