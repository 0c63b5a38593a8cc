//! The classifier behind an encoder: from the hidden vectors of its tokens to a logit for each label.
//!
//! A head is added where `config.json` names a class with one and the checkpoint holds its layers. Whoever wants hidden states
//! drops it with all that leads to it.

mod pictures;
mod texts;

use isovec_engine::description::Dim;
use isovec_engine::error::Result;
use isovec_engine::tensor::DType;

use super::config::Config;
use super::embeddings::LAST_HIDDEN_STATE;
use super::linear::Linear;
use super::net::Net;
use crate::head::LOGITS;

pub(super) use pictures::add_to_vit;
pub(super) use texts::{
    add_to_bert, add_to_deberta, add_to_decoder, add_to_distilbert, add_to_modernbert,
    add_to_mpnet, add_to_roberta, deberta_deciding, modernbert_deciding,
};

/// The layer that most classes end in.
const CLASSIFIER: &str = "classifier";

/// A class of `config.json` with a head.
struct Class<'a> {
    /// Its name: `BertForSequenceClassification`.
    name: &'a str,
    /// The last layer, which has an output for each label.
    last: &'a str,
    /// A layer before it.
    before: Option<&'a str>,
}

impl Class<'_> {
    /// The labels of the head, if there is one. Where the config and the checkpoint contradict each other, there is none, and
    /// the graph remembers why.
    fn labels(&self, config: &Config, net: &mut Net<'_>) -> Option<usize> {
        let labels = labels(net, self.last);
        let lacks = match labels {
            None => Some(self.last),
            Some(_) => self.before.filter(|before| !holds(net, before)),
        };
        let named = names(config);
        if !named.contains(&self.name) {
            if labels.is_some() && lacks.is_none() {
                net.explain_no_logits(format!(
                    "the checkpoint holds {}.weight, but architectures in config.json is [{}], and not [{}]",
                    self.last,
                    named.join(", "),
                    self.name
                ));
            }
            return None;
        }
        if let Some(layer) = lacks {
            net.explain_no_logits(format!(
                "config.json names the class {}, but the checkpoint holds no {layer}.weight of two axes",
                self.name
            ));
            return None;
        }
        labels
    }
}

/// The classes that `config.json` names.
pub(super) fn names(config: &Config) -> Vec<&str> {
    let classes = config.value("architectures").and_then(|all| all.as_array());
    let classes = classes.into_iter().flatten();
    classes.filter_map(|name| name.as_str()).collect()
}

/// Whether `config.json` names this class.
fn is_class(config: &Config, class: &str) -> bool {
    names(config).contains(&class)
}

/// Whether the checkpoint holds a layer in the model or beside it.
fn holds(net: &mut Net<'_>, layer: &str) -> bool {
    let weight = format!("{layer}.weight");
    net.holds(&weight) || net.without_prefix(|net| net.holds(&weight))
}

/// The labels of a layer beside the model, if the checkpoint holds it.
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

/// A layer that stands beside the model in the checkpoint, from `input` features to `output`.
fn beside(
    net: &mut Net<'_>,
    layer: &str,
    (input, output): (usize, usize),
    x: &str,
) -> Result<String> {
    net.without_prefix(|net| {
        net.scope(layer);
        Linear::new(layer, input, output).apply(net, x)
    })
}

/// Declares what the last node computes as the logits.
pub(super) fn declare(net: &mut Net<'_>, labels: usize) {
    net.name_last(LOGITS);
    let dims = [Dim::Symbolic("batch".into()), Dim::Fixed(labels)];
    net.builder().output(LOGITS, DType::F32, &dims);
}
