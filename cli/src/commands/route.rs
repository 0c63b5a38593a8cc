//! `isovec route`.

use std::net::SocketAddr;

use isovec_route::{Compression, Error, RouteOptions, Router, Strategy, Target, stop_signal};

use crate::args::{Route, StrategyArg};
use crate::error::{CliError, Result};
#[cfg(feature = "tls")]
use crate::server::reload_tls;
use crate::server::{notify_socket, on_threads, set, until_stopped};

/// The level of a coding that is named without one: zstd's own default.
const LEVEL: u32 = 3;

pub(crate) fn run(args: &Route) -> Result<()> {
    let options = options(args)?;
    let targets = args.to.iter().map(|to| to.parse::<Target>());
    let targets = targets.collect::<Result<Vec<Target>, Error>>()?;
    let ended = on_threads("the router's threads", async {
        // From here on a signal drains; before there is nothing to drain.
        let stop = until_stopped(stop_signal)?;
        #[cfg(feature = "tls")]
        if let Some(tls) = options.tls.clone() {
            reload_tls(isovec_route::reload_signal()?, move || tls.reload());
        }
        let listen = SocketAddr::new(args.host, args.port);
        let router = Router::bind(listen, targets, options).await?;
        router.run(stop).await
    })?;
    Ok(ended?)
}

fn options(args: &Route) -> Result<RouteOptions> {
    let mut options = RouteOptions::default();
    options.strategy = match args.strategy {
        StrategyArg::LeastLoaded => Strategy::LeastLoaded,
        StrategyArg::RoundRobin => Strategy::RoundRobin,
    };
    options.compression = args.compress.as_deref().map(compression).transpose()?;
    options.join_wait = args.join;
    options.retry_budget = args.retry_budget.unwrap_or(options.retry_budget);
    #[cfg(feature = "tls")]
    if let (Some(certificates), Some(key)) = (&args.tls.tls_cert, &args.tls.tls_key) {
        options.tls = Some(isovec_route::Tls::read(certificates, key).map_err(Error::Tls)?);
    }
    #[cfg(feature = "tls")]
    if let Some(path) = &args.trust {
        options.trust = Some(isovec_route::Trust::read(path).map_err(Error::Tls)?);
    }
    options.notify_socket = notify_socket();
    set([
        (&mut options.max_requests, args.max_requests),
        (&mut options.max_bytes, args.max_bytes),
        (&mut options.max_body, args.max_body),
        (&mut options.max_connections, args.max_connections),
    ]);
    set([
        (&mut options.request_timeout, args.request_timeout),
        (&mut options.read_timeout, args.read_timeout),
        (&mut options.connect_timeout, args.connect_timeout),
        (&mut options.probe_interval, args.probe_interval),
        (&mut options.probe_timeout, args.probe_timeout),
        (&mut options.drain_timeout, args.drain_timeout),
    ]);
    Ok(options)
}

/// A coding and its level.
fn compression(given: &str) -> Result<Compression> {
    let (coding, level) = match given.split_once('=') {
        Some((coding, level)) => (coding, level.parse().ok()),
        None => (given, Some(LEVEL)),
    };
    let level = level
        .ok_or_else(|| CliError::Usage(format!("--compress {given}: the level is no number")))?;
    let coding = coding
        .parse()
        .map_err(|error| CliError::Usage(format!("--compress: {error}")))?;
    Ok(Compression { coding, level })
}
