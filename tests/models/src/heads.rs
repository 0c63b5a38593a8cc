//! A tiny classifier of each family with seeded random weights, and its logits at f64, written from the classes'
//! documentation (<https://huggingface.co/docs/transformers>).

use serde_json::json;

use crate::checkpoint::Checkpoint;
use crate::deberta;
use crate::gte;
use crate::jina;
use crate::jina_v3;
use crate::models::{self, HIDDEN, Maker};
use crate::reference::{Rows, activate, last_hidden_state, layer_norm, linear};
use crate::tiny;

/// A BERT with the head that classifies: the pooler, and a layer with an output for each label.
pub fn with_classifier(mut model: Checkpoint, seed: u64, labels: usize) -> Checkpoint {
    let hidden = model.config["hidden_size"].as_u64().expect("a size") as usize;
    let mut maker = Maker::new(seed);
    maker.linear("pooler.dense", hidden, hidden, true);
    maker.linear("classifier", hidden, labels, true);
    model.tensors.extend(maker.tensors);
    model
}

/// A model that has a head already, without it.
fn of_labels(mut model: Checkpoint, labels: usize) -> Checkpoint {
    model
        .tensors
        .retain(|name, _| !name.starts_with("classifier."));
    let names = (0..labels).map(|at| (at.to_string(), json!(format!("LABEL_{at}"))));
    let names: serde_json::Map<_, _> = names.collect();
    model.with("id2label", serde_json::Value::Object(names))
}

/// A classifier with this many labels of each class, by the class's name, for the words of [`tiny`]. Tensors are named without a
/// prefix.
pub fn all(labels: usize) -> Vec<(&'static str, Checkpoint)> {
    let with = |model: Checkpoint, seed, class: &'static str, make: &dyn Fn(&mut Maker)| {
        let mut maker = Maker::new(seed);
        make(&mut maker);
        let mut model = tiny::of_words(model).with("architectures", json!([class]));
        model.tensors.extend(maker.tensors);
        (class, model)
    };
    let bert = with_classifier(models::bert(), 80, labels);
    let roberta = |maker: &mut Maker| {
        maker.linear("classifier.dense", HIDDEN, HIDDEN, true);
        maker.linear("classifier.out_proj", HIDDEN, labels, true);
    };
    let distilbert = |maker: &mut Maker| {
        maker.linear("pre_classifier", HIDDEN, HIDDEN, true);
        maker.linear("classifier", HIDDEN, labels, true);
    };
    let modernbert = |maker: &mut Maker| {
        maker.linear("head.dense", HIDDEN, HIDDEN, false);
        maker.norm("head.norm", HIDDEN, false);
        maker.linear("classifier", HIDDEN, labels, true);
    };
    let of_mean = models::modernbert().with("classifier_pooling", "mean");
    vec![
        with(bert, 81, "BertForSequenceClassification", &|_| {}),
        with(
            models::roberta(),
            82,
            "XLMRobertaForSequenceClassification",
            &roberta,
        ),
        with(
            models::mpnet(),
            83,
            "MPNetForSequenceClassification",
            &roberta,
        ),
        with(
            of_labels(jina_v3::jina_reranker(), labels),
            96,
            "XLMRobertaForSequenceClassification",
            &roberta,
        ),
        with(
            models::distilbert(),
            84,
            "DistilBertForSequenceClassification",
            &distilbert,
        ),
        with(
            with_classifier(gte::gte(), 87, labels),
            88,
            "NewForSequenceClassification",
            &|_| {},
        ),
        with(
            with_classifier(jina::jina_code(), 89, labels),
            90,
            "JinaBertForSequenceClassification",
            &|_| {},
        ),
        with(
            with_classifier(deberta::deberta(), 94, labels),
            95,
            "DebertaV2ForSequenceClassification",
            &|_| {},
        ),
        with(
            models::modernbert(),
            85,
            "ModernBertForSequenceClassification",
            &modernbert,
        ),
        with(
            of_mean,
            86,
            "ModernBertForSequenceClassification",
            &modernbert,
        ),
    ]
}

/// The model as transformers saves it: the head stands beside the model, whose tensors begin with the model's name.
pub fn published(mut model: Checkpoint) -> Checkpoint {
    let prefix = match model.config["model_type"].as_str().expect("a model type") {
        "xlm-roberta" => "roberta",
        "modernbert" => "model",
        "deberta-v2" => "deberta",
        other => other,
    };
    let prefix = prefix.to_owned();
    // BERT's pooler belongs to the model.
    let pooler = if prefix == "deberta" {
        "pooler."
    } else {
        "classifier."
    };
    let beside = [
        pooler,
        "classifier.",
        "pre_classifier.",
        "head.",
        "cls.",
        "vocab_",
        "lm_head.",
        "decoder.",
        "linear.",
    ];
    model.tensors = model
        .tensors
        .into_iter()
        .map(
            |(name, array)| match beside.iter().any(|head| name.starts_with(head)) {
                true => (name, array),
                false => (format!("{prefix}.{name}"), array),
            },
        )
        .collect();
    model
}

/// A classifier's number for each label.
pub fn logits(model: &Checkpoint, ids: &[i64], types: &[i64]) -> Vec<f64> {
    let rows = last_hidden_state(model, ids, types);
    let first = &rows[0];
    let each = |x: Vec<f64>, f: &dyn Fn(f64) -> f64| x.into_iter().map(f).collect::<Vec<f64>>();
    match model.config["model_type"].as_str().expect("a model type") {
        "bert" | "new" => {
            let pooled = each(linear(model, "pooler.dense", first), &libm::tanh);
            linear(model, "classifier", &pooled)
        }
        "deberta-v2" => {
            let pooled = each(linear(model, "pooler.dense", first), &|x| {
                activate("gelu", x)
            });
            linear(model, "classifier", &pooled)
        }
        "roberta" | "xlm-roberta" | "camembert" | "mpnet" => {
            let pooled = each(linear(model, "classifier.dense", first), &libm::tanh);
            linear(model, "classifier.out_proj", &pooled)
        }
        "distilbert" => {
            let pooled = each(linear(model, "pre_classifier", first), &|x| x.max(0.0));
            linear(model, "classifier", &pooled)
        }
        "modernbert" => {
            let pooled = match model.config.get("classifier_pooling") {
                Some(pooling) if pooling == "mean" => mean(&rows),
                _ => first.clone(),
            };
            let active = each(linear(model, "head.dense", &pooled), &|x| {
                activate("gelu", x)
            });
            let epsilon = model.config["norm_eps"].as_f64().expect("an epsilon");
            let normed = layer_norm(model, "head.norm", epsilon, &active);
            linear(model, "classifier", &normed)
        }
        other => panic!("no reference for {other}"),
    }
}

fn mean(rows: &Rows) -> Vec<f64> {
    let column = |at: usize| rows.iter().map(|row| row[at]).sum::<f64>() / rows.len() as f64;
    (0..rows[0].len()).map(column).collect()
}
