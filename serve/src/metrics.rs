//! `/metrics`, in OpenMetrics: the SDK's statistics of the model, and what the server counts, whose names begin with
//! `isovec_serve`.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::admission::Gate;
use crate::call::Computed;
use crate::model::Served;

/// What OpenMetrics asks for as its media type.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The last line of a page.
const END: &str = "# EOF\n";

/// Bounds of the buckets for times, in seconds.
const SECONDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answer {
    route: String,
    status: u16,
}

/// Everything that is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    model: Arc<OnceLock<Served>>,
    answers: Family<Answer, Counter>,
    seconds: Histogram,
    compute_seconds: Histogram,
    texts: Counter,
}

impl Metrics {
    pub(crate) fn new(gate: Arc<Gate>, model: Arc<OnceLock<Served>>) -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("isovec_serve"),
            model,
            answers: Family::default(),
            seconds: Histogram::new(SECONDS),
            compute_seconds: Histogram::new(SECONDS),
            texts: Counter::default(),
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
            "Time from admission to the vectors: queue, tokenising and engine",
            metrics.compute_seconds.clone(),
        );
        registry.register(
            "texts",
            "Texts whose vectors were given out",
            metrics.texts.clone(),
        );
        let at_scrape = AtScrape {
            gate,
            model: Arc::clone(&metrics.model),
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

    /// A request got its vectors.
    pub(crate) fn computed(&self, computed: Computed) {
        self.texts.inc_by(computed.texts);
        self.compute_seconds.observe(computed.took.as_secs_f64());
    }

    pub(crate) fn page(&self) -> Response {
        let stats = self.model.get().map(|served| served.embedder.stats());
        let mut page = stats.map_or_else(String::new, |stats| stats.to_open_metrics());
        // One page has one end.
        page.truncate(page.trim_end_matches(END).len());
        match prometheus_client::encoding::text::encode(&mut page, &self.registry) {
            Ok(()) => ([(CONTENT_TYPE, OPEN_METRICS)], page).into_response(),
            // Writing into a string does not fail.
            Err(error) => {
                tracing::error!(%error, "the metrics cannot be written");
                axum::http::StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}

/// What others count, read when it is asked for.
#[derive(Debug)]
struct AtScrape {
    gate: Arc<Gate>,
    model: Arc<OnceLock<Served>>,
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
        let Some(served) = self.model.get() else {
            return Ok(());
        };
        let queue = served.batcher.counts();
        gauge(
            &mut encoder,
            "queue_texts",
            "Texts in the queue",
            queue.texts,
        )?;
        gauge(&mut encoder, "queue_tokens", "Their tokens", queue.tokens)?;
        gauge(
            &mut encoder,
            "batch_tokens",
            "Positions that a batch may have now",
            queue.batch_tokens,
        )?;
        for (name, help, value) in [
            (
                "batches",
                "Batches that were put together from the queue",
                queue.batches,
            ),
            ("batched_texts", "Texts in them", queue.batched_texts),
            (
                "direct_calls",
                "Requests that found the engine idle",
                queue.direct,
            ),
            (
                "calls_left",
                "Requests that left the queue before they were computed",
                queue.left,
            ),
        ] {
            let counter = ConstCounter::new(value);
            let metric = encoder.encode_descriptor(name, help, None, counter.metric_type())?;
            counter.encode(metric)?;
        }
        let info = prometheus_client::metrics::info::Info::new([
            ("model", served.name.clone()),
            ("fingerprint", served.embedder.fingerprint().id()),
            ("provider", served.embedder.provider().to_string()),
        ]);
        let metric = encoder.encode_descriptor("model", "The model", None, info.metric_type())?;
        info.encode(metric)
    }
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: usize) -> fmt::Result {
    let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    let metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
    gauge.encode(metric)
}

/// A counter for each value of a label.
fn labelled(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    label: &'static str,
    values: &[(&'static str, u64)],
) -> fmt::Result {
    let kind = ConstCounter::new(0u64).metric_type();
    let mut family = encoder.encode_descriptor(name, help, None, kind)?;
    for &(value, count) in values {
        let labels = [(label, value)];
        let metric = family.encode_family(&labels)?;
        ConstCounter::new(count).encode(metric)?;
    }
    Ok(())
}
