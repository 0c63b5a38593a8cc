//! The Open Inference Protocol.

use serde_json::{Value, json};

use crate::client;
use crate::models::{Changing, classifier, embedder};
use crate::running::{MODEL, Running, options, waits_for};

const TEXTS: [&str; 2] = ["the cat sat on a mat", "stöcks fell"];

const INFER: &str = "/v2/models/tiny/infer";

fn input(texts: &[&str]) -> Value {
    json!({"name": "text", "datatype": "BYTES", "shape": [texts.len()], "data": texts})
}

/// A request with bytes behind its JSON.
fn binary(json: &Value, behind: &[u8], told: Option<usize>) -> Vec<u8> {
    let json = json.to_string();
    let (told, length) = (told.unwrap_or(json.len()), json.len() + behind.len());
    let head = format!(
        "POST {INFER} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {length}\r\n\
         inference-header-content-length: {told}\r\n\r\n{json}"
    );
    [head.as_bytes(), behind].concat()
}

fn spelled(texts: &[&str]) -> Vec<u8> {
    let text = |text: &&str| [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
    texts.iter().flat_map(text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_are_the_librarys_bits_as_numbers_and_as_bytes() {
    let server = Running::start().await;
    let wanted = server.model.embed(TEXTS).await.unwrap();
    let asked = json!({"id": "one", "inputs": [input(&TEXTS)]});
    let answer = server.post(INFER, &asked).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let body = answer.json();
    assert_eq!(
        (&body["id"], &body["model_name"], &body["model_version"]),
        (&json!("one"), &json!(MODEL), &json!("1"))
    );
    let output = &body["outputs"][0];
    assert_eq!(output["name"], "embedding");
    assert_eq!(
        (&output["datatype"], &output["shape"]),
        (&json!("FP32"), &json!([2, 32]))
    );
    let values: Vec<f32> = serde_json::from_value(output["data"].clone()).unwrap();
    assert_eq!(values, wanted.as_slice());
    let fingerprint = wanted.fingerprint().id();
    assert_eq!(answer.header("x-isovec-fingerprint"), Some(&*fingerprint));

    let behind = spelled(&TEXTS);
    let size = json!({"binary_data_size": behind.len()});
    let tensor = json!({"name": "text", "datatype": "BYTES", "shape": [2, 1], "parameters": size});
    for wants in [
        json!({"outputs": [{"name": "embedding", "parameters": {"binary_data": true}}]}),
        json!({"parameters": {"binary_data_output": true}}),
    ] {
        let mut asked = wants;
        asked["inputs"] = json!([tensor]);
        let answer = server.raw(&binary(&asked, &behind, None)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(
            answer.header("content-type"),
            Some("application/octet-stream")
        );
        let length = answer.header("inference-header-content-length").unwrap();
        let (json, bytes) = answer.body.split_at(length.parse().unwrap());
        let json: Value = serde_json::from_slice(json).unwrap();
        let output = &json["outputs"][0];
        assert_eq!(output["parameters"]["binary_data_size"], bytes.len());
        assert!(output.get("data").is_none() && json.get("id").is_none());
        let (values, rest) = bytes.as_chunks::<4>();
        assert!(rest.is_empty());
        let values: Vec<f32> = values.iter().map(|v| f32::from_le_bytes(*v)).collect();
        assert_eq!(values, wanted.as_slice());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_cannot_be_used_are_refused_in_this_protocols_form() {
    let server = Running::start().await;
    let tensor =
        |name: &str| json!({"name": name, "datatype": "BYTES", "shape": [1], "data": ["a"]});
    for (asked, reason) in [
        (json!({"inputs": []}), "one input"),
        (
            json!({"inputs": [tensor("text"), tensor("text")]}),
            "one input",
        ),
        (json!({"inputs": [tensor("other")]}), "no such input"),
        (json!({"inputs": [["text", "BYTES"]]}), "expected an object"),
        (
            json!({"inputs": [tensor("text")], "outputs": [{"name": "other"}]}),
            "one output",
        ),
        (
            json!({"inputs": [tensor("text")], "parameters": {"timeout": -1}}),
            "u64",
        ),
        (json!({"inputs": [input(&["a"; 2049])]}), "2049 texts"),
        (json!({"inputs": [input(&[""])]}), "text 0 is empty"),
        (json!([]), "expected an object"),
    ] {
        let answer = server.post(INFER, &asked).await;
        assert_eq!(answer.status, 400, "{asked:.80}");
        let said = answer.oip_error();
        assert!(said.contains(reason), "{said}");
    }
    let tensor = json!({"name": "text", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 5}});
    let asked = json!({"inputs": [tensor]});
    let behind = spelled(&["a"]);
    for (behind, told) in [
        (&behind[..4], None),
        (&[&behind[..], b"x"].concat(), None),
        (&behind[..], Some(100_000)),
        (&behind[..], Some(0)),
    ] {
        let answer = server.raw(&binary(&asked, behind, told)).await;
        assert_eq!(answer.status, 400, "{told:?}");
        answer.oip_error();
    }
    let body = json!({"inputs": [input(&TEXTS)]}).to_string();
    let head = format!(
        "POST {INFER} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let answer = server
        .raw(&[head.as_bytes(), body.as_bytes()].concat())
        .await;
    assert_eq!(answer.status, 415);
    answer.oip_error();
    assert_eq!(server.get(INFER).await.status, 405);
    let well = server.openai(&["a text"]).await;
    assert_eq!(well.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn timeout_and_priority_are_the_requests_own() {
    let mut options = options();
    options.max_requests = 4;
    let server = Running::with(waits_for(100), options).await;
    let ask = |parameters: Value| {
        let asked = json!({"inputs": [input(&["a"])], "parameters": parameters}).to_string();
        client::send_owned(server.address, client::post(INFER, "", asked.as_bytes()))
    };
    // Half of the room is for others.
    let first = tokio::spawn(ask(json!({})));
    let second = tokio::spawn(ask(json!({"priority": 1})));
    server.until("isovec_serve_requests_in_work", 2).await;
    let low = ask(json!({"priority": 2})).await;
    assert_eq!(low.status, 429);
    assert!(low.oip_error().contains("low priority") && low.header("retry-after").is_some());
    let late = ask(json!({"timeout": 20_000})).await;
    assert_eq!(late.status, 504);
    late.oip_error();
    first.abort();
    second.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn models_are_described_by_their_names_with_slashes_as_well() {
    let named = embedder("org/embeds");
    let server = Changing::start(vec![named, classifier()]).await;
    let about = server.get("/v2/models/org/embeds").await.json();
    assert_eq!(about["name"], "org/embeds");
    assert_eq!(about["inputs"][0]["name"], "text");
    assert_eq!(about["outputs"][0]["shape"], json!([-1, 32]));
    for path in [
        "/v2/models/org%2Fembeds",
        "/v2/models/org/embeds/versions/1",
        "/v2/models/org/embeds/ready",
        "/v2/models/org/embeds/versions/1/ready",
        "/v2/models/tiny-classifier/ready",
        "/v2/health/live",
        "/v2/health/ready",
        "/v2",
    ] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    for (path, status) in [
        ("/v2/models/nobody", 404),
        ("/v2/models/org/embeds/versions/2", 404),
        ("/v2/models/org/embeds/versions/2/ready", 404),
        ("/v2/models/tiny-classifier", 400),
        ("/v2/models/org/embeds/nothing", 404),
        ("/v2/repository/nothing", 404),
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.status, status, "{path}");
        answer.oip_error();
    }
    let asked = json!({"inputs": [input(&TEXTS)]});
    for path in [
        "/v2/models/org/embeds/infer",
        "/v2/models/org/embeds/versions/1/infer",
    ] {
        let answer = server.post(path, &asked).await;
        assert_eq!(
            answer.json()["outputs"][0]["shape"],
            json!([2, 32]),
            "{path}"
        );
    }
    let index = server.post("/v2/repository/index", &json!({})).await.json();
    let row = |name: &str| json!({"name": name, "version": "1", "state": "READY", "reason": ""});
    assert_eq!(index, json!([row("org/embeds"), row("tiny-classifier")]));
}
