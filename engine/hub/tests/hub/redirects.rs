//! Where redirects lead, and which hosts get the token.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use isovec_engine::maybe_send::BoxFuture;
use isovec_hub::{Body, FileSelection, Hub, Request, Response, Transport, TransportFailure};
use isovec_test_server::{Reply, Server};

use crate::repo::{COMMIT, ID, Repo, Site, TOKEN, WEIGHTS, assert_holds, assert_says};

fn to(location: impl Into<String>) -> Reply {
    Reply::new(302, "").with("Location", location)
}

/// Every request that came to a host by a name, and whether the token came with it.
fn tokens(server: &Server) -> BTreeMap<String, Vec<bool>> {
    let mut by_host: BTreeMap<String, Vec<bool>> = BTreeMap::new();
    for seen in server.seen() {
        let host = seen.header("host").unwrap_or_default().to_owned();
        let all = seen.headers.values().any(|value| value.contains(TOKEN));
        assert_eq!(all, seen.header("authorization").is_some(), "{seen:?}");
        assert!(!seen.target.contains(TOKEN), "{seen:?}");
        by_host.entry(host).or_default().push(all);
    }
    by_host
}

#[test]
fn the_token_goes_to_the_hubs_own_origin_and_to_no_other() {
    let repo = Repo::embedder();
    // The file lies three hosts away, and the way there leads over the hub again.
    let hub_url = Arc::new(Mutex::new(String::new()));
    let store = {
        let repo = repo.clone();
        Server::start(move |seen| Reply::file(seen, &repo.files[WEIGHTS]))
    };
    let between = Server::start({
        let hub_url = Arc::clone(&hub_url);
        move |_| to(format!("{}/back", hub_url.lock().expect("no panic")))
    });
    let hub = repo.start_with({
        let (between, store) = (between.url.clone(), store.url.clone());
        let hub_url = Arc::clone(&hub_url);
        move |repo, seen| {
            let own = hub_url.lock().expect("no panic").clone();
            let elsewhere = own.replace("127.0.0.1", "localhost");
            let host = seen.header("host").unwrap_or_default();
            if host.starts_with("localhost") {
                // The same server and port under another name is another origin.
                return Some(to(format!("{between}/x")));
            }
            if seen.target == "/back" {
                return Some(to(format!("{store}/file?signature=1")));
            }
            (repo.asked(seen) == Some(WEIGHTS)).then(|| {
                to(format!("{elsewhere}/same-port"))
                    .with("X-Linked-Etag", format!("\"{}\"", repo.etag(WEIGHTS)))
            })
        }
    });
    *hub_url.lock().expect("no panic") = hub.url.clone();
    let site = Site::new(&hub.url);
    let fetched = site.fetch("main").expect("all is well");
    assert_holds(&fetched, &repo, &Repo::wanted());
    for (host, seen) in tokens(&hub) {
        let own = host.starts_with("127.0.0.1");
        assert!(seen.iter().all(|token| *token == own), "{host}: {seen:?}");
        assert!(own || seen == [false], "{host}: {seen:?}");
    }
    for other in [&between, &store] {
        let tokens = tokens(other);
        assert_eq!(tokens.values().flatten().collect::<Vec<_>>(), [&false]);
    }
}

#[test]
fn a_chain_of_ten_is_followed_and_a_longer_one_is_not() {
    let chain = |length: usize| {
        Repo::embedder().start_with(move |repo, seen| {
            let step = match seen.target.strip_prefix("/step/") {
                Some(step) => step.parse::<usize>().expect("a number"),
                None if seen.target.starts_with("/api/") => 0,
                None => return None,
            };
            Some(if step == length {
                repo.api()
            } else {
                to(format!("/step/{}", step + 1))
            })
        })
    };
    let ten = chain(10);
    Site::new(&ten.url).fetch("main").expect("all is well");
    let eleven = chain(11);
    assert_says(
        Site::new(&eleven.url).fetch("main"),
        &["redirected more than 10 times"],
    );
    assert_eq!(eleven.seen().len(), 11, "and not one more");
}

#[test]
fn two_hosts_that_lead_to_each_other_are_left_without_the_token() {
    let hub_url = Arc::new(Mutex::new(String::new()));
    let other = Server::start({
        let hub_url = Arc::clone(&hub_url);
        move |_| to(format!("{}/again", hub_url.lock().expect("no panic")))
    });
    let hub = Server::start({
        let other = other.url.clone();
        move |_| to(format!("{other}/loop"))
    });
    *hub_url.lock().expect("no panic") = hub.url.clone();
    assert_says(
        Site::new(&hub.url).fetch("main"),
        &["redirected more than 10 times"],
    );
    assert_eq!(hub.seen().len() + other.seen().len(), 11);
    assert!(tokens(&other).values().flatten().all(|token| !token));
}

