//! The less loaded of two replicas that are drawn at random
//! ([power of two choices](https://www.eecs.harvard.edu/~michaelm/postscripts/handbook2001.pdf)).

use std::task::{Context, Poll};

use futures_util::TryFutureExt as _;
use futures_util::future::BoxFuture;
use tower::Service as _;
use tower::balance::p2c::Balance;
use tower::discover::ServiceList;

use crate::attempt::{Answer, Attempt, Lost};
use crate::way::Way;

/// tower's balancer over a list that does not change: a replica that is out of rotation is not ready.
#[derive(Debug)]
pub(crate) struct Loads(Balance<ServiceList<Vec<Way>>, Attempt>);

impl Loads {
    pub(crate) fn new(ways: Vec<Way>) -> Self {
        Self(Balance::new(ServiceList::new::<Attempt>(ways)))
    }

    /// Takes the request and sends it to a replica; leaves it there if none is in rotation.
    pub(crate) fn start(
        &mut self,
        cx: &mut Context<'_>,
        attempt: &mut Option<Attempt>,
    ) -> Option<BoxFuture<'static, Result<Answer, Lost>>> {
        let Poll::Ready(Ok(())) = self.0.poll_ready(cx) else {
            return None;
        };
        let lost = |error: tower::BoxError| match error.downcast() {
            Ok(lost) => *lost,
            // A list ends with no error of its own.
            Err(error) => Lost::Broken(error.to_string()),
        };
        let sent = self.0.call(attempt.take()?);
        Some(Box::pin(sent.map_err(lost)))
    }
}
