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

    fn retry(
        &mut self,
        attempt: &mut Attempt,
        result: &mut Result<Answer, Lost>,
    ) -> Option<Ready<()>> {
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::http::uri::PathAndQuery;
    use axum::http::{HeaderMap, Method};
    use bytes::Bytes;

    use super::*;
    use crate::replica::Shared;

    fn again(replicas: usize, options: &RouteOptions) -> Again {
        let shared = Arc::new(Shared::default());
        let replica = |at| {
            Replica::new(
                format!("http://a:{at}").parse().unwrap(),
                Arc::clone(&shared),
            )
        };
        Again::new(options, (1..=replicas).map(replica).collect())
    }

    fn attempt(method: Method) -> Attempt {
        Attempt {
            method,
            path: PathAndQuery::from_static("/embed"),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            is_grpc: false,
            until: Instant::now() + Duration::from_secs(60),
            tries: 0,
            last: None,
        }
    }

    fn answer(status: u16) -> Result<Answer, Lost> {
        Ok(Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            trailers: None,
            replica: "a".into(),
            tries: 1,
        })
    }

    fn broken() -> Result<Answer, Lost> {
        Err(Lost::Broken("reset".into()))
    }

    #[test]
    fn only_what_another_may_answer_is_asked_again() {
        let options = RouteOptions::default();
        let asks = |method: &Method, mut result: Result<Answer, Lost>| {
            again(2, &options)
                .retry(&mut attempt(method.clone()), &mut result)
                .is_some()
        };
        for (result, pure, other) in [
            (broken(), true, false),
            (Err(Lost::Unreached("refused".into())), true, true),
            (Err(Lost::Foreign("y".into())), true, false),
            (answer(503), true, false),
            // No replica is in rotation that has room.
            (answer(429), false, false),
            (answer(200), false, false),
            (answer(400), false, false),
            (answer(500), false, false),
            (answer(504), false, false),
            (Err(Lost::Late), false, false),
            (Err(Lost::Nobody), false, false),
            (Err(Lost::TooLarge(1)), false, false),
        ] {
            assert_eq!(asks(&Method::POST, result.clone()), pure, "{result:?}");
            assert_eq!(asks(&Method::DELETE, result.clone()), other, "{result:?}");
        }
    }

    #[test]
    fn a_request_is_sent_once_to_each_and_once_more_within_its_deadline() {
        let mut again = again(3, &RouteOptions::default());
        let mut one = attempt(Method::POST);
        let mut sent = 1;
        while again.retry(&mut one, &mut broken()).is_some() {
            sent += 1;
        }
        assert_eq!((sent, one.tries), (4, 3));
        let mut late = attempt(Method::POST);
        late.until = Instant::now();
        assert!(again.retry(&mut late, &mut broken()).is_none());
    }

    #[test]
    fn the_budget_bounds_second_tries() {
        let second = |again: &mut Again, tries: usize| {
            (0..tries)
                .filter(|_| {
                    again
                        .retry(&mut attempt(Method::POST), &mut broken())
                        .is_some()
                })
                .count()
        };
        let options = RouteOptions {
            retry_budget: 0.5,
            max_requests: 20,
            ..RouteOptions::default()
        };
        // Two a second for ten seconds.
        let mut again = again(2, &options);
        assert_eq!(second(&mut again, 100), 20);
        // Others that went well give one for two.
        for _ in 0..10 {
            assert!(
                again
                    .retry(&mut attempt(Method::POST), &mut answer(200))
                    .is_none()
            );
        }
        assert_eq!(second(&mut again, 100), 5);
    }
}