#[test]
fn redirects_that_lead_nowhere_are_named_and_carry_no_secret() {
    for location in [
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
        "javascript:alert(1)",
        "data:text/plain,x",
        "http://",
        "http://[::1",
        "//",
        "",
    ] {
        let server = Server::start(move |_| to(location));
        let mut site = Site::new(&server.url);
        site.config.retry.retries = 0;
        assert_says(site.fetch("main"), &["http"]);
        assert!(server.seen().len() <= 11, "{location}");
    }
    let server = Server::start(|_| Reply::new(302, ""));
    assert_says(Site::new(&server.url).fetch("main"), &["302", "no address"]);
}

/// Answers from a table, for schemes that no test can serve.
#[derive(Debug)]
struct Table {
    answers: BTreeMap<String, (u16, String)>,
    seen: Mutex<Vec<(String, bool)>>,
}

struct Empty;

impl Body for Empty {
    fn next_chunk(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportFailure>> {
        Box::pin(async { Ok(None) })
    }
}

impl Transport for Table {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportFailure>> {
        let has_token = request
            .headers
            .iter()
            .any(|(_, value)| value.contains(TOKEN));
        let url = request.url.as_str().to_owned();
        let found = self.answers.get(&url).cloned();
        self.seen.lock().expect("no panic").push((url, has_token));
        Box::pin(async move {
            let Some((status, location)) = found else {
                return Err(TransportFailure::permanent("nobody is there"));
            };
            Ok(Response {
                status,
                headers: vec![("location".into(), location)],
                body: Box::new(Empty),
            })
        })
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// What is said, and who was asked, with or without the token.
fn follow(endpoint: &str, locations: &[(&str, &str)]) -> (String, Vec<(String, bool)>) {
    let api = format!("{endpoint}/api/models/{ID}/revision/main?blobs=true");
    let mut answers = BTreeMap::from([(api, (302, locations[0].1.to_owned()))]);
    for (from, location) in &locations[1..] {
        answers.insert((*from).to_owned(), (307, (*location).to_owned()));
    }
    let table = Arc::new(Table {
        answers,
        seen: Mutex::default(),
    });
    let site = Site::new(endpoint);
    let hub = Hub::with_transport(
        site.config.clone(),
        Arc::clone(&table) as Arc<dyn Transport>,
    )
    .expect("a usable configuration");
    let fetched = hub.fetch_blocking(
        ID,
        "main",
        &FileSelection::embedding(),
        |_| {},
        &isovec_engine::cancel::Cancel::new(),
    );
    let error = assert_says(fetched, &[]);
    let seen = table.seen.lock().expect("no panic").clone();
    (error.to_string(), seen)
}

#[test]
fn nobody_is_led_from_https_to_http() {
    let (said, seen) = follow("https://hub.test", &[("", "http://hub.test/plain")]);
    assert!(said.contains("redirects from https to http"), "{said}");
    assert_eq!(seen.len(), 1, "the second address was not asked");
    // By a detour over a host that may.
    let (said, seen) = follow(
        "https://hub.test",
        &[
            ("", "https://cdn.test/a"),
            ("https://cdn.test/a", "http://cdn.test/b"),
        ],
    );
    assert!(said.contains("redirects from https to http"), "{said}");
    let tokens: Vec<bool> = seen.iter().map(|(_, token)| *token).collect();
    assert_eq!(tokens, [true, false]);
}

#[test]
fn an_origin_is_scheme_host_and_port() {
    for (other, own) in [
        ("https://hub.test/x", true),
        ("https://HUB.test:443/x", true),
        ("https://hub.test:8443/x", false),
        ("https://sub.hub.test/x", false),
        ("https://hub.test.evil/x", false),
        ("https://hub.test@evil.test/x", false),
        ("//evil.test/x", false),
        ("/x", true),
    ] {
        let (_, seen) = follow("https://hub.test", &[("", other)]);
        assert_eq!(seen.len(), 2, "{other}");
        assert_eq!(seen[1].1, own, "{other}: {}", seen[1].0);
    }
    // The way up is free, but it is another origin.
    let (_, seen) = follow("http://hub.test", &[("", "https://hub.test/x")]);
    assert!(!seen[1].1, "{COMMIT}");
}
