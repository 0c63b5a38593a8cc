//! Spans of requests for `tracing`, and the word that one server gives the next of them: the header `traceparent`
//! (<https://www.w3.org/TR/trace-context>). They hold routes, sizes and names of models, and never texts, keys or paths.

use axum::http::{HeaderMap, HeaderValue};
use tracing::Span;
use tracing::field::Empty;

/// The target of all spans of requests.
pub const TARGET: &str = "isovec_http::trace";

/// The span of a request that was taken: a part of the trace that its head names, or the first of a new one. `about` is the route
/// or, where that is not known, the protocol.
pub fn taken(
    method: &'static str,
    about: &str,
    route: Option<&str>,
    id: &HeaderValue,
    headers: &HeaderMap,
) -> Span {
    let span = tracing::debug_span!(
        target: TARGET,
        "request",
        otel.name = %format_args!("{method} {about}"),
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
        request.id = id.to_str().unwrap_or_default(),
        isovec.model = Empty,
        isovec.texts = Empty,
        isovec.tokens = Empty,
        isovec.tries = Empty,
    );
    #[cfg(feature = "otlp")]
    otlp::parent(&span, headers);
    #[cfg(not(feature = "otlp"))]
    let _ = headers;
    span
}

/// Says how the request of a span ended.
pub fn ended(span: &Span, status: u16) {
    span.record("http.response.status_code", status);
    if status >= 500 {
        failed(span);
    }
}

/// Says that what a span is of came to nothing.
pub fn failed(span: &Span) {
    span.record("otel.status_code", "ERROR");
}

/// The span of a part of the request that is worked on.
pub fn part(name: &'static str) -> Span {
    tracing::debug_span!(target: TARGET, "part", otel.name = name)
}

/// The span of what a server asks itself, which is in no trace.
pub fn untraced() -> Span {
    let span = tracing::debug_span!(target: TARGET, "untraced");
    #[cfg(feature = "otlp")]
    otlp::silence(&span);
    span
}

/// The span of a request that is sent to this address: `host:port`.
pub fn sent(method: &'static str, address: &str) -> Span {
    tracing::debug_span!(
        target: TARGET,
        "sent",
        otel.name = method,
        otel.kind = "client",
        otel.status_code = Empty,
        http.request.method = method,
        http.response.status_code = Empty,
        server.address = address,
    )
}

/// Writes into a head that what it asks for is a part of this span. Where nobody traces, the head stays as it is.
pub fn pass_on(span: &Span, headers: &mut HeaderMap) {
    #[cfg(feature = "otlp")]
    otlp::pass_on(span, headers);
    #[cfg(not(feature = "otlp"))]
    let _ = (span, headers);
}

#[cfg(feature = "otlp")]
pub use self::otlp::{Traces, TracesError};

/// Spans as OpenTelemetry has them, for a collector over OTLP.
#[cfg(feature = "otlp")]
mod otlp {
    use std::time::Duration;

    use async_trait::async_trait;
    use axum::http::{HeaderMap, Request, Response};
    use bytes::Bytes;
    use opentelemetry::Context;
    use opentelemetry::propagation::TextMapPropagator as _;
    use opentelemetry::trace::{
        SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState,
        TracerProvider as _,
    };
    use opentelemetry_http::{HeaderExtractor, HeaderInjector, HttpClient, HttpError};
    use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
    use opentelemetry_sdk::Resource;
    use opentelemetry_sdk::propagation::TraceContextPropagator;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing::{Span, Subscriber};
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;
    use tracing_subscriber::Layer;
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::registry::LookupSpan;

    /// The spans that the SDK opens for each call: queue, batches, runs.
    const SDK: &str = "isovec::profile";

    /// Where a collector takes traces, below its address.
    const PATH: &str = "/v1/traces";

    /// How long a collector may take.
    const TIME: Duration = Duration::from_secs(10);

    /// Bytes of a collector's answer, at most: it says no more than how many spans it did not take.
    const LARGEST_ANSWER: u64 = 64 << 10;

    /// An address that no collector can have.
    #[derive(Debug, thiserror::Error)]
    #[error("{endpoint:?} is no collector of traces: {detail}")]
    pub struct TracesError {
        /// What was given.
        pub endpoint: String,
        /// The fault.
        pub detail: String,
    }

