//! HTTP/2 on the same port, by frames as RFC 9113 has them.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::running::Running;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [length[1], length[2], length[3], kind, flags];
    [&head, &stream.to_be_bytes()[..], payload].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_over_http_2_is_answered() {
    let server = Running::start().await;
    let path = "/health/live";
    // HPACK (RFC 7541): `:method GET` and `:scheme http` of the static table, then names 4 and 1 of it, `:path` and
    // `:authority`, with literal values.
    let mut head = vec![0x82, 0x86, 0x04, path.len() as u8];
    head.extend(path.bytes());
    head.extend(b"\x01\x04test");
    let mut request = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    request.extend(frame(SETTINGS, 0, 0, &[]));
    // The end of the head, and of the request.
    request.extend(frame(HEADERS, 0x4 | 0x1, 1, &head));
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&request).await.unwrap();

    let (mut status, mut body) = (None, Vec::new());
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await.unwrap();
        match head[3] {
            HEADERS => status = payload.first().copied(),
            DATA => body.extend(payload),
            _ => continue,
        }
        // The end of the answer.
        if head[4] & 0x1 != 0 {
            break;
        }
    }
    // `:status 200` of the static table.
    assert_eq!(status, Some(0x88));
    assert_eq!(body, b"{\"status\":\"live\"}");
}
