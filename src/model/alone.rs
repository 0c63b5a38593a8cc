//! Tests with a model whose int8 activations are scaled over the whole batch, on the available engines: they show how
//! a batch would change its vectors, and that no text of a user ever shares a batch.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::join_all;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::Dim;
use isovec_engine::engine::Batch;
use isovec_engine::onnx::proto::{GraphProto, ModelProto, NodeProto, OperatorSetIdProto};
use isovec_engine::tensor::DType;
use isovec_engine::weights::{BytesWeights, WeightsIdentity};
use isovec_model::onnx::builder::int;
use isovec_model::onnx::{GraphBuilder, write_model};

use super::{Model, rows};
use crate::backend::wait;
use crate::config::{EngineChoice, Pooling};
use crate::{DynamicBatcher, Embedder, EmbeddingConfig, ModelSource, blocking};

const VOCABULARY: usize = 464;
const DIM: usize = 32;

/// Looks its tokens' rows up in a table of large and small numbers and quantises what it found.
fn quantised(rows: Dim) -> ModelSource {
    let mut graph = GraphProto::default();
    let mut g = GraphBuilder::new(&mut graph, "t/");
    let positions = Dim::Symbolic("sequence".into());
    for name in ["input_ids", "attention_mask"] {
        g.input(name, DType::I64, &[rows.clone(), positions.clone()]);
    }
    let table: Vec<f32> = (0..VOCABULARY * DIM)
        .map(|at| ((at * 37 % 101) as f32 - 50.0) * (1.0 + (at / DIM % 17) as f32))
        .collect();
    let table = g.f32s(&[VOCABULARY as i64, DIM as i64], &table);
    let found = g.node("Gather", &[&table, "input_ids"], vec![int("axis", 0)]);
    g.graph().node.push(NodeProto {
        op_type: "DynamicQuantizeLinear".into(),
        name: "activations".into(),
        input: vec![found],
        output: ["q", "scale", "zero"].map(String::from).to_vec(),
        ..NodeProto::default()
    });
    // Back to numbers as `quantize_dynamic` writes it after a product of integers.
    let real = |g: &mut GraphBuilder<'_>, of| g.node("Cast", &[of], vec![int("to", 1)]);
    let (q, zero) = (real(&mut g, "q"), real(&mut g, "zero"));
    let steps = g.node("Sub", &[&q, &zero], vec![]);
    g.named_node("Mul", &[&steps, "scale"], "last_hidden_state", vec![]);
    g.output(
        "last_hidden_state",
        DType::F32,
        &[rows, positions, Dim::Fixed(DIM)],
    );
    let bundle = ModelBundle {
        graph: ModelProto {
            ir_version: 8,
            opset_import: vec![OperatorSetIdProto {
                domain: String::new(),
                version: 17,
            }],
            graph: Some(graph),
            ..ModelProto::default()
        },
        weights: Arc::new(BytesWeights::new()),
        identity: WeightsIdentity("0".repeat(64)),
        files: BTreeMap::new(),
        model_file: "model.onnx".into(),
        origin: "test".into(),
    };
    let onnx = pollster::block_on(write_model(&bundle)).unwrap();
    let tokenizer = include_bytes!("../../tests/data/tiny-bert/tokenizer.json");
    let files = [
        ("model.onnx".to_owned(), Bytes::from(onnx)),
        ("tokenizer.json".to_owned(), Bytes::from_static(tokenizer)),
    ];
    ModelSource::bytes("a quantised model", files)
}

/// The model on every engine that this machine has.
fn loaded(rows: &Dim, config: &EmbeddingConfig) -> Vec<Embedder> {
    let load = |choice| {
        let config = config.clone().with_engine(choice);
        let config = config.with_pooling(Pooling::Mean);
        wait(
            Embedder::builder(quantised(rows.clone()))
                .config(config)
                .load(),
        )
    };
    let mut embedders = vec![load(EngineChoice::Portable).unwrap()];
    match load(EngineChoice::OnnxRuntime) {
        Ok(embedder) => embedders.push(embedder),
        Err(error)
            if error.kind() == "EngineUnavailable"
                && std::env::var_os("ISOVEC_REQUIRE_ONNXRUNTIME").is_none() =>
        {
            eprintln!("not run on ONNX Runtime: {error}");
        }
        Err(error) => panic!("{error}"),
    }
    embedders
}

fn free() -> Dim {
    Dim::Symbolic("batch".into())
}

/// Texts of one to forty words.
fn texts() -> Vec<String> {
    const WORDS: [&str; 7] = ["the", "cat", "sat", "on", "a", "mat", "and"];
    let word = |at: usize| WORDS[at % WORDS.len()];
    (0..24)
        .map(|text| {
            let words = 1 + text * 11 % 40;
            let words: Vec<&str> = (0..words).map(|at| word(text * 5 + at)).collect();
            words.join(" ")
        })
        .collect()
}

