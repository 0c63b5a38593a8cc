//! `/metrics`, in OpenMetrics; names begin with `isovec_route`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::response::Response;
use isovec_http::metrics::{self, SECONDS, gauges, labelled};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::join::Joiner;
use crate::replica::Replica;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Status {
    status: u16,
}

/// Everything that is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    answers: Family<Status, Counter>,
    seconds: Histogram,
}

impl Metrics {
    pub(crate) fn new(replicas: Arc<[Arc<Replica>]>, joiner: Option<Arc<Joiner>>) -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("isovec_route"),
            answers: Family::default(),
            seconds: Histogram::new(SECONDS),
        };
        let registry = &mut metrics.registry;
        registry.register(
            "http_answers",
            "Answers to clients by status; 499 are requests whose client went away",
            metrics.answers.clone(),
        );
        registry.register(
            "http_answer_seconds",
            "Time from a request's head to its answer",
            metrics.seconds.clone(),
        );
        registry.register_collector(Box::new(AtScrape { replicas, joiner }));
        metrics
    }

    /// A request ended with this status.
    pub(crate) fn answered(&self, status: u16, took: Duration) {
        self.answers.get_or_create(&Status { status }).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn page(&self) -> Response {
        metrics::page(String::new(), &self.registry)
    }
}

/// What others count, read when it is asked for.
#[derive(Debug)]
struct AtScrape {
    replicas: Arc<[Arc<Replica>]>,
    joiner: Option<Arc<Joiner>>,
}

/// One of a replica's numbers.
type Part = fn(&Replica) -> u64;

impl Collector for AtScrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let of_each = |read: Part| -> Vec<(&str, u64)> {
            self.replicas
                .iter()
                .map(|replica| (&*replica.name, read(replica)))
                .collect()
        };
        let now: [(_, _, Part); 2] = [
            (
                "replica_in_rotation",
                "1 for a replica that requests are sent to",
                |replica| u64::from(replica.is_in()),
            ),
            (
                "replica_in_flight",
                "Requests that a replica is computing",
                Replica::in_flight,
            ),
        ];
        for (name, help, read) in now {
            gauges(&mut encoder, name, help, "replica", &of_each(read))?;
        }
        let counters: [(_, _, Part); 4] = [
            (
                "replica_requests",
                "Requests that were sent, second tries included",
                |replica| replica.counts.requests.load(Relaxed),
            ),
            (
                "replica_failures",
                "Requests without an answer that could be given out",
                |replica| replica.counts.failures.load(Relaxed),
            ),
            (
                "replica_retries",
                "Requests that another replica had failed before",
                |replica| replica.counts.retries.load(Relaxed),
            ),
            (
                "replica_ejections",
                "How often a replica left the rotation",
                Replica::ejections,
            ),
        ];
        for (name, help, read) in counters {
            labelled(&mut encoder, name, help, "replica", &of_each(read))?;
        }
        if let Some(joiner) = &self.joiner {
            let counts = [
                ("requests", joiner.requests.load(Relaxed)),
                ("joined", joiner.joined.load(Relaxed)),
            ];
            let help = "Requests that were joined with others, and what they were joined to";
            labelled(&mut encoder, "join", help, "of", &counts)?;
        }
        Ok(())
    }
}
