//! A router's life: the port opens, replicas are probed, requests are answered, and what was let in is finished.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use futures_util::future::join_all;
use isovec_http::{Connections, Terms, service_manager};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::service_fn;

use crate::app::App;
use crate::error::{Error, Result};
use crate::front;
use crate::options::RouteOptions;
use crate::probe::Probes;
use crate::target::Target;

/// An open port, before replicas are behind it.
#[derive(Debug)]
pub struct Router {
    listener: TcpListener,
    app: Arc<App>,
}

impl Router {
    /// Opens a port; 0 is any that is free.
    ///
    /// # Errors
    /// [`Error::Options`], `Error::Trust` for a replica of TLS where the system has no certificates, and [`Error::Bind`] for an address that
    /// is taken or not this machine's.
    pub async fn bind(
        address: SocketAddr,
        replicas: Vec<Target>,
        options: RouteOptions,
    ) -> Result<Self> {
        options.check(replicas.len())?;
        let app = App::new(replicas, options)?;
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| Error::Bind { address, source })?;
        if let Ok(address) = listener.local_addr() {
            tracing::info!(%address, "listening");
        }
        Ok(Self { listener, app })
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// The system's.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Sends requests to replicas until `stop` completes, then finishes those that were let in. While no replica is ready,
    /// requests are told so with 503.
    ///
    /// # Errors
    /// [`Error::Cut`] when the drain took longer than [`RouteOptions::drain_timeout`].
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<()> {
        let Self { listener, app } = self;
        let options = &app.options;
        let service = {
            let app = Arc::clone(&app);
            service_fn(move |request: Request<Body>| {
                let app = Arc::clone(&app);
                async move { Ok::<_, Infallible>(front::answer(app, request).await) }
            })
        };
        let terms = Terms::new(options.max_connections, options.read_timeout);
        #[cfg(feature = "tls")]
        let terms = terms.with_tls(options.tls.clone());
        let connections = Connections::accept(listener, service, terms);
        let mut beside = JoinSet::new();
        beside.spawn(probes(Arc::clone(&app)));
        if let Some(socket) = options.notify_socket.clone() {
            let app = Arc::clone(&app);
            beside.spawn(async move {
                loop {
                    let came = app.shared.came.notified();
                    if app.ready().is_ok() {
                        return service_manager::tell(&socket, service_manager::READY);
                    }
                    came.await;
                }
            });
        }

        stop.await;

        app.close();
        if let Some(socket) = &options.notify_socket {
            service_manager::tell(socket, service_manager::STOPPING);
        }
        tracing::info!(
            requests = app.inside(),
            "stopping: requests that were let in are finished"
        );
        let drained = timeout(options.drain_timeout, app.empty()).await;
        let left = app.inside();
        if drained.is_ok() {
            connections.end().await;
            return Ok(());
        }
        Err(Error::Cut { requests: left })
    }
}

/// Probes all replicas for ever. The first round is told in the order of the list: if models differ, those of the first replica
/// that is ready are the right ones.
async fn probes(app: Arc<App>) {
    let probes = app
        .replicas
        .iter()
        .map(|replica| Probes::new(Arc::clone(replica), app.clients.clone(), &app.options));
    let mut probes: Vec<Probes> = probes.collect();
    for found in join_all(probes.iter_mut().map(Probes::ask)).await {
        found.tell();
    }
    join_all(probes.into_iter().map(|probes| probes.go_on(&app.replicas))).await;
}
