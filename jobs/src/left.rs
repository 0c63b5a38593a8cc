//! What is left of a job for a run: its units in the run's own order, and which of them other runs have finished meanwhile.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::error::Result;
use crate::unit::{Unit, UnitId};

/// Names on a page of a listing, as S3 gives them.
const PAGE: u64 = 1000;
/// A listing is worth so many looks at least: a small job's end would be one listing after another.
const FEWEST: u64 = 16;

/// How many looks found a unit finished when one more listing is worth its cost: as many as the listing has pages.
///
/// A listing of what other runs have finished spares all later looks at it. With this rule, looks and pages together are at most
/// twice what the better of the two would have been.
pub(crate) fn worth(listed: u64) -> u64 {
    listed.div_ceil(PAGE).max(FEWEST)
}

/// The units that a run takes one after another.
pub(crate) struct Left {
    units: Vec<(UnitId, Unit)>,
    next: AtomicUsize,
    /// A bit for each unit that a later listing had.
    finished: Vec<AtomicU64>,
    /// Looks since the last listing that found a unit finished.
    found: AtomicU64,
    /// How many units the last listing had. One worker lists at a time.
    listed: Mutex<u64>,
}

impl Left {
    /// For the units that a listing of `listed` units did not have.
    pub(crate) fn new(units: Vec<(UnitId, Unit)>, listed: u64) -> Self {
        let words = units.len().div_ceil(u64::BITS as usize);
        Self {
            finished: (0..words).map(|_| AtomicU64::new(0)).collect(),
            units,
            next: AtomicUsize::new(0),
            found: AtomicU64::new(0),
            listed: Mutex::new(listed),
        }
    }

    /// The next unit, and whether a listing said that it is finished.
    pub(crate) fn take(&self) -> Option<(UnitId, &Unit, bool)> {
        let at = self.next.fetch_add(1, Relaxed);
        let (id, unit) = self.units.get(at)?;
        let word = self.finished[at / u64::BITS as usize].load(Relaxed);
        Some((*id, unit, word >> (at % u64::BITS as usize) & 1 == 1))
    }

    /// Says that a look found a unit finished. Takes what `list` has out of the rest when that is worth it.
    ///
    /// # Errors
    /// Those of `list`.
    pub(crate) fn found(&self, list: impl FnOnce() -> Result<HashSet<UnitId>>) -> Result<()> {
        let found = self.found.fetch_add(1, Relaxed) + 1;
        // Another worker that lists does so for all.
        let Ok(mut listed) = self.listed.try_lock() else {
            return Ok(());
        };
        if found < worth(*listed) {
            return Ok(());
        }
        let finished = list()?;
        *listed = finished.len() as u64;
        self.found.store(0, Relaxed);
        let rest = self.units.iter().enumerate().skip(self.next.load(Relaxed));
        for (at, _) in rest.filter(|(_, (id, _))| finished.contains(id)) {
            let bit = 1 << (at % u64::BITS as usize);
            self.finished[at / u64::BITS as usize].fetch_or(bit, Relaxed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::unit::{File, Kind, Part};

    fn units(count: usize) -> Vec<(UnitId, Unit)> {
        let file = Arc::new(File {
            at: "a.jsonl".into(),
            name: "a.jsonl".into(),
            etag: "1".into(),
            size: 1 << 20,
            kind: Kind::JsonLines,
        });
        let unit = |at: u64| Unit {
            file: Arc::clone(&file),
            part: Part::Bytes {
                start: at,
                end: at + 1,
            },
        };
        let units = (0..count as u64).map(unit);
        units.map(|unit| (unit.id("settings"), unit)).collect()
    }

    #[test]
    fn what_others_finished_is_listed_when_looks_for_nothing_have_cost_as_much() {
        let all = units(200);
        // All others are finished by other runs, and so are the next to last 50.
        let finished: HashSet<UnitId> = all
            .iter()
            .enumerate()
            .filter(|(at, _)| at % 2 == 0 || *at >= 150)
            .map(|(_, (id, _))| *id)
            .collect();
        let left = Left::new(all, 0);
        let (mut looks, mut lists, mut told, mut own) = (0, 0, 0, 0);
        while let Some((id, _, is_finished)) = left.take() {
            if is_finished {
                assert!(finished.contains(&id));
                told += 1;
                continue;
            }
            looks += 1;
            if !finished.contains(&id) {
                own += 1;
                continue;
            }
            left.found(|| {
                lists += 1;
                Ok(finished.clone())
            })
            .unwrap();
        }
        // Sixteen looks for nothing, the last of them at unit 30; then no more of them.
        assert_eq!((lists, own, told), (1, 75, finished.len() - 16));
        assert_eq!(looks, 75 + 16);
    }

    #[test]
    fn a_long_listing_is_worth_more_looks_and_a_failed_one_is_tried_again() {
        assert_eq!([0, 1, 16_000, 16_001].map(worth), [16, 16, 16, 17]);
        let left = Left::new(units(1), 100_000);
        let lists = AtomicUsize::new(0);
        let fails = AtomicBool::new(true);
        let list = || {
            lists.fetch_add(1, Relaxed);
            match fails.load(Relaxed) {
                true => Err(crate::Error::Stopped),
                false => Ok(HashSet::new()),
            }
        };
        for _ in 1..100 {
            left.found(list).unwrap();
        }
        assert_eq!(lists.load(Relaxed), 0);
        assert!(left.found(list).is_err());
        fails.store(false, Relaxed);
        left.found(list).unwrap();
        // That one had no names: sixteen looks are enough again.
        for _ in 1..16 {
            left.found(list).unwrap();
        }
        assert_eq!(lists.load(Relaxed), 2);
        left.found(list).unwrap();
        assert_eq!(lists.load(Relaxed), 3);
    }

    #[test]
    fn while_one_worker_lists_the_others_go_on() {
        let left = Left::new(units(3), 0);
        for _ in 1..16 {
            left.found(|| unreachable!()).unwrap();
        }
        left.found(|| {
            left.found(|| unreachable!("it is listed already")).unwrap();
            Ok(units(3).into_iter().take(1).map(|(id, _)| id).collect())
        })
        .unwrap();
        let told: Vec<bool> = std::iter::from_fn(|| left.take())
            .map(|(_, _, is_finished)| is_finished)
            .collect();
        assert_eq!(told, [true, false, false]);
    }
}
