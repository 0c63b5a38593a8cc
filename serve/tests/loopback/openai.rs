//! OpenAI's dialect.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isovec::{EmbedOptions, Embedder, EmbeddingConfig, ModelSource, Prompt};
use isovec_test_models::static_embedding::{self, Layout, Stored};
use isovec_test_models::tiny::vocabulary;
use isovec_test_support::{Which, engines, tiny_model};
use serde_json::{Value, json};

use crate::running::{MODEL, Running, options, tiny};

const TEXTS: [&str; 3] = [
    "the cat sat on a mat",
    "stocks fell",
    "rain came over old hills again",
];

/// Embeddings of an answer, in their order.
fn floats(answer: &Value) -> Vec<Vec<f32>> {
    let rows = answer["data"].as_array().unwrap().iter();
    rows.enumerate()
        .map(|(at, row)| {
            assert_eq!(
                (&row["index"], &row["object"]),
                (&json!(at), &json!("embedding"))
            );
            serde_json::from_value(row["embedding"].clone()).unwrap()
        })
        .collect()
}

fn from_base64(text: &Value) -> Vec<f32> {
    let bytes = STANDARD.decode(text.as_str().unwrap()).unwrap();
    let (values, rest) = bytes.as_chunks::<4>();
    assert!(rest.is_empty());
    values
        .iter()
        .map(|value| f32::from_le_bytes(*value))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_are_the_librarys_bits_in_both_forms_on_every_engine() {
    for engine in engines() {
        let builder = Embedder::builder(tiny_model());
        let config = engine.configure(EmbeddingConfig::default());
        let embedder = builder.config(config).load().await.unwrap();
        let server = Running::over(embedder, options()).await;
        // One text, which runs alone wherever it comes from; every engine gives it the same bits each time.
        for text in TEXTS {
            let wanted = server.model.embed([text]).await.unwrap().into_vecs();
            let plain = server
                .post("/v1/embeddings", &json!({"model": MODEL, "input": text}))
                .await;
            assert_eq!(plain.status, 200, "{plain:?}");
            assert_eq!(floats(&plain.json()), wanted, "{engine:?}");
            let asked = json!({"model": MODEL, "input": text, "encoding_format": "base64"});
            let coded = server.post("/v1/embeddings", &asked).await;
            assert_eq!(
                from_base64(&coded.json()["data"][0]["embedding"]),
                wanted[0]
            );
        }
        server.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_has_all_that_clients_read_and_says_what_was_cut() {
    let server = Running::start().await;
    let long = "word ".repeat(500);
    let texts = [TEXTS[0], &long, TEXTS[1], &long];
    let answer = server.openai(&texts).await;
    assert_eq!(answer.status, 200);
    let body = answer.json();
    let set = server.model.embed(texts).await.unwrap();
    assert_eq!(floats(&body), set.clone().into_vecs());
    assert_eq!(
        (&body["object"], &body["model"]),
        (&json!("list"), &json!(MODEL))
    );
    let tokens: u32 = set.token_counts().iter().sum();
    assert_eq!(
        body["usage"],
        json!({"prompt_tokens": tokens, "total_tokens": tokens})
    );
    assert_eq!(body["truncated"], json!([1, 3]));
    assert_eq!(body["fingerprint"], set.fingerprint().id());
    assert_eq!(
        answer.header("x-isovec-fingerprint"),
        Some(&*set.fingerprint().id())
    );
    assert_eq!(answer.header("x-isovec-truncated"), Some("2"));
    assert_eq!(answer.header("x-isovec-truncated-texts"), Some("1,3"));
    let provider = server.model.provider().to_string();
    assert_eq!(answer.header("x-isovec-computed-by"), Some(&*provider));
    assert!(answer.header("x-request-id").is_some());

    let whole = server.openai(&TEXTS).await;
    assert_eq!(whole.header("x-isovec-truncated"), None);
    assert_eq!(whole.json()["truncated"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn fewer_dimensions_are_the_librarys_and_have_their_own_fingerprint() {
    let server = Running::start().await;
    let asked = json!({"model": MODEL, "input": TEXTS, "dimensions": 8, "user": "someone"});
    let answer = server.post("/v1/embeddings", &asked).await;
    let options = EmbedOptions::default().with_dimension(8);
    let set = server.model.embed_with(TEXTS, options).await.unwrap();
    assert_eq!(floats(&answer.json()), set.clone().into_vecs());
    assert_eq!(answer.json()["fingerprint"], set.fingerprint().id());
    assert_ne!(set.fingerprint().id(), server.model.fingerprint().id());
    for dimensions in [json!(0), json!(33), json!(-1), json!(8.5), json!("8")] {
        let asked = json!({"model": MODEL, "input": TEXTS, "dimensions": dimensions});
        let answer = server.post("/v1/embeddings", &asked).await;
        assert_eq!(answer.status, 400, "{dimensions}");
        let (_, kind, ..) = answer.openai_error();
        assert_eq!(kind, "invalid_request_error");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_request_is_answered() {
    let server = Running::start().await;
    let texts: Vec<String> = (0..2048).map(|at| format!("text {at}")).collect();
    let answer = server
        .post("/v1/embeddings", &json!({"model": MODEL, "input": texts}))
        .await;
    assert_eq!(answer.status, 200);
    let set = server.model.embed(&texts).await.unwrap();
    assert_eq!(floats(&answer.json()), set.into_vecs());
}

/// The ids of texts without special tokens.
fn ids(embedder: &Embedder, texts: &[&str]) -> Vec<Vec<u32>> {
    let texts = embedder.tokenize(texts, &Prompt::None, false).unwrap();
    let texts = texts.iter();
    texts
        .map(|tokens| tokens.iter().map(|token| token.id).collect())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn token_ids_are_the_texts_that_they_are_of() {
    let server = Running::start().await;
    let long = "word ".repeat(500);
    let texts = [TEXTS[0], &long, TEXTS[1]];
    let ids = ids(&server.model, &texts);
    assert!(ids[1].len() >= 500, "they are whole");
    let [of_texts, of_ids] =
        [json!(texts), json!(ids)].map(|input| json!({"model": MODEL, "input": input}));
    let wanted = server.post("/v1/embeddings", &of_texts).await;
    let answer = server.post("/v1/embeddings", &of_ids).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["truncated"], json!([1]));
    assert_eq!(answer.json(), wanted.json());
    // A list of numbers is one text.
    let one = json!({"model": MODEL, "input": ids[0], "dimensions": 8});
    let answer = server.post("/v1/embeddings", &one).await;
    let eight = EmbedOptions::default().with_dimension(8);
    let wanted = server.model.embed_with([TEXTS[0]], eight).await.unwrap();
    assert_eq!(floats(&answer.json()), wanted.into_vecs());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_and_a_cache_see_token_ids_as_the_text() {
    let mut config = EmbeddingConfig::default();
    config.text.query_prompt = Some("the rain: ".into());
    config.embedding_cache.memory = Some(1 << 20);
    let embedder = tiny(config).await;
    let query = EmbedOptions::default().with_prompt(Prompt::Query);
    let texts = || ids(&embedder, &TEXTS);
    let wanted = embedder.embed_with(TEXTS, query.clone()).await.unwrap();
    // The second time they come from the cache.
    for _ in 0..2 {
        let set = embedder.embed_tokens(texts(), query.clone()).await.unwrap();
        assert_eq!(set, wanted);
    }
    let plain = embedder.embed_tokens(texts(), EmbedOptions::default());
    assert_eq!(plain.await.unwrap(), embedder.embed(TEXTS).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn token_ids_beyond_the_vocabulary_and_too_many_tokens_are_refused() {
    let server = Running::start().await;
    for input in [json!([1_000_000]), json!([[7], [u32::MAX]])] {
        let asked = json!({"model": MODEL, "input": input});
        let answer = server.post("/v1/embeddings", &asked).await;
        assert_eq!(answer.status, 400);
        let (message, kind, ..) = answer.openai_error();
        assert!(message.contains("beyond the vocabulary"), "{message}");
        assert_eq!(kind, "invalid_request_error");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tokens_of_all_texts_are_bounded() {
    // A table of vectors, which sees 512 tokens of a text.
    let model = static_embedding::plain(vocabulary().len(), 8);
    let files = model.files(Layout::Model2Vec, Stored::F32).into_iter();
    let files = files.map(|(name, bytes)| (name, bytes.into()));
    let config = Which::Portable.configure(EmbeddingConfig::default());
    let builder = Embedder::builder(ModelSource::bytes("static", files)).config(config);
    let server = Running::over(builder.load().await.unwrap(), options()).await;
    assert_eq!(server.model.max_length(), 512);
    let (text, ids) = ("a ".repeat(500), vec![7; 500]);
    for (fits, count) in [(true, 600), (false, 601)] {
        for input in [json!(vec![&text; count]), json!(vec![&ids; count])] {
            let asked = json!({"model": MODEL, "input": input});
            let answer = server.post("/v1/embeddings", &asked).await;
            if fits {
                assert_eq!(answer.json()["usage"]["total_tokens"], 300_000);
                continue;
            }
            assert_eq!(answer.status, 400);
            let (message, _, param, code) = answer.openai_error();
            assert!(message.contains("300500 tokens"), "{message}");
            let wanted = (json!("input"), json!("max_tokens_per_request"));
            assert_eq!((param, code), wanted);
        }
    }
    // Only what the model sees counts.
    let long = json!({"model": MODEL, "input": vec!["a ".repeat(5000); 580]});
    let answer = server.post("/v1/embeddings", &long).await;
    assert_eq!(answer.json()["usage"]["total_tokens"], 580 * 512);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_is_listed_and_no_other_is_taken() {
    let server = Running::start().await;
    let list = server.get("/v1/models").await.json();
    assert_eq!(list["object"], "list");
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
    let model = &list["data"][0];
    assert_eq!(
        (&model["id"], &model["object"]),
        (&json!(MODEL), &json!("model"))
    );
    assert!(model["created"].as_u64().unwrap() > 1_700_000_000);
    assert_eq!(&server.get("/v1/models/tiny").await.json(), model);

    let asked = json!({"model": "another/model", "input": "a"});
    for answer in [
        server.get("/v1/models/another/model").await,
        server.post("/v1/embeddings", &asked).await,
    ] {
        assert_eq!(answer.status, 404);
        let (message, kind, param, code) = answer.openai_error();
        assert!(
            message.contains("another/model") && message.contains(MODEL),
            "{message}"
        );
        assert_eq!(kind, "invalid_request_error");
        assert_eq!((param, code), (json!("model"), json!("model_not_found")));
    }
}
