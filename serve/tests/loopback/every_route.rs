//! Every route that takes a body, as the document of the routes lists them, with bodies that are wrong in every way: an error in the
//! route's dialect, or an answer of the route's form, and nobody is harmed. A new route is among them without a word here.

use isovec_http::coding::Coding;
use isovec_serve::ServeOptions;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::client::{self, Answer};
use crate::models::Changing;
use crate::openapi::{fits, of_every_task, schema_of};

/// A body that is larger than this is refused.
const MOST: usize = 3 << 20;

/// A route that takes a body.
struct Route {
    /// With the names of models in it.
    path: String,
    /// What the document says of it.
    operation: Value,
}

impl Route {
    /// A request that is answered with 200.
    fn example(&self) -> &Value {
        &self.operation["requestBody"]["content"]["application/json"]["example"]
    }

    /// Whether it is of the Open Inference Protocol, whose clients say nothing of a body's kind and may send none.
    fn is_oip(&self) -> bool {
        self.path.starts_with("/v2/models") || self.path.starts_with("/v2/repository")
    }

    /// The status of what cannot be read in the route's dialect.
    fn unread(&self) -> u16 {
        match self.path.starts_with("/v") {
            true => 400,
            false => 422,
        }
    }

    /// An error in the form of the route's dialect, and in no other.
    fn check_refused(&self, answer: &Answer, what: &str) {
        let Self { path, operation } = self;
        let status = answer.status;
        assert!((400..500).contains(&status), "{path}, {what}: {answer:?}");
        let said = answer.json();
        let form = schema_of(operation, "4XX");
        fits(&said, form).unwrap_or_else(|why| panic!("{path}, {what}: {why}"));
        for name in said.as_object().unwrap().keys() {
            assert!(
                form["properties"].get(name).is_some(),
                "{path}, {what}: {said}"
            );
        }
    }

    /// An answer of the route's form, or an error.
    fn check(&self, answer: &Answer, what: &str) {
        if answer.status != 200 {
            return self.check_refused(answer, what);
        }
        let Self { path, operation } = self;
        let said = answer.json();
        fits(&said, schema_of(operation, "200"))
            .unwrap_or_else(|why| panic!("{path}, {what}: {why}"));
    }
}

async fn start() -> (Changing, Vec<Route>) {
    let mut options = ServeOptions::default();
    options.max_body = MOST;
    let server = of_every_task(options).await;
    let document = server.get("/openapi.json").await.json();
    let paths = document["paths"].as_object().unwrap();
    let taking = paths.iter().filter_map(|(path, operations)| {
        let operation = operations.get("post")?;
        operation.get("requestBody")?;
        // What loads and unloads changes what the others answer.
        if path.ends_with("/load") || path.ends_with("/unload") {
            return None;
        }
        Some(Route {
            path: path.replace("{model}", "embeds").replace("{version}", "1"),
            operation: operation.clone(),
        })
    });
    let routes: Vec<Route> = taking.collect();
    assert!(routes.len() >= 14, "{}", routes.len());
    (server, routes)
}

/// What was right is right as before, and nothing is left.
async fn check_well(server: &Changing, routes: &[Route]) {
    for route in routes {
        let answer = server.post(&route.path, route.example()).await;
        assert_eq!(answer.status, 200, "{}: {answer:?}", route.path);
        route.check(&answer, "the example");
    }
    for what in ["requests", "texts", "bytes"] {
        server
            .until(&format!("isovec_serve_{what}_in_work 0"))
            .await;
    }
}

