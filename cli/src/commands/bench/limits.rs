//! Limits on the options of a benchmark: on the command line, and in a saved file.

/// Turns of everything.
pub(crate) const MOST_ROUNDS: usize = 1000;
/// Seconds of a turn.
pub(crate) const MOST_SECONDS: f64 = 3600.0;
/// Callers, each of which has a thread of its own.
pub(crate) const MOST_CALLERS: usize = 4096;
