//! What a server is told when it starts.

use std::ffi::OsString;
use std::time::Duration;

use crate::admission::InWork;
use crate::error::{Error, Result};
use crate::keys::ApiKeys;

/// Texts of one request, at most: OpenAI's own limit for `input`.
pub const MOST_TEXTS: usize = 2048;

/// Tokens that a model may see of the texts of one request of OpenAI's protocol, at most: its own limit.
pub(crate) const MOST_TOKENS: usize = 300_000;

/// Texts that a request may have in work: a list, and the text that it is compared with.
const LARGEST_REQUEST: usize = MOST_TEXTS + 1;

/// Limits, times and keys of a server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServeOptions {
    /// The name that `/v1/models` lists and requests name, of the one model that [`Server::run`](crate::Server::run) is
    /// given. `None`: the model's id, or the name of its folder. A [`ModelSpec`](crate::ModelSpec) has its own.
    pub name: Option<String>,
    /// Requests that are admitted at the same time; more get 429.
    pub max_requests: usize,
    /// Their texts, all together; more than [`MOST_TEXTS`].
    pub max_texts: usize,
    /// Bytes of all bodies that are being read or computed; at least `max_body`.
    pub max_bytes: usize,
    /// Bytes of one body; more get 413.
    pub max_body: usize,
    /// Connections that are open at the same time; more wait to be accepted.
    pub max_connections: usize,
    /// How long a request may take, from its head to its vectors. Its header `x-request-timeout` can only shorten it.
    pub request_timeout: Duration,
    /// How long a client may take for a request's head, and again for its body, and how long it may take nothing of its answer.
    /// Connections without a request are closed after the same time.
    pub read_timeout: Duration,
    /// How long a probe of readiness may take through the queue.
    pub probe_timeout: Duration,
    /// How long admitted requests may go on after the server was told to stop.
    pub drain_timeout: Duration,
    /// Bytes that loaded models may hold, those included that requests in work still need. A model that does not fit is not
    /// loaded. `None`: no bound.
    pub memory_budget: Option<u64>,
    /// Whether clients may load and unload models, over the model repository extension of the Open Inference Protocol.
    pub model_control: bool,
    /// The certificate and the key of the port, which speaks TLS with them and nothing else. `None`: no TLS.
    #[cfg(feature = "tls")]
    pub tls: Option<isovec_http::Tls>,
    /// The socket of a service manager that is told when requests are answered (`READY=1`) and when the server ends
    /// (`STOPPING=1`), as systemd's variable `NOTIFY_SOCKET` names it.
    pub notify_socket: Option<OsString>,
    /// Who may ask. `None`: everybody who reaches the port.
    pub api_keys: Option<ApiKeys>,
    /// The part of `max_requests`, `max_texts` and `max_bytes` that the requests of one API key may have, above 0 and up
    /// to 1; always enough for one request. Without effect where there are no two keys.
    pub key_share: f64,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            name: None,
            max_requests: 1024,
            max_texts: 8192,
            max_bytes: 64 << 20,
            max_body: 16 << 20,
            max_connections: 4096,
            request_timeout: Duration::from_secs(60),
            read_timeout: Duration::from_secs(10),
            probe_timeout: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(30),
            memory_budget: None,
            model_control: false,
            #[cfg(feature = "tls")]
            tls: None,
            notify_socket: None,
            api_keys: None,
            key_share: 0.5,
        }
    }
}

impl ServeOptions {
    /// A part of what may be in work, enough for one request.
    pub(crate) fn share(&self, part: f64) -> InWork {
        let of =
            |whole: usize, least: usize| ((whole as f64 * part) as usize).max(least.min(whole));
        InWork {
            requests: of(self.max_requests, 1),
            texts: of(self.max_texts, LARGEST_REQUEST),
            bytes: of(self.max_bytes, self.max_body),
        }
    }

    /// Refuses limits that no request could keep.
    ///
    /// # Errors
    /// [`Error::Options`] with all faults.
    pub(crate) fn check(&self) -> Result<()> {
        let mut faults = Vec::new();
        let least = [
            ("max_requests", self.max_requests, 1),
            ("max_texts", self.max_texts, LARGEST_REQUEST),
            ("max_body", self.max_body, 1),
            ("max_bytes", self.max_bytes, self.max_body),
            ("max_connections", self.max_connections, 1),
        ];
        for (name, value, least) in least {
            if value < least {
                faults.push(format!("{name} is {value} and has to be at least {least}"));
            }
        }
        let times = [
            ("request_timeout", self.request_timeout),
            ("read_timeout", self.read_timeout),
            ("probe_timeout", self.probe_timeout),
        ];
        for (name, time) in times {
            if time.is_zero() {
                faults.push(format!("{name} is 0, so that nothing would be in time"));
            }
        }
        if !(self.key_share > 0.0 && self.key_share <= 1.0) {
            let share = self.key_share;
            faults.push(format!(
                "key_share is {share} and has to be above 0 and at most 1"
            ));
        }
        if faults.is_empty() {
            Ok(())
        } else {
            Err(Error::Options(faults))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_enough_for_one_request() {
        let options = ServeOptions {
            max_requests: 7,
            max_texts: 5000,
            max_bytes: 40 << 20,
            ..ServeOptions::default()
        };
        let share = options.share(0.5);
        assert_eq!(
            (share.requests, share.texts, share.bytes),
            (3, 2500, 20 << 20)
        );
        let share = options.share(0.01);
        assert_eq!(
            (share.requests, share.texts, share.bytes),
            (1, MOST_TEXTS + 1, 16 << 20)
        );
        let share = options.share(1.0);
        assert_eq!(
            (share.requests, share.texts, share.bytes),
            (7, 5000, 40 << 20)
        );
    }

    #[test]
    fn limits_that_no_request_keeps_are_named_all_together() {
        assert!(ServeOptions::default().check().is_ok());
        let options = ServeOptions {
            max_texts: MOST_TEXTS,
            max_bytes: 10,
            probe_timeout: Duration::ZERO,
            key_share: f64::NAN,
            ..ServeOptions::default()
        };
        let Err(Error::Options(faults)) = options.check() else {
            panic!("these cannot work");
        };
        let named = ["max_texts", "max_bytes", "probe_timeout", "key_share"];
        assert_eq!(faults.len(), named.len(), "{faults:?}");
        for (fault, name) in faults.iter().zip(named) {
            assert!(fault.starts_with(name), "{fault}");
        }
    }
}
