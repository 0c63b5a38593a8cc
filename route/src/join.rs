//! Small requests for vectors, joined: several that come within a moment, for the same model and of the same options, are sent as
//! one. Each gets its part of the answer, with the bytes that it would have got alone.
//!
//! A request that is anything but plain is not joined: its model, its options, its key and its priority have to be those of the
//! others, byte for byte. If the server refuses what was joined, each is sent alone, so that nobody gets another's error.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use bytes::Bytes;
use isovec_http::{
    Failure, PRIORITY, TEXT_TOKENS, TRUNCATED, TRUNCATED_TEXTS, access, coding, deadline, header,
    openai, ranges,
};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

use crate::attempt::{Answer, Attempt, Lost};
use crate::send::Sender;

/// The route whose requests are joined.
const ROUTE: &str = "/v1/embeddings";

/// Bytes of a request that is small.
const SMALL: usize = 16 << 10;

/// Texts of a request that is small.
const FEW: usize = 16;

/// Texts and bytes of what was joined, at which it waits for no more.
const ENOUGH_TEXTS: usize = 128;
const ENOUGH_BYTES: usize = 256 << 10;

/// What requests have to share: the key, the priority, and all fields but the texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Sort {
    key: Option<HeaderValue>,
    priority: Option<HeaderValue>,
    fields: String,
}

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
            path: axum::http::uri::PathAndQuery::from_static(ROUTE),
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

/// The head of what is joined: what all share. The time is the longest of all; each waits for its own.
fn joint(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    headers.remove(access::REQUEST_ID);
    headers.remove(deadline::HEADER);
    headers.insert(TEXT_TOKENS, HeaderValue::from_static("each"));
    headers
}

/// The sort of a request and its texts, if it can be joined.
fn read(attempt: &Attempt) -> Option<(Sort, Vec<Box<RawValue>>)> {
    let headers = &attempt.headers;
    let is_json = headers
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().eq_ignore_ascii_case(b"application/json"));
    let is_special = headers.contains_key(CONTENT_ENCODING)
        || headers.contains_key(coding::LEVEL)
        || headers.contains_key(TEXT_TOKENS)
        || headers.get_all(AUTHORIZATION).iter().nth(1).is_some();
    let is_plain =
        attempt.method == Method::POST && attempt.path == ROUTE && is_json && !is_special;
    if !is_plain || attempt.is_grpc || attempt.body.len() > SMALL {
        return None;
    }
    let Fields(fields) = serde_json::from_slice(&attempt.body).ok()?;
    let (mut texts, mut others) = (None, Vec::new());
    for (name, value) in fields {
        match &*name {
            "input" => texts = Some(listed(value)?),
            // The server does not read it.
            "user" => {}
            _ => others.push(format!(
                "{}:{},",
                serde_json::to_string(&name).ok()?,
                value.get()
            )),
        }
    }
    others.sort_unstable();
    let sort = Sort {
        key: headers.get(AUTHORIZATION).cloned(),
        priority: headers.get(PRIORITY).cloned(),
        fields: others.concat(),
    };
    Some((sort, texts?))
}

/// The texts of `input`: one, or a list of a few; `None` for what is not plain, token ids among it.
fn listed(input: Box<RawValue>) -> Option<Vec<Box<RawValue>>> {
    let is_text = |value: &RawValue| value.get().starts_with('"') && value.get() != "\"\"";
    if is_text(&input) {
        return Some(vec![input]);
    }
    let texts: Vec<Box<RawValue>> = serde_json::from_str(input.get()).ok()?;
    let fits = (1..=FEW).contains(&texts.len()) && texts.iter().all(|text| is_text(text));
    fits.then_some(texts)
}

/// The fields of an object, each once.
struct Fields(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields, M::Error> {
                let mut fields: Vec<(String, Box<RawValue>)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, _>()? {
                    if fields.iter().any(|(before, _)| *before == name) {
                        return Err(serde::de::Error::custom("a field is there twice"));
                    }
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// The answer to what was joined.
struct Whole<'a> {
    body: Body<'a>,
    /// Tokens of each text.
    tokens: Vec<u64>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    data: Vec<Row<'a>>,
    #[serde(borrow)]
    model: &'a RawValue,
    #[serde(borrow)]
    fingerprint: &'a RawValue,
    truncated: Vec<usize>,
}

#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow)]
    embedding: &'a RawValue,
}

impl<'a> Whole<'a> {
    /// Reads an answer with so many vectors; `None` if it is no such answer.
    fn of(answer: &'a Answer, texts: usize) -> Option<Self> {
        if answer.status != StatusCode::OK {
            return None;
        }
        let listed = answer.headers.get(TEXT_TOKENS)?.to_str().ok()?;
        let tokens: Vec<u64> = listed
            .split(',')
            .map(|count| count.parse().ok())
            .collect::<Option<_>>()?;
        let body: Body<'a> = serde_json::from_slice(&answer.body).ok()?;
        (body.data.len() == texts && tokens.len() == texts).then_some(Self { body, tokens })
    }

    /// The answer to some of the texts, as the server would have written it.
    fn part(&self, answer: &Answer, texts: Range<usize>) -> Option<Answer> {
        let truncated: Vec<usize> = self
            .body
            .truncated
            .iter()
            .filter(|place| texts.contains(place))
            .map(|place| place - texts.start)
            .collect();
        let rows = self.body.data[texts.clone()].iter();
        let body = openai::Answer::new(
            rows.map(|row| row.embedding),
            [self.body.model, self.body.fingerprint],
            self.tokens[texts].iter().sum(),
            &truncated,
        );
        let body: Bytes = serde_json::to_vec(&body).ok()?.into();
        let mut headers = answer.headers.clone();
        for name in [TEXT_TOKENS, TRUNCATED, TRUNCATED_TEXTS] {
            headers.remove(name);
        }
        if !truncated.is_empty() {
            headers.insert(TRUNCATED, header(truncated.len().to_string()));
            headers.insert(TRUNCATED_TEXTS, header(ranges(truncated)));
        }
        Some(Answer {
            headers,
            body,
            ..answer.clone()
        })
    }
}
