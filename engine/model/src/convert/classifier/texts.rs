//! The heads of the classes that read texts. Each adds the output `logits`, f32 `[batch, labels]`, to hidden states.

use isovec_engine::error::Result;

use super::{CLASSIFIER, Class, beside, declare, is_class, names, token};
use crate::convert::activation::Activation;
use crate::convert::architecture::Deciding;
use crate::convert::config::Config;
use crate::convert::embeddings::LAST_HIDDEN_STATE;
use crate::convert::linear::Linear;
use crate::convert::net::Net;
use crate::convert::norm::LayerNorm;
use crate::head::{last_token, mean};

/// The layer of BERT that pools for its classifier. It belongs to the model.
const POOLER: &str = "pooler.dense";

/// The layer of a decoder that scores. It has no bias.
const SCORE: &str = "score";

/// BERT, and families with BERT's head in a class of another name: `classifier(tanh(pooler(first token)))`.
pub(in crate::convert) fn add_to_bert(
    config: &Config,
    net: &mut Net<'_>,
    hidden: usize,
    class: &str,
) -> Result<()> {
    let class = Class {
        name: class,
        last: CLASSIFIER,
        before: Some(POOLER),
    };
    let Some(labels) = class.labels(config, net) else {
        return Ok(());
    };
    net.scope(POOLER);
    let first = token(net, 0);
    let pooled = Linear::new(POOLER, hidden, hidden).apply(net, &first)?;
    let pooled = net.node("Tanh", &[&pooled], vec![]);
    beside(net, CLASSIFIER, (hidden, labels), &pooled)?;
    declare(net, labels);
    Ok(())
}

/// RoBERTa, XLM-R and CamemBERT: `classifier.out_proj(tanh(classifier.dense(first token)))`.
pub(in crate::convert) fn add_to_roberta(
    config: &Config,
    net: &mut Net<'_>,
    hidden: usize,
) -> Result<()> {
    let name = match config.text_or("model_type", "")? {
        // Some configs of Jina's XLM-R name no type.
        "xlm-roberta" | "" => "XLMRobertaForSequenceClassification",
        "camembert" => "CamembertForSequenceClassification",
        _ => "RobertaForSequenceClassification",
    };
    two_layers(config, net, hidden, &roberta(name))
}

/// MPNet, whose head is RoBERTa's.
pub(in crate::convert) fn add_to_mpnet(
    config: &Config,
    net: &mut Net<'_>,
    hidden: usize,
) -> Result<()> {
    let class = roberta("MPNetForSequenceClassification");
    two_layers(config, net, hidden, &class)
}

/// DistilBERT: `classifier(relu(pre_classifier(first token)))`.
pub(in crate::convert) fn add_to_distilbert(
    config: &Config,
    net: &mut Net<'_>,
    hidden: usize,
) -> Result<()> {
    let class = TwoLayers {
        name: "DistilBertForSequenceClassification",
        dense: "pre_classifier",
        activation: Between::Other(Activation::Relu),
        last: CLASSIFIER,
    };
    two_layers(config, net, hidden, &class)
}

/// Decoders: `score(last token)`.
pub(in crate::convert) fn add_to_decoder(
    config: &Config,
    net: &mut Net<'_>,
    name: &str,
) -> Result<()> {
    let class = Class {
        name,
        last: SCORE,
        before: None,
    };
    let Some(labels) = class.labels(config, net) else {
        if names(config)
            .iter()
            .any(|name| name.ends_with("ForCausalLM"))
        {
            net.explain_no_logits(format!(
                "architectures in config.json is [{}], a decoder whose answer is the score, and no step LogitScore in \
                 modules.json says which tokens the answers are",
                names(config).join(", ")
            ));
        }
        return Ok(());
    };
    net.scope(SCORE);
    let last = last_token(net.builder(), LAST_HIDDEN_STATE);
    net.without_prefix(|net| -> Result<String> {
        let layer = Linear::new(SCORE, config.size("hidden_size")?, labels).bias(false);
        layer.apply(net, &last)
    })?;
    declare(net, labels);
    Ok(())
}

const DEBERTA: &str = "DebertaV2ForSequenceClassification";

/// DeBERTa-v2: `classifier(activation(pooler.dense(first token)))`, the activation being `pooler_hidden_act`.
pub(in crate::convert) fn add_to_deberta(
    config: &Config,
    net: &mut Net<'_>,
    hidden: usize,
) -> Result<()> {
    let class = TwoLayers {
        name: DEBERTA,
        dense: POOLER,
        activation: Between::of_deberta(config)?,
        last: CLASSIFIER,
    };
    two_layers(config, net, hidden, &class)
}

