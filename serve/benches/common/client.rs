//! A client with one open connection, which asks for the vector of one text again and again.

use std::net::SocketAddr;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(crate) struct Client {
    stream: TcpStream,
    request: String,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr, text: &str) -> Self {
        Self::with_head(address, text, "").await
    }

    /// The same with lines of its own in the head of each request.
    pub(crate) async fn with_head(address: SocketAddr, text: &str, head: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let body = json!({"input": text, "encoding_format": "base64"}).to_string();
        let request = format!(
            "POST /v1/embeddings HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{head}\r\n{body}",
            body.len()
        );
        Self { stream, request }
    }

    /// Asks once; whether there was a vector.
    pub(crate) async fn ask(&mut self) -> bool {
        self.status().await == 200
    }

    /// Asks once; the answer's status.
    pub(crate) async fn status(&mut self) -> u16 {
        self.stream
            .write_all(self.request.as_bytes())
            .await
            .unwrap();
        read(&mut self.stream).await
    }
}

/// Reads one answer, and gives its status.
async fn read(stream: &mut TcpStream) -> u16 {
    let mut bytes = Vec::with_capacity(8192);
    loop {
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            continue;
        };
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        let status = status.parse().unwrap();
        let length = lines.find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.unwrap().parse().unwrap();
        if bytes.len() >= end + 4 + length {
            return status;
        }
    }
}
