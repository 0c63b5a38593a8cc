//! `isovec serve`, from its start to its end by a signal.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::{isovec, model, program, stderr, stdout};

/// A server, and the lines of its log.
pub(crate) struct Server {
    pub(crate) process: Child,
    log: std::io::Lines<BufReader<std::process::ChildStderr>>,
    pub(crate) address: String,
}

/// A model of the tests.
fn folder(name: &str) -> String {
    let path = model().with_file_name(name);
    path.into_os_string().into_string().expect("a name")
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is gone already where a test came to its end.
        let _ = self.process.kill();
    }
}

impl Server {
    pub(crate) fn start(args: &[&str]) -> Self {
        let serve = ["serve", "--port", "0", "--engine", "portable"];
        Self::run(&[&serve, args].concat())
    }

    /// Runs a command that listens.
    pub(crate) fn run(args: &[&str]) -> Self {
        let mut process = Command::new(program())
            .args(args)
            .args(["--log", "json"])
            .env("ISOVEC_MODEL", model())
            // Nobody reads a line a request, and a full pipe would stop the program.
            .env(
                "ISOVEC_LOG",
                "info,isovec_serve::access=off,isovec_route::access=off",
            )
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
    pub(crate) fn line(&mut self, message: &str) -> Value {
        loop {
            let line = self.log.next().expect("another line").expect("readable");
            let line: Value = serde_json::from_str(&line).expect("JSON");
            if line["message"] == message {
                return line;
            }
        }
    }

    /// The status and the body of an answer.
    pub(crate) fn ask(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("written");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).expect("a status");
        (status.parse().expect("a number"), body.into())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, String) {
        let body = body.to_string();
        let length = body.len();
        self.ask(&format!(
            "POST {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        ))
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
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

#[test]
fn a_model_is_served_for_what_its_files_say_or_the_command_line() {
    let (embedder, classifier) = (&*folder("tiny-bert"), &*folder("tiny-classifier"));
    let mut server = Server::start(&["--model", classifier, "--model", embedder]);
    let loaded = server.line("the model is loaded");
    assert_eq!(
        (&loaded["model"], &loaded["task"]),
        (&json!("tiny-classifier"), &json!("classify"))
    );
    let loaded = server.line("the model is loaded");
    assert_eq!(
        (&loaded["model"], &loaded["task"]),
        (&json!("tiny-bert"), &json!("embed"))
    );
    for (path, asked) in [
        ("/predict", json!({"inputs": "a text"})),
        ("/embed", json!({"inputs": "a text"})),
    ] {
        let (status, body) = server.post(path, &asked);
        assert_eq!(status, 200, "{body}");
    }
    let mut server = Server::start(&["--model", classifier, "--name", "labels"]);
    assert_eq!(server.line("the model is loaded")["model"], "labels");
    // It has three labels, and a reranker one.
    let told = [
        "serve", "--port", "0", "--model", classifier, "--task", "rerank",
    ];
    let said = stderr(&mut isovec(&told), 3);
    assert!(said.contains("each of 3 labels"), "{said}");
}

#[cfg(unix)]
#[test]
fn the_file_of_models_is_read_again_when_the_process_is_told_to() {
    let place = tempfile::tempdir().expect("a folder");
    let path = place.path().join("models.toml");
    let write = |text: &str| std::fs::write(&path, text).expect("written");
    let table = |name: &str, source: &str| {
        format!("[[models]]\nname = \"{name}\"\nsource = \"{source}\"\n")
    };
    write(&table("first", &folder("tiny-bert")));
    let file = path.to_str().expect("a name").to_owned();
    let mut server = Server::start(&["--models", &file]);
    server.line("the model is loaded");
    let embed = |server: &Server, name: &str| {
        server
            .post("/v1/embeddings", &json!({"model": name, "input": "a text"}))
            .0
    };
    assert_eq!(
        (embed(&server, "first"), embed(&server, "second")),
        (200, 404)
    );

    // What cannot be read changes nothing.
    write("[[models]]\nsource = 7\n");
    server.signal("HUP");
    let line = server.line("the file of models cannot be read; they are served as before");
    assert!(
        line["error"]
            .as_str()
            .expect("a text")
            .contains("models.toml"),
        "{line}"
    );
    assert_eq!(embed(&server, "first"), 200);
    // Nor does what cannot be loaded.
    write(&table("second", "./not/there"));
    server.signal("HUP");
    let line = server.line("the models are served as before");
    assert!(
        line["error"]
            .as_str()
            .expect("a text")
            .contains("not/there"),
        "{line}"
    );
    assert_eq!(embed(&server, "first"), 200);

    write(&(table("second", &folder("tiny-bert")) + "dtype = \"int8\"\ndevice = \"cpu\"\n"));
    server.signal("HUP");
    let loaded = server.line("the model is loaded");
    assert_eq!(loaded["model"], "second");
    assert_eq!(
        (embed(&server, "first"), embed(&server, "second")),
        (404, 200)
    );
    server.signal("TERM");
    let status = server.process.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
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
    let several = ["serve", "--port", "0", "--model", "a/b", "--model", "a/c"];
    let said = stderr(&mut isovec(&[&several[..], &["--name", "d"]].concat()), 2);
    assert!(said.contains("--models"), "{said}");
    let twice = ["serve", "--port", "0", "--model", "a/b", "--model", "a/b"];
    let said = stderr(&mut isovec(&twice), 2);
    assert!(said.contains("a/b") && said.contains("twice"), "{said}");
    let said = stderr(
        &mut isovec(&["serve", "--port", "0", "--models", "not/there"]),
        1,
    );
    assert!(said.contains("not/there"), "{said}");
}

#[test]
fn clients_load_the_models_that_wait_for_them_within_the_budget() {
    let place = tempfile::tempdir().expect("a folder");
    let path = place.path().join("models.toml");
    let table = |name: &str, loaded: bool| {
        let source = folder("tiny-bert");
        format!("[[models]]\nname = \"{name}\"\nsource = \"{source}\"\nloaded = {loaded}\n")
    };
    std::fs::write(&path, table("first", true) + &table("second", false)).expect("written");
    let file = path.to_str().expect("a name");
    let budget = ["--model-control", "--memory-budget", "200000"];
    let mut server = Server::start(&[&["--models", file], &budget[..]].concat());
    assert_eq!(server.line("the model is loaded")["model"], "first");
    let change = |server: &Server, what: &str| {
        let path = format!("/v2/repository/models/{what}");
        server.post(&path, &json!({}))
    };
    let (status, said) = change(&server, "second/load");
    assert_eq!(status, 507, "{said}");
    assert_eq!(change(&server, "first/unload").0, 200);
    assert_eq!(change(&server, "second/load").0, 200);
    let asked = json!({"model": "second", "input": "a text"});
    assert_eq!(server.post("/v1/embeddings", &asked).0, 200);
    // Nobody could load the second.
    let said = stderr(&mut isovec(&["serve", "--port", "0", "--models", file]), 2);
    assert!(
        said.contains("second") && said.contains("model_control"),
        "{said}"
    );
}

/// Only a program with TLS knows the options.
#[cfg(feature = "tls")]
#[test]
fn a_certificate_is_read_at_the_start_and_when_the_process_is_told_to() {
    let place = tempfile::tempdir().expect("a folder");
    let path = |name: &str| {
        let path = place.path().join(name);
        path.into_os_string().into_string().expect("a name")
    };
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("signed");
    std::fs::write(path("cert.pem"), signed.cert.pem()).expect("written");
    std::fs::write(path("key.pem"), signed.signing_key.serialize_pem()).expect("written");
    let (cert, key) = (&*path("cert.pem"), &*path("key.pem"));
    for command in [
        &["serve", "--port", "0"][..],
        &["route", "--port", "0", "--to", "http://127.0.0.1:1"],
    ] {
        let nowhere = ["--tls-cert", "not/there", "--tls-key", key];
        let said = stderr(&mut isovec(&[command, &nowhere].concat()), 2);
        assert!(said.contains("not/there"), "{said}");
        let said = stderr(&mut isovec(&[command, &["--tls-cert", cert]].concat()), 2);
        assert!(said.contains("--tls-key"), "{said}");
        let both = ["--tls-cert", cert, "--tls-key", key];
        let mut server = Server::run(&[command, &both].concat());
        #[cfg(unix)]
        {
            server.signal("HUP");
            server.line("the certificate was read again");
            std::fs::write(cert, "").expect("written");
            server.signal("HUP");
            let line = server.line("the certificate cannot be read; the one of before is used");
            assert!(
                line["error"].as_str().expect("a text").contains("cert.pem"),
                "{line}"
            );
            std::fs::write(cert, signed.cert.pem()).expect("written");
            server.signal("TERM");
            assert_eq!(server.process.wait().expect("it ends").code(), Some(0));
        }
    }
}

/// Only a program with traces knows the option.
#[cfg(feature = "otlp")]
#[test]
fn what_is_no_collector_is_wrong_usage() {
    let said = stderr(&mut isovec(&["serve", "--otlp-endpoint", "here"]), 2);
    assert!(
        said.contains("--otlp-endpoint") && said.contains("\"here\""),
        "{said}"
    );
}
