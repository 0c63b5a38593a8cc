//! Small requests for vectors, joined: several that come within a moment, for the same model and of the same options, are sent as
//! one. Each gets its part of the answer, with the bytes that it would have got alone.
//!
//! A request that is anything but plain is not joined: its model, its options, its key and its priority have to be those of the
//! others, byte for byte. If the server refuses what was joined, each is sent alone, so that nobody gets another's error.

mod answer;
mod request;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, Method, StatusCode};
use isovec_http::Failure;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

use self::answer::Whole;
use self::request::{ROUTE, Sort, joint, read};
use crate::attempt::{Answer, Attempt, Lost};
use crate::send::Sender;

/// Texts and bytes of what was joined, at which it waits for no more.
const ENOUGH_TEXTS: usize = 128;
const ENOUGH_BYTES: usize = 256 << 10;

/// Requests that wait for each other.
#[derive(Debug)]
struct Group {
    id: u64,
    /// Texts and bytes of all members.
    texts: usize,
    bytes: usize,
    members: Vec<Member>,
    headers: HeaderMap,
    until: Instant,
}

#[derive(Debug)]
struct Member {
    texts: Vec<Box<RawValue>>,
    back: oneshot::Sender<Joined>,
}

/// What a request gets of what it was joined to.
#[derive(Debug)]
enum Joined {
    Answer(Answer),
    Failed(Failure),
    /// It is to be sent by itself.
    Alone,
}

/// Joins requests.
#[derive(Debug)]
pub(crate) struct Joiner {
    wait: Duration,
    sender: Sender,
    groups: Mutex<HashMap<Sort, Group>>,
    next: AtomicU64,
    /// Requests that were joined with others.
    pub(crate) requests: AtomicU64,
    /// What they were joined to.
    pub(crate) joined: AtomicU64,
}

impl Joiner {
    pub(crate) fn new(wait: Duration, sender: Sender) -> Self {
        Self {
            wait,
            sender,
            groups: Mutex::default(),
            next: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            joined: AtomicU64::new(0),
        }
    }

    /// The answer to a request that was joined with others; `None` if it is to be sent alone.
    pub(crate) async fn join(
        self: &Arc<Self>,
        attempt: &Attempt,
    ) -> Option<Result<Answer, Failure>> {
        let (sort, texts) = read(attempt)?;
        let (back, answer) = oneshot::channel();
        self.enter(sort, texts, attempt, back);
        match timeout_at(attempt.until, answer).await {
            Ok(Ok(Joined::Answer(answer))) => Some(Ok(answer)),
            Ok(Ok(Joined::Failed(failure))) => Some(Err(failure)),
            // Nobody says anything where what was joined panicked.
            Ok(Ok(Joined::Alone) | Err(_)) => None,
            Err(_) => Some(Err(Lost::Late.into())),
        }
    }

    /// Joins the others of its sort, or is the first of them.
    fn enter(
        self: &Arc<Self>,
        sort: Sort,
        texts: Vec<Box<RawValue>>,
        attempt: &Attempt,
        back: oneshot::Sender<Joined>,
    ) {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let mut group = match groups.entry(sort.clone()) {
            Entry::Occupied(group) => group,
            Entry::Vacant(place) => {
                let id = self.next.fetch_add(1, Ordering::Relaxed);
                let (joiner, sort) = (Arc::clone(self), sort.clone());
                tokio::spawn(async move {
                    sleep(joiner.wait).await;
                    if let Some(group) = joiner.leave(&sort, id) {
                        joiner.run(&sort, group).await;
                    }
                });
                place.insert_entry(Group {
                    id,
                    texts: 0,
                    bytes: 0,
                    members: Vec::new(),
                    headers: joint(&attempt.headers),
                    until: attempt.until,
                })
            }
        };
        let entered = group.get_mut();
        entered.texts += texts.len();
        entered.bytes += attempt.body.len();
        entered.until = entered.until.max(attempt.until);
        entered.members.push(Member { texts, back });
        if entered.texts >= ENOUGH_TEXTS || entered.bytes >= ENOUGH_BYTES {
            let group = group.remove();
            drop(groups);
            let joiner = Arc::clone(self);
            tokio::spawn(async move { joiner.run(&sort, group).await });
        }
    }

    /// The group of this number, which takes nobody in any more; `None` if it has left already.
    fn leave(&self, sort: &Sort, id: u64) -> Option<Group> {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.get(sort).filter(|group| group.id == id)?;
        groups.remove(sort)
    }

    /// Sends what was joined, and gives each its part.
    async fn run(&self, sort: &Sort, group: Group) {
        let Group {
            mut members,
            headers,
            until,
            ..
        } = group;
        // The texts of those that went away are not computed.
        members.retain(|member| !member.back.is_closed());
        if members.len() < 2 {
            return members
                .into_iter()
                .for_each(|member| member.tell(Joined::Alone));
        }
        let texts = members.iter().flat_map(|member| &member.texts);
        let texts: Vec<&str> = texts.map(|text| text.get()).collect();
        let count = texts.len();
        let body = format!("{{{}\"input\":[{}]}}", sort.fields, texts.join(","));
        self.joined.fetch_add(1, Ordering::Relaxed);
        self.requests
            .fetch_add(members.len() as u64, Ordering::Relaxed);
        let attempt = Attempt {
            method: Method::POST,
            path: PathAndQuery::from_static(ROUTE),
            headers,
            body: body.into(),
            is_grpc: false,
            until,
            tries: 0,
            last: None,
        };
        let result = self.sender.send(attempt).await;
        let whole = result
            .as_ref()
            .ok()
            .and_then(|answer| Whole::of(answer, count));
        let mut first = 0;
        for member in members {
            let texts = first..first + member.texts.len();
            first = texts.end;
            let joined = match (&whole, &result) {
                (Some(whole), Ok(answer)) => match whole.part(answer, texts) {
                    Some(part) => Joined::Answer(part),
                    None => Joined::Alone,
                },
                // What is true of all together is true of each.
                (None, Ok(answer)) if is_of_all(answer.status) => Joined::Answer(answer.clone()),
                (None, Ok(_)) => Joined::Alone,
                (_, Err(failure)) => Joined::Failed(failure.clone()),
            };
            member.tell(joined);
        }
    }
}

impl Member {
    fn tell(self, joined: Joined) {
        // Whoever went away needs none.
        let _ = self.back.send(joined);
    }
}

/// Whether a status says nothing of what was asked.
fn is_of_all(status: StatusCode) -> bool {
    [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::GATEWAY_TIMEOUT,
    ]
    .contains(&status)
}
