//! Asks a replica whether it is ready, again and again.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::options::RouteOptions;
use crate::replica::{self, Replica};
use crate::way::Clients;

/// The longest time that a replica is left alone which fails requests and answers probes.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Probes in a row that may be late: a replica that has much to do is no dead one.
const LATE: u32 = 2;

/// Probes of one replica.
#[derive(Debug)]
pub(crate) struct Probes {
    replica: Arc<Replica>,
    clients: Clients,
    interval: Duration,
    most: Duration,
    /// How many in a row were late.
    late: u32,
}

impl Probes {
    pub(crate) fn new(replica: Arc<Replica>, clients: Clients, options: &RouteOptions) -> Self {
        Self {
            replica,
            clients,
            interval: options.probe_interval,
            most: options.probe_timeout,
            late: 0,
        }
    }

    /// Asks once; what came of it is said by [`Found::tell`].
    pub(crate) async fn ask(&mut self) -> Found {
        let ejections = self.replica.ejections();
        let answer = match timeout(self.most, self.clients.probe(&self.replica)).await {
            Ok(answer) => {
                self.late = 0;
                Some(answer)
            }
            Err(_) => {
                self.late += 1;
                let is_out = self.late >= LATE || !self.replica.is_in();
                is_out.then(|| {
                    Err(format!(
                        "it does not answer /health/ready within {:?}",
                        self.most
                    ))
                })
            }
        };
        Found {
            replica: Arc::clone(&self.replica),
            answer,
            ejections,
        }
    }

    /// Asks for ever, one of all these replicas: at intervals, and at once when a request failed.
    pub(crate) async fn go_on(mut self, all: &[Arc<Replica>]) {
        loop {
            tokio::select! {
                () = sleep(self.interval) => {}
                () = self.replica.doubted.notified() => sleep(self.pause()).await,
            }
            self.ask().await.tell();
            replica::follow(all);
        }
    }

    /// How long after a failure it is asked: at once after the first; a replica that answers probes and no requests is left
    /// alone for longer and longer.
    fn pause(&self) -> Duration {
        pause(self.interval, self.replica.fails())
    }
}

fn pause(interval: Duration, fails: u32) -> Duration {
    match fails.checked_sub(2) {
        Some(more) => interval
            .saturating_mul(2u32.saturating_pow(more))
            .min(LONGEST_PAUSE),
        None => Duration::ZERO,
    }
}

/// What a probe came to.
#[derive(Debug)]
pub(crate) struct Found {
    replica: Arc<Replica>,
    answer: Option<Result<axum::http::HeaderValue, String>>,
    ejections: u64,
}

impl Found {
    /// Tells the replica.
    pub(crate) fn tell(self) {
        if let Some(answer) = self.answer {
            self.replica.found(answer, self.ejections);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_that_fails_again_and_again_is_left_alone_for_longer() {
        let second = Duration::from_secs(1);
        let pauses: Vec<u64> = (0..9).map(|fails| pause(second, fails).as_secs()).collect();
        assert_eq!(pauses, [0, 0, 1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(pause(second, u32::MAX), LONGEST_PAUSE);
    }
}
