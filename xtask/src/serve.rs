//! A small HTTP server for this machine alone: the demo page with the headers that it needs, and
//! the model for tests that run in a browser.

use std::fs::{self, File};
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::net::TcpStream;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, anyhow};
use tiny_http::{Header, Method, Request, Response, Server, StatusCode};

use crate::workspace::Workspace;
use crate::{build, report, setup};

/// The port at which tests in the browser look for the model.
pub(crate) const TEST_PORT: u16 = 8787;
/// Requests are answered side by side: a browser keeps several connections open.
const WORKERS: usize = 4;

/// Which folder answers for which beginning of a path; the first that fits.
pub(crate) type Mounts = Vec<(&'static str, PathBuf)>;

/// A running server; it stops when this is dropped.
pub(crate) struct Serving {
    /// `None` only while it is being dropped.
    server: Option<Arc<Server>>,
    workers: Vec<JoinHandle<()>>,
    port: u16,
}

impl Serving {
    /// Starts serving on 127.0.0.1; port 0 takes any free one.
    pub(crate) fn start(port: u16, mounts: Mounts) -> Result<Self> {
        let server = Server::http(("127.0.0.1", port)).map_err(|error| {
            anyhow!("port {port} on 127.0.0.1 cannot be served ({error}): stop what listens there, or name another")
        })?;
        let server = Arc::new(server);
        let port = server
            .server_addr()
            .to_ip()
            .map_or(port, |address| address.port());
        let mounts = Arc::new(mounts);
        let workers = (0..WORKERS)
            .map(|_| {
                let (server, mounts) = (Arc::clone(&server), Arc::clone(&mounts));
                thread::spawn(move || {
                    for request in server.incoming_requests() {
                        // A browser that goes away in the middle is its own affair.
                        let _ = answer(request, &mounts);
                    }
                })
            })
            .collect();
        Ok(Self {
            server: Some(server),
            workers,
            port,
        })
    }

    /// Where it is found.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Serves until the program is ended.
    fn forever(mut self) {
        for worker in std::mem::take(&mut self.workers) {
            let _ = worker.join();
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let Some(server) = self.server.take() else {
            return;
        };
        // One call wakes one worker.
        for _ in &self.workers {
            server.unblock();
        }
        for worker in std::mem::take(&mut self.workers) {
            let _ = worker.join();
        }
        drop(server);
        // The library closes its socket on a thread of its own, soon after. Whoever serves next
        // at this port must not find it taken.
        for _ in 0..500 {
            if TcpStream::connect(("127.0.0.1", self.port)).is_err() {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// `cargo xtask serve`: the page, the model beside it.
pub(crate) fn page(workspace: &Workspace, port: u16, no_build: bool) -> Result<()> {
    setup::run(workspace, &["model"])?;
    if !no_build {
        setup::run(workspace, setup::NPM)?;
        build::npm(workspace)?;
        build::page(workspace)?;
    }
    let serving = Serving::start(port, mounts(workspace))?;
    report::word(&format!("the page: {}/   (Ctrl-C ends)", serving.url()));
    serving.forever();
    Ok(())
}

/// The page at the root, models under `/models/`, the repository's test data under `/tests/data/`.
pub(crate) fn mounts(workspace: &Workspace) -> Mounts {
    vec![
        ("/models/", workspace.cache.join("models")),
        ("/tests/data/", workspace.root.join("tests").join("data")),
        ("/", build::page_folder(workspace)),
    ]
}

/// What is sent with every answer. The first three make a page `crossOriginIsolated`, without
/// which browsers give it no SharedArrayBuffer and so no threads; the next two let a page of
/// another origin (the test runner's) read the model.
const HEADERS: &[(&str, &str)] = &[
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Embedder-Policy", "require-corp"),
    ("Cross-Origin-Resource-Policy", "cross-origin"),
    ("Access-Control-Allow-Origin", "*"),
    (
        "Access-Control-Expose-Headers",
        "Content-Length, Content-Range, Accept-Ranges, ETag",
    ),
    ("Accept-Ranges", "bytes"),
    ("Cache-Control", "no-cache"),
    ("X-Content-Type-Options", "nosniff"),
];

fn answer(request: Request, mounts: &Mounts) -> std::io::Result<()> {
    match request.method() {
        Method::Get | Method::Head => {}
        Method::Options => {
            let mut response = plain(204, "");
            add(
                &mut response,
                "Access-Control-Allow-Methods",
                "GET, HEAD, OPTIONS",
            );
            add(&mut response, "Access-Control-Allow-Headers", "*");
            return request.respond(response);
        }
        _ => {
            let mut response = plain(405, "only GET and HEAD are answered here\n");
            add(&mut response, "Allow", "GET, HEAD, OPTIONS");
            return request.respond(response);
        }
    }
    let Some(path) = locate(request.url(), mounts) else {
        return request.respond(plain(404, "there is no such file\n"));
    };
    let (Ok(mut file), Ok(metadata)) = (File::open(&path), fs::metadata(&path)) else {
        return request.respond(plain(404, "there is no such file\n"));
    };
    let size = metadata.len();
    let etag = etag(&metadata);
    let header = |name: &str| {
        request
            .headers()
            .iter()
            .find(|h| h.field.as_str().as_str().eq_ignore_ascii_case(name))
            .map(|h| h.value.as_str().to_owned())
    };
    if header("If-None-Match").is_some_and(|known| known == etag) {
        let mut response = plain(304, "");
        add(&mut response, "ETag", &etag);
        return request.respond(response);
    }
    // A range of an older version of the file would be glued to a newer one.
    let range = header("Range").filter(|_| header("If-Range").is_none_or(|known| known == etag));
    let (status, from, length) = match range.as_deref().map(|r| parse_range(r, size)) {
        None | Some(Range::Whole) => (200, 0, size),
        Some(Range::Part { from, length }) => (206, from, length),
        Some(Range::Outside) => {
            let mut response = plain(416, "");
            add(&mut response, "Content-Range", &format!("bytes */{size}"));
            return request.respond(response);
        }
    };
    file.seek(SeekFrom::Start(from))?;
    let mut response = Response::new(
        StatusCode(status),
        Vec::new(),
        file.take(length),
        usize::try_from(length).ok(),
        None,
    )
    // A length is what progress bars and range readers go by; never chunked.
    .with_chunked_threshold(usize::MAX);
    common(&mut response);
    add(&mut response, "Content-Type", mime(&path));
    add(&mut response, "ETag", &etag);
    if status == 206 {
        add(
            &mut response,
            "Content-Range",
            &format!("bytes {from}-{}/{size}", from + length - 1),
        );
    }
    request.respond(response)
}

fn plain(status: u16, text: &str) -> Response<Cursor<Vec<u8>>> {
    let mut response = Response::from_string(text).with_status_code(StatusCode(status));
    common(&mut response);
    response
}

fn common<R: Read>(response: &mut Response<R>) {
    for (name, value) in HEADERS {
        add(response, name, value);
    }
}

fn add<R: Read>(response: &mut Response<R>, name: &str, value: &str) {
    if let Ok(header) = Header::from_bytes(name, value) {
        response.add_header(header);
    }
}

/// The file that a URL names, inside one of the mounted folders and nowhere else.
fn locate(url: &str, mounts: &Mounts) -> Option<PathBuf> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let path = percent_decoded(path)?;
    let (rest, folder) = mounts
        .iter()
        .find_map(|(prefix, folder)| Some((path.strip_prefix(prefix)?, folder)))?;
    let inside = Path::new(rest);
    // No `..`, no root, no drive: only plain names.
    if !inside
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
    {
        return None;
    }
    let mut file = folder.join(inside);
    if file.is_dir() {
        file.push("index.html");
    }
    // A link may lead out of the folder; the text of the path does not show it.
    let (real, root) = (file.canonicalize().ok()?, folder.canonicalize().ok()?);
    (real.is_file() && real.starts_with(root)).then_some(real)
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'%' {
            let (digits, tail) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = tail;
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes)
        .ok()
        .filter(|decoded| !decoded.contains('\0'))
}

#[derive(Debug, PartialEq)]
enum Range {
    Whole,
    Part { from: u64, length: u64 },
    Outside,
}

/// RFC 9110, section 14: one range of bytes. What cannot be understood is to be ignored, several
/// ranges may be; both give the whole file.
fn parse_range(value: &str, size: u64) -> Range {
    let Some((first, last)) = value
        .trim()
        .strip_prefix("bytes=")
        .and_then(|spec| spec.split_once('-'))
    else {
        return Range::Whole;
    };
    let part = |from: u64, to: u64| {
        if from >= size || to < from {
            Range::Outside
        } else {
            Range::Part {
                from,
                length: to.min(size - 1) - from + 1,
            }
        }
    };
    match (first.trim(), last.trim()) {
        ("", suffix) => match suffix.parse::<u64>() {
            Ok(0) => Range::Outside,
            Ok(length) if size > 0 => part(size.saturating_sub(length), size - 1),
            Ok(_) => Range::Outside,
            Err(_) => Range::Whole,
        },
        (from, "") => from
            .parse()
            .map_or(Range::Whole, |from| part(from, u64::MAX)),
        (from, to) => match (from.parse(), to.parse()) {
            (Ok(from), Ok(to)) if from <= to => part(from, to),
            _ => Range::Whole,
        },
    }
}

fn etag(metadata: &fs::Metadata) -> String {
    let written = metadata
        .modified()
        .ok()
        .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |age| age.as_nanos());
    format!("\"{:x}-{written:x}\"", metadata.len())
}

/// The types that a page is made of. Browsers refuse modules and wasm under a wrong one.
fn mime(path: &Path) -> &'static str {
    match path.extension().and_then(|e| e.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("json" | "map") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("txt" | "md") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn ranges_follow_the_standard() {
        let part = |from, length| Range::Part { from, length };
        assert_eq!(parse_range("bytes=0-0", 10), part(0, 1));
        assert_eq!(parse_range("bytes=2-5", 10), part(2, 4));
        assert_eq!(parse_range("bytes=2-", 10), part(2, 8));
        assert_eq!(parse_range("bytes=-3", 10), part(7, 3));
        assert_eq!(parse_range("bytes=-30", 10), part(0, 10));
        assert_eq!(parse_range("bytes=9-100", 10), part(9, 1));
        assert_eq!(parse_range("bytes=10-", 10), Range::Outside);
        assert_eq!(parse_range("bytes=-0", 10), Range::Outside);
        assert_eq!(parse_range("bytes=0-", 0), Range::Outside);
        for odd in [
            "bytes=5-2",
            "bytes=a-b",
            "lines=1-2",
            "bytes=0-1,3-4",
            "bytes=",
        ] {
            assert_eq!(parse_range(odd, 10), Range::Whole, "{odd}");
        }
    }

    fn site() -> (tempfile::TempDir, Mounts) {
        let dir = tempfile::tempdir().unwrap();
        let (page, models) = (dir.path().join("page"), dir.path().join("models"));
        for folder in [&page, &models] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(dir.path().join("secret"), "secret").unwrap();
        fs::write(page.join("index.html"), "<p>page</p>").unwrap();
        fs::write(page.join("a b.wasm"), "0123456789").unwrap();
        fs::write(models.join("config.json"), "{}").unwrap();
        (dir, vec![("/models/", models), ("/", page)])
    }

    #[test]
    fn only_files_inside_a_mounted_folder_are_found() {
        let (dir, mounts) = site();
        let found = |url: &str| locate(url, &mounts).is_some();
        assert!(found("/") && found("/index.html?x=1") && found("/a%20b.wasm"));
        assert!(found("/models/config.json"));
        for url in [
            "/../secret",
            "/%2e%2e/secret",
            "/models/../secret",
            "//secret",
            "/none",
            "/%zz",
            "/%00",
            "",
        ] {
            assert!(!found(url), "{url}");
        }
        let absolute = format!("/{}", dir.path().join("secret").display());
        assert!(!found(&absolute), "{absolute}");
    }

    #[test]
    fn a_link_out_of_the_folder_is_not_followed() {
        if std::env::consts::OS == "windows" {
            return; // links need rights there, and there is no `ln`
        }
        let (dir, mounts) = site();
        let link = mounts[1].1.join("link");
        let made = std::process::Command::new("ln")
            .arg("-s")
            .args([dir.path().join("secret"), link.clone()])
            .status()
            .unwrap();
        assert!(made.success() && link.exists());
        assert!(locate("/link", &mounts).is_none());
    }

    fn ask(port: u16, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(
            stream,
            "{request}\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.to_lowercase()
    }

    #[test]
    fn the_server_answers_with_headers_types_and_ranges_and_stops() {
        let (_dir, mounts) = site();
        let serving = Serving::start(0, mounts).unwrap();
        let port = serving.port;
        assert_eq!(serving.url(), format!("http://127.0.0.1:{port}"));

        let whole = ask(port, "GET /a%20b.wasm HTTP/1.1");
        assert!(
            whole.starts_with("http/1.1 200") && whole.ends_with("0123456789"),
            "{whole}"
        );
        for header in [
            "cross-origin-opener-policy: same-origin",
            "cross-origin-embedder-policy: require-corp",
            "access-control-allow-origin: *",
            "content-type: application/wasm",
            "content-length: 10",
        ] {
            assert!(whole.contains(header), "{header} is missing in {whole}");
        }
        let part = ask(port, "GET /a%20b.wasm HTTP/1.1\r\nRange: bytes=2-4");
        assert!(
            part.starts_with("http/1.1 206") && part.ends_with("\r\n234"),
            "{part}"
        );
        assert!(part.contains("content-range: bytes 2-4/10"), "{part}");
        let outside = ask(port, "GET /a%20b.wasm HTTP/1.1\r\nRange: bytes=50-");
        assert!(
            outside.starts_with("http/1.1 416") && outside.contains("bytes */10"),
            "{outside}"
        );
        let head = ask(port, "HEAD / HTTP/1.1");
        assert!(
            head.starts_with("http/1.1 200") && !head.contains("page"),
            "{head}"
        );
        let tag = whole
            .lines()
            .find_map(|l| l.strip_prefix("etag: "))
            .unwrap()
            .to_owned();
        let known = ask(
            port,
            &format!("GET /a%20b.wasm HTTP/1.1\r\nIf-None-Match: {tag}"),
        );
        assert!(known.starts_with("http/1.1 304"), "{known}");
        let stale = ask(
            port,
            "GET /a%20b.wasm HTTP/1.1\r\nRange: bytes=2-4\r\nIf-Range: \"old\"",
        );
        assert!(
            stale.starts_with("http/1.1 200") && stale.ends_with("0123456789"),
            "{stale}"
        );
        assert!(ask(port, "GET /none HTTP/1.1").starts_with("http/1.1 404"));
        assert!(ask(port, "POST / HTTP/1.1").starts_with("http/1.1 405"));
        assert!(ask(port, "OPTIONS /models/config.json HTTP/1.1").starts_with("http/1.1 204"));

        let second = Serving::start(port, Vec::new()).err().unwrap().to_string();
        assert!(second.contains(&port.to_string()), "{second}");
        drop(serving);
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    }
}
