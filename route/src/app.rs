//! What all requests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use isovec_http::body::Room;
use isovec_http::{Failure, Kind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::choose::Choice;
use crate::error::Result;
use crate::join::Joiner;
use crate::metrics::Metrics;
use crate::options::RouteOptions;
use crate::replica::{Replica, Shared};
use crate::retry::Again;
use crate::send::Sender;
use crate::target::Target;
use crate::way::{Clients, Way};

/// When to try again where there is no room: a request to a model takes milliseconds.
const AGAIN: std::time::Duration = std::time::Duration::from_millis(100);

/// The router's state.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) options: RouteOptions,
    pub(crate) replicas: Arc<[Arc<Replica>]>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) clients: Clients,
    pub(crate) sender: Sender,
    pub(crate) joiner: Option<Arc<Joiner>>,
    pub(crate) metrics: Metrics,
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    is_closed: AtomicBool,
}

impl App {
    /// # Errors
    /// A replica of TLS, and a system that trusts nobody.
    pub(crate) fn new(targets: Vec<Target>, options: RouteOptions) -> Result<Arc<Self>> {
        let shared = Arc::new(Shared::default());
        let clients = Clients::new(&options, &targets)?;
        let replicas: Arc<[Arc<Replica>]> = targets
            .into_iter()
            .map(|target| Replica::new(target, Arc::clone(&shared)))
            .collect();
        let way = |replica: &Arc<Replica>| Way {
            replica: Arc::clone(replica),
            clients: clients.clone(),
        };
        let choice = Choice::new(
            options.strategy,
            replicas.iter().map(way).collect(),
            Arc::clone(&shared),
        );
        let sender = Sender::new(
            Again::new(&options, Arc::clone(&replicas)),
            choice,
            options.compression,
        );
        let joiner = options
            .join_wait
            .map(|wait| Arc::new(Joiner::new(wait, sender.clone())));
        Ok(Arc::new(Self {
            metrics: Metrics::new(Arc::clone(&replicas), joiner.clone()),
            requests: Arc::new(Semaphore::new(options.max_requests)),
            bytes: Arc::new(Semaphore::new(options.max_bytes)),
            is_closed: AtomicBool::new(false),
            options,
            replicas,
            shared,
            clients,
            sender,
            joiner,
        }))
    }

    /// Room for a request.
    ///
    /// # Errors
    /// A router that is at its limit, or stops.
    pub(crate) fn place(&self) -> Result<Place, Failure> {
        if self.is_closed() {
            return Err(stopping());
        }
        let request = Arc::clone(&self.requests).try_acquire_owned();
        let request = request.map_err(|_| {
            full(format!(
                "{} requests are in work",
                self.options.max_requests
            ))
        })?;
        Ok(Place {
            _request: request,
            bytes: None,
            room: Arc::clone(&self.bytes),
        })
    }

    /// Lets nobody in any more.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Requests that were let in and are not answered.
    pub(crate) fn inside(&self) -> usize {
        self.options.max_requests - self.requests.available_permits()
    }

    /// Completes when nobody is inside; after [`close`](Self::close).
    pub(crate) async fn empty(&self) {
        // `max_requests` was checked to be a u32. A semaphore that nobody closes gives all of its permits at last.
        let all = self
            .requests
            .acquire_many(self.options.max_requests as u32)
            .await;
        drop(all);
    }

    /// Whether a request that came now would be sent to a replica.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn ready(&self) -> Result<(), Failure> {
        if self.is_closed() {
            return Err(stopping());
        }
        if self.replicas.iter().any(|replica| replica.is_in()) {
            return Ok(());
        }
        Err(crate::attempt::Lost::Nobody.into())
    }
}

fn stopping() -> Failure {
    Failure::new(Kind::Unready, "the router is stopping; ask another one").retry_after(AGAIN)
}

fn full(why: String) -> Failure {
    Failure::new(
        Kind::Overloaded,
        format!("the router is at its limit: {why}"),
    )
    .retry_after(AGAIN)
}

/// A request's share of what may be in work; dropping it gives the share back.
#[derive(Debug)]
pub(crate) struct Place {
    _request: OwnedSemaphorePermit,
    bytes: Option<OwnedSemaphorePermit>,
    room: Arc<Semaphore>,
}

impl Room for Place {
    fn take(&mut self, bytes: usize) -> Result<(), Failure> {
        let no_room = || full("the bodies in work fill its memory".into());
        let bytes = u32::try_from(bytes).map_err(|_| no_room())?;
        let taken = Arc::clone(&self.room).try_acquire_many_owned(bytes);
        let taken = taken.map_err(|_| no_room())?;
        match &mut self.bytes {
            Some(before) => before.merge(taken),
            none => *none = Some(taken),
        }
        Ok(())
    }
}
