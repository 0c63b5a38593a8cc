//! What is asked again.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use tokio::time::Instant;
use tower::retry::Policy;
use tower::retry::budget::{Budget as _, TpsBudget};

use crate::attempt::{Answer, Attempt, Lost};
use crate::options::RouteOptions;
use crate::replica::Replica;

/// How long requests count for the budget.
const WINDOW: Duration = Duration::from_secs(10);

/// Asks another replica where the first gave no answer that can be given out, within the deadline and the budget.
#[derive(Debug, Clone)]
pub(crate) struct Again {
    budget: Arc<TpsBudget>,
    replicas: Arc<[Arc<Replica>]>,
}

impl Again {
    pub(crate) fn new(options: &RouteOptions, replicas: Arc<[Arc<Replica>]>) -> Self {
        // All that are in work may lose their replica at once.
        let least = options.max_requests.div_ceil(WINDOW.as_secs() as usize);
        let least = u32::try_from(least).unwrap_or(u32::MAX / 2);
        Self {
            budget: Arc::new(TpsBudget::new(WINDOW, least, options.retry_budget)),
            replicas,
        }
    }

    /// Times that a request may be sent: once to each, and once more.
    fn most(&self) -> u32 {
        self.replicas.len() as u32 + 1
    }

    /// Whether it is worth asking again, by what came of the last time.
    fn is_worth(&self, attempt: &Attempt, result: &Result<Answer, Lost>) -> bool {
        match result {
            Ok(answer) => match answer.meaning() {
                StatusCode::SERVICE_UNAVAILABLE => attempt.is_pure(),
                // The same replica would only say it again.
                StatusCode::TOO_MANY_REQUESTS => {
                    let has_room = |replica: &Arc<Replica>| replica.is_in() && !replica.is_full();
                    attempt.is_pure() && self.replicas.iter().any(has_room)
                }
                _ => false,
            },
            Err(Lost::Unreached(_)) => true,
            Err(Lost::Broken(_) | Lost::Foreign(_)) => attempt.is_pure(),
            Err(Lost::TooLarge(_) | Lost::Late | Lost::Nobody) => false,
        }
    }
}

impl Policy<Attempt, Answer, Lost> for Again {
    type Future = Ready<()>;

    fn retry(&mut self, attempt: &mut Attempt, result: &mut Result<Answer, Lost>) -> Option<Ready<()>> {
        if !self.is_worth(attempt, result) {
            self.budget.deposit();
            return None;
        }
        let is_over = attempt.tries + 1 >= self.most() || Instant::now() >= attempt.until;
        if is_over || !self.budget.withdraw() {
            return None;
        }
        attempt.tries += 1;
        if let Ok(answer) = result {
            attempt.last = Some(answer.clone());
        }
        Some(ready(()))
    }

    fn clone_request(&mut self, attempt: &Attempt) -> Option<Attempt> {
        Some(attempt.clone())
    }
}
