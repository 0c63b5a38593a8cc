//! The model in `tests/data/tiny-reranker`: the tiny BERT with a seeded head of one label, as transformers saves a cross-encoder,
//! and its logits at f64 for a query with some documents.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::checkpoint::{Checkpoint, Stored};
use crate::heads::{logits, published, with_classifier};
use crate::tiny::{self, pretty, tokenise, tokenizer, vocabulary};

/// The query of the reference.
pub const QUERY: &str = "which animal is in the house";

/// The documents of the reference: a short one and a long one, an empty one, one twice.
pub const DOCUMENTS: [&str; 9] = [
    "the dog is an animal",
    "money in the bank",
    "",
    "A cat sleeps in the house, and the children watch it for a long time.",
    "a",
    "the bank of the river",
    "money in the bank",
    "the king and the queen have a house near the sea, and there is an animal in every room of it",
    "...!!!",
];

/// The model, its tensors named without a prefix.
pub fn model() -> Checkpoint {
    with_classifier(tiny::model(), 20_261_125, 1)
        .with("architectures", json!(["BertForSequenceClassification"]))
        .with("id2label", json!({"0": "LABEL_0"}))
}

/// The ids of the query with a document, and the types of its tokens.
pub fn pair(vocabulary: &[String], document: &str) -> (Vec<i64>, Vec<i64>) {
    let (first, second) = (tokenise(vocabulary, QUERY), tokenise(vocabulary, document));
    // The document's own [CLS] does not stand between them.
    let ids = [&first[..], &second[1..]].concat();
    let kinds = (0..ids.len()).map(|at| i64::from(at >= first.len()));
    let kinds = kinds.collect();
    (ids, kinds)
}

/// Every file of the folder, by its path.
pub fn files() -> BTreeMap<String, Vec<u8>> {
    let (model, vocabulary) = (model(), vocabulary());
    let published = published(model.clone());
    let entry = |document: &str| {
        let (ids, kinds) = pair(&vocabulary, document);
        json!({"text": document, "tokens": ids.len(), "logit": logits(&model, &ids, &kinds)[0]})
    };
    let reference: Value = json!({
        "made_by": "cargo run -p isovec-test-models --example tiny_model",
        "query": QUERY,
        "documents": DOCUMENTS.map(entry),
    });
    BTreeMap::from([
        ("config.json".into(), pretty(&published.config)),
        ("model.safetensors".into(), published.file(Stored::F32)),
        ("tokenizer.json".into(), pretty(&tokenizer(&vocabulary))),
        ("reference.json".into(), pretty(&reference)),
    ])
}
