//! The dialect of text-embeddings-inference.

use isovec::similarity::cosine;
use isovec::{EmbedOptions, EmbeddingConfig, Prompt};
use serde_json::{Value, json};

use crate::running::{MODEL, Running, options};

const TEXTS: [&str; 3] = [
    "the cat sat on a mat",
    "stocks fell",
    "rain came over old hills again",
];

fn floats(answer: &Value) -> Vec<Vec<f32>> {
    serde_json::from_value(answer.clone()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_are_the_librarys_bits() {
    let server = Running::start().await;
    let wanted = server.model.embed(TEXTS).await.unwrap();
    for path in ["/embed", "/"] {
        let answer = server.post(path, &json!({"inputs": TEXTS})).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(floats(&answer.json()), wanted.clone().into_vecs());
        let one = server.post(path, &json!({"inputs": TEXTS[1]})).await;
        assert_eq!(floats(&one.json()), [wanted.get(1).unwrap()]);
    }
    let short = server
        .post("/embed", &json!({"inputs": TEXTS, "dimensions": 4}))
        .await;
    let four = EmbedOptions::default().with_dimension(4);
    let wanted = server.model.embed_with(TEXTS, four).await.unwrap();
    assert_eq!(floats(&short.json()), wanted.into_vecs());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_says_what_was_computed_and_what_was_cut() {
    let server = Running::start().await;
    let long = "wörd ".repeat(100);
    let texts = [&long, TEXTS[0]];
    let answer = server.post("/embed", &json!({"inputs": texts})).await;
    let set = server.model.embed(texts).await.unwrap();
    let tokens: u32 = set.token_counts().iter().sum();
    let characters = 500 + TEXTS[0].len();
    assert_eq!(
        answer.header("x-compute-tokens"),
        Some(&*tokens.to_string())
    );
    assert_eq!(
        answer.header("x-compute-characters"),
        Some(&*characters.to_string())
    );
    assert_eq!(answer.header("x-compute-type"), Some("CPU"));
    assert_eq!(answer.header("x-isovec-truncated-texts"), Some("0"));
    let millis = |name| answer.header(name).unwrap().parse::<u64>().unwrap();
    assert!(millis("x-compute-time") <= millis("x-total-time"));

    let whole = json!({"inputs": texts, "truncate": false});
    let refused = server.post("/embed", &whole).await;
    assert_eq!(refused.status, 422);
    let (message, kind) = refused.tei_error();
    assert!(
        message.contains("text 0") && message.contains("64 tokens"),
        "{message}"
    );
    assert_eq!(kind, "validation");
    let fits = json!({"inputs": TEXTS, "truncate": false, "truncation_direction": "Right"});
    assert_eq!(server.post("/embed", &fits).await.status, 200);
    // The model was loaded to keep a text's beginning.
    let other_end = json!({"inputs": TEXTS, "truncation_direction": "left"});
    assert_eq!(server.post("/embed", &other_end).await.status, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_chosen_by_its_name() {
    let mut config = EmbeddingConfig::default();
    config
        .text
        .prompts
        .insert("search".into(), "query: ".into());
    let server = Running::with(config, options()).await;
    let asked = json!({"inputs": TEXTS, "prompt_name": "search"});
    let answer = server.post("/embed", &asked).await;
    let prompt = EmbedOptions::default().with_prompt(Prompt::Named("search".into()));
    let wanted = server.model.embed_with(TEXTS, prompt).await.unwrap();
    assert_eq!(floats(&answer.json()), wanted.clone().into_vecs());
    assert_ne!(wanted, server.model.embed(TEXTS).await.unwrap());
    let unknown = json!({"inputs": TEXTS, "prompt_name": "nobody"});
    let answer = server.post("/embed", &unknown).await;
    assert_eq!(answer.status, 422);
    assert!(answer.tei_error().0.contains("nobody"));
}

#[tokio::test(flavor = "multi_thread")]
async fn length_is_taken_off_unless_the_model_was_loaded_with_it_and_is_asked_for() {
    let config = EmbeddingConfig::default().with_normalize(false);
    let server = Running::with(config, options()).await;
    for (normalize, ours) in [(None, true), (Some(true), true), (Some(false), false)] {
        let answer = server
            .post("/embed", &json!({"inputs": TEXTS, "normalize": normalize}))
            .await;
        let wanted = EmbedOptions::default().with_normalize(ours);
        let wanted = server.model.embed_with(TEXTS, wanted).await.unwrap();
        assert_eq!(floats(&answer.json()), wanted.into_vecs(), "{normalize:?}");
    }
    let unit = Running::start().await;
    let asked = json!({"inputs": TEXTS, "normalize": false});
    let answer = unit.post("/embed", &asked).await;
    assert_eq!(answer.status, 422);
    assert!(answer.tei_error().0.contains("text.normalize"));
}

#[tokio::test(flavor = "multi_thread")]
async fn similarity_is_the_cosine_with_each_sentence() {
    let server = Running::start().await;
    let inputs = json!({"source_sentence": "a cat on a mat", "sentences": TEXTS});
    for asked in [
        json!({"inputs": inputs}),
        json!({"inputs": inputs, "parameters": {"truncate": true}}),
    ] {
        let answer = server.post("/similarity", &asked).await;
        let scores: Vec<f32> = serde_json::from_value(answer.json()).unwrap();
        let source = server.model.embed(["a cat on a mat"]).await.unwrap();
        let set = server.model.embed(TEXTS).await.unwrap();
        let wanted: Vec<f32> = set
            .iter()
            .map(|vector| cosine(source.as_slice(), vector))
            .collect();
        assert_eq!(scores, wanted);
    }
    for inputs in [
        json!({"source_sentence": "", "sentences": TEXTS}),
        json!({"source_sentence": "a", "sentences": []}),
        json!({"source_sentence": "a"}),
        json!(["a", TEXTS]),
    ] {
        let answer = server.post("/similarity", &json!({"inputs": inputs})).await;
        assert!((400..500).contains(&answer.status), "{inputs}");
        answer.tei_error();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_become_tokens_and_tokens_texts() {
    let mut config = EmbeddingConfig::default();
    config
        .text
        .prompts
        .insert("search".into(), "query: ".into());
    let server = Running::with(config, options()).await;
    let long = "word ".repeat(100);
    let answer = server
        .post("/tokenize", &json!({"inputs": [TEXTS[0], &long]}))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let texts = answer.json();
    let cls = json!({"id": 2, "text": "[CLS]", "special": true});
    for (text, tokens) in [TEXTS[0], &long].iter().zip(texts.as_array().unwrap()) {
        let tokens = tokens.as_array().unwrap();
        assert_eq!(tokens.len(), server.model.count_tokens(text).unwrap());
        assert_eq!((&tokens[0], &tokens[1]["special"]), (&cls, &json!(false)));
    }
    let bare = json!({"inputs": TEXTS[0], "add_special_tokens": false, "prompt_name": "search"});
    let bare = server.post("/tokenize", &bare).await.json();
    let text = |tokens: &Value| tokens["text"].as_str().unwrap().to_owned();
    let words: Vec<String> = bare[0].as_array().unwrap().iter().map(text).collect();
    let prompt = words.iter().position(|word| word == ":").unwrap();
    assert!(
        !words.contains(&"[CLS]".to_owned()) && prompt > 0,
        "{words:?}"
    );

    let ids = |tokens: &Value| -> Vec<Value> {
        let tokens = tokens.as_array().unwrap().iter();
        tokens.map(|token| token["id"].clone()).collect()
    };
    let (first, second) = (ids(&texts[0]), ids(&texts[1]));
    let decoded = json!({"ids": [first, second]});
    let decoded = server.post("/decode", &decoded).await.json();
    assert_eq!(decoded, json!([TEXTS[0], long.trim_end()]));
    let with = json!({"ids": first, "skip_special_tokens": false});
    let with = server.post("/decode", &with).await.json();
    assert_eq!(with, json!([format!("[CLS] {} [SEP]", TEXTS[0])]));

    for (path, asked) in [
        ("/tokenize", json!({"inputs": ["a", ""]})),
        ("/tokenize", json!({"inputs": [7]})),
        ("/tokenize", json!({"inputs": "a", "prompt_name": "nobody"})),
        ("/decode", json!({"ids": "a text"})),
        ("/decode", json!({"ids": [1_000_000]})),
        ("/decode", json!({"ids": [[7], []]})),
        ("/decode", json!({"ids": [-1]})),
    ] {
        let answer = server.post(path, &asked).await;
        assert_eq!(answer.status, 422, "{asked}");
        answer.tei_error();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn information_is_the_models() {
    let server = Running::start().await;
    let info = server.get("/info").await.json();
    assert_eq!(info["model_id"], MODEL);
    assert_eq!(info["max_input_length"], 64);
    assert_eq!(info["max_client_batch_size"], 2048);
    assert_eq!(info["model_type"]["embedding"]["pooling"], "mean");
    assert_eq!(info["dimension"], 32);
    assert_eq!(info["fingerprint"]["id"], server.model.fingerprint().id());
    assert!(!info.to_string().contains(env!("CARGO_MANIFEST_DIR")));
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_what_happened() {
    let server = Running::start().await;
    server.openai(&TEXTS).await;
    server
        .post("/embed", &json!({"inputs": "x ".repeat(200)}))
        .await;
    server.post("/embed", &json!({"inputs": 7})).await;
    for (name, value) in [
        ("isovec_serve_texts_total{model=\"tiny\"}", 4),
        // The SDK's own.
        ("isovec_texts_total{model=\"tiny\"}", 4),
        ("isovec_truncated_texts_total{model=\"tiny\"}", 1),
        ("isovec_serve_requests_ended_total{end=\"answered\"}", 2),
        ("isovec_serve_requests_ended_total{end=\"failed\"}", 0),
        ("isovec_serve_requests_in_work", 0),
        ("isovec_serve_bytes_in_work", 0),
        (
            "isovec_serve_http_answers_total{route=\"/embed\",status=\"422\"}",
            1,
        ),
        (
            "isovec_serve_http_answers_total{route=\"/v1/embeddings\",status=\"200\"}",
            1,
        ),
    ] {
        assert_eq!(server.metric(name).await, value, "{name}");
    }
    let page = server.get("/metrics").await;
    let kind = page.header("content-type").unwrap();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    assert!(page.text().ends_with("\n# EOF\n"));
    assert_eq!(page.text().matches("# EOF").count(), 1);
    let info = "isovec_serve_model_info{model=\"tiny\",task=\"embed\"";
    assert!(page.text().contains(info), "{}", page.text());
}
