//! The choice of a replica, as a service.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::task::noop_waker_ref;
use tokio::time::{Instant, timeout_at};
use tower::Service;

use crate::attempt::{Answer, Attempt, Lost};
use crate::balance::Loads;
use crate::options::Strategy;
use crate::replica::Shared;
use crate::turns::Turns;
use crate::way::Way;

/// How long a request waits for a replica when none is in rotation: one that is only doubted is back within this.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
enum Ways {
    Loads(Loads),
    Turns(Turns),
}

/// Sends each request to one of the replicas.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    ways: Arc<Mutex<Ways>>,
    shared: Arc<Shared>,
}

impl Choice {
    pub(crate) fn new(strategy: Strategy, ways: Vec<Way>, shared: Arc<Shared>) -> Self {
        let ways = match strategy {
            Strategy::LeastLoaded => Ways::Loads(Loads::new(ways)),
            Strategy::RoundRobin => Ways::Turns(Turns::new(ways)),
        };
        Self {
            ways: Arc::new(Mutex::new(ways)),
            shared,
        }
    }

    /// Takes a request and begins it, or leaves it there. Nobody waits in here, so that nobody has to be woken: every call looks
    /// anew.
    fn start(
        &self,
        attempt: &mut Option<Attempt>,
    ) -> Option<BoxFuture<'static, Result<Answer, Lost>>> {
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        let cx = &mut Context::from_waker(noop_waker_ref());
        match &mut *ways {
            Ways::Loads(loads) => loads.start(cx, attempt),
            Ways::Turns(turns) => turns.start(cx, attempt).map(|sent| sent as _),
        }
    }

    async fn send(self, attempt: Attempt) -> Result<Answer, Lost> {
        let patience = attempt.until.min(Instant::now() + PATIENCE);
        let mut attempt = Some(attempt);
        loop {
            // Who comes while it is looked is not missed.
            let came = self.shared.came.notified();
            if let Some(sent) = self.start(&mut attempt) {
                return sent.await;
            }
            if timeout_at(patience, came).await.is_err() {
                return attempt.and_then(|attempt| attempt.last).ok_or(Lost::Nobody);
            }
        }
    }
}

impl Service<Attempt> for Choice {
    type Response = Answer;
    type Error = Lost;
    type Future = BoxFuture<'static, Result<Answer, Lost>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, attempt: Attempt) -> Self::Future {
        Box::pin(self.clone().send(attempt))
    }
}
