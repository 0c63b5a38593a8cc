//! The classifier behind an encoder: from the vector of the first position to a logit for each label.

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
    let classes = config.value("architectures").and_then(|all| all.as_array());
    let classifies = classes.is_some_and(|all| {
        all.iter()
            .any(|class| class.as_str() == Some("BertForSequenceClassification"))
    });
    if !classifies || !net.holds(&format!("{POOLER}.weight")) {
        return Ok(());
    }
    let weight = format!("{CLASSIFIER}.weight");
    let labels = net.without_prefix(|net| match net.shape_of(&weight) {
        Some(&[labels, _]) => Some(labels),
        _ => None,
    });
    let Some(labels) = labels else {
        return Ok(());
    };
    net.scope(POOLER);
    let first = net.builder().i64s(&[], &[0]);
    let first = net.gather(LAST_HIDDEN_STATE, &first, 1);
    let pooled = Linear::new(POOLER, hidden, hidden).apply(net, &first)?;
    let pooled = net.node("Tanh", &[&pooled], vec![]);
    net.without_prefix(|net| {
        net.scope(CLASSIFIER);
        Linear::new(CLASSIFIER, hidden, labels).apply(net, &pooled)
    })?;
    net.name_last(LOGITS);
    let dims = [Dim::Symbolic("batch".into()), Dim::Fixed(labels)];
    net.builder().output(LOGITS, DType::F32, &dims);
    Ok(())
}
