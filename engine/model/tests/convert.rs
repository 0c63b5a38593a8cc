//! The conversion against an independent implementation at f64, on tiny seeded models of every
//! family; that the comparison notices each kind of mistake; and what is refused.

mod convert_support;

use std::sync::Arc;

use convert_support::{Batch, Runner, inlined, read};
use isovec_engine::EngineError;
use isovec_engine::onnx::proto::ModelProto;
use isovec_model::convert::{Converted, architecture, convert, family};
use isovec_model::safetensors::TensorSet;
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::deberta;
use isovec_test_models::decoders;
use isovec_test_models::gte;
use isovec_test_models::jina;
use isovec_test_models::jina_v3;
use isovec_test_models::models;
use isovec_test_models::reference::last_hidden_state;
use isovec_test_models::rng::Rng;
use isovec_test_models::t5;
use prost::Message;
use serde_json::json;

/// The largest difference that f32 may make, in units of the hidden state's largest value. The
/// arithmetic of tract gives 3e-7 to 1.2e-6 on these models (its erf alone is off by 3e-7).
const BOUND: f64 = 3e-6;

/// What a mistake must exceed to count as noticed: far from anything rounding does.
const NOTICED: f64 = 10.0 * BOUND;

/// Texts of mixed lengths, each with one token type or with two, as pairs have.
fn texts(lengths: &[usize], padding: i64) -> (Vec<Vec<i64>>, Vec<Vec<i64>>) {
    let mut rng = Rng::new(99);
    let ids = lengths
        .iter()
        .map(|&length| {
            (0..length)
                .map(|_| 2 + rng.below(models::VOCABULARY as u64 - 2) as i64)
                .inspect(|id| assert_ne!(*id, padding))
                .collect()
        })
        .collect();
    let types = lengths
        .iter()
        .map(|&length| (0..length).map(|at| i64::from(at > length / 2)).collect())
        .collect();
    (ids, types)
}

fn is_decoder(name: &str) -> bool {
    ["qwen2", "qwen3", "llama", "mistral", "gemma3", "eurobert"].contains(&name)
}

fn padding(model: &Checkpoint) -> i64 {
    model.config["pad_token_id"].as_i64().unwrap_or(0)
}

fn lengths(model: &Checkpoint) -> &'static [usize] {
    match model.config["model_type"].as_str() {
        // Far enough for the last buckets.
        Some("mpnet") => &[150, 1, 2, 9, 40],
        _ => &[64, 1, 2, 9, 33],
    }
}

fn converted(model: &Checkpoint, stored: Stored) -> Converted {
    convert(&model.config_json(), model.tensor_set(stored)).expect("it converts")
}

fn graph_of(model: &Checkpoint) -> ModelProto {
    inlined(&converted(model, Stored::F32))
}

/// The largest difference between what `graph` computes on a padded batch and what the reference
/// computes for `model` on each text alone, in units of the largest value.
fn difference(graph: &ModelProto, model: &Checkpoint) -> f64 {
    let (ids, types) = texts(lengths(model), padding(model));
    difference_on(graph, model, &Batch::padded(&ids, &types, padding(model)))
}

fn difference_on(graph: &ModelProto, model: &Checkpoint, batch: &Batch) -> f64 {
    let runner = Runner::new(graph).expect("tract takes the graph");
    let found = runner.run(batch).expect("it runs");
    let (mut worst, mut largest) = (0f64, 0f64);
    for (text, rows) in found.iter().enumerate() {
        let length = batch.mask[text].iter().filter(|&&kept| kept == 1).count();
        let ids = &batch.ids[text][..length];
        let expected = last_hidden_state(model, ids, &batch.types[text][..length]);
        for (row, expected) in rows.iter().zip(&expected) {
            assert_eq!(row.len(), expected.len());
            for (&value, &expected) in row.iter().zip(expected) {
                assert!(value.is_finite());
                worst = worst.max((f64::from(value) - expected).abs());
                largest = largest.max(expected.abs());
            }
        }
    }
    worst / largest
}

fn assert_same(name: &str, model: &Checkpoint) {
    let difference = difference(&graph_of(model), model);
    println!("{name}: {difference:.2e}");
    assert!(difference <= BOUND, "{name}: {difference:e}");
}

#[test]
fn every_family_agrees_with_the_reference() {
    for (name, model) in models::all() {
        assert_same(name, &model);
    }
}

#[test]
fn every_activation_agrees_with_the_reference() {
    for activation in [
        "gelu",
        "gelu_new",
        "gelu_pytorch_tanh",
        "quick_gelu",
        "relu",
        "silu",
    ] {
        assert_same(activation, &models::bert().with("hidden_act", activation));
    }
}

#[test]
fn newer_configs_of_modernbert_mean_what_they_say() {
    let mut model = models::modernbert();
    model.config["layer_types"] = serde_json::json!([
        "full_attention",
        "full_attention",
        "sliding_attention",
        "full_attention",
        "sliding_attention"
    ]);
    model.config["rope_parameters"] = serde_json::json!({
        "full_attention": {"rope_type": "default", "rope_theta": 50000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 500.0}
    });
    assert_same("modernbert, newer config", &model);
}

#[test]
fn newer_configs_of_decoders_mean_what_they_say() {
    let mut model = decoders::gemma3();
    model.config["layer_types"] = json!([
        "full_attention",
        "sliding_attention",
        "sliding_attention",
        "full_attention"
    ]);
    assert_same("gemma3, its layers listed", &model);
    model.config["rope_parameters"] = json!({
        "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 50000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 500.0}
    });
    assert_same("gemma3, newer config", &model);
    let causal = decoders::gemma3().with("use_bidirectional_attention", false);
    let stretched = json!({"rope_type": "linear", "factor": 8.0});
    assert_same(
        "gemma3, causal",
        &causal.with("rope_scaling", stretched.clone()),
    );
    let mut model = decoders::mistral().with("sliding_window", json!(null));
    model.config["rope_parameters"] = stretched;
    assert_same("mistral without a window, newer config", &model);
    for (name, model) in [
        ("llama", decoders::llama()),
        ("qwen3", decoders::qwen3()),
        (
            "qwen2",
            decoders::qwen2().with("use_sliding_window", json!(false)),
        ),
    ] {
        let both_ways = model.with("is_causal", json!(false));
        assert_same(&format!("{name}, both ways"), &both_ways);
    }
    let listed = json!(["sliding_attention", "full_attention", "full_attention"]);
    assert_same(
        "qwen2, its layers listed",
        &decoders::qwen2().with("layer_types", listed),
    );
    let biased = [decoders::qwen3(), decoders::gemma3()];
    for model in biased {
        let biased = model.with("attention_bias", json!(true));
        assert_same("biased", &decoders::decoder_like(74, biased.config));
    }
}

