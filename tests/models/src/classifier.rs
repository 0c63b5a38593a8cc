//! The model in `tests/data/tiny-classifier`: the tiny BERT with a seeded head of three labels, as transformers saves a
//! `BertForSequenceClassification`, and its logits at f64 for some texts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::checkpoint::{Checkpoint, Stored};
use crate::heads::{logits, with_classifier};
use crate::tiny::{self, TEXTS, pretty, tokenise, tokenizer, vocabulary};

/// The labels in the order of the logits.
pub const LABELS: [&str; 3] = ["negative", "neutral", "positive"];

/// The model, its tensors named without a prefix.
pub fn model() -> Checkpoint {
    let names: BTreeMap<String, &str> = LABELS
        .iter()
        .enumerate()
        .map(|(id, label)| (id.to_string(), *label))
        .collect();
    with_classifier(tiny::model(), 20_261_123, LABELS.len())
        .with("architectures", json!(["BertForSequenceClassification"]))
        .with("id2label", json!(names))
}

/// The model as transformers writes it: the head stands beside the model, whose tensors begin with `bert.`.
pub fn published() -> Checkpoint {
    let mut model = model();
    model.tensors = model
        .tensors
        .into_iter()
        .map(|(name, array)| match name.starts_with("classifier.") {
            true => (name, array),
            false => (format!("bert.{name}"), array),
        })
        .collect();
    model
}

/// Every file of the folder, by its path.
pub fn files() -> BTreeMap<String, Vec<u8>> {
    let (model, published, vocabulary) = (model(), published(), vocabulary());
    let entry = |text: &str| {
        let ids = tokenise(&vocabulary, text);
        json!({"text": text, "ids": ids, "logits": logits(&model, &ids, &vec![0; ids.len()])})
    };
    let reference: Value = json!({
        "made_by": "cargo run -p isovec-test-models --example tiny_model",
        "labels": LABELS,
        "texts": TEXTS.map(entry),
    });
    BTreeMap::from([
        ("config.json".into(), pretty(&published.config)),
        ("model.safetensors".into(), published.file(Stored::F32)),
        ("tokenizer.json".into(), pretty(&tokenizer(&vocabulary))),
        ("reference.json".into(), pretty(&reference)),
    ])
}
