//! A small HTTP server on loopback that can misbehave: it cuts connections, ignores ranges,
//! lies about lengths, and remembers every request.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::thread;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Seen {
    /// `GET`, `HEAD`.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
}

impl Seen {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The first byte that a `Range` header asks for.
    pub fn range_start(&self) -> Option<usize> {
        let value = self.header("range")?.strip_prefix("bytes=")?;
        value.strip_suffix('-')?.parse().ok()
    }
}

/// What is sent back. `Connection: close` is always added.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// Names and values, beside those that the server adds.
    pub headers: Vec<(String, String)>,
    /// What follows the headers.
    pub body: Vec<u8>,
    /// What `Content-Length` says; `None` for no such header.
    pub declared: Option<usize>,
    /// Close the connection after so many bytes of the body.
    pub cut_after: Option<usize>,
    /// What comes after the body.
    pub after: After,
    /// A byte of the body for each message; the connection is closed when nobody can send any.
    pub gate: Option<Gate>,
}

/// What a server does after a body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum After {
    /// It closes the connection.
    #[default]
    Close,
    /// It sends the body again and again, until the client hangs up.
    Again,
}

/// Lets bytes pass one by one.
pub type Gate = Arc<Mutex<Receiver<()>>>;

impl Reply {
    /// A reply that says its body's true length.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        Self {
            status,
            declared: Some(body.len()),
            body,
            ..Self::default()
        }
    }

    /// Adds a header.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Closes the connection after so many bytes of the body.
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.cut_after = Some(bytes);
        self
    }

    /// Sends no length.
    pub fn without_length(mut self) -> Self {
        self.declared = None;
        self
    }

    /// The whole of a file, or the part that a range asks for.
    pub fn file(seen: &Seen, bytes: &[u8]) -> Self {
        match seen.range_start() {
            Some(start) if start < bytes.len() => Self::new(206, &bytes[start..]).with(
                "Content-Range",
                format!("bytes {start}-{}/{}", bytes.len() - 1, bytes.len()),
            ),
            Some(_) => Self::new(416, "").with("Content-Range", format!("bytes */{}", bytes.len())),
            None => Self::new(200, bytes),
        }
    }
}

type Handler = dyn Fn(&Seen) -> Reply + Send + Sync;

/// Serves until dropped.
#[derive(Debug)]
pub struct Server {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    stop: Arc<AtomicBool>,
    port: u16,
}

impl Server {
    /// Listens on a free port; every request is answered by `handler`, on a thread of its own.
    ///
    /// # Panics
    /// Where no port can be had.
    pub fn start(handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let handler: Arc<Handler> = Arc::new(handler);
        thread::spawn({
            let (seen, stop) = (Arc::clone(&seen), Arc::clone(&stop));
            move || {
                for stream in listener.incoming().flatten() {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    let (seen, handler) = (Arc::clone(&seen), Arc::clone(&handler));
                    thread::spawn(move || answer(stream, &seen, handler.as_ref()));
                }
            }
        });
        Self {
            url: format!("http://127.0.0.1:{port}"),
            seen,
            stop,
            port,
        }
    }

    /// Every request so far, oldest first.
    ///
    /// # Panics
    /// Where a handler panicked.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no handler panics").clone()
    }

    /// Forgets the requests so far.
    ///
    /// # Panics
    /// Where a handler panicked.
    pub fn forget(&self) {
        self.seen.lock().expect("no handler panics").clear();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the listener, so that it sees the flag and frees the port.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn read_request(stream: &TcpStream) -> Option<Seen> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let mut words = first.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    for line in lines {
        let line = line.ok()?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    Some(Seen {
        method,
        target,
        headers,
    })
}

fn answer(mut stream: TcpStream, seen: &Mutex<Vec<Seen>>, handler: &Handler) {
    let Some(request) = read_request(&stream) else {
        return;
    };
    seen.lock()
        .expect("no handler panics")
        .push(request.clone());
    let reply = handler(&request);
    let mut head = format!(
        "HTTP/1.1 {} Some reason\r\nConnection: close\r\n",
        reply.status
    );
    if let Some(declared) = reply.declared {
        head += &format!("Content-Length: {declared}\r\n");
    }
    for (name, value) in &reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    // The client may hang up whenever it likes.
    if stream.write_all(head.as_bytes()).is_err() || request.method == "HEAD" {
        return;
    }
    let end = reply.cut_after.unwrap_or(reply.body.len());
    let body = &reply.body[..end.min(reply.body.len())];
    if let Some(gate) = &reply.gate {
        let gate = gate.lock().expect("one connection at a time");
        for byte in body {
            if gate.recv().is_err() || stream.write_all(&[*byte]).is_err() {
                return;
            }
        }
        return;
    }
    while stream.write_all(body).is_ok() && reply.after == After::Again {}
}