/// What the published models of a family differ in.
#[test]
fn each_kind_of_gte_agrees_with_the_reference() {
    let one = |key: &str, value: serde_json::Value| {
        let mut config = gte::config();
        config[key] = value;
        gte::gte_like(79, config)
    };
    assert_same("gte without types", &one("type_vocab_size", json!(0)));
    assert_same("gte with one type", &one("type_vocab_size", json!(1)));
    assert_same("gte, unpacked", &one("pack_qkv", json!(false)));
    assert_same("gte, not stretched", &one("rope_scaling", json!(null)));
    let model = gte::gte();
    let newer = gte::newer(model.clone());
    let difference = difference(&graph_of(&newer), &model);
    assert!(
        difference <= BOUND,
        "as transformers saves it: {difference:e}"
    );
    // Fine-tuned models carry the code themselves.
    let own = json!({"AutoModel": "modeling_hf_alibaba_nlp_gte.GteModel"});
    let own = model
        .clone()
        .with("auto_map", own)
        .with("model_type", "gte");
    assert_eq!(graph_of(&own), graph_of(&model));
}

/// Of a number of heads that is no power of two, as most of the published models have.
#[test]
fn slopes_of_twelve_heads_agree_with_the_reference() {
    for model in [jina::jina(), jina::jina_code()] {
        let twelve = model
            .with("num_attention_heads", 12)
            .with("hidden_size", 48);
        let twelve = jina::jina_like(91, twelve.config);
        assert_same("jina of twelve heads", &twelve);
        assert_same("jina, reglu", &twelve.with("feed_forward_type", "reglu"));
    }
}

/// Each option of its distances by itself.
#[test]
fn each_kind_of_deberta_agrees_with_the_reference() {
    let one = |key: &str, value: serde_json::Value| {
        let model = deberta::deberta().with(key, value);
        deberta::deberta_like(98, model.config)
    };
    assert_same("content to position", &one("pos_att_type", json!("c2p")));
    assert_same("position to content", &one("pos_att_type", json!(["p2c"])));
    assert_same("of its own", &one("share_att_key", json!(false)));
    assert_same("without a norm", &one("norm_rel_ebd", json!("none")));
    // Distances that pass the last bucket, and those that no text reaches.
    assert_same("short", &one("max_relative_positions", json!(20)));
    assert_same("long", &one("max_relative_positions", json!(500)));
    assert_same("without buckets", &one("position_buckets", json!(-1)));
}

/// A checkpoint with the decoder too, and one that names the table of words as the encoder's.
#[test]
fn whole_models_of_t5_are_read_for_their_encoder() {
    let model = t5::t5();
    let graph = graph_of(&model);
    let mut whole = model.clone();
    for (name, array) in model.tensors.clone() {
        let name = name.replace("encoder.", "decoder.");
        whole.tensors.insert(name, array);
    }
    assert_eq!(graph_of(&whole), graph);
    let mut own = model.clone();
    let words = own.tensors.remove("shared.weight").expect("words");
    let name = "encoder.embed_tokens.weight".to_owned();
    own.tensors.insert(name, words);
    let difference = difference(&graph_of(&own), &model);
    assert!(difference <= BOUND, "{difference:e}");
}

/// Without the keys that its authors' code has defaults for.
#[test]
fn a_short_config_of_eurobert_means_what_its_code_says() {
    let mut model = decoders::eurobert().with("rms_norm_eps", 1e-5);
    let said = graph_of(&model);
    let config = model.config.as_object_mut().expect("an object");
    for key in ["rms_norm_eps", "rope_theta", "head_dim", "hidden_act"] {
        config.remove(key).expect("it is there");
    }
    assert_eq!(graph_of(&model), said);
    let causal = decoders::eurobert().with("is_causal", true);
    assert_eq!(graph_of(&causal), graph_of(&decoders::eurobert()));
}

/// Half-precision checkpoints and shards convert to the values they hold, exactly.
#[test]
fn storage_changes_nothing_but_the_rounding() {
    for (name, model) in models::all() {
        let whole = graph_of(&model);
        assert_eq!(
            inlined(&converted(&model, Stored::F64)),
            whole,
            "{name} f64"
        );
        for stored in [Stored::F16, Stored::BF16] {
            let rounded = graph_of(&model.clone().rounded(stored));
            let found = inlined(&converted(&model, stored));
            assert_eq!(found, rounded, "{name} {stored:?}");
            assert_ne!(found, whole, "{name} {stored:?}");
        }
        let shards = TensorSet::from_files("tiny", model.shards(Stored::F32)).expect("shards");
        let shards = convert(&model.config_json(), Arc::new(shards)).expect("it converts");
        assert_eq!(inlined(&shards), whole, "{name} in shards");
    }
}

#[test]
fn a_half_precision_checkpoint_agrees_with_the_reference_on_its_rounded_weights() {
    for stored in [Stored::F16, Stored::BF16] {
        let model = models::bert();
        let graph = inlined(&converted(&model, stored));
        let difference = difference(&graph, &model.rounded(stored));
        assert!(difference <= BOUND, "{stored:?}: {difference:e}");
    }
}

#[test]
fn prefixes_and_old_names_are_understood() {
    for (name, model) in models::all() {
        let plain = graph_of(&model);
        for prefix in ["bert.", "model.", "0.auto_model."] {
            assert_eq!(
                graph_of(&model.clone().prefixed(prefix)),
                plain,
                "{name} {prefix}"
            );
        }
    }
    let mut model = models::bert();
    let plain = graph_of(&model);
    model.tensors = std::mem::take(&mut model.tensors)
        .into_iter()
        .map(|(name, array)| {
            let name = name.replace("LayerNorm.weight", "LayerNorm.gamma");
            (name.replace("LayerNorm.bias", "LayerNorm.beta"), array)
        })
        .collect();
    let old = graph_of(&model);
    let runs = |graph: &ModelProto| difference(graph, &models::bert());
    assert_eq!(runs(&old), runs(&plain));
}

#[test]
fn the_same_bytes_on_every_run() {
    for (name, model) in models::all() {
        let one = graph_of(&model).encode_to_vec();
        let other = graph_of(&model).encode_to_vec();
        assert_eq!(one, other, "{name}");
    }
}

