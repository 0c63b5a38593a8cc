//! Pages of OpenMetrics.

use std::fmt;

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// What OpenMetrics asks for as its media type.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Bounds of the buckets for times, in seconds.
pub const SECONDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// A page: what is there already, and what the registry has.
pub fn page(mut page: String, registry: &Registry) -> Response {
    match prometheus_client::encoding::text::encode(&mut page, registry) {
        Ok(()) => ([(CONTENT_TYPE, OPEN_METRICS)], page).into_response(),
        // Writing into a string does not fail.
        Err(error) => {
            tracing::error!(%error, "the metrics cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// A value of now.
///
/// # Errors
/// The encoder's.
pub fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: usize,
) -> fmt::Result {
    let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    let metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
    gauge.encode(metric)
}

/// A value of now for each value of a label.
///
/// # Errors
/// The encoder's.
pub fn gauges(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    label: &str,
    values: &[(&str, u64)],
) -> fmt::Result {
    let gauge = |now| ConstGauge::new(i64::try_from(now).unwrap_or(i64::MAX));
    family(encoder, name, help, label, values, gauge)
}

/// A counter for each value of a label.
///
/// # Errors
/// The encoder's.
pub fn labelled(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    label: &str,
    values: &[(&str, u64)],
) -> fmt::Result {
    family(encoder, name, help, label, values, ConstCounter::new)
}

fn family<M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    label: &str,
    values: &[(&str, u64)],
    metric: impl Fn(u64) -> M,
) -> fmt::Result {
    let kind = metric(0).metric_type();
    let mut family = encoder.encode_descriptor(name, help, None, kind)?;
    for &(value, number) in values {
        let labels = [(label, value)];
        metric(number).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
