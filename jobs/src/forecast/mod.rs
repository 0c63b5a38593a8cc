//! What a job would take on many workers, before there are any: a simulation of the protocol of `run.rs` with given costs.
//!
//! Events are simulated and not averages (`world.rs`): every worker lists, takes the units in an order of its own, looks, reads,
//! computes, writes, and may die. What a unit is made of comes from the code that real runs use (`work.rs`, `poison.rs`). The same
//! seed gives the same result.

mod costs;
mod events;
mod input;
mod measure;
mod order;
mod poison;
mod random;
mod store;
#[cfg(test)]
mod tests;
mod work;
mod worker;
mod world;

pub use costs::Costs;
pub use measure::measure;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::spec::Spec;

/// Looks at units, by all workers together, that are simulated in a reasonable time. A unit that a listing had is not looked at, and
/// takes time here all the same.
const LOOKS: u64 = 10_000_000_000;
/// The part of the time from which on something is a limit.
const LIMIT: f64 = 0.1;
/// Workers that are simulated in a reasonable time.
const WORKERS: u32 = 100_000;

/// What a job takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Forecast {
    /// Texts of the input.
    pub texts: u64,
    /// Processes that work on the job, each with as many threads as the spec says.
    pub workers: u32,
    /// Units of the input.
    pub units: u64,
    /// Hours from the start of all workers until the last unit is finished.
    pub hours: f64,
    /// Hours of all workers together, until each has seen that nothing is left.
    pub worker_hours: f64,
    /// Rows of the units that are finished.
    pub rows: u64,
    /// Rows that were computed and are in no output: another worker was faster, or the worker died.
    pub rows_again: u64,
    /// Units that were thrown away because another worker was faster.
    pub lost: u64,
    /// Tries of units that failed by a poisoned row.
    pub failures: u64,
    /// Workers that died and were started again.
    pub restarts: u64,
    /// Objects of the output.
    pub objects: u64,
    /// Bytes of input that were read.
    pub bytes_read: u64,
    /// Bytes of rows that were written, also of files that were there already.
    pub bytes_written: u64,
    /// What the store was asked.
    pub requests: Requests,
    /// The part of what the store can do in that time that was asked of it: of its reads, its writes or its bytes, whichever is
    /// more. Near 1 the workers wait for the store.
    pub store_used: f64,
    /// Where the workers' time went.
    pub shares: Shares,
}

/// Requests to the stores of the input and the output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Requests {
    /// Pages of listings.
    pub lists: u64,
    /// Looks whether an object is there.
    pub looks: u64,
    /// Objects and parts of them that were read, or not found.
    pub reads: u64,
    /// Objects that were written, or refused because they were there.
    pub writes: u64,
}

/// Parts of the workers' time. Their sum is 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Shares {
    /// Computing what is in the output.
    pub computing: f64,
    /// Computing what was thrown away.
    pub again: f64,
    /// Starting, and loading the model.
    pub starting: f64,
    /// Listing the input and the manifest, and learning the row groups.
    pub listing: f64,
    /// Looking whether units are finished.
    pub looking: f64,
    /// Reading input and writing output.
    pub store: f64,
    /// Waiting for another thread of the worker, or before a retry.
    pub waiting: f64,
}

impl Shares {
    /// The part of the time that is spent with the store, listings and looks among it.
    pub fn in_store(&self) -> f64 {
        self.listing + self.looking + self.store
    }
}

/// The fewest workers, among those that were simulated, from which on something takes a tenth of their time or more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Limits {
    /// Computing what is thrown away.
    pub again: Option<u32>,
    /// Starting, and loading the model.
    pub starting: Option<u32>,
    /// Listing the input and the manifest.
    pub listing: Option<u32>,
    /// Looking whether units are finished.
    pub looking: Option<u32>,
    /// Reading and writing.
    pub store: Option<u32>,
    /// Here: nine tenths of what the store can do.
    pub store_used: Option<u32>,
}

impl Limits {
    /// The limits that forecasts show: of one job, with more and more workers.
    pub fn of(forecasts: &[Forecast]) -> Self {
        let from = |is_reached: &dyn Fn(&Forecast) -> bool| {
            let reached = forecasts.iter().filter(|forecast| is_reached(forecast));
            reached.map(|forecast| forecast.workers).min()
        };
        let part = |of: fn(&Shares) -> f64| from(&|forecast| of(&forecast.shares) >= LIMIT);
        Self {
            again: part(|shares| shares.again),
            starting: part(|shares| shares.starting),
            listing: part(|shares| shares.listing),
            looking: part(|shares| shares.looking),
            store: part(|shares| shares.store),
            store_used: from(&|forecast| forecast.store_used >= 1.0 - LIMIT),
        }
    }
}

/// Simulates a job over `texts` texts on `workers` workers that all start at once.
///
/// The spec says how units are cut, which columns are read, what becomes of poisoned rows, how many threads a worker has and
/// whether the input is JSON lines or Parquet. No store is opened.
///
/// # Errors
/// [`Error::Costs`] for costs that no job can have, for workers that die before they finish anything, and for more units and
/// workers than can be simulated. [`Error::Spec`] when the input's ending does not say what the files hold.
pub fn forecast(
    spec: &Spec,
    costs: &Costs,
    texts: u64,
    workers: u32,
    seed: u64,
) -> Result<Forecast> {
    costs.check()?;
    if texts == 0 || workers == 0 {
        return Err(Error::Costs("0 texts or workers make no plan".into()));
    }
    if workers > WORKERS {
        return Err(Error::Costs(format!(
            "{workers} workers are more than the {WORKERS} that can be simulated"
        )));
    }
    let input = input::input(spec, costs, texts, seed)?;
    let looks = (input.units.len() as u64).saturating_mul(u64::from(workers));
    if looks > LOOKS {
        return Err(Error::Costs(format!(
            "{} units and {workers} workers make up to {looks} looks, and more than {LOOKS} take too long to simulate; take fewer workers, or larger units",
            input.units.len()
        )));
    }
    world::run(spec, costs, &input, texts, workers, seed)
}
