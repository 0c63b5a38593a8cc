//! Every model of texts that the documentation of sentence-transformers, fastembed and text-embeddings-inference lists is converted, or
//! is refused for the reason that `docs/known-models.md` says: judged by its architecture and its config, on seeded weights.

use std::collections::BTreeMap;
use std::fmt::Write;

use isovec_engine::budget::Budget;
use isovec_model::convert::{Half, Wanted, convert_within, family};
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::{heads, sparse};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What is known of the models.
#[derive(Deserialize)]
struct Known {
    configs: BTreeMap<String, Kind>,
    models: BTreeMap<String, Listed>,
}

/// Models that are alike in all that decides.
#[derive(Deserialize)]
struct Kind {
    task: String,
    /// What decides in `config.json`.
    config: Map<String, Value>,
    /// What its config is refused for.
    refused: Option<String>,
    /// With what `modules.json` begins, where it is refused for that, whatever its config says. `tests/whole/encoders.rs` does so.
    module: Option<String>,
}

#[derive(Deserialize)]
struct Listed {
    config: String,
    /// By whom.
    listed: Vec<String>,
}

fn known() -> Known {
    let json = include_str!("../../../tests/data/known-models/models.json");
    serde_json::from_str(json).expect("it is as described")
}

/// A seeded model of a class, by a config's values.
fn of_class(class: &str, kind: &Kind) -> Checkpoint {
    // RoBERTa and XLM-R are one computation.
    let same = class.replace("XLMRoberta", "Roberta");
    let mut all = heads::all(1).into_iter().chain(sparse::all());
    // Jina's XLM-R has XLM-R's class, and tensors of other names.
    let own = kind
        .config
        .get("auto_map")
        .is_some_and(|map| map.to_string().contains("XLMRobertaFlashConfig"));
    let model = all.find(|(name, model)| {
        name.replace("XLMRoberta", "Roberta") == same
            && model
                .tensors
                .contains_key("encoder.layers.0.mixer.Wqkv.weight")
                == own
    });
    let (_, mut model) = model.unwrap_or_else(|| panic!("no model of {class}"));
    for (key, value) in &kind.config {
        model.config[key] = value.clone();
    }
    model
}

/// Why a kind of models is not converted; none where it is.
fn refusal(kind: &Kind) -> Option<String> {
    let config = Value::Object(kind.config.clone()).to_string();
    if let Err(error) = family("known", config.as_bytes()) {
        return Some(error.to_string());
    }
    let class = kind
        .config
        .get("architectures")
        .and_then(|all| all[0].as_str());
    let (Some(class), "rerank" | "sparse") = (class, kind.task.as_str()) else {
        return None;
    };
    let model = of_class(class, kind);
    let wanted = Wanted {
        half: Half::Texts,
        vocabulary: kind.task == "sparse",
        logit_score: None,
    };
    let tensors = model.tensor_set(Stored::F32);
    let mut budget = Budget::for_files(tensors.byte_len());
    let converted = convert_within(&model.config_json(), &[], tensors, wanted, &mut budget);
    let converted = match converted {
        Ok(converted) => converted,
        Err(error) => return Some(error.to_string()),
    };
    let graph = converted.graph.graph.expect("a graph");
    let output = if wanted.vocabulary {
        "token_logits"
    } else {
        "logits"
    };
    let has = graph.output.iter().any(|own| own.name == output);
    (!has).then(|| format!("no {output}"))
}

#[test]
fn every_kind_is_converted_or_refused_as_it_says() {
    for (name, kind) in known().configs {
        if kind.module.is_some() {
            continue;
        }
        match kind.refused.as_deref() {
            None => assert_eq!(refusal(&kind), None, "{name}"),
            Some(reason) => {
                let refusal = refusal(&kind).unwrap_or_else(|| panic!("{name} is converted"));
                assert!(refusal.contains(reason), "{name}: {refusal}");
            }
        }
    }
}

/// A config of another kind is judged otherwise, so the judgement reads what it is given.
#[test]
fn the_judgement_follows_the_config() {
    let kinds = known().configs;
    let with = |name: &str, key: &str, value: Value| {
        let mut config = kinds[name].config.clone();
        config.insert(key.into(), value);
        let kind = Kind {
            task: kinds[name].task.clone(),
            config,
            refused: None,
            module: None,
        };
        refusal(&kind)
    };
    assert_eq!(refusal(&kinds["bert-pairs"]), None);
    for (name, key, value) in [
        ("bert", "position_embedding_type", json!("relative_key")),
        ("gte", "layer_norm_type", json!("rms_norm")),
        ("gte-pairs", "rope_scaling", json!({"type": "yarn"})),
        ("jina-v2", "feed_forward_type", json!("original")),
        ("nomic", "num_experts", json!(8)),
        ("roberta-words", "model_type", json!("electra")),
        ("t5", "feed_forward_proj", json!("gated-silu")),
        ("deberta-v2-pairs", "conv_kernel_size", json!(3)),
    ] {
        assert!(with(name, key, value).is_some(), "{name} {key}");
    }
}

/// The rows of the table, in the order of ids.
fn table() -> String {
    let Known {
        configs,
        models: all,
    } = known();
    let mut rows: Vec<_> = all.iter().collect();
    rows.sort_by_key(|(id, _)| id.to_lowercase());
    let mut table = String::new();
    for (id, model) in rows {
        let kind = &configs[&model.config];
        let outcome = match kind.module.as_ref().or(kind.refused.as_ref()) {
            None => "converts".to_owned(),
            Some(reason) => format!("refused: `{reason}`"),
        };
        let listed = model.listed.join(", ");
        writeln!(table, "| `{id}` | {} | {outcome} | {listed} |", kind.task).expect("a string");
    }
    table
}

#[test]
fn the_table_of_the_documentation_is_this_one() {
    let document = include_str!("../../../docs/known-models.md");
    // Ids have an owner, and what else stands in tables has none.
    let is_id = |cell: &str| cell.contains('/');
    let of_id = |line: &&str| line.starts_with("| `") && line.split('|').nth(1).is_some_and(is_id);
    let rows = document.lines().filter(of_id);
    let found: String = rows.map(|row| format!("{row}\n")).collect();
    let wanted = table();
    assert!(
        found == wanted,
        "docs/known-models.md should have these rows:\n{wanted}"
    );
}

#[test]
fn every_kind_has_a_model() {
    let Known {
        configs,
        models: all,
    } = known();
    for name in configs.keys() {
        assert!(all.values().any(|model| model.config == *name), "{name}");
    }
    for (id, model) in &all {
        assert!(configs.contains_key(&model.config), "{id}");
        assert!(!model.listed.is_empty(), "{id}");
    }
}