/// A text's rows are the same whatever it is padded to and whatever stands beside it, and a row
/// of nothing but padding is finite.
#[test]
fn padding_leaves_no_trace() {
    for (name, model) in models::all() {
        let runner = Runner::new(&graph_of(&model)).expect("tract takes the graph");
        let (ids, types) = texts(&[5, 60, 17], padding(&model));
        let mut batch = Batch::padded(&ids, &types, padding(&model));
        let together = runner.run(&batch).expect("it runs");
        for text in 0..ids.len() {
            let alone = Batch::padded(&ids[text..=text], &types[text..=text], padding(&model));
            let alone = &runner.run(&alone).expect("it runs")[0];
            for (row, other) in alone.iter().zip(&together[text]) {
                for (value, other) in row.iter().zip(other) {
                    assert!((value - other).abs() <= 4e-6, "{name}: {value} {other}");
                }
            }
        }
        batch.mask[1] = vec![0; 60];
        let blind = runner.run(&batch).expect("it runs");
        assert!(
            blind[1].concat().iter().all(|value| value.is_finite()),
            "{name}"
        );
        assert_eq!(blind[0], together[0], "{name}");
        assert_eq!(blind[2], together[2], "{name}");
    }
}

/// A padding token that a text spells out is attended to but not counted, as the models learned.
#[test]
fn positions_are_counted_from_the_ids() {
    for model in [models::roberta(), models::mpnet()] {
        let ids = vec![vec![5, 6, 1, 7, 8, 1, 9], vec![3, 1, 4]];
        let types = vec![vec![0; 7], vec![0; 3]];
        let difference = difference_on(&graph_of(&model), &model, &Batch::padded(&ids, &types, 1));
        assert!(difference <= BOUND, "{difference:e}");
    }
}

#[test]
fn a_sequence_past_the_limit_is_an_error() {
    for (name, model) in models::all() {
        let converted = converted(&model, Stored::F32);
        let limit = converted.max_sequence;
        let metadata = &converted.graph.metadata_props;
        assert!(
            metadata
                .iter()
                .any(|entry| entry.key == "isovec.max_sequence" && entry.value == limit.to_string())
        );
        let runner = Runner::new(&inlined(&converted)).expect("tract takes the graph");
        let fits = Batch::padded(&[vec![5; limit]], &[vec![0; limit]], padding(&model));
        assert!(runner.run(&fits).is_ok(), "{name} at {limit}");
        let past = Batch::padded(
            &[vec![5; limit + 1]],
            &[vec![0; limit + 1]],
            padding(&model),
        );
        // Where positions are looked up by number, tract panics instead of answering; both count
        // as no vector given.
        let outcome =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runner.run(&past).is_ok()));
        assert!(!matches!(outcome, Ok(true)), "{name} at {}", limit + 1);
    }
}

/// Past its trained length NomicBERT v1.5 rescales its positions by the batch: no longer offered.
#[test]
fn a_model_that_rescales_positions_stops_at_its_trained_length() {
    let model = models::nomicbert();
    let scaled = model.clone().with("rotary_scaling_factor", 2);
    assert_eq!(converted(&model, Stored::F32).max_sequence, 64);
    assert_eq!(converted(&scaled, Stored::F32).max_sequence, 64);
    let scaled = scaled.with("max_trained_positions", 48);
    assert_eq!(converted(&scaled, Stored::F32).max_sequence, 48);
}

/// Converts `mutant` and compares with the reference of `model`.
fn assert_noticed(what: &str, mutant: &Checkpoint, model: &Checkpoint) {
    let difference = difference(&graph_of(mutant), model);
    println!("{what}: {difference:.2e}");
    assert!(
        difference >= NOTICED,
        "{what} went unnoticed: {difference:e}"
    );
}

/// The rows of a table, moved down by one.
fn shifted(model: &Checkpoint, table: &str) -> Checkpoint {
    let mut model = model.clone();
    let array = model.tensors.get_mut(table).expect("the table");
    let size = array.shape[1];
    array.values.rotate_left(size);
    model
}

#[test]
fn the_comparison_notices_a_mistake_in_each_config_value() {
    let mutants = [
        (models::bert(), "hidden_act", serde_json::json!("gelu_new")),
        (models::bert(), "layer_norm_eps", serde_json::json!(1e-5)),
        (models::bert(), "num_attention_heads", serde_json::json!(8)),
        (
            models::roberta(),
            "hidden_act",
            serde_json::json!("gelu_new"),
        ),
        (
            models::roberta(),
            "layer_norm_eps",
            serde_json::json!(1e-12),
        ),
        // Positions off by one, and padding counted.
        (models::roberta(), "pad_token_id", serde_json::json!(0)),
        (models::mpnet(), "hidden_act", serde_json::json!("gelu_new")),
        (models::mpnet(), "layer_norm_eps", serde_json::json!(1e-12)),
        (
            models::distilbert(),
            "activation",
            serde_json::json!("gelu_new"),
        ),
        (models::distilbert(), "n_heads", serde_json::json!(2)),
        (
            models::modernbert(),
            "hidden_activation",
            serde_json::json!("gelu_new"),
        ),
        (models::modernbert(), "norm_eps", serde_json::json!(1e-12)),
        (
            models::modernbert(),
            "local_attention",
            serde_json::json!(14),
        ),
        (
            models::modernbert(),
            "local_attention",
            serde_json::json!(10),
        ),
        (
            models::modernbert(),
            "global_attn_every_n_layers",
            serde_json::json!(2),
        ),
        (
            models::modernbert(),
            "local_rope_theta",
            serde_json::json!(9000.0),
        ),
        (
            models::modernbert(),
            "global_rope_theta",
            serde_json::json!(9000.0),
        ),
        (
            models::nomicbert(),
            "activation_function",
            serde_json::json!("geglu"),
        ),
        (
            models::nomicbert(),
            "layer_norm_epsilon",
            serde_json::json!(1e-5),
        ),
        (
            models::nomicbert(),
            "rotary_emb_base",
            serde_json::json!(900),
        ),
    ];
    for (model, key, value) in mutants {
        let what = format!("{} {key} {value}", model.config["model_type"]);
        assert_noticed(&what, &model.clone().with(key, value), &model);
    }
}

