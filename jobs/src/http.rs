//! The HTTP client of S3: the one that models are downloaded with, so that a program has one and its trust in certificates is one.

use std::error::Error as StdError;
use std::time::Duration;

use http_body_util::BodyExt as _;
use object_store::client::{
    ClientConfigKey, ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind,
    HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use ureq::Agent;
use ureq::http::Request;

/// The time for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// The time for a whole request: an object that is longer under way is tried again.
const WHOLE: Duration = Duration::from_secs(300);

/// Makes clients.
#[derive(Debug)]
pub(crate) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let plain = options.get_config_value(&ClientConfigKey::AllowHttp);
        let config = Agent::config_builder()
            .https_only(plain.as_deref() != Some("true"))
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(WHOLE));
        Ok(HttpClient::new(Client {
            agent: config.build().into(),
        }))
    }
}

#[derive(Debug)]
struct Client {
    agent: Agent,
}

#[async_trait::async_trait]
impl HttpService for Client {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(fault)?.to_bytes();
        let agent = self.agent.clone();
        let answer = tokio::task::spawn_blocking(move || {
            // A body where there is none would be announced to the server.
            let response = match body.is_empty() && !parts.headers.contains_key("content-length") {
                true => agent.run(Request::from_parts(parts, ())),
                false => agent.run(Request::from_parts(parts, &body[..])),
            }?;
            let (parts, body) = response.into_parts();
            let body = body.into_with_config().limit(u64::MAX).read_to_vec()?;
            Ok::<_, ureq::Error>((parts, body))
        });
        let (parts, body) = answer.await.map_err(fault)?.map_err(fault)?;
        Ok(HttpResponse::from_parts(
            parts,
            HttpResponseBody::from(body),
        ))
    }
}

fn fault(error: impl StdError + Send + Sync + 'static) -> HttpError {
    HttpError::new(HttpErrorKind::Request, error)
}
