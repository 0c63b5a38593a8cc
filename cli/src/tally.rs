//! What `isovec embed` counts of texts, and says at its end.

use std::time::Instant;

use isovec::stats::Stats;
use serde::Serialize;

use crate::args::Embed;
use crate::commands;
use crate::error::Result;
use crate::model::Handle;

/// What is counted for texts of every kind.
pub(crate) struct Tally {
    started: Instant,
    tokens: u64,
    truncated: u64,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Summary<M> {
    texts: u64,
    tokens: u64,
    truncated: u64,
    #[serde(flatten)]
    more: M,
    seconds: f64,
    provider: String,
    fingerprint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Stats>,
}

impl Tally {
    pub(crate) fn begin() -> Self {
        Self {
            started: Instant::now(),
            tokens: 0,
            truncated: 0,
        }
    }

    /// Counts a text.
    pub(crate) fn add(&mut self, tokens: u32, truncated: bool) {
        self.tokens += u64::from(tokens);
        self.truncated += u64::from(truncated);
    }

    /// Says what was asked for of a run that wrote so many texts or failed. `more` are the fields that its kind has alone.
    pub(crate) fn end(
        self,
        args: &Embed,
        model: &impl Handle,
        written: Result<u64>,
        more: impl Serialize,
    ) -> Result<()> {
        let texts = written.inspect_err(|_| {
            // What was counted may tell why.
            if args.stats {
                // Whatever standard error says to that, the run's own error is what matters.
                commands::print_stats(&model.stats()).ok();
            }
        })?;
        if args.json {
            commands::print_line(&Summary {
                texts,
                tokens: self.tokens,
                truncated: self.truncated,
                more,
                seconds: self.started.elapsed().as_secs_f64(),
                provider: model.provider(),
                fingerprint: model.fingerprint(),
                stats: args.stats.then(|| model.stats()),
            })?;
        } else if args.stats {
            commands::print_stats(&model.stats())?;
        }
        Ok(())
    }
}
