//! What a router is told when it starts.

use std::ffi::OsString;
use std::time::Duration;

use isovec_http::coding::Coding;

use crate::error::{Error, Result};

/// Which replica a request goes to, of those in rotation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// The one with fewer requests for its weight, of two that are drawn at random.
    #[default]
    LeastLoaded,
    /// All in turn, each as often as its weight says.
    RoundRobin,
}

/// How bodies between router and replicas are compressed, in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression {
    /// The coding.
    pub coding: Coding,
    /// The level, of the coding's [`levels`](Coding::levels).
    pub level: u32,
}

/// Limits and times of a router.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RouteOptions {
    /// Which replica a request goes to.
    pub strategy: Strategy,
    /// Requests that are in work at the same time; more get 429.
    pub max_requests: usize,
    /// Bytes of all requests' bodies that are held; at least `max_body`.
    pub max_bytes: usize,
    /// Bytes of one body; more get 413.
    pub max_body: usize,
    /// Connections of clients that are open at the same time; more wait to be accepted.
    pub max_connections: usize,
    /// How long a request may take, from its head to its answer, all tries together. Its headers `x-request-timeout` and
    /// `grpc-timeout` can only shorten it.
    pub request_timeout: Duration,
    /// How long a client may take for a request's head, and again for its body, and how long it may take nothing of its answer.
    /// Connections without a request are closed after the same time.
    pub read_timeout: Duration,
    /// How long a connection to a replica may take to open.
    pub connect_timeout: Duration,
    /// The time between two probes of a replica.
    pub probe_interval: Duration,
    /// How long a replica may take to answer a probe.
    pub probe_timeout: Duration,
    /// How long requests in work may go on after the router was told to stop.
    pub drain_timeout: Duration,
    /// Second tries, as a part of the requests of the last ten seconds, from 0 to 10. A tenth of `max_requests` a second is
    /// allowed above that, so that a whole house can be moved from a replica that died.
    pub retry_budget: f32,
    /// How bodies between router and replicas are compressed. `None`: not at all.
    pub compression: Option<Compression>,
    /// How long a small request for vectors waits for others to be joined with. `None`: no request is joined.
    pub join_wait: Option<Duration>,
    /// The certificate and the key of the port, which speaks TLS with them and nothing else. `None`: no TLS.
    #[cfg(feature = "tls")]
    pub tls: Option<isovec_http::Tls>,
    /// Whom the router trusts to be a replica, of those whose address begins with `https://`. `None`: whom the system trusts.
    #[cfg(feature = "tls")]
    pub trust: Option<isovec_http::Trust>,
    /// The socket of a service manager that is told when a replica answers (`READY=1`) and when the router ends
    /// (`STOPPING=1`), as systemd's variable `NOTIFY_SOCKET` names it.
    pub notify_socket: Option<OsString>,
}

impl Default for RouteOptions {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            max_requests: 4096,
            max_bytes: 256 << 20,
            max_body: 16 << 20,
            max_connections: 4096,
            request_timeout: Duration::from_secs(60),
            read_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(1),
            probe_interval: Duration::from_secs(1),
            probe_timeout: Duration::from_secs(2),
            drain_timeout: Duration::from_secs(30),
            retry_budget: 0.2,
            compression: None,
            join_wait: None,
            #[cfg(feature = "tls")]
            tls: None,
            #[cfg(feature = "tls")]
            trust: None,
            notify_socket: None,
        }
    }
}

impl RouteOptions {
    /// Refuses limits that no request could keep.
    ///
    /// # Errors
    /// [`Error::Options`] with all faults.
    pub(crate) fn check(&self, replicas: usize) -> Result<()> {
        let mut faults = Vec::new();
        if replicas == 0 {
            faults.push("there is no replica".to_owned());
        }
        // tokio's semaphores, which count requests and bytes, hold no more; a body is asked for in a u32.
        let most = u32::MAX as usize;
        let within = [
            ("max_requests", self.max_requests, 1, most),
            ("max_body", self.max_body, 1, most),
            ("max_bytes", self.max_bytes, self.max_body, most),
            ("max_connections", self.max_connections, 1, most),
        ];
        for (name, value, least, most) in within {
            if !(least..=most).contains(&value) {
                faults.push(format!(
                    "{name} is {value} and has to be from {least} to {most}"
                ));
            }
        }
        let times = [
            ("request_timeout", self.request_timeout),
            ("read_timeout", self.read_timeout),
            ("connect_timeout", self.connect_timeout),
            ("probe_interval", self.probe_interval),
            ("probe_timeout", self.probe_timeout),
        ];
        for (name, time) in times {
            if time.is_zero() {
                faults.push(format!("{name} is 0, so that nothing would be in time"));
            }
        }
        if !(0.0..=10.0).contains(&self.retry_budget) {
            let budget = self.retry_budget;
            faults.push(format!(
                "retry_budget is {budget} and has to be from 0 to 10"
            ));
        }
        if let Some(Compression { coding, level }) = self.compression
            && !coding.levels().contains(&level)
        {
            let (first, last) = (
                coding.levels().start().to_owned(),
                coding.levels().end().to_owned(),
            );
            faults.push(format!(
                "{coding} has the levels {first} to {last}, and no {level}"
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
    fn limits_that_no_request_keeps_are_named_all_together() {
        assert!(RouteOptions::default().check(1).is_ok());
        let options = RouteOptions {
            max_bytes: 10,
            probe_interval: Duration::ZERO,
            retry_budget: f32::NAN,
            compression: Some(Compression {
                coding: Coding::Gzip,
                level: 10,
            }),
            ..RouteOptions::default()
        };
        let Err(Error::Options(faults)) = options.check(0) else {
            panic!("these cannot work");
        };
        let named = [
            "there is no replica",
            "max_bytes",
            "probe_interval",
            "retry_budget",
            "gzip",
        ];
        assert_eq!(faults.len(), named.len(), "{faults:?}");
        for (fault, name) in faults.iter().zip(named) {
            assert!(fault.starts_with(name), "{fault}");
        }
    }
}