#[test]
fn the_comparison_notices_a_mistake_in_each_config_value_of_a_decoder() {
    let llama3 = |key: &str, value: f64| {
        let mut scaling = decoders::llama().config["rope_scaling"].clone();
        scaling[key] = json!(value);
        (decoders::llama(), "rope_scaling", scaling)
    };
    let mutants = [
        (decoders::qwen3(), "hidden_act", json!("gelu")),
        (decoders::qwen3(), "rms_norm_eps", json!(1e-5)),
        (decoders::qwen3(), "rope_theta", json!(900_000.0)),
        (decoders::qwen3(), "is_causal", json!(false)),
        (decoders::qwen2(), "sliding_window", json!(7)),
        (decoders::qwen2(), "sliding_window", json!(9)),
        (decoders::qwen2(), "max_window_layers", json!(2)),
        (decoders::qwen2(), "use_sliding_window", json!(false)),
        (decoders::qwen2(), "rope_scaling", json!(null)),
        (
            decoders::qwen2(),
            "rope_scaling",
            json!({"type": "linear", "factor": 2.1}),
        ),
        (decoders::llama(), "rope_scaling", json!(null)),
        (decoders::llama(), "is_causal", json!(false)),
        llama3("factor", 5.0),
        llama3("low_freq_factor", 0.9),
        llama3("high_freq_factor", 2.2),
        llama3("original_max_position_embeddings", 18.0),
        (decoders::mistral(), "sliding_window", json!(11)),
        (decoders::mistral(), "sliding_window", json!(13)),
        (decoders::mistral(), "sliding_window", json!(null)),
        (decoders::gemma3(), "hidden_activation", json!("gelu")),
        (decoders::gemma3(), "query_pre_attn_scalar", json!(16)),
        (decoders::gemma3(), "sliding_window", json!(10)),
        (decoders::gemma3(), "sliding_window", json!(14)),
        (decoders::gemma3(), "_sliding_window_pattern", json!(2)),
        (decoders::gemma3(), "rope_theta", json!(900_000.0)),
        (decoders::gemma3(), "rope_local_base_freq", json!(9000.0)),
        (
            decoders::gemma3(),
            "rope_scaling",
            json!({"rope_type": "linear", "factor": 2.0}),
        ),
        (
            decoders::gemma3(),
            "use_bidirectional_attention",
            json!(false),
        ),
    ];
    for (model, key, value) in mutants {
        let what = format!("{} {key} {value}", model.config["model_type"]);
        assert_noticed(&what, &model.clone().with(key, value), &model);
    }
}

#[test]
fn the_comparison_notices_a_mistake_in_each_config_value_of_newer_encoders() {
    let stretched = |factor: f64| json!({"type": "ntk", "factor": factor});
    let mutants = [
        (decoders::eurobert(), "hidden_act", json!("gelu")),
        (decoders::eurobert(), "rms_norm_eps", json!(1e-5)),
        (decoders::eurobert(), "rope_theta", json!(200_000.0)),
        // A causal one of the same tensors.
        (decoders::eurobert(), "model_type", json!("llama")),
        (gte::gte(), "hidden_act", json!("gelu_new")),
        (gte::gte(), "layer_norm_eps", json!(1e-5)),
        (gte::gte(), "num_attention_heads", json!(2)),
        (gte::gte(), "rope_theta", json!(480.0)),
        (gte::gte(), "rope_scaling", json!(null)),
        (gte::gte(), "rope_scaling", stretched(4.2)),
        (
            gte::gte(),
            "rope_scaling",
            json!({"type": "linear", "factor": 4.0}),
        ),
        (jina::jina(), "feed_forward_type", json!("reglu")),
        (jina::jina(), "layer_norm_eps", json!(1e-5)),
        (jina::jina(), "num_attention_heads", json!(2)),
        (jina::jina_code(), "feed_forward_type", json!("reglu")),
        (jina::jina_code(), "layer_norm_eps", json!(1e-5)),
        (jina::jina_code(), "num_attention_heads", json!(8)),
        (deberta::deberta(), "hidden_act", json!("gelu_new")),
        (deberta::deberta(), "layer_norm_eps", json!(1e-5)),
        (deberta::deberta(), "num_attention_heads", json!(2)),
        (deberta::deberta(), "pos_att_type", json!("c2p")),
        (deberta::deberta(), "pos_att_type", json!("p2c")),
        (deberta::deberta(), "max_relative_positions", json!(40)),
        (deberta::deberta(), "norm_rel_ebd", json!("none")),
        (deberta::deberta_plain(), "share_att_key", json!(true)),
        (
            deberta::deberta_plain(),
            "position_biased_input",
            json!(false),
        ),
        (t5::t5(), "layer_norm_epsilon", json!(1e-3)),
        (t5::t5(), "relative_attention_max_distance", json!(64)),
        (t5::t5_gated(), "layer_norm_epsilon", json!(1e-3)),
    ];
    for (model, key, value) in mutants {
        let what = format!("{} {key} {value}", model.config["model_type"]);
        let mut mutant = model.clone().with(key, value);
        if key == "model_type" {
            mutant.config["auto_map"] = json!(null);
        }
        assert_noticed(&what, &mutant, &model);
    }
}

/// The gate taken for the input, and slopes of other heads.
#[test]
fn the_comparison_notices_swapped_halves_and_slopes() {
    for (model, packed) in [
        (gte::gte(), "mlp.up_gate_proj"),
        (jina::jina(), "mlp.gated_layers"),
        (jina::jina_code(), "mlp.up_gated_layer"),
    ] {
        let mut swapped = model.clone();
        for (name, array) in &mut swapped.tensors {
            if name.contains(packed) {
                let half = array.values.len() / 2;
                array.values.rotate_left(half);
            }
        }
        assert_noticed(packed, &swapped, &model);
    }
    for (model, name, bytes) in [
        (jina::jina(), "alibi.by_offset", None),
        (jina::jina_code(), "alibi.by_offset", None),
        // One place further, and the query's side for the key's.
        (deberta::deberta(), "distances.by_offset", Some(4)),
        (
            deberta::deberta(),
            "encoder.layer.1.attention.self.key_proj.distances",
            None,
        ),
        (
            deberta::deberta_plain(),
            "encoder.layer.1.attention.self.pos_query_proj.distances",
            None,
        ),
    ] {
        let mut graph = graph_of(&model);
        let mut tables = graph
            .graph
            .as_mut()
            .expect("a graph")
            .initializer
            .iter_mut();
        let table = tables.find(|tensor| tensor.name == name);
        let table = table.expect("the table of distances");
        let mut rows = table.raw_data.to_vec();
        let row = bytes.unwrap_or(rows.len() / 4);
        rows.rotate_left(row);
        table.raw_data = rows.into();
        assert!(difference(&graph, &model) >= NOTICED, "{name}");
    }
}

