//! A client that sends exactly what it is told to.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An answer, as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(
            self.header("content-type"),
            Some("application/json"),
            "{self:?}"
        );
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The only vector of an answer in OpenAI's form.
    pub(crate) fn vector(&self) -> Vec<f32> {
        let data = self.json()["data"].take();
        assert_eq!(data.as_array().unwrap().len(), 1);
        serde_json::from_value(data[0]["embedding"].clone()).unwrap()
    }

    /// The message of an error in OpenAI's form.
    pub(crate) fn openai_error(&self) -> (String, Value, Value, Value) {
        let error = self.json()["error"].take();
        let message = error["message"].as_str().unwrap().to_owned();
        assert!(!message.is_empty());
        (
            message,
            error["type"].clone(),
            error["param"].clone(),
            error["code"].clone(),
        )
    }

    /// The message of an error in Cohere's form.
    pub(crate) fn cohere_error(&self) -> String {
        let error = self.json();
        assert_eq!(error.as_object().unwrap().len(), 1, "{error}");
        error["message"].as_str().unwrap().to_owned()
    }

    /// The message of an error in the form of the Open Inference Protocol.
    pub(crate) fn oip_error(&self) -> String {
        let error = self.json();
        assert_eq!(error.as_object().unwrap().len(), 1, "{error}");
        error["error"].as_str().unwrap().to_owned()
    }

    /// The message and type of an error in the form of text-embeddings-inference.
    pub(crate) fn tei_error(&self) -> (String, String) {
        let error = self.json();
        let text = |name: &str| error[name].as_str().unwrap().to_owned();
        assert_eq!(error.as_object().unwrap().len(), 2, "{error}");
        (text("error"), text("error_type"))
    }
}

/// The bytes of a request without a body.
pub(crate) fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n").into_bytes()
}

/// The bytes of a request with a JSON body.
pub(crate) fn post(path: &str, head: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{head}\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// Sends bytes and reads the one answer to them, up to the connection's end.
pub(crate) async fn send(address: SocketAddr, request: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A server that has answered may read no further.
    let _ = stream.write_all(request).await;
    read(&mut stream).await.expect("an answer")
}

/// The same for a task of its own.
pub(crate) async fn send_owned(address: SocketAddr, request: Vec<u8>) -> Answer {
    send(address, &request).await
}

/// Reads an answer up to the connection's end; `None` where there is none.
pub(crate) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Answer> {
    let mut bytes = Vec::new();
    // What came before a reset counts.
    let _ = stream.read_to_end(&mut bytes).await;
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().unwrap();
    let headers = lines
        .map(|line| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        })
        .collect();
    let answer = Answer {
        status,
        headers,
        body: bytes[end + 4..].to_vec(),
    };
    if let Some(length) = answer.header("content-length") {
        assert_eq!(length, answer.body.len().to_string(), "a half answer");
    }
    Some(answer)
}
