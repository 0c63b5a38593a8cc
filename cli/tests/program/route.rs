//! `isovec route` before two processes of `isovec serve`.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::serve::Server;
use crate::{isovec, stderr};

fn router(replicas: &[&Server], args: &[&str]) -> Server {
    let to: Vec<String> = replicas
        .iter()
        .map(|replica| format!("http://{}", replica.address))
        .collect();
    let mut all = vec!["route", "--port", "0"];
    for to in &to {
        all.extend(["--to", to]);
    }
    all.extend(args);
    let mut router = Server::run(&all);
    for _ in replicas {
        router.line("the replica is in rotation");
    }
    router
}

#[test]
fn a_process_that_is_killed_loses_no_request() {
    const REQUESTS: usize = 300;
    let [mut stays, mut dies] = [Server::start(&[]), Server::start(&[])];
    for server in [&mut stays, &mut dies] {
        server.line("the model is loaded");
    }
    let args = [
        "--join",
        "1ms",
        "--compress",
        "zstd",
        "--strategy",
        "round-robin",
    ];
    let mut router = router(&[&stays, &dies], &args);
    let asked = json!({"input": "a text"});
    let wanted = stays.post("/v1/embeddings", &asked);
    assert_eq!(wanted.0, 200);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while next.fetch_add(1, Ordering::Relaxed) < REQUESTS {
                    assert_eq!(router.post("/v1/embeddings", &asked), wanted);
                }
            });
        }
        while next.load(Ordering::Relaxed) < REQUESTS / 3 {
            std::thread::yield_now();
        }
        // SIGKILL.
        dies.process.kill().expect("it runs");
    });
    let out = router.line("the replica is out of rotation");
    assert_eq!(out["replica"], format!("http://{}", dies.address));
    let (status, page) =
        router.ask("GET /status HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    assert_eq!(status, 200);
    assert!(page.contains("\"state\":\"out\""), "{page}");
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_router_when_everybody_is_answered() {
    let mut server = Server::start(&[]);
    server.line("the model is loaded");
    for name in ["TERM", "INT"] {
        let mut router = router(&[&server], &[]);
        router.signal(name);
        let status = router.process.wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "{name}");
    }
}

#[test]
fn options_that_cannot_work_are_wrong_usage() {
    let to = ["route", "--port", "0", "--to", "http://127.0.0.1:1"];
    for (more, said) in [
        #[cfg(not(feature = "tls"))]
        (&["--to", "https://a"][..], "TLS"),
        (&["--max-body", "0"][..], "max_body"),
        (&["--compress", "br"], "zstd or gzip"),
        (&["--compress", "gzip=10"], "levels 1 to 9"),
        (&["--compress", "gzip=x"], "level"),
        (&["--retry-budget", "11"], "retry_budget"),
    ] {
        let said_by = stderr(&mut isovec(&[&to[..], more].concat()), 2);
        assert!(said_by.contains(said), "{said_by}");
    }
}