/// Gemma's norms without the 1 that is added to their weights, and its words without their factor.
#[test]
fn the_comparison_notices_what_only_gemma_does() {
    let model = decoders::gemma3();
    let mut less = model.clone();
    for (name, array) in &mut less.tensors {
        if name.ends_with("norm.weight") {
            array.values.iter_mut().for_each(|value| *value -= 1.0);
        }
    }
    assert_noticed("gemma3 without 1 in its norms", &less, &model);
    let mut graph = graph_of(&model);
    let factor = (models::HIDDEN as f32).sqrt().to_le_bytes();
    let mut numbers = graph
        .graph
        .as_mut()
        .expect("a graph")
        .initializer
        .iter_mut();
    let factor = numbers.find(|tensor| tensor.raw_data[..] == factor);
    factor.expect("the factor of words").raw_data = 1f32.to_le_bytes().to_vec().into();
    assert!(difference(&graph, &model) >= NOTICED);
}

const T5_BIAS: &str = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight";

#[test]
fn the_comparison_notices_positions_off_by_one() {
    for (model, table) in [
        (models::bert(), "embeddings.position_embeddings.weight"),
        (models::roberta(), "embeddings.position_embeddings.weight"),
        (models::mpnet(), "embeddings.position_embeddings.weight"),
        (models::mpnet(), "encoder.relative_attention_bias.weight"),
        (deberta::deberta(), "encoder.rel_embeddings.weight"),
        (deberta::deberta_plain(), "encoder.rel_embeddings.weight"),
        (t5::t5(), T5_BIAS),
        (t5::t5_gated(), T5_BIAS),
        (
            models::distilbert(),
            "embeddings.position_embeddings.weight",
        ),
    ] {
        let what = format!("{} {table}", model.config["model_type"]);
        assert_noticed(&what, &shifted(&model, table), &model);
    }
}

/// Graphs changed at one node: the mask multiplied by 0, the scores' scale left out, tanh where
/// erf stands, another epsilon in one normalisation alone.
#[test]
fn the_comparison_notices_a_changed_node() {
    for (name, model) in models::all() {
        let whole = graph_of(&model);
        let hidden = (-65504f32).to_le_bytes();
        let mut blind = whole.clone();
        let graph = blind.graph.as_mut().expect("a graph");
        let mask = graph
            .initializer
            .iter_mut()
            .find(|tensor| tensor.raw_data[..] == hidden)
            .expect("the mask's number");
        mask.raw_data = vec![0; 4].into();
        let difference_blind = difference(&blind, &model);
        assert!(difference_blind >= NOTICED, "{name} without its mask");

        let mut blunt = whole.clone();
        let graph = blunt.graph.as_mut().expect("a graph");
        let erf = graph.node.iter_mut().find(|node| node.op_type == "Erf");
        let without = ["nomicbert", "t5", "t5_gated"].contains(&name) || is_decoder(name);
        assert_eq!(erf.is_some(), !without, "{name}");
        if let Some(erf) = erf {
            erf.op_type = "Tanh".into();
            assert!(difference(&blunt, &model) >= NOTICED, "{name} with tanh");
        }

        let mut loose = whole.clone();
        let graph = loose.graph.as_mut().expect("a graph");
        let norm = graph
            .node
            .iter_mut()
            .find(|node| node.op_type == "LayerNormalization");
        match norm {
            Some(norm) => {
                for attribute in &mut norm.attribute {
                    if attribute.name == "epsilon" {
                        attribute.f = if attribute.f > 1e-6 { 1e-12 } else { 1e-5 };
                    }
                }
            }
            // Of the root mean square it is a number of the graph.
            None => {
                let epsilon = 1e-6f32.to_le_bytes();
                let epsilon = graph
                    .initializer
                    .iter_mut()
                    .find(|tensor| tensor.raw_data[..] == epsilon)
                    .expect("an epsilon");
                // What T5 normalises is a sum of what nothing normalised, and so large that less makes no difference.
                let other: f32 = if name.starts_with("t5") { 1e-3 } else { 1e-5 };
                epsilon.raw_data = other.to_le_bytes().to_vec().into();
            }
        }
        assert!(
            difference(&loose, &model) >= NOTICED,
            "{name} with another epsilon"
        );
    }
}

fn refused(model: &Checkpoint) -> EngineError {
    let tensors = model.tensor_set(Stored::F32);
    convert(&model.config_json(), tensors).expect_err("it must be refused")
}

#[test]
fn what_cannot_be_converted_is_refused_with_the_reason() {
    let cases = [
        (
            models::bert(),
            "position_embedding_type",
            serde_json::json!("relative_key"),
        ),
        (
            models::bert(),
            "position_embedding_type",
            serde_json::json!("alibi"),
        ),
        (models::bert(), "hidden_act", serde_json::json!("mish")),
        (models::bert(), "is_decoder", serde_json::json!(true)),
        (models::bert(), "model_type", serde_json::json!("gpt2")),
        (models::bert(), "model_type", serde_json::Value::Null),
        (
            models::bert(),
            "auto_map",
            serde_json::json!({"AutoModel": "someone/else--modeling.Model"}),
        ),
        (
            models::roberta(),
            "position_embedding_type",
            serde_json::json!("relative_key"),
        ),
        (
            models::mpnet(),
            "relative_attention_num_buckets",
            serde_json::json!(16),
        ),
        (
            models::modernbert(),
            "rope_scaling",
            serde_json::json!({"factor": 2.0}),
        ),
        (
            models::modernbert(),
            "max_position_embeddings",
            serde_json::json!(500_000),
        ),
        (
            models::modernbert(),
            "num_attention_heads",
            serde_json::json!(32),
        ),
        (models::nomicbert(), "prenorm", serde_json::json!(true)),
        (models::nomicbert(), "num_experts", serde_json::json!(8)),
        (
            models::nomicbert(),
            "rotary_emb_fraction",
            serde_json::json!(0.5),
        ),
    ];
    for (model, key, value) in cases {
        let error = refused(&model.with(key, value.clone()));
        assert_eq!(error.kind(), "UnsupportedModel", "{key} {value}: {error}");
        assert!(error.to_string().contains("ONNX"), "{error}");
    }
}

