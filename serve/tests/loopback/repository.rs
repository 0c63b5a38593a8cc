//! Models that clients load and unload, and what loaded models may hold.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use isovec::EmbeddingConfig;
use isovec_serve::{Error, ModelSpec, ServeOptions};
use isovec_test_support::Which;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::client::{self, Answer};
use crate::grpc;
use crate::models::{Changing, classifier, embedder};
use crate::running::{Running, options, waits_for};

/// Bytes of the tiny model's weights, more than it has and less than two of them have.
const ONE: u64 = 200_000;

fn control() -> ServeOptions {
    let mut options = options();
    options.model_control = true;
    options
}

async fn change(server: &Changing, name: &str, verb: &str) -> Answer {
    let path = format!("/v2/repository/models/{name}/{verb}");
    server.post(&path, &json!({})).await
}

/// The states of all models, in their order.
async fn states(server: &Changing) -> Vec<(String, String)> {
    let index = server.post("/v2/repository/index", &json!({})).await.json();
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    let rows = index.as_array().unwrap().iter();
    rows.map(|row| (text(row, "name"), text(row, "state")))
        .collect()
}

fn state(name: &str, state: &str) -> (String, String) {
    (name.into(), state.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_load_and_unload_the_models_that_the_server_was_told_of() {
    let later = embedder("org/later").with_alias("l8r").with_loaded(false);
    let server = Changing::with(vec![later, embedder("first")], control()).await;
    assert_eq!(
        states(&server).await,
        [state("org/later", "UNAVAILABLE"), state("first", "READY")]
    );
    let ready = server
        .post("/v2/repository/index", &json!({"ready": true}))
        .await;
    assert_eq!(ready.json().as_array().unwrap().len(), 1);
    let unloaded = server.embed("l8r").await;
    assert_eq!(unloaded.status, 404);
    assert!(unloaded.openai_error().0.contains("is not loaded"));

    let loaded = change(&server, "org/later", "load").await;
    assert_eq!((loaded.status, loaded.json()), (200, json!({})));
    // In the order of the operator, and not of the loads.
    assert_eq!(server.names().await, ["org/later", "first"]);
    let wanted = server.embed("first").await.vector();
    assert_eq!(server.embed("l8r").await.vector(), wanted);
    let since = server.get("/v1/models/l8r").await.json();
    assert_eq!(change(&server, "l8r", "load").await.status, 200);
    assert_eq!(server.get("/v1/models/l8r").await.json(), since);

    for _ in 0..2 {
        assert_eq!(change(&server, "first", "unload").await.status, 200);
        assert_eq!(server.names().await, ["org/later"]);
        assert_eq!(server.embed("first").await.status, 404);
    }
    assert_eq!(change(&server, "org%2Flater", "unload").await.status, 200);
    // A server without a model answers, and says so.
    assert_eq!(server.get("/health/ready").await.status, 200);
    for (path, asked) in [
        ("/v1/embeddings", json!({"input": "a"})),
        ("/embed", json!({"inputs": "a"})),
        ("/rerank", json!({"query": "a", "texts": ["b"]})),
        ("/v1/embeddings", json!({"input": "a", "model": "nobody"})),
    ] {
        let answer = server.post(path, &asked).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.text().contains("no model is loaded"), "{answer:?}");
    }
    assert_eq!(server.get("/info").await.status, 404);
    assert_eq!(server.get("/metrics").await.status, 200);
    assert_eq!(change(&server, "first", "load").await.status, 200);
    assert_eq!(server.embed("first").await.vector(), wanted);
    let metadata = server.get("/v2").await.json();
    let extensions = metadata["extensions"].as_array().unwrap();
    assert!(extensions.contains(&json!("model_repository")));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_where_the_operator_allows_it_and_only_what_the_operator_named() {
    let server = Changing::with(vec![embedder("first")], options()).await;
    for verb in ["load", "unload"] {
        let refused = change(&server, "first", verb).await;
        assert_eq!(refused.status, 403);
        assert!(refused.oip_error().contains("--model-control"));
    }
    assert_eq!(server.embed("first").await.status, 200);
    let metadata = server.get("/v2").await.json();
    let extensions = metadata["extensions"].as_array().unwrap();
    assert!(!extensions.contains(&json!("model_repository")));

    let server = Changing::with(vec![embedder("first")], control()).await;
    for (name, asked, status, said) in [
        ("nobody", json!({}), 404, "not served here"),
        ("../tiny-bert", json!({}), 404, "not served here"),
        (
            "first",
            json!({"parameters": {"config": "{}"}}),
            400,
            "\"config\" is not taken",
        ),
        ("first", json!({"parameters": 7}), 400, "expected a map"),
        ("first", json!([]), 400, "expected an object"),
    ] {
        for verb in ["load", "unload"] {
            let path = format!("/v2/repository/models/{name}/{verb}");
            let answer = server.post(&path, &asked).await;
            assert_eq!(answer.status, status, "{path} {asked}: {answer:?}");
            assert!(answer.oip_error().contains(said), "{answer:?}");
        }
    }
    assert_eq!(
        server.get("/v2/repository/models/first/load").await.status,
        405
    );
    assert_eq!(server.embed("first").await.status, 200);
    // Triton's clients send this, or nothing.
    let asked = json!({"parameters": {"unload_dependents": true}});
    let path = "/v2/repository/models/first/unload";
    assert_eq!(server.post(path, &asked).await.status, 200);
    let empty = client::post("/v2/repository/models/first/load", "", b"");
    assert_eq!(client::send(server.address, &empty).await.status, 200);

    // The model of a program cannot be had again.
    let server = Running::with(EmbeddingConfig::default(), control()).await;
    let refused = server
        .post("/v2/repository/models/tiny/unload", &json!({}))
        .await;
    assert_eq!(refused.status, 403);
    let same = server
        .post("/v2/repository/models/tiny/load", &json!({}))
        .await;
    assert_eq!(same.status, 200);
    let index = server.post("/v2/repository/index", &json!({})).await;
    assert_eq!(index.json()[0]["name"], "tiny");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_does_not_fit_is_refused_and_fits_when_another_has_left() {
    let mut options = control();
    options.memory_budget = Some(ONE);
    let second = embedder("second").with_loaded(false);
    let server = Changing::with(vec![embedder("first"), second], options).await;
    let refused = change(&server, "second", "load").await;
    assert_eq!(refused.status, 507);
    let said = refused.oip_error();
    assert!(said.contains("second") && said.contains("200000"), "{said}");
    assert_eq!(server.embed("second").await.status, 404);
    assert_eq!(server.embed("first").await.status, 200);
    let page = server.get("/metrics").await;
    let held = "isovec_serve_model_bytes{model=\"first\"} ";
    let held = page.text().lines().find_map(|line| line.strip_prefix(held));
    let held: u64 = held.unwrap().parse().unwrap();
    // Its weights, at least: what its file of 144,640 bytes has beside names and padding.
    assert!((136_000..ONE).contains(&held), "{held}");

    assert_eq!(change(&server, "first", "unload").await.status, 200);
    // It is freed by the last of its requests, which may have been answered a moment ago.
    while change(&server, "second", "load").await.status == 507 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.embed("second").await.status, 200);
    assert_eq!(change(&server, "first", "load").await.status, 507);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_budget_holds_for_the_first_list_and_for_those_after_it() {
    let mut options = control();
    options.memory_budget = Some(ONE);
    let both = vec![embedder("first"), embedder("second")];
    let server = Changing::begin(both, options.clone()).await;
    let error = server.ended.await.unwrap().unwrap_err();
    let Error::Memory {
        name,
        needed,
        held,
        budget,
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!((&*name, budget), ("second", ONE));
    assert!(needed > 136_000 && held > 136_000, "{needed} {held}");

    let server = Changing::with(vec![embedder("first")], options).await;
    let read = Arc::new(AtomicBool::new(false));
    let watched = |spec: ModelSpec| {
        let read = Arc::clone(&read);
        spec.with_progress(move |_| read.store(true, Ordering::Relaxed))
    };
    server.want(vec![embedder("first"), watched(embedder("second"))]);
    // Old and new would be in memory at the same time.
    server.want(vec![watched(embedder("first").with_alias("1"))]);
    // Lists are taken one after the other, so those before this one are over when it is there.
    server.want(vec![
        embedder("first"),
        embedder("waits").with_loaded(false),
    ]);
    while states(&server).await.len() == 1 {
        tokio::task::yield_now().await;
    }
    assert!(!read.load(Ordering::Relaxed), "a model that does not fit");
    assert_eq!(server.names().await, ["first"]);
    assert_eq!(server.embed("1").await.status, 404);
    assert_eq!(server.embed("first").await.status, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_keeps_what_clients_did_to_tables_that_are_as_before() {
    let (first, second) = (embedder("first"), embedder("second").with_loaded(false));
    let server = Changing::with(vec![first.clone(), second.clone()], control()).await;
    assert_eq!(change(&server, "first", "unload").await.status, 200);
    assert_eq!(change(&server, "second", "load").await.status, 200);
    server.want(vec![first.clone(), second.clone(), classifier()]);
    server.until_names(&["second", "tiny-classifier"]).await;
    // Whoever changes the table decides again.
    server.want(vec![first.with_alias("1"), second.clone()]);
    server.until_names(&["first", "second"]).await;
    server.want(vec![embedder("first"), second.with_loaded(true)]);
    server.until_names(&["first", "second"]).await;
    server.want(vec![
        embedder("first"),
        embedder("second").with_loaded(false),
    ]);
    server.until_names(&["first"]).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_clients_unload_answers_those_who_are_inside() {
    let leaves = embedder("leaves").with_config(Which::Portable.configure(waits_for(2)));
    let server = Changing::with(vec![leaves, embedder("stays")], control()).await;
    let asked = json!({"model": "leaves", "input": "a text"}).to_string();
    let asked = client::post("/v1/embeddings", "", asked.as_bytes());
    let mut inside = Vec::new();
    for count in 1..=2 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        if count == 2 {
            // The first waits for this one, which has the model, and no more than its head was sent.
            stream.write_all(&asked[..asked.len() - 1]).await.unwrap();
        } else {
            stream.write_all(&asked).await.unwrap();
            server
                .until("isovec_serve_queue_texts{model=\"leaves\"} 1")
                .await;
        }
        inside.push(stream);
    }
    assert_eq!(change(&server, "leaves", "unload").await.status, 200);
    assert_eq!(server.embed("leaves").await.status, 404);
    // This one comes too late: its model was looked for when its body was there.
    let mut late = inside.pop().unwrap();
    late.write_all(&asked[asked.len() - 1..]).await.unwrap();
    assert_eq!(client::read(&mut late).await.unwrap().status, 404);
    // Its queue is no more in the metrics, and its client still waits; a drain waits for it as well.
    server.stop.send(()).unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!server.ended.is_finished());
    drop(inside);
    server.ended.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_cannot_be_loaded_is_no_news_of_the_servers_folders() {
    let broken = ModelSpec::new(Path::new("secret/place")).with_name("broken");
    let server = Changing::with(
        vec![embedder("first"), broken.with_loaded(false)],
        control(),
    )
    .await;
    let answer = change(&server, "broken", "load").await;
    assert_eq!(answer.status, 500);
    let said = answer.oip_error();
    assert!(
        said.contains("broken") && !said.contains("secret"),
        "{said}"
    );
    assert_eq!(server.embed("first").await.status, 200);
    // Nor does it hold the next one up.
    assert_eq!(change(&server, "first", "unload").await.status, 200);
    assert_eq!(change(&server, "first", "load").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_at_once_load_a_model_once_and_lose_no_request() {
    let flips = embedder("flips").with_loaded(false);
    let server = Changing::with(vec![embedder("stays"), flips], control()).await;
    let wanted = server.embed("stays").await.vector();
    let flip = async {
        for _ in 0..10 {
            let loads = (0..4).map(|_| change(&server, "flips", "load"));
            for answer in futures_util::future::join_all(loads).await {
                assert_eq!(answer.status, 200);
            }
            assert_eq!(change(&server, "flips", "unload").await.status, 200);
        }
    };
    let ask = async {
        for _ in 0..40 {
            assert_eq!(server.embed("stays").await.vector(), wanted);
            let answer = server.embed("flips").await;
            match answer.status {
                200 => assert_eq!(answer.vector(), wanted),
                status => assert_eq!(status, 404, "{answer:?}"),
            }
        }
    };
    tokio::join!(flip, ask);
    let page = server.get("/metrics").await;
    assert!(
        !page
            .text()
            .contains("isovec_serve_model_bytes{model=\"flips\"}")
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_over_grpc() {
    let later = embedder("later").with_loaded(false);
    let server = Changing::with(vec![embedder("first"), later], control()).await;
    let call = |method: &'static str, message: Vec<u8>| async move {
        let called = grpc::call_at(server.address, method, &[], &grpc::framed(&message)).await;
        (called.status, called.said.replace("%20", " "), called.body)
    };
    let row = |name: &str, state: &str, reason: &str| {
        let mut row = [
            grpc::field(1, name.as_bytes()),
            grpc::field(2, b"1"),
            grpc::field(3, state.as_bytes()),
        ]
        .concat();
        if !reason.is_empty() {
            row.extend(grpc::field(4, reason.as_bytes()));
        }
        grpc::field(1, &row)
    };
    let (ok, empty) = (|| ("0".to_owned(), String::new()), grpc::framed(&[]));
    let is = |(status, said, body): (String, String, Vec<u8>), wanted: &[u8]| {
        assert_eq!((status, said), ok());
        assert_eq!(body, wanted);
    };
    let first = row("first", "READY", "");
    let unloaded = row("later", "UNAVAILABLE", "it is not loaded");
    let all = grpc::framed(&[first.clone(), unloaded].concat());
    is(call("RepositoryIndex", vec![]).await, &all);
    is(
        call("RepositoryIndex", vec![2 << 3, 1]).await,
        &grpc::framed(&first),
    );
    let named = |name: &str| grpc::field(2, name.as_bytes());
    is(call("RepositoryModelLoad", named("later")).await, &empty);
    assert_eq!(server.embed("later").await.status, 200);
    is(call("RepositoryModelUnload", named("later")).await, &empty);
    assert_eq!(server.embed("later").await.status, 404);
    let (status, said, _) = call("RepositoryModelLoad", named("nobody")).await;
    assert_eq!(&*status, "5");
    assert!(said.contains("nobody"), "{said}");
    let parameter = [grpc::field(1, b"config"), grpc::field(2, &[])].concat();
    let message = [named("later"), grpc::field(3, &parameter)].concat();
    let (status, said, _) = call("RepositoryModelLoad", message).await;
    assert_eq!(&*status, "3");
    assert!(said.contains("config"), "{said}");

    let server = Changing::with(vec![embedder("first")], options()).await;
    let message = grpc::framed(&named("first"));
    let called = grpc::call_at(server.address, "RepositoryModelUnload", &[], &message).await;
    assert_eq!(&*called.status, "7");
}
