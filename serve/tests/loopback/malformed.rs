//! Connections of HTTP/2 that break its rules (RFC 9113), or keep them and are an attack: each is ended or refused, and the requests of
//! others are answered meanwhile.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::client;
use crate::http2::{
    DATA, END_HEADERS, END_STREAM, Frame, HEADERS, PREFACE, SETTINGS, frame, get, next,
};
use crate::running::{MODEL, Running};

const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const ACK: u8 = 0x1;
const PADDED: u8 = 0x8;
const PRIORITISED: u8 = 0x20;

/// Errors by their numbers (RFC 9113, 7).
const PROTOCOL_ERROR: u8 = 1;
const FLOW_CONTROL_ERROR: u8 = 3;
const STREAM_CLOSED: u8 = 5;
const FRAME_SIZE_ERROR: u8 = 6;
const REFUSED_STREAM: u8 = 7;
const COMPRESSION_ERROR: u8 = 9;
const ENHANCE_YOUR_CALM: u8 = 11;

/// The largest frame that a peer takes unless it says otherwise.
const LARGEST_FRAME: usize = 16 << 10;

/// What [`last`] holds.
const LAST: &[u8] = b"the-last";

const WHOLE: u8 = END_HEADERS | END_STREAM;

/// A connection that has begun.
async fn begun(server: &Running) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(PREFACE).await.unwrap();
    let settings = frame(SETTINGS, 0, 0, &[]);
    stream.write_all(&settings).await.unwrap();
    stream
}

/// The head of a request for vectors, whose body comes later.
fn post() -> Vec<u8> {
    // `:method POST` of the static table; a field with a literal name.
    let mut head = get("/embed");
    head[0] = 0x83;
    head.extend(literal("content-type", "application/json"));
    head
}

/// A field that is written out, and not indexed.
fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut field = vec![0];
    for word in [name, value] {
        field.push(u8::try_from(word.len()).unwrap());
        field.extend(word.bytes());
    }
    field
}

/// A ping behind everything else: whoever answers it has read what stands before it.
fn last() -> Vec<u8> {
    frame(PING, 0, 0, LAST)
}

/// Whether a frame answers [`last`].
fn is_last(frame: &Frame) -> bool {
    frame.kind == PING && frame.payload == LAST
}