/// With the name of what the config asks for.
#[test]
fn what_families_cannot_be_is_refused_by_name() {
    let yarn = json!({"rope_type": "yarn", "factor": 4.0});
    let cases = [
        (decoders::qwen3(), "rope_scaling", yarn.clone(), "yarn"),
        (
            experts(),
            "expert_choice_router",
            json!(true),
            "expert_choice_router",
        ),
        (
            experts(),
            "num_shared_experts",
            json!(1),
            "num_shared_experts",
        ),
        (experts(), "ffn_div", json!(2), "ffn_div"),
        (
            experts(),
            "moe_normalize_expert_weights",
            json!(1.0),
            "moe_normalize_expert_weights",
        ),
        (
            experts(),
            "moe_every_n_layers",
            json!(-1),
            "moe_every_n_layers",
        ),
        (experts(), "activation_function", json!("swiglu"), "gated"),
        (
            decoders::llama(),
            "rope_scaling",
            json!({"type": "dynamic", "factor": 2.0}),
            "dynamic",
        ),
        (
            decoders::mistral(),
            "rope_parameters",
            json!({"rope_type": "longrope"}),
            "longrope",
        ),
        (
            decoders::llama(),
            "rope_parameters",
            json!({"rope_theta": 5.0}),
            "rope_scaling",
        ),
        (
            decoders::gemma3(),
            "rope_parameters",
            json!({"full_attention": yarn.clone()}),
            "yarn",
        ),
        (
            decoders::llama(),
            "partial_rotary_factor",
            json!(0.5),
            "partial_rotary_factor",
        ),
        (decoders::qwen2(), "is_causal", json!(false), "is_causal"),
        (decoders::mistral(), "is_causal", json!(false), "is_causal"),
        (
            decoders::mistral(),
            "attention_bias",
            json!(true),
            "attention_bias",
        ),
        (decoders::mistral(), "mlp_bias", json!(true), "mlp_bias"),
        (
            decoders::mistral(),
            "layer_types",
            json!(["full_attention", "full_attention"]),
            "layer_types",
        ),
        (
            decoders::llama(),
            "layer_types",
            json!(["full_attention", "chunked_attention"]),
            "chunked_attention",
        ),
        (
            decoders::llama(),
            "layer_types",
            json!(["full_attention", "sliding_attention"]),
            "layer_types",
        ),
        (
            decoders::gemma3(),
            "attn_logit_softcapping",
            json!(50.0),
            "attn_logit_softcapping",
        ),
        (decoders::qwen2(), "hidden_act", json!("mish"), "mish"),
        (
            decoders::gemma3(),
            "hidden_activation",
            json!("mish"),
            "mish",
        ),
        (
            decoders::llama(),
            "max_position_embeddings",
            json!(500_000),
            "max_position_embeddings",
        ),
    ];
    for (model, key, value, name) in cases {
        let error = refused(&model.with(key, value.clone()));
        assert_eq!(error.kind(), "UnsupportedModel", "{key} {value}: {error}");
        let message = error.to_string();
        assert!(
            message.contains(name) && message.contains("ONNX"),
            "{message}"
        );
    }
    let ntk = |key: &str, value: f64| {
        let mut scaling = json!({"type": "ntk", "factor": 2.0});
        scaling[key] = json!(value);
        scaling
    };
    let class = |class: &str| json!({"AutoModel": format!("someone/else--modeling.{class}")});
    let cases = [
        (
            gte::gte(),
            "position_embedding_type",
            json!("absolute"),
            "absolute",
        ),
        (gte::gte(), "layer_norm_type", json!("rms_norm"), "rms_norm"),
        (
            gte::gte(),
            "logn_attention_scale",
            json!(true),
            "logn_attention_scale",
        ),
        (gte::gte(), "hidden_act", json!("mish"), "mish"),
        (gte::gte(), "rope_scaling", ntk("mixed_b", 0.6), "mixed_b"),
        (gte::gte(), "rope_scaling", yarn.clone(), "yarn"),
        (
            gte::gte(),
            "rope_parameters",
            ntk("factor", 2.0),
            "rope_scaling",
        ),
        (gte::gte(), "auto_map", class("OtherModel"), "auto_map"),
        (
            gte::gte(),
            "max_position_embeddings",
            json!(500_000),
            "max_position_embeddings",
        ),
        (
            jina::jina(),
            "feed_forward_type",
            json!("original"),
            "original",
        ),
        (
            jina::jina(),
            "feed_forward_type",
            json!(null),
            "feed_forward_type",
        ),
        (jina::jina(), "is_decoder", json!(true), "is_decoder"),
        (
            deberta::deberta(),
            "relative_attention",
            json!(false),
            "relative_attention",
        ),
        (
            deberta::deberta(),
            "conv_kernel_size",
            json!(3),
            "convolution",
        ),
        (deberta::deberta(), "pos_att_type", json!("p2p|c2p"), "p2p"),
        (
            deberta::deberta(),
            "norm_rel_ebd",
            json!("batch_norm"),
            "batch_norm",
        ),
        (
            deberta::deberta(),
            "embedding_size",
            json!(16),
            "embedding_size",
        ),
        (
            deberta::deberta(),
            "attention_head_size",
            json!(4),
            "attention_head_size",
        ),
        (
            deberta::deberta(),
            "position_buckets",
            json!(2),
            "position_buckets",
        ),
        (
            deberta::deberta(),
            "max_relative_positions",
            json!(5),
            "position_buckets",
        ),
        (deberta::deberta(), "hidden_act", json!("mish"), "mish"),
        (
            deberta::deberta(),
            "max_position_embeddings",
            json!(500_000),
            "max_position_embeddings",
        ),
        (
            t5::t5(),
            "feed_forward_proj",
            json!("gated-silu"),
            "gated-silu",
        ),
        (t5::t5(), "is_decoder", json!(true), "is_decoder"),
        (t5::t5(), "n_positions", json!(500_000), "n_positions"),
        (
            t5::t5(),
            "relative_attention_num_buckets",
            json!(2),
            "2 buckets",
        ),
        (jina::jina(), "auto_map", class("BertModel"), "auto_map"),
        (
            jina::jina(),
            "max_position_embeddings",
            json!(500_000),
            "max_position_embeddings",
        ),
        (decoders::eurobert(), "rope_scaling", yarn, "yarn"),
        (
            decoders::eurobert(),
            "layer_types",
            json!(["full_attention", "full_attention", "sliding_attention"]),
            "layer_types",
        ),
        (
            decoders::eurobert(),
            "auto_map",
            class("LlamaModel"),
            "auto_map",
        ),
    ];
    for (model, key, value, name) in cases {
        let error = refused(&model.with(key, value.clone()));
        assert_eq!(error.kind(), "UnsupportedModel", "{key} {value}: {error}");
        let message = error.to_string();
        assert!(message.contains(name), "{message}");
    }
    let shorter = refused(&gte::gte().with("rope_scaling", ntk("factor", 0.5)));
    assert_eq!(shorter.kind(), "InvalidModel");
    assert!(shorter.to_string().contains("factor"), "{shorter}");
    let causal = decoders::gemma3().with("use_bidirectional_attention", false);
    let error = refused(&causal.with("is_causal", json!(false)));
    assert!(error.to_string().contains("is_causal"), "{error}");
}

