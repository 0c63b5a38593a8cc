//! HTTP/2 on the same port, by frames as RFC 9113 has them.

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::running::Running;

/// How a connection begins (RFC 9113, 3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const SETTINGS: u8 = 4;

/// The flags of an end: of a head, and of a request or an answer.
pub(crate) const END_HEADERS: u8 = 0x4;
pub(crate) const END_STREAM: u8 = 0x1;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [length[1], length[2], length[3], kind, flags];
    [&head, &stream.to_be_bytes()[..], payload].concat()
}

/// The head of a request without a body, in HPACK (RFC 7541): `:method GET` and `:scheme http` of the static table, then names 4
/// and 1 of it, `:path` and `:authority`, with literal values.
pub(crate) fn get(path: &str) -> Vec<u8> {
    let mut head = vec![0x82, 0x86, 0x04, path.len() as u8];
    head.extend(path.bytes());
    head.extend(b"\x01\x04test");
    head
}

/// A frame that came.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// The next frame; `None` at the connection's end.
pub(crate) async fn next(stream: &mut (impl AsyncRead + Unpin)) -> Option<Frame> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let [a, b, c, kind, flags, ref number @ ..] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    stream.read_exact(&mut payload).await.ok()?;
    Some(Frame {
        kind,
        flags,
        stream: u32::from_be_bytes(*number),
        payload,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_over_http_2_is_answered() {
    let server = Running::start().await;
    let mut request = PREFACE.to_vec();
    request.extend(frame(SETTINGS, 0, 0, &[]));
    let head = get("/health/live");
    request.extend(frame(HEADERS, END_HEADERS | END_STREAM, 1, &head));
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&request).await.unwrap();

    let (mut status, mut body) = (None, Vec::new());
    loop {
        let frame = next(&mut stream).await.unwrap();
        match frame.kind {
            HEADERS => status = frame.payload.first().copied(),
            DATA => body.extend(frame.payload),
            _ => continue,
        }
        if frame.flags & END_STREAM != 0 {
            break;
        }
    }
    // `:status 200` of the static table.
    assert_eq!(status, Some(0x88));
    assert_eq!(body, b"{\"status\":\"live\"}");
}