/// What decides DeBERTa's scores and no tensor shows; nothing where it has no classifier.
pub(in crate::convert) fn deberta_deciding(config: &Config) -> Result<Deciding> {
    if !is_class(config, DEBERTA) {
        return Ok(Vec::new());
    }
    let activation = format!("{:?}", Between::of_deberta(config)?);
    Ok(vec![("activation of the pooler", activation)])
}

/// A head of two layers on the first token, both beside the model.
struct TwoLayers<'a> {
    name: &'a str,
    dense: &'a str,
    activation: Between,
    last: &'a str,
}

/// The function between two layers.
#[derive(Debug)]
enum Between {
    Tanh,
    Other(Activation),
}

impl Between {
    /// The name of `pooler_hidden_act`.
    fn of_deberta(config: &Config) -> Result<Self> {
        match config.text_or("pooler_hidden_act", "gelu")? {
            "tanh" => Ok(Self::Tanh),
            _ => Activation::of(config, "pooler_hidden_act").map(Self::Other),
        }
    }

    fn apply(&self, net: &mut Net<'_>, x: &str) -> String {
        match self {
            Self::Tanh => net.node("Tanh", &[x], vec![]),
            Self::Other(activation) => activation.apply(net, x),
        }
    }
}

/// RoBERTa's head in the class of this name.
fn roberta(name: &str) -> TwoLayers<'_> {
    TwoLayers {
        name,
        dense: "classifier.dense",
        activation: Between::Tanh,
        last: "classifier.out_proj",
    }
}

fn two_layers(
    config: &Config,
    net: &mut Net<'_>,
    hidden: usize,
    head: &TwoLayers<'_>,
) -> Result<()> {
    let class = Class {
        name: head.name,
        last: head.last,
        before: Some(head.dense),
    };
    let Some(labels) = class.labels(config, net) else {
        return Ok(());
    };
    let first = token(net, 0);
    let pooled = beside(net, head.dense, (hidden, hidden), &first)?;
    let pooled = head.activation.apply(net, &pooled);
    beside(net, head.last, (hidden, labels), &pooled)?;
    declare(net, labels);
    Ok(())
}

const MODERNBERT: &str = "ModernBertForSequenceClassification";

/// ModernBERT: `classifier(norm(activation(dense(pooled))))`, pooled being the first token or the mean of all, as
/// `classifier_pooling` says.
pub(in crate::convert) fn add_to_modernbert(
    config: &Config,
    net: &mut Net<'_>,
    hidden: usize,
) -> Result<()> {
    let [dense, norm] = ["head.dense", "head.norm"];
    let class = Class {
        name: MODERNBERT,
        last: CLASSIFIER,
        before: Some(dense),
    };
    let Some(labels) = class.labels(config, net) else {
        return Ok(());
    };
    let head = ModernBertHead::of(config)?;
    net.scope("head");
    let pooled = match head.is_mean {
        true => mean(net.builder(), LAST_HIDDEN_STATE),
        false => token(net, 0),
    };
    let active = net.without_prefix(|net| -> Result<String> {
        let layer = Linear::new(dense, hidden, hidden).bias(head.bias);
        let layer = layer.apply(net, &pooled)?;
        let active = head.activation.apply(net, &layer);
        LayerNorm {
            name: norm,
            size: hidden,
            epsilon: head.epsilon,
            bias: head.norm_bias,
        }
        .apply(net, &active)
    })?;
    beside(net, CLASSIFIER, (hidden, labels), &active)?;
    declare(net, labels);
    Ok(())
}

/// What decides ModernBERT's scores and no tensor shows; nothing where it has no classifier.
pub(in crate::convert) fn modernbert_deciding(config: &Config) -> Result<Deciding> {
    if !is_class(config, MODERNBERT) {
        return Ok(Vec::new());
    }
    let head = ModernBertHead::of(config)?;
    Ok(vec![
        ("mean for the classifier", head.is_mean.to_string()),
        (
            "activation of the classifier",
            format!("{:?}", head.activation),
        ),
    ])
}

struct ModernBertHead {
    is_mean: bool,
    activation: Activation,
    bias: bool,
    norm_bias: bool,
    epsilon: f64,
}

impl ModernBertHead {
    fn of(config: &Config) -> Result<Self> {
        Ok(Self {
            is_mean: match config.text_or("classifier_pooling", "cls")? {
                "mean" => true,
                "cls" => false,
                other => {
                    return Err(config.unsupported(format!(
                        "classifier_pooling in config.json is {other:?}; cls and mean can be converted"
                    )));
                }
            },
            activation: Activation::of(config, "classifier_activation")?,
            bias: config.flag_or("classifier_bias", false)?,
            norm_bias: config.flag_or("norm_bias", false)?,
            epsilon: config.positive_or("norm_eps", 1e-5)?,
        })
    }
}