fn experts() -> Checkpoint {
    models::nomicbert_of_experts()
}

/// Jina's reranker names no `model_type`, and its class of configs says what it is.
#[test]
fn an_xlm_r_of_jinas_is_known_by_its_own_class() {
    let model = jina_v3::jina_reranker();
    let mut nameless = model.clone();
    let config = nameless.config.as_object_mut().expect("an object");
    config.remove("model_type");
    for model in [&model, &nameless] {
        let converted = convert(&model.config_json(), model.tensor_set(Stored::F32));
        let converted = converted.expect("it converts");
        // XLM-R's positions begin behind that of padding.
        assert_eq!(converted.max_sequence, 64);
        let graph = converted.graph.graph.expect("a graph");
        assert!(graph.output.iter().any(|output| output.name == "logits"));
    }
    let named = architecture(&model.config_json());
    assert_eq!(architecture(&nameless.config_json()), named);
    let padding = model.clone().with("pad_token_id", 2);
    assert_ne!(architecture(&padding.config_json()), named);
    let adapted = model
        .clone()
        .with("lora_adaptations", json!(["retrieval.query"]));
    for (other, why) in [
        (adapted, "lora_adaptations"),
        (model.with("position_embedding_type", "alibi"), "alibi"),
    ] {
        let error = refused(&other);
        assert_eq!(error.kind(), "UnsupportedModel", "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn a_config_that_contradicts_itself_is_refused() {
    let cases = [
        (models::bert(), "num_attention_heads", serde_json::json!(5)),
        (models::bert(), "num_attention_heads", serde_json::json!(0)),
        (models::bert(), "hidden_size", serde_json::json!(-32)),
        (models::bert(), "hidden_size", serde_json::json!("32")),
        (models::bert(), "layer_norm_eps", serde_json::json!(-1.0)),
        (models::bert(), "vocab_size", serde_json::Value::Null),
        (models::roberta(), "pad_token_id", serde_json::json!(200)),
        (
            models::roberta(),
            "max_position_embeddings",
            serde_json::json!(2),
        ),
        (
            models::modernbert(),
            "layer_types",
            serde_json::json!(["full_attention"]),
        ),
        (
            models::modernbert(),
            "rope_parameters",
            serde_json::json!({}),
        ),
        (decoders::qwen3(), "num_key_value_heads", json!(3)),
        (decoders::qwen3(), "head_dim", json!(1 << 25)),
        (
            decoders::qwen3(),
            "layer_types",
            json!(["full_attention", "full_attention", "sliding_attention"]),
        ),
        (decoders::mistral(), "sliding_window", json!(0)),
        (decoders::gemma3(), "_sliding_window_pattern", json!(0)),
        (decoders::gemma3(), "query_pre_attn_scalar", json!(-1)),
        (decoders::gemma3(), "layer_types", json!(["full_attention"])),
        (
            decoders::gemma3(),
            "rope_parameters",
            json!({"rope_theta": 1e6}),
        ),
        (decoders::llama(), "num_attention_heads", json!(5)),
        (experts(), "moe_top_k", json!(6)),
        (experts(), "moe_top_k", json!(0)),
        (experts(), "num_experts", json!(257)),
    ];
    for (model, key, value) in cases {
        let error = refused(&model.with(key, value.clone()));
        assert_eq!(error.kind(), "InvalidModel", "{key} {value}: {error}");
        assert!(error.to_string().contains(key), "{error}");
    }
    for (scaling, key) in [
        (json!({"factor": 2.0}), "rope_type"),
        (json!({"rope_type": "linear"}), "factor"),
        (json!({"rope_type": "linear", "factor": 0}), "factor"),
        (
            json!({"rope_type": "llama3", "factor": 2.0}),
            "low_freq_factor",
        ),
        (
            json!({"rope_type": "llama3", "factor": 2.0, "low_freq_factor": 4.0, "high_freq_factor": 4.0}),
            "high_freq_factor",
        ),
        (json!("linear"), "rope_scaling"),
    ] {
        let error = refused(&decoders::llama().with("rope_scaling", scaling));
        assert_eq!(error.kind(), "InvalidModel", "{error}");
        assert!(error.to_string().contains(key), "{error}");
    }
    for json in ["", "{", "[]", "null", "\u{feff}{}"] {
        let tensors = models::bert().tensor_set(Stored::F32);
        assert!(convert(json.as_bytes(), tensors).is_err(), "{json:?}");
        assert!(family("tiny", json.as_bytes()).is_err(), "{json:?}");
    }
}

/// Every size in every config is checked against the tensors: changing any of them is refused,
/// naming a tensor and both shapes (or the key that does not fit another).
#[test]
fn every_size_is_checked_against_the_tensors() {
    let sizes = [
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "max_position_embeddings",
        "type_vocab_size",
        "num_hidden_layers",
        "dim",
        "hidden_dim",
        "n_layers",
        "n_embd",
        "n_inner",
        "n_layer",
        "head_dim",
        "d_model",
        "d_kv",
        "d_ff",
        "num_layers",
        "lora_rank",
    ];
    for (name, model) in models::all() {
        for key in sizes {
            let Some(size) = model.config[key].as_u64().filter(|&size| size > 0) else {
                continue;
            };
            // Tables of angles and of distances are made and not stored.
            let has_table = [
                "modernbert",
                "gte",
                "jina",
                "jina_code",
                "jina_v3",
                "deberta",
            ]
            .contains(&name);
            if (has_table || is_decoder(name)) && key == "max_position_embeddings" {
                continue;
            }
            let error = refused(&model.clone().with(key, size * 2));
            assert_eq!(error.kind(), "Weight", "{name} {key}: {error}");
            let message = error.to_string();
            assert!(
                message.contains("config.json asks for shape ["),
                "{message}"
            );
        }
    }
}

#[test]
fn every_tensor_is_needed_and_named_when_it_is_missing() {
    for (name, model) in models::all() {
        for tensor in model.tensors.keys() {
            let mut less = model.clone();
            less.tensors.remove(tensor);
            let outcome = convert(&less.config_json(), less.tensor_set(Stored::F32));
            if tensor.starts_with("pooler.") {
                assert!(outcome.is_ok(), "{name} without {tensor}");
                continue;
            }
            let error = outcome.expect_err(tensor);
            assert_eq!(error.kind(), "Weight", "{name} {tensor}: {error}");
            assert!(error.to_string().contains(tensor.as_str()), "{error}");
        }
    }
}

#[test]
fn two_models_in_one_checkpoint_are_refused() {
    let mut model = models::bert().prefixed("question.");
    model
        .tensors
        .extend(models::bert().prefixed("answer.").tensors);
    let error = refused(&model);
    assert_eq!(error.kind(), "UnsupportedModel", "{error}");
    assert!(error.to_string().contains("several models"), "{error}");
}

/// Whatever a config says, the answer is a graph or an error: bytes flipped, and values swapped for
/// ones that are too large, negative, empty or of another kind.
#[test]
fn no_config_makes_it_panic() {
    let mut rng = Rng::new(7);
    let odd = [
        serde_json::json!(0),
        serde_json::json!(-1),
        serde_json::json!(1),
        serde_json::json!(1_073_741_823),
        serde_json::json!(u64::MAX),
        serde_json::json!(1e300),
        serde_json::json!(""),
        serde_json::json!([]),
        serde_json::json!({}),
        serde_json::json!(true),
        serde_json::Value::Null,
    ];
    for (_, model) in models::all() {
        let tensors = model.tensor_set(Stored::F32);
        let whole = model.config_json();
        for _ in 0..300 {
            let mut bytes = whole.clone();
            for _ in 0..=rng.below(3) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = rng.below(256) as u8;
            }
            let _ = convert(&bytes, tensors.clone());
        }
        let keys: Vec<String> = match &model.config {
            serde_json::Value::Object(map) => map.keys().cloned().collect(),
            _ => Vec::new(),
        };
        assert!(keys.len() > 8);
        for key in keys {
            for value in &odd {
                let config = model.clone().with(&key, value.clone()).config_json();
                let _ = convert(&config, tensors.clone());
            }
        }
    }
}

/// Weights are read one at a time and need not be kept: reading one twice gives the same.
#[test]
fn weights_can_be_read_in_any_order() {
    let converted = converted(&models::mpnet(), Stored::BF16);
    let count = converted.weights.weights().len();
    for index in (0..count).rev() {
        let info = &converted.weights.weights()[index];
        let data = read(&*converted.weights, index).expect("readable");
        assert_eq!(data.len(), info.byte_len(), "{}", info.name);
        assert_eq!(data, read(&*converted.weights, index).expect("readable"));
    }
    assert!(read(&*converted.weights, count).is_err());
}

/// Whatever in `config.json` changes what a model computes from the same weights changes the hash of its architecture.
#[test]
fn what_changes_the_graph_changes_the_architecture() {
    /// How many positions there are is how long a text may be, and makes tables longer: no vector changes.
    const LENGTHS: [&str; 3] = [
        "max_position_embeddings",
        "n_positions",
        "max_trained_positions",
    ];
    let known = [
        "activation_function",
        "attention_bias",
        "global_attn_every_n_layers",
        "global_rope_theta",
        "hidden_act",
        "hidden_activation",
        "is_causal",
        "layer_norm_eps",
        "layer_norm_epsilon",
        "layer_types",
        "local_attention",
        "local_rope_theta",
        "mlp_bias",
        "mlp_fc1_bias",
        "mlp_fc2_bias",
        "norm_bias",
        "norm_eps",
        "pad_token_id",
        "position_embedding_type",
        "qkv_proj_bias",
        "rope_parameters",
        "rope_theta",
        "rotary_emb_base",
        "rotary_scaling_factor",
        "sliding_window",
        "type_vocab_size",
        "use_bidirectional_attention",
        "use_sliding_window",
    ];
    let others = |value: &serde_json::Value| {
        let mut others = vec![
            json!(null),
            json!(0),
            json!(1),
            json!(2),
            json!(8),
            json!(0.5),
            json!(true),
            json!(false),
            json!("relu"),
            json!("geglu"),
            json!(["full_attention", "sliding_attention", "full_attention"]),
            json!({"full_attention": {"rope_theta": 5.0}, "sliding_attention": {"rope_theta": 7.0}}),
        ];
        if let Some(number) = value.as_f64() {
            others.push(json!(number * 2.0));
        }
        if let Some(number) = value.as_u64() {
            others.extend([
                json!(number / 2),
                json!(number * 2),
                json!(number.saturating_sub(1)),
            ]);
        }
        others
    };
    let (mut changed, mut same) = (0, 0);
    for (name, model) in models::all() {
        let tensors = model.tensor_set(Stored::F32);
        let plain = graph_of(&model).graph.map(|graph| graph.encode_to_vec());
        let hash = architecture(&model.config_json()).expect("it is read");
        let keys = model.config.as_object().expect("an object").keys();
        let keys: std::collections::BTreeSet<String> =
            keys.cloned().chain(known.map(str::to_owned)).collect();
        for key in keys.iter().filter(|key| !LENGTHS.contains(&key.as_str())) {
            for other in others(&model.config[key.as_str()]) {
                let mut config = model.config.clone();
                config[key.as_str()] = other.clone();
                let config = config.to_string().into_bytes();
                let Ok(converted) = convert(&config, std::sync::Arc::clone(&tensors)) else {
                    continue;
                };
                let graph = inlined(&converted).graph.map(|graph| graph.encode_to_vec());
                if graph != plain {
                    changed += 1;
                    let other_hash = architecture(&config).expect("it is read");
                    assert_ne!(other_hash, hash, "{name}: {key} {other}");
                } else {
                    same += 1;
                }
            }
        }
    }
    assert!(changed > 60 && same > 60, "{changed} {same}");
}

/// A count of layers that no file has tensors for is refused before anything is built.
#[test]
fn more_layers_than_the_files_pay_for_are_over_budget() {
    let model = models::bert().with("num_hidden_layers", 500_000_000);
    let result = convert(&model.config_json(), model.tensor_set(Stored::F32));
    assert_eq!(result.expect_err("too many").kind(), "OverBudget");
}
