//! Hours of random work on isovec: many concurrent callers embed, stream, batch, cache, cancel, load and dispose on
//! every engine of this machine, while devices are taken away. Every vector is compared with that of a plain call.
//! Whenever all callers rest, inputs and outputs balance, and no memory is held.
//!
//! A seed determines the actions, but not their times or which of them run together.

mod action;
mod kind;
mod ledger;
mod memory;
pub mod rng;
mod slot;
mod texts;

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Result, anyhow};

use action::World;
use rng::Rng;
use slot::Slot;

pub use memory::{Taken, keep_little};

/// Actions between two rests.
const ROUND: u64 = 400;
/// Faults after which nothing is learned from more of them.
const MOST_FAULTS: usize = 20;

/// Random work that is under way.
pub struct Soak {
    seed: u64,
    callers: usize,
    world: World,
    next: AtomicU64,
    faults: Mutex<Vec<String>>,
    _folder: tempfile::TempDir,
}

/// What was done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Actions.
    pub actions: u64,
    /// Vectors that were compared.
    pub vectors: u64,
    /// Calls that were given up.
    pub given_up: u64,
    /// Embedders that took another's place.
    pub loads: u64,
    /// Devices that were taken away.
    pub devices_lost: u64,
}

impl Soak {
    /// Loads everything that this machine can run, or what of it has `kind` in its name, and asks for the vectors that
    /// are to come.
    ///
    /// # Errors
    /// What loading or embedding fails with, and a `kind` that nothing has in its name.
    pub fn new(seed: u64, callers: usize, kind: Option<&str>) -> Result<Self> {
        let folder = kind::folder()?;
        let texts = texts::texts();
        let kinds = kind::kinds(&texts, folder.path(), kind)?;
        let names: Vec<_> = kinds.iter().map(|kind| kind.name).collect();
        println!("run on: {}", names.join("; "));
        let slots = kinds
            .into_iter()
            .map(|kind| Slot::new(kind).map_err(|error| anyhow!("loading failed: {error}")))
            .collect::<Result<_>>()?;
        Ok(Self {
            seed,
            callers,
            world: World {
                slots,
                texts,
                done: action::Done::default(),
            },
            next: AtomicU64::new(0),
            faults: Mutex::default(),
            _folder: folder,
        })
    }

    /// Some hundred actions of all callers, and a rest in which the books are held against each other and all is loaded
    /// anew. `false`: there is no sense in going on.
    pub fn round(&self) -> bool {
        let end = self.next.load(SeqCst) + ROUND;
        thread::scope(|scope| {
            for _ in 0..self.callers {
                scope.spawn(|| self.call_until(end));
            }
        });
        self.next.store(end, SeqCst);
        for slot in &self.world.slots {
            let rest = action::at_rest(&self.world, slot)
                .and_then(|()| action::anew(slot))
                .and_then(|()| action::at_rest(&self.world, slot));
            self.note("at rest", rest);
        }
        self.faults().len() < MOST_FAULTS
    }

    fn call_until(&self, end: u64) {
        loop {
            let number = self.next.fetch_add(1, SeqCst);
            if number >= end || self.faults().len() >= MOST_FAULTS {
                return;
            }
            let mut rng = Rng::of(self.seed, number);
            let act = std::panic::AssertUnwindSafe(|| action::act(&self.world, &mut rng));
            let outcome = std::panic::catch_unwind(act)
                .unwrap_or_else(|_| Err("it panicked; the message is above".into()));
            self.note(&format!("action {number}"), outcome);
        }
    }

    fn note(&self, when: &str, outcome: Result<(), String>) {
        if let Err(fault) = outcome {
            println!("FAULT, {when}: {fault}");
            let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
            faults.push(format!("{when}: {fault}"));
        }
    }

    /// What was wrong so far.
    pub fn faults(&self) -> Vec<String> {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.clone()
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        let done = &self.world.done;
        Counts {
            actions: done.actions.load(SeqCst),
            vectors: done.vectors.load(SeqCst),
            given_up: done.given_up.load(SeqCst),
            loads: done.loads.load(SeqCst),
            devices_lost: done.devices_lost.load(SeqCst),
        }
    }

    /// What is going on, for one who asks why nothing does.
    pub fn state(&self) -> String {
        let slots = self.world.slots.iter().map(|slot| {
            let loaded = slot.current();
            let (stats, queue) = (loaded.embedder.stats(), loaded.batcher.counts());
            let sessions = stats.engine.sessions;
            format!(
                "{}: {:?}, {queue:?}, {} in use, {} waiting",
                slot.kind.name, stats.calls, sessions.in_use, sessions.waiting
            )
        });
        slots.collect::<Vec<_>>().join("\n")
    }
}
