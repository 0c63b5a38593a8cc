//! `/metrics`, in OpenMetrics: the SDK's statistics of the models, and what the server counts, whose names begin with
//! `isovec_serve`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use isovec::stats::{QueueCounts, Stats, open_metrics};
use isovec_http::metrics::{self, SECONDS, gauge, labelled};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::admission::Gate;
use crate::call::Computed;
use crate::models::Models;
use crate::served::Served;

/// The last line of a page.
const END: &str = "# EOF\n";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answer {
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    model: String,
}

/// Makes histograms of times.
#[derive(Debug, Clone, Copy)]
struct OfTimes;

impl MetricConstructor<Histogram> for OfTimes {
    fn new_metric(&self) -> Histogram {
        Histogram::new(SECONDS)
    }
}

/// Everything that is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    models: Arc<Models>,
    answers: Family<Answer, Counter>,
    seconds: Histogram,
    compute_seconds: Family<Of, Histogram, OfTimes>,
    texts: Family<Of, Counter>,
}

impl Metrics {
    pub(crate) fn new(gate: Arc<Gate>, models: Arc<Models>) -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("isovec_serve"),
            models,
            answers: Family::default(),
            seconds: Histogram::new(SECONDS),
            compute_seconds: Family::new_with_constructor(OfTimes),
            texts: Family::default(),
        };
        let registry = &mut metrics.registry;
        registry.register(
            "http_answers",
            "Answers by route and status; 499 are requests whose client went away",
            metrics.answers.clone(),
        );
        registry.register(
            "http_answer_seconds",
            "Time from a request's head to its answer",
            metrics.seconds.clone(),
        );
        registry.register(
            "compute_seconds",
            "Time from admission to the result: queue, tokenising and engine",
            metrics.compute_seconds.clone(),
        );
        registry.register(
            "texts",
            "Texts whose vectors, scores or labels were given out",
            metrics.texts.clone(),
        );
        let at_scrape = AtScrape {
            gate,
            models: Arc::clone(&metrics.models),
        };
        registry.register_collector(Box::new(at_scrape));
        metrics
    }

    /// A request ended with this status.
    pub(crate) fn answered(&self, route: &str, status: u16, took: Duration) {
        let answer = Answer {
            route: route.to_owned(),
            status,
        };
        self.answers.get_or_create(&answer).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// A request got what it asked for.
    pub(crate) fn computed(&self, computed: &Computed) {
        let of = Of {
            model: computed.model.to_string(),
        };
        self.texts.get_or_create(&of).inc_by(computed.seen.texts);
        let seconds = computed.took.as_secs_f64();
        self.compute_seconds.get_or_create(&of).observe(seconds);
    }

    pub(crate) fn page(&self) -> Response {
        let models = self.models.list();
        let stats: Vec<(Arc<str>, Stats)> = models
            .iter()
            .flat_map(|models| models.iter())
            .map(|model| (Arc::clone(&model.name), model.stats()))
            .collect();
        let mut page = open_metrics(stats.iter().map(|(name, stats)| (&**name, stats)));
        // One page has one end.
        page.truncate(page.trim_end_matches(END).len());
        metrics::page(page, &self.registry)
    }
}

/// What others count, read when it is asked for.
#[derive(Debug)]
struct AtScrape {
    gate: Arc<Gate>,
    models: Arc<Models>,
}

impl Collector for AtScrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let now = self.gate.in_work();
        for (name, help, value) in [
            (
                "requests_in_work",
                "Requests that were let in",
                now.requests,
            ),
            ("texts_in_work", "Their texts", now.texts),
            (
                "bytes_in_work",
                "Bytes of bodies that are read or computed",
                now.bytes,
            ),
        ] {
            gauge(&mut encoder, name, help, value)?;
        }
        let counts = self.gate.counts();
        labelled(
            &mut encoder,
            "requests_ended",
            "Requests that were let in, by how they ended",
            "end",
            &[
                ("answered", counts.answered),
                ("failed", counts.failed),
                ("cancelled", counts.cancelled),
            ],
        )?;
        labelled(
            &mut encoder,
            "requests_refused",
            "Requests that were not let in",
            "why",
            &[
                ("overloaded", counts.overloaded),
                ("stopping", counts.stopped),
            ],
        )?;
        match self.models.list() {
            Some(models) => queues(&mut encoder, &models),
            None => Ok(()),
        }
    }
}

/// One of a queue's counts.
type Part<T> = fn(&QueueCounts) -> T;

/// What is in the queue of each model, and what was.
fn queues(encoder: &mut DescriptorEncoder<'_>, models: &[Arc<Served>]) -> fmt::Result {
    let counts: Vec<(&str, QueueCounts)> = models
        .iter()
        .map(|model| (&*model.name, model.counts()))
        .collect();
    let bytes: Vec<(&str, u64)> = models
        .iter()
        .map(|model| (&*model.name, model.bytes()))
        .collect();
    let help = "Bytes of weights, buffers and cached vectors";
    metrics::gauges(encoder, "model_bytes", help, "model", &bytes)?;
    let gauges: [(_, _, Part<usize>); 3] = [
        ("queue_texts", "Texts in the queue", |queue| queue.texts),
        ("queue_tokens", "Their tokens", |queue| queue.tokens),
        (
            "batch_tokens",
            "Positions that a batch may have now",
            |queue| queue.batch_tokens,
        ),
    ];
    for (name, help, read) in gauges {
        let values: Vec<(&str, u64)> = counts
            .iter()
            .map(|(model, queue)| (*model, read(queue) as u64))
            .collect();
        metrics::gauges(encoder, name, help, "model", &values)?;
    }
    let counters: [(_, _, Part<u64>); 4] = [
        (
            "batches",
            "Batches that were put together from the queue",
            |queue| queue.batches,
        ),
        ("batched_texts", "Texts in them", |queue| {
            queue.batched_texts
        }),
        (
            "direct_calls",
            "Requests that found the engine idle",
            |queue| queue.direct,
        ),
        (
            "calls_left",
            "Requests that left the queue before they were computed",
            |queue| queue.left,
        ),
    ];
    for (name, help, read) in counters {
        let values: Vec<(&str, u64)> = counts
            .iter()
            .map(|(model, queue)| (*model, read(queue)))
            .collect();
        labelled(encoder, name, help, "model", &values)?;
    }
    let mut info = encoder.encode_descriptor("model", "The models", None, MetricType::Info)?;
    for model in models {
        info.encode_info(&[
            ("model", model.name.to_string()),
            ("task", model.task_name().to_owned()),
            ("fingerprint", model.fingerprint().id()),
            ("provider", model.provider().to_string()),
        ])?;
    }
    Ok(())
}
