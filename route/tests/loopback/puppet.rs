//! A replica that says it is ready, and otherwise does as a test tells it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Came {
    /// The lines of its head, in small letters.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Came {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// What a puppet does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Does {
    /// Writes these bytes, and closes the connection.
    Says(Vec<u8>),
    /// Closes the connection.
    Breaks,
    /// Nothing, as long as the client is there.
    Stalls,
}

/// An answer with this status, these lines in its head, and this body.
pub(crate) fn says(status: u16, head: &str, body: &[u8]) -> Does {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} so\r\nx-isovec-models: puppets\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{head}connection: close\r\n\r\n"
    );
    Does::Says([head.as_bytes(), body].concat())
}

#[derive(Debug)]
pub(crate) struct Puppet {
    pub(crate) address: SocketAddr,
    came: Arc<Mutex<Vec<Came>>>,
    running: JoinHandle<()>,
}

impl Drop for Puppet {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Puppet {
    /// Does the same with each request but probes, which it answers.
    pub(crate) async fn that(does: Does) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let came = Arc::<Mutex<Vec<Came>>>::default();
        let all = Arc::clone(&came);
        let running = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, Arc::clone(&all), does.clone()));
            }
        });
        Self {
            address,
            came,
            running,
        }
    }

    /// The requests that came, without probes.
    pub(crate) fn came(&self) -> Vec<Came> {
        self.came.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, all: Arc<Mutex<Vec<Came>>>, does: Does) {
    let mut bytes = Vec::new();
    let request = loop {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8(bytes[..end].to_ascii_lowercase()).unwrap();
        let request = Came {
            head,
            body: bytes[end + 4..].to_vec(),
        };
        let length = request
            .header("content-length")
            .map_or(0, |length| length.parse().unwrap());
        if request.body.len() == length {
            break request;
        }
    };
    let does = if request.head.starts_with("get /health/ready ") {
        says(200, "", b"{}")
    } else {
        all.lock().unwrap().push(request);
        does
    };
    match does {
        Does::Says(answer) => {
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
        }
        Does::Breaks => {}
        Does::Stalls => {
            let _ = stream.read_buf(&mut bytes).await;
        }
    }
}
