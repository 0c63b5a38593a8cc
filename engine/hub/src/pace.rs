//! The minimal speed of a server. With a limit on silence alone, a server that sends a byte now and then could hold a
//! download forever.

use std::time::Duration;

use super::transport::{Response, Transport, TransportFailure};

use super::client::or_cancelled;
use bytes::Bytes;
use isovec_engine::cancel::Cancel;
use isovec_engine::error::Result;

/// Bytes that have to arrive in each window: with the usual one of a minute a kilobyte in a second,
/// a seventh of what a modem brings.
pub(super) const LEAST: u64 = 60 << 10;

/// The window where nobody says another.
pub(super) const WINDOW: Duration = Duration::from_secs(60);

/// Measures the bodies of one transport.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    window: Duration,
    /// What of the present window was spent waiting for the server, and what came in it.
    waited: Duration,
    arrived: u64,
    /// What is said at the next call: what came with the last one is not to be lost.
    slow: Option<String>,
}

/// What became of waiting for a chunk.
pub(super) enum Chunk {
    Bytes(Bytes),
    End,
    Failed(TransportFailure),
    /// What has come is kept: another connection may be faster.
    TooSlow(String),
}

impl Pace {
    pub(super) fn new(window: Duration) -> Self {
        Self {
            window,
            waited: Duration::ZERO,
            arrived: 0,
            slow: None,
        }
    }

    /// The next chunk of a body. Only time that is spent waiting for the server counts.
    pub(super) async fn next_chunk(
        &mut self,
        transport: &dyn Transport,
        response: &mut Response,
        cancel: &Cancel,
    ) -> Result<Chunk> {
        if let Some(why) = self.slow.take() {
            return Ok(Chunk::TooSlow(why));
        }
        let before = transport.now();
        let next = or_cancelled(cancel, response.body.next_chunk()).await?;
        let waited = transport.now().saturating_sub(before);
        Ok(match next {
            Ok(Some(chunk)) => {
                self.slow = self.note(chunk.len() as u64, waited);
                Chunk::Bytes(chunk)
            }
            Ok(None) => Chunk::End,
            Err(failure) => Chunk::Failed(failure),
        })
    }

    /// Counts a chunk; says so where a window ends with too little.
    fn note(&mut self, bytes: u64, waited: Duration) -> Option<String> {
        self.waited = self.waited.saturating_add(waited);
        self.arrived = self.arrived.saturating_add(bytes);
        if self.waited < self.window {
            return None;
        }
        let arrived = std::mem::take(&mut self.arrived);
        let waited = std::mem::take(&mut self.waited);
        (arrived < LEAST).then(|| {
            format!(
                "the server sent {arrived} bytes in {} seconds, where {LEAST} are the least",
                waited.as_secs()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_ends_by_the_time_that_was_waited() {
        let second = Duration::from_secs(1);
        let mut pace = Pace::new(second * 10);
        // What was there already was not waited for.
        for _ in 0..1000 {
            assert_eq!(pace.note(1, Duration::ZERO), None);
        }
        for _ in 0..9 {
            assert_eq!(pace.note(1, second), None);
        }
        let why = pace.note(1, second).expect("1010 bytes in ten seconds");
        assert!(why.contains("1010 bytes in 10 seconds"), "{why}");
        // The next window begins anew; enough is enough, whenever in the window it came.
        assert_eq!(pace.note(LEAST, second), None);
        for _ in 0..9 {
            assert_eq!(pace.note(0, second), None);
        }
        assert!(pace.note(LEAST - 1, second * 10).is_some());
    }
}