/// What a setting is set to.
fn setting(id: u16, value: u32) -> Vec<u8> {
    [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

fn wrong_frames() -> Vec<(&'static str, Vec<u8>, u8)> {
    let head = get("/health/live");
    let with = |more: &[u8]| frame(HEADERS, WHOLE, 1, &[&head, more].concat());
    let open = || frame(HEADERS, END_HEADERS, 1, &post());
    let most = 0x7fff_ffff_u32.to_be_bytes();
    let settings = |id, value| frame(SETTINGS, 0, 0, &setting(id, value));
    let itself = [&[0, 0, 0, 1, 0][..], &head].concat();
    let padded = [&[255][..], &head].concat();
    let lie = frame(
        HEADERS,
        END_HEADERS,
        1,
        &[post(), literal("content-length", "5")].concat(),
    );
    vec![
        (
            "a frame above the largest",
            frame(DATA, 0, 1, &[0; LARGEST_FRAME + 1]),
            FRAME_SIZE_ERROR,
        ),
        ("data of no stream", frame(DATA, 0, 0, b"x"), PROTOCOL_ERROR),
        (
            "data before a head",
            frame(DATA, 0, 1, b"x"),
            PROTOCOL_ERROR,
        ),
        (
            "a head of no stream",
            frame(HEADERS, WHOLE, 0, &head),
            PROTOCOL_ERROR,
        ),
        (
            "a stream of the server's",
            frame(HEADERS, WHOLE, 2, &head),
            PROTOCOL_ERROR,
        ),
        (
            "a continuation of nothing",
            frame(CONTINUATION, END_HEADERS, 1, &head),
            PROTOCOL_ERROR,
        ),
        (
            "a head that is broken off",
            frame(HEADERS, END_STREAM, 1, &head),
            PROTOCOL_ERROR,
        ),
        (
            "padding that is longer than its frame",
            frame(HEADERS, WHOLE | PADDED, 1, &padded),
            PROTOCOL_ERROR,
        ),
        (
            "an index beyond the tables",
            with(&[0xff, 0xff, 0x7f]),
            COMPRESSION_ERROR,
        ),
        (
            "a number without an end",
            with(&[0xff; 16]),
            COMPRESSION_ERROR,
        ),
        (
            "a table above what the server has",
            with(&[0x3f, 0xff, 0xff, 0x7f]),
            COMPRESSION_ERROR,
        ),
        (
            "a window that grows by nothing",
            frame(WINDOW_UPDATE, 0, 0, &[0; 4]),
            PROTOCOL_ERROR,
        ),
        (
            "a window above the largest",
            frame(WINDOW_UPDATE, 0, 0, &most),
            FLOW_CONTROL_ERROR,
        ),
        (
            "a stream's window above the largest",
            [open(), frame(WINDOW_UPDATE, 0, 1, &most)].concat(),
            FLOW_CONTROL_ERROR,
        ),
        (
            "a window of three bytes",
            frame(WINDOW_UPDATE, 0, 0, &[0; 3]),
            FRAME_SIZE_ERROR,
        ),
        (
            "settings that are cut",
            frame(SETTINGS, 0, 0, &[0; 5]),
            FRAME_SIZE_ERROR,
        ),
        (
            "settings of a stream",
            frame(SETTINGS, 0, 1, &[]),
            PROTOCOL_ERROR,
        ),
        (
            "settings that are taken and given",
            frame(SETTINGS, ACK, 0, &setting(3, 1)),
            FRAME_SIZE_ERROR,
        ),
        ("a switch of two", settings(2, 2), PROTOCOL_ERROR),
        (
            "a first window above the largest",
            settings(4, 1 << 31),
            FLOW_CONTROL_ERROR,
        ),
        (
            "a largest frame of one byte",
            settings(5, 1),
            PROTOCOL_ERROR,
        ),
        (
            "a ping of seven bytes",
            frame(PING, 0, 0, &[0; 7]),
            FRAME_SIZE_ERROR,
        ),
        (
            "a ping of a stream",
            frame(PING, 0, 1, &[0; 8]),
            PROTOCOL_ERROR,
        ),
        (
            "the reset of what never was",
            frame(RST_STREAM, 0, 1, &[0; 4]),
            PROTOCOL_ERROR,
        ),
        (
            "a reset of three bytes",
            [open(), frame(RST_STREAM, 0, 1, &[0; 3])].concat(),
            FRAME_SIZE_ERROR,
        ),
        (
            "a head that depends on itself",
            frame(HEADERS, WHOLE | PRIORITISED, 1, &itself),
            PROTOCOL_ERROR,
        ),
        (
            "a priority of no stream",
            frame(PRIORITY, 0, 0, &[0; 5]),
            PROTOCOL_ERROR,
        ),
        (
            "a promise of a client",
            frame(
                PUSH_PROMISE,
                END_HEADERS,
                1,
                &[&[0, 0, 0, 2][..], &head].concat(),
            ),
            PROTOCOL_ERROR,
        ),
        (
            "a name in capitals",
            with(&literal("Name", "a")),
            PROTOCOL_ERROR,
        ),
        (
            "a field of a connection",
            with(&literal("connection", "close")),
            PROTOCOL_ERROR,
        ),
        (
            "another coding of transfer",
            with(&literal("transfer-encoding", "chunked")),
            PROTOCOL_ERROR,
        ),
        (
            "a path behind the fields",
            frame(
                HEADERS,
                WHOLE,
                1,
                &[&[0x82, 0x86][..], &literal("name", "a"), &head[2..]].concat(),
            ),
            PROTOCOL_ERROR,
        ),
        ("two methods", with(&[0x82]), PROTOCOL_ERROR),
        ("the status of an answer", with(&[0x88]), PROTOCOL_ERROR),
        (
            "a body shorter than was said",
            [lie.clone(), frame(DATA, END_STREAM, 1, b"{")].concat(),
            PROTOCOL_ERROR,
        ),
        (
            "a body longer than was said",
            [lie, frame(DATA, 0, 1, b"{\"inputs\"")].concat(),
            PROTOCOL_ERROR,
        ),
        (
            "data behind the end",
            [with(&[]), frame(DATA, 0, 1, b"x")].concat(),
            STREAM_CLOSED,
        ),
    ]
}

/// The number of an error, if a frame says that there was one.
fn error(frame: &Frame) -> Option<u8> {
    match frame.kind {
        RST_STREAM => frame.payload.get(3).copied(),
        GOAWAY => frame.payload.get(7).copied(),
        _ => None,
    }
}

/// Others get the vectors that they ask for.
async fn check_well(server: &Running) {
    let answer = server.openai(&["a text"]).await;
    let wanted = server.model.embed_one("a text").await.unwrap();
    assert_eq!(answer.vector(), wanted);
}

/// Asks for vectors again and again until `over`, and gives how often.
async fn bystander(address: std::net::SocketAddr, over: Arc<AtomicBool>) -> usize {
    let body = json!({"model": MODEL, "input": "a text"}).to_string();
    let request = client::post("/v1/embeddings", "", body.as_bytes());
    let mut answered = 0;
    let mut first = None;
    while !over.load(Ordering::Relaxed) || answered == 0 {
        let vector = client::send(address, &request).await.vector();
        assert_eq!(first.get_or_insert_with(|| vector.clone()), &vector);
        answered += 1;
    }
    answered
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_that_break_the_rules_are_refused() {
    let server = Running::start().await;
    let mut taken = Vec::new();
    for (what, bytes, wanted) in wrong_frames() {
        let mut stream = begun(&server).await;
        // A server that has seen enough may be gone.
        let _ = stream.write_all(&bytes).await;
        let _ = stream.write_all(&last()).await;
        let (mut found, mut answered) = (Vec::new(), 0);
        while let Some(frame) = next(&mut stream).await {
            found.extend(error(&frame));
            if is_last(&frame) {
                answered += 1;
                // The answer to a ping overtakes the end of a stream, and that to a second one does not.
                let _ = stream.write_all(&last()).await;
                if answered == 2 {
                    break;
                }
            }
        }
        // hyper has the general error for some that RFC 9113 has a number of their own for.
        if !found.contains(&wanted) && !found.contains(&PROTOCOL_ERROR) {
            taken.push((what, wanted, found));
        }
    }
    assert!(taken.is_empty(), "{taken:?}");
    check_well(&server).await;
    server.until("isovec_serve_requests_in_work", 0).await;
    server.until("isovec_serve_bytes_in_work", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_answered_when_all_of_it_is_there() {
    let server = Running::start().await;
    // A body that its route has no use for.
    let head = [get("/health/live"), literal("content-length", "5")].concat();
    for (body, wanted) in [(&b"12345"[..], None), (b"1", Some(PROTOCOL_ERROR))] {
        let mut stream = begun(&server).await;
        let head = frame(HEADERS, END_HEADERS, 1, &head);
        stream.write_all(&head).await.unwrap();
        // Whoever answers three of them in turn had the time to answer the request.
        for _ in 0..3 {
            stream.write_all(&last()).await.unwrap();
            loop {
                let frame = next(&mut stream).await.unwrap();
                assert_ne!(frame.kind, HEADERS, "there is more to come");
                if is_last(&frame) {
                    break;
                }
            }
        }
        let body = frame(DATA, END_STREAM, 1, body);
        stream.write_all(&body).await.unwrap();
        let said = loop {
            let frame = next(&mut stream).await.unwrap();
            if frame.kind == HEADERS || error(&frame).is_some() {
                break error(&frame);
            }
        };
        assert_eq!(said, wanted);
    }
    check_well(&server).await;
}

/// Writes frames until the server has had enough, while others ask; what the server said, and how many frames were not sent.
async fn flood(
    server: &Running,
    first: Vec<u8>,
    again: impl Fn(u32) -> Vec<u8> + Send + 'static,
    times: u32,
) -> (Vec<u8>, u32) {
    let (mut reads, mut writes) = begun(server).await.into_split();
    let over = Arc::<AtomicBool>::default();
    let others = tokio::spawn(bystander(server.address, Arc::clone(&over)));
    let flooding = tokio::spawn(async move {
        let _ = writes.write_all(&first).await;
        let mut left = times;
        while left > 0 && writes.write_all(&again(times - left)).await.is_ok() {
            left -= 1;
        }
        let _ = writes.write_all(&last()).await;
        (writes, left)
    });
    let mut found = Vec::new();
    while let Some(frame) = next(&mut reads).await {
        if is_last(&frame) {
            break;
        }
        found.extend(error(&frame));
    }
    let (_, left) = flooding.await.unwrap();
    over.store(true, Ordering::Relaxed);
    assert!(others.await.unwrap() > 0);
    server.until("isovec_serve_requests_in_work", 0).await;
    (found, left)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_without_an_end_is_not_gathered() {
    let server = Running::start().await;
    let first = || frame(HEADERS, END_STREAM, 1, &get("/health/live"));
    let field = literal("a", &"b".repeat(100));
    let full = field.repeat(LARGEST_FRAME / field.len());
    for part in [full, field, Vec::new()] {
        // A gigabyte of the largest.
        let again = move |_| frame(CONTINUATION, 0, 1, &part);
        let (_, left) = flood(&server, first(), again, 65_536).await;
        assert!(left > 0, "the server read to the end");
    }
    check_well(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_head_that_becomes_a_large_one_is_refused() {
    let server = Running::start().await;
    // One field of 4,000 bytes into the table, which then is named four thousand times by one byte each: 16 MB.
    let mut head = get("/health/live");
    head.extend(b"\x40\x01a\x7f\xa1\x1e");
    head.extend([b'b'; 4000]);
    head.extend([0x80 | 62; 4000]);
    let mut stream = begun(&server).await;
    let request = frame(HEADERS, WHOLE, 1, &head);
    stream.write_all(&request).await.unwrap();
    stream.write_all(&last()).await.unwrap();
    let mut refused = false;
    while let Some(frame) = next(&mut stream).await {
        if is_last(&frame) {
            break;
        }
        // `:status` with a literal value, of the static table's name 8, or an error.
        let is_431 = frame.kind == HEADERS && frame.payload[..2] != [0x88, 0];
        refused |= is_431 || error(&frame).is_some();
        assert!(
            frame.kind != HEADERS || frame.payload[0] != 0x88,
            "it was answered"
        );
    }
    assert!(refused);
    check_well(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_reset_at_once_leave_nothing_behind() {
    let server = Running::start().await;
    // CVE-2023-44487.
    let again = |at| {
        let stream = 2 * at + 1;
        let text = frame(DATA, END_STREAM, stream, b"{\"inputs\":\"a\"}");
        let reset = frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]);
        [frame(HEADERS, END_HEADERS, stream, &post()), text, reset].concat()
    };
    let (found, left) = flood(&server, Vec::new(), again, 20_000).await;
    assert!(left == 0 || found.contains(&ENHANCE_YOUR_CALM), "{found:?}");
    server.until("isovec_serve_bytes_in_work", 0).await;
    check_well(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_that_ask_for_an_answer_each_are_not_gathered_either() {
    let server = Running::start().await;
    for again in [frame(PING, 0, 0, b"again..."), frame(SETTINGS, 0, 0, &[])] {
        let again = again.repeat(100);
        let again = move |_| again.clone();
        flood(&server, Vec::new(), again, 1_000).await;
    }
    check_well(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_has_a_bound_of_requests_and_leaves_nothing_when_it_goes() {
    let server = Running::start().await;
    let mut stream = begun(&server).await;
    for at in 0..400 {
        // Its body comes later, if it is not refused.
        let request = frame(HEADERS, END_HEADERS, 2 * at + 1, &post());
        stream.write_all(&request).await.unwrap();
    }
    stream.write_all(&last()).await.unwrap();
    let (mut most, mut refused) = (None, BTreeSet::new());
    while let Some(frame) = next(&mut stream).await {
        if frame.kind == SETTINGS && frame.flags & ACK == 0 {
            let settings = frame.payload.as_chunks::<6>().0.iter();
            let mut bounds = settings.filter(|setting| setting[..2] == [0, 3]);
            most = bounds.next().map(|setting| u64::from(setting[5]));
        }
        assert_ne!(frame.kind, GOAWAY);
        if error(&frame) == Some(REFUSED_STREAM) {
            refused.insert(frame.stream);
        }
        if is_last(&frame) {
            break;
        }
    }
    let most = most.unwrap();
    assert_eq!(refused.len() as u64, 400 - most);
    let begun = b"{\"inputs\":";
    for at in (0..400).map(|at| 2 * at + 1) {
        if !refused.contains(&at) {
            stream.write_all(&frame(DATA, 0, at, begun)).await.unwrap();
        }
    }
    // Each of them has begun to read its body: a connection that ends drops requests that nobody has begun with, and does not count them.
    let bytes = most * begun.len() as u64;
    server.until("isovec_serve_bytes_in_work", bytes).await;
    check_well(&server).await;
    drop(stream);
    // Their bodies broke off.
    loop {
        let page = server.get("/metrics").await;
        let ended = page.text().lines().filter_map(|line| {
            let of_route =
                line.strip_prefix("isovec_serve_http_answers_total{route=\"/embed\",")?;
            of_route.rsplit_once(' ')?.1.parse::<u64>().ok()
        });
        if ended.sum::<u64>() == most {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    server.until("isovec_serve_bytes_in_work", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_nobody_makes_room_for_holds_nobody_else_up() {
    let server = Running::start().await;
    let mut stream = begun(&server).await;
    let none = frame(SETTINGS, 0, 0, &setting(4, 0));
    let request = frame(HEADERS, WHOLE, 1, &get("/docs"));
    let room = frame(WINDOW_UPDATE, 0, 1, &1_000_000_u32.to_be_bytes());
    stream.write_all(&[none, request].concat()).await.unwrap();
    let mut body = 0;
    let mut frames = 0;
    loop {
        let frame = next(&mut stream).await.unwrap();
        frames += usize::from(frame.stream == 1);
        match frame.kind {
            HEADERS => {
                check_well(&server).await;
                stream.write_all(&room).await.unwrap();
            }
            DATA => body += frame.payload.len(),
            _ => continue,
        }
        if frame.flags & END_STREAM != 0 {
            break;
        }
    }
    assert!(frames > 1 && body > 1_000);
}