fn bits(vector: &[f32]) -> Vec<u32> {
    vector.iter().map(|value| value.to_bits()).collect()
}

/// What the engine itself makes of these texts in one batch.
fn in_one_batch(model: &Model, texts: &[&str]) -> Vec<Vec<u32>> {
    let encodings = crate::model::Item::encode(model, texts, "").unwrap();
    let places: Vec<usize> = (0..texts.len()).collect();
    let engine = model.engines.current();
    let batch = model
        .feed
        .batch(&**engine, &encodings, &places, Batch::default())
        .unwrap();
    let output = engine.run_blocking(batch, &Cancel::new()).unwrap();
    let vectors = rows::vectors(&output, texts.len(), model.dim, false)
        .unwrap()
        .0;
    vectors.chunks_exact(model.dim).map(bits).collect()
}

#[test]
fn a_batch_would_give_a_text_another_vector_in_other_company() {
    for embedder in loaded(&free(), &EmbeddingConfig::default()) {
        let model = &embedder.model;
        let alone = in_one_batch(model, &["cat"]);
        let beside = in_one_batch(model, &["cat", "the mat and the cat sat on a mat"]);
        assert_ne!(alone[0], beside[0], "{:?}", model.engines.current());
    }
}

#[test]
fn a_text_has_the_same_bits_alone_and_beside_others_on_every_way_in() {
    let sorted = EmbeddingConfig::default().with_max_batch_size(8);
    let mut in_order = sorted.clone();
    in_order.runtime.io.batch_optimization = Some(false);
    let joined = sorted
        .clone()
        .with_preferred_batch_size(8)
        .with_max_wait(std::time::Duration::from_millis(2));
    for config in [sorted, in_order, joined] {
        for embedder in loaded(&free(), &config) {
            every_way_in(&embedder);
        }
    }
}

fn every_way_in(embedder: &Embedder) {
    let texts = texts();
    let alone: Vec<Vec<u32>> = texts
        .iter()
        .map(|text| bits(wait(embedder.embed([text])).unwrap().get(0).unwrap()))
        .collect();
    let same = |what: &str, vectors: &[Vec<u32>]| {
        assert_eq!(vectors.len(), alone.len());
        for (text, (vector, alone)) in vectors.iter().zip(&alone).enumerate() {
            assert!(vector == alone, "{what}: text {text} has another vector");
        }
    };
    let of = |set: crate::Embeddings| -> Vec<Vec<u32>> { set.iter().map(bits).collect() };
    same("embed", &of(wait(embedder.embed(&texts)).unwrap()));
    let blocking = blocking::Embedder::from(embedder.clone());
    same("blocking", &of(blocking.embed(&texts).unwrap()));
    let stream = embedder.embed_stream(futures_util::stream::iter(texts.clone()));
    let streamed: Vec<Vec<u32>> = wait(stream.map(|item| bits(&item.unwrap().vector)).collect());
    same("stream", &streamed);
    let batcher = DynamicBatcher::new(embedder);
    let calls = texts.iter().map(|text| batcher.embed_one(text));
    let called = wait(join_all(calls)).into_iter();
    same(
        "batcher",
        &called.map(|one| bits(&one.unwrap())).collect::<Vec<_>>(),
    );
    let one_call = wait(batcher.embed(&texts)).unwrap();
    same("batcher, one call", &of(one_call));

    let effective = embedder.effective_config();
    let knob = effective.get("batching.max_batch_size").unwrap();
    assert_eq!((knob.used.as_str(), knob.honoured), ("1", false));
    assert!(
        knob.why.contains("DynamicQuantizeLinear") && knob.why.contains("activations"),
        "{knob:?}"
    );
    let stats = embedder.stats();
    assert_eq!(stats.calls.batches, stats.calls.texts, "texts ran together");
    assert_eq!(stats.tokens.padding, 0);
}

#[test]
fn fixed_rows_are_all_of_the_one_text() {
    for embedder in loaded(&Dim::Fixed(3), &EmbeddingConfig::default()) {
        let texts = texts();
        let together = wait(embedder.embed(&texts)).unwrap();
        let model = &embedder.model;
        for (text, vector) in texts.iter().zip(&together) {
            let alone = wait(embedder.embed([text])).unwrap();
            assert_eq!(bits(vector), bits(alone.get(0).unwrap()));
            assert_eq!(bits(vector), in_one_batch(model, &[text.as_str(); 3])[0]);
        }
    }
}
