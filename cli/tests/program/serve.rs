//! `isovec serve`, from its start to its end by a signal.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use assert_cmd::cargo::CommandCargoExt as _;
use serde_json::{Value, json};

use crate::{isovec, model, stderr, stdout};

/// A server, and the lines of its log.
struct Server {
    process: Child,
    log: std::io::Lines<BufReader<std::process::ChildStderr>>,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is gone already where a test came to its end.
        let _ = self.process.kill();
    }
}

impl Server {
    fn start(args: &[&str]) -> Self {
        let mut process = Command::cargo_bin("isovec")
            .expect("the program is built")
            .args([
                "serve", "--port", "0", "--engine", "portable", "--log", "json",
            ])
            .args(args)
            .env("ISOVEC_MODEL", model())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let pipe = process.stderr.take().expect("piped");
        let mut server = Self {
            process,
            log: BufReader::new(pipe).lines(),
            address: String::new(),
        };
        let listening = server.line("listening");
        server.address = listening["address"].as_str().expect("an address").into();
        server
    }

    /// The next line of the log with this message.
    fn line(&mut self, message: &str) -> Value {
        loop {
            let line = self.log.next().expect("another line").expect("readable");
            let line: Value = serde_json::from_str(&line).expect("JSON");
            if line["message"] == message {
                return line;
            }
        }
    }

    /// The status and the body of an answer.
    fn ask(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("written");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).expect("a status");
        (status.parse().expect("a number"), body.into())
    }

    fn post(&self, path: &str, body: &Value) -> (u16, String) {
        let body = body.to_string();
        let length = body.len();
        self.ask(&format!(
            "POST {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        ))
    }

    #[cfg(unix)]
    fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.expect("kill is there").success());
    }
}

#[test]
fn the_vectors_are_those_of_embed() {
    let mut server = Server::start(&[]);
    server.line("the model is loaded");
    let printed = stdout(&mut isovec(&["embed", "--engine", "portable", "a text"]));
    let printed: Value = serde_json::from_str(&printed).expect("a row");
    let (status, body) = server.post(
        "/v1/embeddings",
        &json!({"model": "tiny-bert", "input": "a text"}),
    );
    assert_eq!(status, 200, "{body}");
    let answer: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(answer["data"][0]["embedding"], printed["embedding"]);
}

#[cfg(unix)]
#[test]
fn a_signal_ends_it_when_everybody_is_answered() {
    for name in ["TERM", "INT"] {
        let mut server = Server::start(&[]);
        server.line("the model is loaded");
        server.signal(name);
        let status = server.process.wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "{name}");
    }
}

#[test]
fn options_that_cannot_work_are_wrong_usage() {
    let said = stderr(
        &mut isovec(&["serve", "--port", "0", "--max-texts", "7"]),
        2,
    );
    assert!(said.contains("max_texts is 7"), "{said}");
    let said = stderr(
        &mut isovec(&["serve", "--port", "0", "--api-keys", "not/there"]),
        2,
    );
    assert!(said.contains("not/there"), "{said}");
    let said = stderr(
        &mut isovec(&["serve", "--port", "0", "--model", "./not/there"]),
        3,
    );
    assert!(said.contains("not/there"), "{said}");
}
