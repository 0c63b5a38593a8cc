//! The table of well-known models: that what it says loads by conversion does, by architecture and
//! config, and that what it says does not convert is refused.

use std::collections::BTreeSet;

use isovec_model::convert::catalog::{Entry, Loading, Task, entries, find};
use isovec_model::convert::{convert, family};
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::{decoders, gte, jina, models};
use serde_json::json;

/// A tiny model whose config has the traits of a published one.
fn stand_in(id: &str, model_type: &str) -> Checkpoint {
    match model_type {
        "bert" if id == "jinaai/jina-embeddings-v2-base-code" => jina::jina_code(),
        "bert" if id.starts_with("jinaai/") => jina::jina(),
        "bert" => models::bert(),
        "xlm-roberta" => models::roberta(),
        "mpnet" => models::mpnet(),
        "distilbert" => models::distilbert(),
        "modernbert" => models::modernbert(),
        "nomic_bert" if id.ends_with("-moe") => models::nomicbert_of_experts(),
        "nomic_bert" => models::nomicbert(),
        "new" => gte::gte(),
        "qwen3" => decoders::qwen3(),
        "mistral" => decoders::mistral(),
        "gemma3_text" => decoders::gemma3(),
        other => panic!("no stand-in for {other}"),
    }
}

fn converts(model: &Checkpoint) -> bool {
    let config = model.config_json();
    let built = convert(&config, model.tensor_set(Stored::F32)).is_ok();
    assert_eq!(built, family("tiny", &config).is_ok());
    built
}

#[test]
fn what_converts_does() {
    let mut count = 0;
    for entry in entries() {
        if entry.loading == Loading::Converts {
            let model = stand_in(entry.id, entry.model_type);
            assert!(converts(&model), "{}", entry.id);
            count += 1;
        }
    }
    assert!(count >= 11, "{count}");
}

/// Files whose model also converts from another repository are of an architecture that does.
#[test]
fn originals_are_of_a_family_that_converts() {
    for entry in entries() {
        if let Loading::Onnx {
            original: Some(original),
            ..
        } = entry.loading
        {
            let model = stand_in(original, entry.model_type);
            assert!(converts(&model), "{original}");
        }
    }
}

/// What has no original to convert either has no safetensors, or is refused by its config.
#[test]
fn what_does_not_convert_is_refused_by_its_config() {
    let own_code = |id| {
        let mut config = decoders::qwen2().config;
        config["auto_map"] = json!({"AutoModel": "modeling_qwen.Qwen2Model"});
        (id, config)
    };
    let configs = [
        own_code("Alibaba-NLP/gte-Qwen2-1.5B-instruct"),
        own_code("Alibaba-NLP/gte-Qwen2-7B-instruct"),
        (
            "Qwen/Qwen3-VL-Embedding-2B",
            json!({"model_type": "qwen3_vl"}),
        ),
    ];
    for entry in entries() {
        let alone = match entry.loading {
            // A class of labels borrows a family's name with its own code, and its file gives the scores.
            Loading::Onnx { original, .. } => original.is_none() && entry.task == Task::Dense,
            Loading::Refused { .. } => entry.task == Task::Dense,
            _ => false,
        };
        // Published as a pickle and as ONNX, or as ONNX alone: their configs would do.
        let only_its_files = ["BAAI/bge-m3", "Qdrant/clip-ViT-B-32-text"];
        if !alone || only_its_files.contains(&entry.id) {
            continue;
        }
        let (_, config) = configs
            .iter()
            .find(|(id, _)| *id == entry.id)
            .unwrap_or_else(|| panic!("no config for {}", entry.id));
        let error = family(entry.id, config.to_string().as_bytes()).expect_err(entry.id);
        assert_eq!(error.kind(), "UnsupportedModel", "{error}");
        assert!(error.to_string().contains(entry.id), "{error}");
    }
}

#[test]
fn every_entry_is_whole() {
    let mut seen = BTreeSet::new();
    for &Entry {
        id,
        file,
        task,
        loading,
        pooling,
        ..
    } in entries()
    {
        assert!(id.split('/').count() == 2, "{id}");
        assert!(
            seen.insert((id, file, format!("{task:?}"))),
            "{id} {file:?} twice"
        );
        assert!(
            [Task::Dense, Task::Rerank, Task::Sparse].contains(&task)
                || matches!(loading, Loading::Refused { .. }),
            "{id}"
        );
        match loading {
            Loading::Converts => assert_eq!(pooling.is_some(), task == Task::Dense, "{id}"),
            Loading::Onnx { .. } => assert!(file.is_some(), "{id}"),
            Loading::Refused { reason } => assert!(reason.len() > 20, "{id}"),
            other => panic!("{id}: {other:?}"),
        }
    }
}

#[test]
fn entries_are_found_whatever_the_case() {
    let found: Vec<_> = find("snowflake/Snowflake-Arctic-Embed-M").collect();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].loading, Loading::Converts);
    assert_eq!(find("nobody/nothing").count(), 0);
}
