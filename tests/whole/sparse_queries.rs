//! Sparse models whose queries are not computed: documents are a masked language model's, and the tokens of a query have the
//! weights of a table.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, stream};
use isovec::{
    Cancel, EmbeddingConfig, ModelSource, ModelTask, Prompt, SparseEmbedder, SparseEmbeddings,
    SparseOptions,
};
use isovec_test_models::checkpoint::Checkpoint;
use isovec_test_models::{sparse, tiny};
use isovec_test_support::engines;

/// Where sentence-transformers puts the transformer when it saves such a model.
const OWN: &str = "document_0_MLMTransformer";
const TABLE: &str = "query_0_SparseStaticEmbedding";

const QUERIES: [&str; 4] = [
    "the dog and the dog",
    "a",
    "",
    "a word that nobody knows: qqq",
];

type Files = BTreeMap<String, Vec<u8>>;

/// Words of the tokenizer alone, so that each has a token.
fn model() -> Checkpoint {
    sparse::tiny()
}

fn of_files(files: Files) -> ModelSource {
    let files = files.into_iter().map(|(name, bytes)| (name, bytes.into()));
    ModelSource::bytes("a model with two ways", files)
}

fn load(files: Files, config: EmbeddingConfig) -> isovec::Result<SparseEmbedder> {
    let loading = SparseEmbedder::builder(of_files(files))
        .config(config)
        .load();
    smol::block_on(loading)
}

/// The ids of a text behind the prompt of queries, without special tokens, each once, with its weight where that is above 0.
fn expected(text: &str) -> Vec<(u32, f32)> {
    let prompted = format!("the query {text}");
    let ids = tiny::tokenise(&tiny::vocabulary(), &prompted);
    let own: BTreeSet<i64> = ids[1..ids.len() - 1].iter().copied().collect();
    let weighed = own
        .into_iter()
        .map(|id| (id as u32, sparse::query_weight(id as usize)));
    weighed.filter(|&(_, weight)| weight > 0.0).collect()
}

#[track_caller]
fn is_looked_up(set: &SparseEmbeddings) {
    assert_eq!(set.len(), QUERIES.len());
    for (row, text) in set.iter().zip(QUERIES) {
        let row: Vec<(u32, f32)> = row.iter().collect();
        assert_eq!(row, expected(text), "{text}");
    }
}

#[test]
fn queries_are_looked_up_and_passages_are_computed_wherever_the_transformer_lies() {
    let plain = load(
        sparse::files(&model(), sparse::MAX),
        EmbeddingConfig::default(),
    )
    .unwrap();
    for engine in engines() {
        let mut cached = engine.configure(EmbeddingConfig::default());
        cached.embedding_cache.memory = Some(1 << 20);
        for (folder, config) in [
            ("", engine.configure(EmbeddingConfig::default())),
            (OWN, cached),
        ] {
            let loaded = load(sparse::routed(&model(), folder), config).unwrap();
            smol::block_on(async {
                let passages = loaded.embed_passages(QUERIES).await.unwrap();
                let same = plain.embed_passages(QUERIES).await.unwrap();
                for (row, same) in passages.iter().zip(same.iter()) {
                    assert_eq!(row.indices, same.indices);
                    let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * b.max(0.25);
                    assert!(row.values.iter().zip(same.values).all(near));
                }
                // A text that was a passage is another vector as a query.
                let runs = loaded.stats().engine.provider.runs;
                let queries = loaded.embed_queries(QUERIES).await.unwrap();
                is_looked_up(&queries);
                assert_eq!(queries.prompt(), Some("query"));
                let counts = QUERIES.map(|text| {
                    let prompted = format!("the query {text}");
                    tiny::tokenise(&tiny::vocabulary(), &prompted).len() as u32 - 2
                });
                assert_eq!(queries.token_counts(), counts);
                assert!(queries.truncated().iter().all(|cut| !cut));
                let named = SparseOptions::default().with_prompt(Prompt::Named("query".into()));
                is_looked_up(&loaded.embed_with(QUERIES, named).await.unwrap());
                let options = SparseOptions::default().with_prompt(Prompt::Query);
                let streamed = loaded.embed_stream(stream::iter(QUERIES), options.clone());
                let streamed: Vec<_> = streamed.collect().await;
                for (one, text) in streamed.into_iter().zip(QUERIES) {
                    let one: Vec<_> = one.unwrap().vector.as_row().iter().collect();
                    assert_eq!(one, expected(text));
                }
                let batcher = loaded.batcher();
                is_looked_up(&batcher.embed_with(QUERIES, options.clone()).await.unwrap());
                let few = options.with_top_k(1);
                let few = loaded.embed_with(QUERIES, few).await.unwrap();
                assert!(few.iter().all(|row| row.len() == 1));
                assert_eq!(
                    loaded.stats().engine.provider.runs,
                    runs,
                    "a query was computed"
                );

                // They compare: the score is that of the passage's weights at the query's words.
                let hits = passages.search(&queries, 1).unwrap();
                assert_eq!(hits.len(), QUERIES.len());
                let hit = hits[0][0];
                let (row, query) = (passages.get(hit.index).unwrap(), queries.get(0).unwrap());
                assert_eq!(hit.score, row.dot(query));
                let cancel = Cancel::new();
                cancel.cancel();
                let cancelled = SparseOptions::default().with_prompt(Prompt::Query);
                let cancelled = cancelled.with_cancel(cancel);
                let error = loaded.embed_with(QUERIES, cancelled).await.unwrap_err();
                assert!(error.is_cancelled(), "{error}");
            });
        }
    }
}

