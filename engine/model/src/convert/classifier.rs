//! The classifier behind an encoder: from the vectors of its first positions to a logit for each label.

use isovec_engine::description::Dim;
use isovec_engine::error::Result;
use isovec_engine::tensor::DType;

use super::config::Config;
use super::embeddings::LAST_HIDDEN_STATE;
use super::linear::Linear;
use super::net::Net;
use crate::head::LOGITS;

/// The module of BERT's head for sequence classification, and the one that pools for it.
const CLASSIFIER: &str = "classifier";
const POOLER: &str = "pooler.dense";

/// Adds the output `logits`, f32 `[batch, labels]`, to BERT's hidden states, where `config.json` names the class
/// `BertForSequenceClassification` and the checkpoint holds its layers: `classifier(tanh(pooler(first position)))`.
/// Whoever wants hidden states drops it with all that leads to it.
pub(super) fn add_to_bert(config: &Config, net: &mut Net<'_>, hidden: usize) -> Result<()> {
    if !is_class(config, "BertForSequenceClassification") || !net.holds(&format!("{POOLER}.weight"))
    {
        return Ok(());
    }
    let Some(labels) = labels(net, CLASSIFIER) else {
        return Ok(());
    };
    net.scope(POOLER);
    let first = token(net, 0);
    let pooled = Linear::new(POOLER, hidden, hidden).apply(net, &first)?;
    let pooled = net.node("Tanh", &[&pooled], vec![]);
    classify(net, CLASSIFIER, (hidden, labels), &pooled)?;
    declare(net, labels);
    Ok(())
}

/// The same for ViT and DeiT: `classifier(first token)` of the classes `ViTForImageClassification` and
/// `DeiTForImageClassification`. `DeiTForImageClassificationWithTeacher` has a layer for each of its first two tokens, and the mean
/// of both results.
pub(super) fn add_to_vit(config: &Config, net: &mut Net<'_>, hidden: usize) -> Result<()> {
    if is_class(config, "DeiTForImageClassificationWithTeacher") {
        let [one, two] = ["cls_classifier", "distillation_classifier"];
        let Some(labels) = labels(net, one) else {
            return Ok(());
        };
        let [first, second] = [0, 1].map(|at| token(net, at));
        let first = classify(net, one, (hidden, labels), &first)?;
        let second = classify(net, two, (hidden, labels), &second)?;
        net.scope("mean");
        let sum = net.node("Add", &[&first, &second], vec![]);
        let half = net.builder().f32(0.5);
        net.node("Mul", &[&sum, &half], vec![]);
        declare(net, labels);
        return Ok(());
    }
    let classes = ["ViTForImageClassification", "DeiTForImageClassification"];
    let is_one = classes.iter().any(|class| is_class(config, class));
    let Some(labels) = labels(net, CLASSIFIER).filter(|_| is_one) else {
        return Ok(());
    };
    let first = token(net, 0);
    classify(net, CLASSIFIER, (hidden, labels), &first)?;
    declare(net, labels);
    Ok(())
}

/// Whether `config.json` names this class.
fn is_class(config: &Config, class: &str) -> bool {
    let classes = config.value("architectures").and_then(|all| all.as_array());
    classes.is_some_and(|all| all.iter().any(|name| name.as_str() == Some(class)))
}

/// The labels of a layer, if the checkpoint holds it.
fn labels(net: &mut Net<'_>, layer: &str) -> Option<usize> {
    let weight = format!("{layer}.weight");
    net.without_prefix(|net| match net.shape_of(&weight) {
        Some(&[labels, _]) => Some(labels),
        _ => None,
    })
}

/// The hidden vector of one token, `[batch, hidden]`.
fn token(net: &mut Net<'_>, at: i64) -> String {
    let at = net.builder().i64s(&[], &[at]);
    net.gather(LAST_HIDDEN_STATE, &at, 1)
}

/// A layer that stands beside the model in the checkpoint: from hidden vectors to labels.
fn classify(
    net: &mut Net<'_>,
    layer: &str,
    (hidden, labels): (usize, usize),
    x: &str,
) -> Result<String> {
    net.without_prefix(|net| {
        net.scope(layer);
        Linear::new(layer, hidden, labels).apply(net, x)
    })
}

/// Declares what the last node computes as the logits.
fn declare(net: &mut Net<'_>, labels: usize) {
    net.name_last(LOGITS);
    let dims = [Dim::Symbolic("batch".into()), Dim::Fixed(labels)];
    net.builder().output(LOGITS, DType::F32, &dims);
}
