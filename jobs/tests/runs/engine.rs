//! An engine that counts, and an observer that notes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use isovec_jobs::{Compute, Event, Observer, Refusal};
use serde_json::{Value, json};

/// Gives every text a vector of its own, `[length, FNV-1a hash in three parts]`, and counts.
///
/// It names a text with `bad` as one that has no vector, and fails on one with `ugly` without a name.
#[derive(Default)]
pub(crate) struct Counting {
    /// Another model.
    pub(crate) weights: u32,
    /// The time that every call takes.
    pub(crate) pause: Duration,
    /// Fails on everything.
    pub(crate) dead: AtomicBool,
    pub(crate) texts: AtomicU64,
}

pub(crate) const DIM: usize = 4;

pub(crate) fn vector(text: &str) -> [f32; DIM] {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let part = |shift: u32| (hash >> shift & 0xf_ffff) as f32;
    [text.len() as f32, part(0), part(20), part(40)]
}

impl Compute for Counting {
    fn fingerprint(&self) -> Value {
        json!({ "identity": { "weights": self.weights } })
    }

    fn dim(&self) -> usize {
        DIM
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<f32>, Refusal> {
        std::thread::sleep(self.pause);
        if self.dead.load(Relaxed) {
            return Err(Refusal::Failed("no power".into()));
        }
        if let Some(index) = texts.iter().position(|text| text.contains("bad")) {
            let reason = "it is bad".into();
            return Err(Refusal::Text { index, reason });
        }
        if texts.iter().any(|text| text.contains("ugly")) {
            return Err(Refusal::Failed("crashed".into()));
        }
        self.texts.fetch_add(texts.len() as u64, Relaxed);
        Ok(texts.iter().flat_map(|text| vector(text)).collect())
    }

    fn metadata(&self) -> Vec<(String, String)> {
        vec![("model".into(), self.weights.to_string())]
    }
}

/// Notes what happens, and ends the run after so many units.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) events: Mutex<Vec<String>>,
    finished: AtomicU64,
    /// 0 is no end.
    pub(crate) most: AtomicU64,
}

impl Notes {
    pub(crate) fn all(&self) -> Vec<String> {
        self.events.lock().unwrap().clone()
    }
}

impl Observer for Notes {
    fn stopped(&self) -> bool {
        let most = self.most.load(Relaxed);
        most > 0 && self.finished.load(Relaxed) >= most
    }

    fn event(&self, event: Event<'_>) {
        if matches!(event, Event::Finished { .. }) {
            self.finished.fetch_add(1, Relaxed);
        }
        self.events.lock().unwrap().push(format!("{event:?}"));
    }
}