    /// Spans on their way to a collector, some seconds after they ended.
    #[derive(Debug)]
    pub struct Traces(SdkTracerProvider);

    impl Traces {
        /// Sends them to this address (`http://127.0.0.1:4318`), by OTLP over HTTP with protobuf, under the name of a service. A
        /// collector that is not there is named in the log, and its spans are lost.
        ///
        /// # Errors
        /// What is no address of HTTP.
        pub fn to(endpoint: &str, service: &'static str) -> Result<Self, TracesError> {
            let wrong = |detail: String| TracesError {
                endpoint: endpoint.into(),
                detail,
            };
            if !endpoint.starts_with("http://") && !endpoint.starts_with("https://") {
                return Err(wrong("it begins with http:// or https://".into()));
            }
            let exporter = SpanExporter::builder()
                .with_http()
                .with_http_client(Client::new())
                .with_endpoint(format!("{}{PATH}", endpoint.trim_end_matches('/')))
                .with_timeout(TIME)
                .build()
                .map_err(|error| wrong(error.to_string()))?;
            let resource = Resource::builder().with_service_name(service).build();
            let provider = SdkTracerProvider::builder()
                .with_batch_exporter(exporter)
                .with_resource(resource)
                .build();
            Ok(Self(provider))
        }

        /// What a program puts into its subscriber of `tracing`. It hears spans of requests and of the SDK, and no others.
        pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
        where
            S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
        {
            let wanted = [super::TARGET, SDK].map(|target| (target, LevelFilter::DEBUG));
            tracing_opentelemetry::layer()
                .with_tracer(self.0.tracer("isovec"))
                .with_location(false)
                .with_threads(false)
                .with_tracked_inactivity(false)
                .with_level(false)
                .with_target(false)
                .with_filter(Targets::new().with_targets(wanted))
        }

        /// Sends what is left, and waits for it.
        pub fn end(self) {
            if let Err(error) = self.0.shutdown_with_timeout(TIME) {
                tracing::warn!(%error, "the last traces are lost");
            }
        }
    }

    /// Makes a span a part of what a head names.
    pub(super) fn parent(span: &Span, headers: &HeaderMap) {
        let context = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
        if context.span().span_context().is_valid() {
            // Nobody traces, then.
            let _ = span.set_parent(context);
        }
    }

    /// Makes a span a part of a trace that nobody wants.
    pub(super) fn silence(span: &Span) {
        let unwanted = SpanContext::new(
            TraceId::from_bytes([1; 16]),
            SpanId::from_bytes([1; 8]),
            TraceFlags::NOT_SAMPLED,
            true,
            TraceState::NONE,
        );
        // Nobody traces, then.
        let _ = span.set_parent(Context::new().with_remote_span_context(unwanted));
    }

    pub(super) fn pass_on(span: &Span, headers: &mut HeaderMap) {
        let context = span.context();
        TraceContextPropagator::new().inject_context(&context, &mut HeaderInjector(headers));
    }

    /// Sends spans from the thread that the exporter has for it.
    #[derive(Debug)]
    struct Client(ureq::Agent);

    impl Client {
        fn new() -> Self {
            let config = ureq::Agent::config_builder()
                .http_status_as_error(false)
                .timeout_global(Some(TIME))
                .build();
            Self(config.into())
        }

        fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ureq::Error> {
            let response = self.0.run(request.map(|body| body.to_vec()))?;
            let (head, mut body) = response.into_parts();
            let body = body.with_config().limit(LARGEST_ANSWER).read_to_vec()?;
            Ok(Response::from_parts(head, body.into()))
        }
    }

    #[async_trait]
    impl HttpClient for Client {
        async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
            let sent = self.send(request);
            match &sent {
                Ok(response) if response.status().is_success() => {}
                Ok(response) => {
                    let status = response.status().as_u16();
                    tracing::warn!(status, "the collector does not take the traces");
                }
                Err(error) => tracing::warn!(%error, "the collector of traces cannot be reached"),
            }
            Ok(sent?)
        }
    }
}