#[test]
fn a_text_that_is_too_long_is_cut_and_says_so() {
    let config = EmbeddingConfig::default().with_max_length(4);
    let loaded = load(sparse::routed(&model(), ""), config).unwrap();
    let set = smol::block_on(loaded.embed_queries(["dog", "dog cat animal"])).unwrap();
    assert_eq!(set.token_counts(), [3, 4]);
    assert_eq!(set.truncated(), [false, true]);
}

/// `router_config.json` with another value.
fn with_routes(change: impl Fn(&mut serde_json::Value)) -> Files {
    let mut files = sparse::routed(&model(), "");
    let mut routes = serde_json::from_slice(&files["router_config.json"]).unwrap();
    change(&mut routes);
    files.insert("router_config.json".into(), routes.to_string().into());
    files
}

#[test]
fn a_default_way_of_queries_is_theirs_without_a_prompt() {
    let files = with_routes(|routes| routes["parameters"]["default_route"] = "query".into());
    let loaded = load(files, EmbeddingConfig::default()).unwrap();
    let of = |prompt| {
        let options = SparseOptions::default().with_prompt(prompt);
        let set = smol::block_on(loaded.embed_with(["the query dog"], options)).unwrap();
        set.get(0).unwrap().to_vector()
    };
    let row: Vec<_> = of(Prompt::Default).as_row().iter().collect();
    assert_eq!(row, expected("dog"));
    assert_eq!(of(Prompt::None), of(Prompt::Passage));
    assert_ne!(of(Prompt::None), of(Prompt::Default));
}

#[test]
fn a_way_of_queries_that_is_the_documents_is_no_other() {
    let files = with_routes(|routes| {
        routes["structure"]["query"] = routes["structure"]["document"].clone();
    });
    let loaded = load(files, EmbeddingConfig::default()).unwrap();
    let query = smol::block_on(loaded.embed_query("dog")).unwrap();
    let passage = smol::block_on(loaded.embed_passage("the query dog")).unwrap();
    assert_eq!(query.get(0), passage.get(0));
}