/// The example with another value at every place, one at a time; lists and objects are places, too.
fn with_each_replaced(whole: &Value, by: &Value) -> Vec<Value> {
    let inside: Vec<Value> = match whole {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, field)| {
                with_each_replaced(field, by).into_iter().map(move |field| {
                    let mut whole = whole.clone();
                    whole[name] = field;
                    whole
                })
            })
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(at, item)| {
                with_each_replaced(item, by).into_iter().map(move |item| {
                    let mut whole = whole.clone();
                    whole[at] = item;
                    whole
                })
            })
            .collect(),
        _ => Vec::new(),
    };
    [by.clone()].into_iter().chain(inside).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_wrong_types_and_lengths_at_every_place() {
    let (server, routes) = start().await;
    let wrong = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(u64::MAX),
        json!([4_294_967_295_u32]),
        json!([[1_000_000]]),
        json!(""),
        json!("a\u{0}\u{7f}\u{feff}\u{202e}\u{10ffff}"),
        json!([]),
        json!([[]]),
        json!([[[["a"]]]]),
        json!({}),
        json!({"text": {"text": "a"}}),
        json!(vec!["a"; 2049]),
        json!(vec![["a"]; 2049]),
        json!(vec![7; 2049]),
        json!("word ".repeat((1 << 20) / 5)),
    ];
    for route in &routes {
        for value in &wrong {
            for body in with_each_replaced(route.example(), value) {
                let shown: String = body.to_string().chars().take(200).collect();
                route.check(&server.post(&route.path, &body).await, &shown);
            }
        }
    }
    check_well(&server, &routes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_no_json_object() {
    let (server, routes) = start().await;
    let deep = "[".repeat(100_000);
    for route in &routes {
        let right = route.example().to_string();
        let surrogate = right
            .replacen(":\"", ":\"\\ud800", 1)
            .replacen("[\"", "[\"\\ud800", 1);
        let mut no_utf8 = right.clone().into_bytes();
        let quote = right.rfind('"').unwrap();
        no_utf8.insert(quote, 0xff);
        let cut = &right[..right.len() - 1];
        let more = format!("{right}{{}}");
        let utf16: Vec<u8> = right.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for body in [
            b"{".as_slice(),
            b"null",
            b"\"a\"",
            b"[\"a\"]",
            b"\xef\xbb\xbf{}",
            b"{\"a\":NaN}",
            b"{\"a\":'a'}",
            deep.as_bytes(),
            cut.as_bytes(),
            more.as_bytes(),
            &utf16,
            &no_utf8,
        ] {
            let answer = server.raw(&client::post(&route.path, "", body)).await;
            let what = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
            route.check_refused(&answer, &what);
            assert_eq!(answer.status, route.unread(), "{}, {what}", route.path);
        }
        if !route.is_oip() {
            let answer = server.raw(&client::post(&route.path, "", b"")).await;
            route.check_refused(&answer, "nothing");
            assert_eq!(answer.status, route.unread(), "{}", route.path);
        }
        if surrogate != right {
            let answer = server
                .raw(&client::post(&route.path, "", surrogate.as_bytes()))
                .await;
            route.check_refused(&answer, &surrogate);
            assert_eq!(answer.status, route.unread(), "{}, {surrogate}", route.path);
        }
    }
    check_well(&server, &routes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_codings_and_lengths_that_are_not_what_is_said() {
    let (server, routes) = start().await;
    for route in &routes {
        let path = &route.path;
        let right = route.example().to_string();
        let gzip = Coding::Gzip.encode(right.as_bytes(), 6).unwrap();
        let half = &gzip[..gzip.len() / 2];
        let bomb = Coding::Zstd.encode(&vec![b' '; MOST + 1], 3).unwrap();
        for (head, body, status) in [
            ("content-encoding: gzip\r\n", right.as_bytes(), 0),
            ("content-encoding: gzip\r\n", half, 0),
            ("content-encoding: zstd\r\n", &gzip, 0),
            ("content-encoding: br\r\n", &gzip, 415),
            ("content-encoding: gzip, gzip\r\n", &gzip, 415),
            ("content-encoding: zstd\r\n", &bomb, 413),
            ("x-request-timeout: soon\r\n", right.as_bytes(), 0),
            ("x-request-priority: high\r\n", right.as_bytes(), 0),
        ] {
            let answer = server.raw(&client::post(path, head, body)).await;
            route.check_refused(&answer, head);
            let status = if status == 0 { route.unread() } else { status };
            assert_eq!(answer.status, status, "{path}, {head}");
        }
        let answer = server
            .raw(&client::post(path, "content-encoding: gzip\r\n", &gzip))
            .await;
        assert_eq!(answer.status, 200, "{path}");

        let post = format!("POST {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n");
        let length = right.len();
        if !route.is_oip() {
            for kind in ["", "content-type: text/plain\r\n"] {
                let sent = format!("{post}{kind}content-length: {length}\r\n\r\n{right}");
                let answer = server.raw(sent.as_bytes()).await;
                route.check_refused(&answer, kind);
                assert_eq!(answer.status, 415, "{path}, {kind}");
            }
        }
        let chunk = format!("{length:x}\r\n{right}\r\n");
        let json = "content-type: application/json\r\n";
        for (sent, status) in [
            // The chunk is said to be longer, or no end comes.
            (
                format!("{post}{json}transfer-encoding: chunked\r\n\r\nff{chunk}"),
                route.unread(),
            ),
            (
                format!("{post}{json}transfer-encoding: chunked\r\n\r\n{chunk}"),
                route.unread(),
            ),
            (
                format!("{post}{json}transfer-encoding: chunked\r\n\r\n-1\r\n{right}\r\n0\r\n\r\n"),
                route.unread(),
            ),
            (
                format!("{post}{json}content-length: {}\r\n\r\n{right}", length + 1),
                route.unread(),
            ),
            (
                format!("{post}{json}content-length: {}\r\n\r\n{right}", length - 1),
                route.unread(),
            ),
            (
                format!("{post}{json}content-length: {}\r\n\r\n", MOST + 1),
                413,
            ),
        ] {
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            stream.write_all(sent.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            // Whoever ends its half before its request is complete may get no answer.
            if let Some(answer) = client::read(&mut stream).await {
                route.check_refused(&answer, &sent);
                assert_eq!(answer.status, status, "{sent}");
            }
        }
    }
    check_well(&server, &routes).await;
}

#[test]
fn whatever_is_sent_to_any_route_is_answered_in_its_form() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (server, routes) = runtime.block_on(start());
    let rng = proptest::test_runner::RngAlgorithm::ChaCha;
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(
        ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::with_cases(1_000)
        },
        proptest::test_runner::TestRng::deterministic_rng(rng),
    );
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let route = 0..routes.len();
    let result = runner.run(&(route, changes), |(route, changes)| {
        let route = &routes[route];
        let mut body = route.example().to_string().into_bytes();
        for (at, byte) in changes {
            let at = at.index(body.len());
            body[at] = byte;
        }
        let answer = runtime.block_on(server.raw(&client::post(&route.path, "", &body)));
        route.check(&answer, &String::from_utf8_lossy(&body));
        Ok(())
    });
    result.unwrap();
    runtime.block_on(check_well(&server, &routes));
}
