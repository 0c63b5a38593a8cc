//! Pictures get vectors.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isovec::{EmbedOptions, EmbeddingConfig, ImageEmbedder, ModelTask};
use isovec_serve::{ModelSpec, ServeOptions};
use isovec_test_support::{Which, data};
use serde_json::{Value, json};

use crate::grpc::{call_at, field, framed};
use crate::models::{Changing, embedder};
use crate::running::{MODEL, Running, options};

/// A GIF of a few pixels of one colour (<https://www.w3.org/Graphics/GIF/spec-gif89a.txt>), which says that it is of this size.
fn gif(colour: [u8; 3], size: u16) -> Vec<u8> {
    let size = size.to_le_bytes();
    let size = [size, size].concat();
    [
        &b"GIF89a"[..],
        &size,
        &[0x80, 0, 0],
        &colour,
        &[0; 3],
        &[0x2c, 0, 0, 0, 0],
        &size,
        // The first colour once, in codes of three bits: clear, 0, end.
        &[0, 2, 2, 0x44, 0x01, 0, 0x3b],
    ]
    .concat()
}

fn coded(file: &[u8]) -> Value {
    json!({"image": STANDARD.encode(file)})
}

async fn clip() -> ImageEmbedder {
    let config = Which::Portable.configure(EmbeddingConfig::default());
    let builder = ImageEmbedder::builder(data("tiny-clip")).config(config);
    builder.load().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_of_pictures_are_the_librarys() {
    let server = Running::over(clip().await, options()).await;
    assert_eq!(server.get("/health/ready").await.status, 200);
    let files = [gif([255, 0, 0], 1), gif([0, 90, 255], 1)];
    let wanted = server.model.embed(files.to_vec()).await.unwrap();
    let url = format!("data:image/gif;base64,{}", STANDARD.encode(&files[1]));
    let both = json!([coded(&files[0]), {"image": url}]);
    let answer = server
        .post("/v1/embeddings", &json!({"model": MODEL, "input": both}))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let said = answer.json();
    for (at, wanted) in wanted.iter().enumerate() {
        let vector: Vec<f32> =
            serde_json::from_value(said["data"][at]["embedding"].clone()).unwrap();
        assert_eq!(vector, wanted);
    }
    assert_eq!(said["fingerprint"], wanted.fingerprint().id());

    let short = server.model.embed_with(
        [files[0].clone()],
        EmbedOptions::default().with_dimension(4),
    );
    let asked = json!({"input": coded(&files[0]), "dimensions": 4});
    let answer = server.post("/v1/embeddings", &asked).await;
    assert_eq!(answer.vector(), short.await.unwrap().as_slice());
    let info = server.get("/info").await.json();
    assert_eq!(
        (&info["task"], &info["dimension"]),
        (&json!("embed_images"), &json!(server.model.dimension()))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_open_inference_protocol_takes_pictures_over_http_and_over_grpc() {
    let server = Running::over(clip().await, options()).await;
    let files = [gif([255, 0, 0], 1), gif([0, 90, 255], 1)];
    let wanted = server.model.embed(files.to_vec()).await.unwrap();
    let path = format!("/v2/models/{MODEL}");
    let told = server.get(&path).await.json();
    let input = json!({"name": "image", "datatype": "BYTES", "shape": [-1]});
    assert_eq!(told["inputs"], json!([input]));
    assert_eq!(told["outputs"][0]["shape"], json!([-1, wanted.dim()]));

    let coded: Vec<String> = files.iter().map(|file| STANDARD.encode(file)).collect();
    let tensor = |name: &str| json!({"inputs": [{"name": name, "datatype": "BYTES", "shape": [2], "data": coded}]});
    let path = format!("{path}/infer");
    let answer = server.post(&path, &tensor("image")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let data = answer.json()["outputs"][0]["data"].clone();
    let values: Vec<f32> = serde_json::from_value(data).unwrap();
    assert_eq!(values, wanted.as_slice());
    let refused = server.post(&path, &tensor("text")).await;
    assert_eq!(refused.status, 400);
    assert!(refused.json()["error"].as_str().unwrap().contains("image"));

    let call = async |method: &str, fields: &[Vec<u8>]| {
        let message = framed(&fields.concat());
        call_at(server.address, method, &[], &message).await
    };
    let told = call("ModelMetadata", &[field(1, MODEL.as_bytes())]).await;
    assert!(told.body.windows(5).any(|name| name == b"image"));
    let contents: Vec<u8> = files.iter().flat_map(|file| field(8, file)).collect();
    let tensor = [
        field(1, b"image"),
        field(2, b"BYTES"),
        field(3, &[2]),
        field(5, &contents),
    ];
    let fields = [field(1, MODEL.as_bytes()), field(5, &tensor.concat())];
    let called = call("ModelInfer", &fields).await;
    assert_eq!(called.status, "0", "{}", called.said);
    let bytes: Vec<u8> = wanted
        .as_slice()
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    assert!(called.body.ends_with(&bytes));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_picture_is_refused() {
    let server = Running::over(clip().await, options()).await;
    let right = gif([1, 2, 3], 1);
    let many: Vec<Value> = (0..2049).map(|_| coded(&right)).collect();
    for (input, said) in [
        (json!("a text"), "this route needs an embedding model"),
        (json!([1, 2]), "this route needs an embedding model"),
        (json!([coded(&right), coded(b"no picture")]), "picture 1"),
        (coded(&right[..20]), "picture 0"),
        (coded(&gif([1, 2, 3], u16::MAX)), "picture 0"),
        (json!({"image": ""}), "empty"),
        (json!({"image": "http://127.0.0.1/a.gif"}), "not followed"),
        (json!([coded(&right), "a text"]), "expected an object"),
        (json!(many), "there are 2049"),
    ] {
        let answer = server
            .post("/v1/embeddings", &json!({"input": input}))
            .await;
        let (why, ..) = answer.openai_error();
        assert_eq!(answer.status, 400, "{why}");
        assert!(why.contains(said), "{why}");
    }
    let answer = server.post("/tokenize", &json!({"inputs": "a text"})).await;
    assert_eq!(answer.status, 422, "{answer:?}");
    assert_eq!(server.get("/health/ready").await.status, 200);
    assert_eq!(server.metric("isovec_serve_requests_in_work").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_texts_and_pictures_gives_each_to_its_model() {
    let config = Which::Portable.configure(EmbeddingConfig::default());
    let spec = ModelSpec::new(data("tiny-clip")).with_name("sees");
    let spec = spec.with_task(ModelTask::EmbedImages).with_config(config);
    let mut options = ServeOptions::default();
    options.memory_budget = Some(1 << 30);
    let server = Changing::with(vec![embedder("reads"), spec], options).await;
    let text = server
        .post("/v1/embeddings", &json!({"input": "a text"}))
        .await;
    let picture = json!({"input": coded(&gif([9, 9, 9], 1))});
    let picture = server.post("/v1/embeddings", &picture).await;
    assert_eq!(text.json()["model"], "reads");
    assert_eq!(picture.json()["model"], "sees");
    server.stop().await;
}