#[test]
fn a_table_by_tokens_is_read_too() {
    let mut files = sparse::routed(&model(), "");
    files.remove(&format!("{TABLE}/model.safetensors"));
    let table = serde_json::json!({"dog": 2.5, "cat": 0.5});
    let config = serde_json::json!({"path": "idf.json", "frozen": true});
    files.insert(format!("{TABLE}/config.json"), config.to_string().into());
    let refused = load(files.clone(), EmbeddingConfig::default()).unwrap_err();
    assert!(refused.to_string().contains("idf.json"), "{refused}");
    for place in ["idf.json".to_owned(), format!("{TABLE}/idf.json")] {
        let mut files = files.clone();
        files.insert(place, table.to_string().into());
        let loaded = load(files, EmbeddingConfig::default()).unwrap();
        let query = smol::block_on(loaded.embed_query("a dog")).unwrap();
        let words = loaded.words(query.get(0).unwrap(), 9).unwrap();
        let words: Vec<_> = words.iter().map(|own| (&*own.token, own.weight)).collect();
        assert_eq!(words, [("dog", 2.5)]);
    }
    files.insert("idf.json".into(), r#"{"no such word": 1}"#.into());
    let refused = load(files, EmbeddingConfig::default()).unwrap_err();
    assert!(refused.to_string().contains("no such word"), "{refused}");
}

#[test]
fn the_table_is_in_the_fingerprint() {
    let of = |files| {
        load(files, EmbeddingConfig::default())
            .unwrap()
            .fingerprint()
            .clone()
    };
    let routed = of(sparse::routed(&model(), ""));
    assert_eq!(routed, of(sparse::routed(&model(), OWN)));
    assert_ne!(routed, of(sparse::files(&model(), sparse::MAX)));
    let mut other = sparse::routed(&model(), "");
    let table = other
        .get_mut(&format!("{TABLE}/model.safetensors"))
        .unwrap();
    // The last weight becomes another number.
    let last = table.len() - 2;
    table[last] ^= 1;
    assert_ne!(routed, of(other));
}

#[test]
fn the_files_say_what_such_a_model_is_for() {
    for folder in ["", OWN] {
        let source = of_files(sparse::routed(&model(), folder));
        let task = ModelTask::of(source.clone(), &EmbeddingConfig::default());
        assert_eq!(smol::block_on(task).unwrap(), ModelTask::Sparse);
        let dense = smol::block_on(isovec::Embedder::load(source)).unwrap_err();
        assert!(dense.to_string().contains("SparseEmbedder"), "{dense}");
    }
}

#[test]
fn what_is_wrong_with_the_ways_is_named() {
    let refused = |files: Files, kind: &str, word: &str| {
        let error = load(files, EmbeddingConfig::default()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(word), "{word}: {error}");
    };
    let without = |name: &str| {
        let mut files = sparse::routed(&model(), "");
        files.remove(name);
        files
    };
    let table = format!("{TABLE}/model.safetensors");
    refused(
        without("router_config.json"),
        "MissingFile",
        "router_config.json",
    );
    refused(without(&table), "MissingFile", &table);
    refused(
        without("document_1_SpladePooling/config.json"),
        "MissingFile",
        "SpladePooling",
    );
    let routes = |change: fn(&mut serde_json::Value)| with_routes(change);
    refused(
        routes(|routes| routes["structure"]["query"] = serde_json::json!(["elsewhere"])),
        "InvalidModel",
        "elsewhere",
    );
    refused(
        routes(|routes| {
            let ways = routes["structure"].as_object_mut().unwrap();
            let query = ways.remove("query").unwrap();
            ways.insert("image".into(), query);
        }),
        "UnsupportedModel",
        "image",
    );
    refused(
        routes(|routes| routes["structure"]["query"] = serde_json::json!([""])),
        "UnsupportedModel",
        "MLMTransformer",
    );
    refused(
        routes(|routes| routes["structure"]["document"] = serde_json::json!([""])),
        "UnsupportedModel",
        "SpladePooling",
    );
    let with_weights = |values: &[f32], shape: &[usize]| {
        let mut files = sparse::routed(&model(), "");
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let dtype = safetensors::Dtype::F32;
        let view = safetensors::tensor::TensorView::new(dtype, shape.to_vec(), &bytes).unwrap();
        let file = safetensors::serialize([("weight", view)], None).unwrap();
        files.insert(table.clone(), file);
        files
    };
    let words = tiny::vocabulary().len();
    for (bad, shown) in [(f32::NAN, "NaN"), (-1.0, "-1"), (f32::INFINITY, "inf")] {
        let mut values = vec![1.0; words];
        values[7] = bad;
        refused(with_weights(&values, &[words]), "InvalidModel", shown);
        refused(with_weights(&values, &[words]), "InvalidModel", "token 7");
    }
    refused(with_weights(&[1.0; 3], &[3]), "InvalidModel", "there are 3");
    let more = words + 1;
    refused(
        with_weights(&vec![1.0; more], &[more]),
        "InvalidModel",
        "vocabulary",
    );
    refused(
        with_weights(&vec![1.0; words], &[1, words]),
        "InvalidModel",
        "one dimension",
    );
}
