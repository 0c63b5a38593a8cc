//! A server on loopback that speaks as much of S3's protocol as a job needs, and keeps to its conditions.
//!
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html> for `If-None-Match: *` (412 where there is one),
//! `API_GetObject.html` for `If-Match` and `Range`, `API_ListObjectsV2.html` for pages.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

/// Keys of a page of a listing.
pub(crate) const PAGE: usize = 7;

/// What becomes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// It is not done, and answers 503.
    Refused,
    /// It is done, and answers 500.
    Hidden,
}

/// What the server has and was asked.
pub(crate) struct Held {
    /// By `bucket/key`: the bytes, and the etag.
    objects: BTreeMap<String, (Bytes, String)>,
    versions: u64,
    /// Bytes of objects that were sent.
    pub(crate) sent: u64,
    /// How often it was asked: for pages of listings, whether an object is there, for objects, and to write one.
    pub(crate) asked: [u64; 4],
    /// Writes since the faults were set.
    pub(crate) puts: u64,
    /// What becomes of a write, by its number from 0.
    faults: fn(u64) -> Fault,
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    held: Arc<Mutex<Held>>,
    _runtime: tokio::runtime::Runtime,
}

impl Server {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let held = Arc::new(Mutex::new(Held {
            objects: BTreeMap::new(),
            versions: 0,
            sent: 0,
            asked: [0; 4],
            puts: 0,
            faults: |_| Fault::None,
        }));
        let app = Router::new().fallback(answer).with_state(Arc::clone(&held));
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self {
            address,
            held,
            _runtime: runtime,
        }
    }

    pub(crate) fn held<T>(&self, look: impl FnOnce(&mut Held) -> T) -> T {
        look(&mut self.held.lock().unwrap())
    }

    /// From now on writes have these faults.
    pub(crate) fn faults(&self, faults: fn(u64) -> Fault) {
        self.held(|held| (held.puts, held.faults) = (0, faults));
    }

    pub(crate) fn write(&self, name: &str, content: impl Into<Bytes>) {
        self.held(|held| held.put(name.to_owned(), content.into()));
    }

    /// The objects whose names begin so, by the rest of their names.
    pub(crate) fn under(&self, prefix: &str) -> BTreeMap<String, Bytes> {
        self.held(|held| {
            let objects = held.objects.iter();
            let inside = objects.filter_map(|(name, (bytes, _))| {
                Some((name.strip_prefix(prefix)?.to_owned(), bytes.clone()))
            });
            inside.collect()
        })
    }
}

impl Held {
    fn put(&mut self, name: String, bytes: Bytes) -> String {
        self.versions += 1;
        let etag = format!("\"{:x}\"", self.versions);
        self.objects.insert(name, (bytes, etag.clone()));
        etag
    }

    fn list(&self, bucket: &str, query: &BTreeMap<String, String>) -> String {
        let of = |name: &str| query.get(name).map_or("", String::as_str);
        let (prefix, after) = (of("prefix"), of("continuation-token"));
        let delimiter = query.get("delimiter").filter(|it| !it.is_empty());
        let mut found = String::new();
        let mut folders = BTreeSet::new();
        let mut count = 0;
        let mut last = None;
        for (name, (bytes, etag)) in &self.objects {
            let Some(key) = name
                .strip_prefix(bucket)
                .and_then(|key| key.strip_prefix('/'))
            else {
                continue;
            };
            let Some(inside) = key.strip_prefix(prefix) else {
                continue;
            };
            if key <= after {
                continue;
            }
            if count == PAGE {
                let last = last.unwrap_or_default();
                found += &format!(
                    "<IsTruncated>true</IsTruncated><NextContinuationToken>{last}</NextContinuationToken>"
                );
                break;
            }
            count += 1;
            last = Some(key);
            match delimiter.and_then(|delimiter| inside.split_once(&**delimiter)) {
                Some((folder, _)) => {
                    folders.insert(format!("{prefix}{folder}/"));
                }
                None => {
                    let etag = etag.replace('"', "&quot;");
                    found += &format!(
                        "<Contents><Key>{key}</Key><LastModified>2026-11-26T00:00:00.000Z</LastModified><ETag>{etag}</ETag><Size>{}</Size></Contents>",
                        bytes.len()
                    );
                }
            }
        }
        for folder in folders {
            found += &format!("<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>");
        }
        format!("<?xml version=\"1.0\"?><ListBucketResult>{found}</ListBucketResult>")
    }
}

fn failed(status: StatusCode, code: &str) -> Response {
    (status, format!("<Error><Code>{code}</Code></Error>")).into_response()
}

async fn answer(
    State(held): State<Arc<Mutex<Held>>>,
    method: Method,
    uri: Uri,
    Query(query): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut held = held.lock().unwrap();
    let name = uri.path().trim_matches('/').to_owned();
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if header("authorization").is_none() {
        return failed(StatusCode::FORBIDDEN, "AccessDenied");
    }
    let is_list = query.contains_key("list-type");
    let kinds = [
        is_list,
        method == Method::HEAD,
        !is_list && method == Method::GET,
        method == Method::PUT,
    ];
    for (asked, is_it) in held.asked.iter_mut().zip(kinds) {
        *asked += u64::from(is_it);
    }
    if is_list {
        return held.list(&name, &query).into_response();
    }
    let there = held.objects.get(&name).cloned();
    if method == Method::PUT {
        let fault = (held.faults)(held.puts);
        held.puts += 1;
        if fault == Fault::Refused {
            return failed(StatusCode::SERVICE_UNAVAILABLE, "SlowDown");
        }
        if header("if-none-match") == Some("*") && there.is_some() {
            return failed(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
        }
        let etag = held.put(name, body);
        if fault == Fault::Hidden {
            return failed(StatusCode::INTERNAL_SERVER_ERROR, "InternalError");
        }
        return [("etag", etag)].into_response();
    }
    if method == Method::DELETE {
        held.objects.remove(&name);
        return StatusCode::NO_CONTENT.into_response();
    }
    let Some((bytes, etag)) = there else {
        return failed(StatusCode::NOT_FOUND, "NoSuchKey");
    };
    if header("if-match").is_some_and(|wanted| wanted != etag) {
        return failed(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
    }
    let size = bytes.len();
    let mut answer = vec![
        ("etag", etag),
        ("last-modified", "Thu, 26 Nov 2026 00:00:00 GMT".to_owned()),
    ];
    if method == Method::HEAD {
        answer.push(("content-length", size.to_string()));
        return (axum::response::AppendHeaders(answer), ()).into_response();
    }
    let range = header("range").and_then(|range| range.strip_prefix("bytes="));
    let Some((start, end)) = range.and_then(|range| range.split_once('-')) else {
        held.sent += size as u64;
        return (axum::response::AppendHeaders(answer), bytes).into_response();
    };
    let (start, end): (usize, usize) = (start.parse().unwrap(), end.parse().unwrap());
    let end = size.min(end + 1);
    answer.push(("content-range", format!("bytes {start}-{}/{size}", end - 1)));
    held.sent += (end - start) as u64;
    let part = bytes.slice(start..end);
    (
        StatusCode::PARTIAL_CONTENT,
        axum::response::AppendHeaders(answer),
        part,
    )
        .into_response()
}
