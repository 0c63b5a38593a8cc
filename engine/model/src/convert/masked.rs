//! The layers of a masked language model that score every word of the vocabulary at every token: `decoder(norm(activation(dense)))`.
//!
//! The vocabulary's product stands in the graph in blocks of columns, so that whoever pools over the tokens can pool each block
//! before the next one is computed. A matrix of all tokens and all words is never needed.

use isovec_engine::description::Dim;
use isovec_engine::error::Result;
use isovec_engine::onnx::proto::DataType;
use isovec_engine::tensor::DType;

use super::Family;
use super::activation::Activation;
use super::classifier::names;
use super::config::Config;
use super::distilbert;
use super::embeddings::{ATTENTION_MASK, LAST_HIDDEN_STATE};
use super::linear::Linear;
use super::net::Net;
use super::norm::LayerNorm;
use crate::onnx::builder::int;
use crate::sparse::TOKEN_LOGITS;

/// Columns of the vocabulary's product that are computed together: for 512 tokens 4 MB, which stay in a processor's cache.
const BLOCK: usize = 2048;

/// The layers of a class. They stand beside the model in the checkpoint.
struct Layers {
    /// The class in `config.json`.
    class: &'static str,
    /// The key of the size of hidden vectors in `config.json`.
    size: &'static str,
    /// The layer before the normalisation.
    dense: &'static str,
    dense_bias: bool,
    activation: Activation,
    norm: &'static str,
    norm_bias: bool,
    epsilon: f64,
    /// The vocabulary's matrix, where it is not the table of words.
    decoder: &'static str,
    /// The table of words, which belongs to the model.
    words: &'static str,
    /// The names under which checkpoints hold the vocabulary's bias; empty for a layer without one.
    biases: &'static [&'static str],
}

/// Adds the output [`TOKEN_LOGITS`], f32 `[batch, sequence, vocabulary]`, to the hidden states of a family.
///
/// Returns what decides them and no tensor shows. At padding the numbers are those of the text's first token, so that no maximum over all positions is changed by padding.
///
/// # Errors
/// [`EngineError::UnsupportedModel`](isovec_engine::EngineError::UnsupportedModel) for a family without such layers, and for a
/// `config.json` that names another class; [`EngineError::Weight`](isovec_engine::EngineError::Weight) for a layer that the
/// checkpoint lacks.
pub(super) fn add(family: Family, config: &Config, net: &mut Net<'_>) -> Result<String> {
    let Some(layers) = Layers::of(family, config)? else {
        return Err(config.unsupported(format!(
            "no masked language model of the family {} can be converted",
            family.name()
        )));
    };
    let named = names(config);
    if !named.contains(&layers.class) {
        let beside = match layers.class {
            "XLMRobertaForMaskedLM" => ", or by a sparse_linear.pt beside the weights",
            _ => "",
        };
        return Err(config.unsupported(format!(
            "architectures in config.json is [{}], and words are scored by {}{beside}",
            named.join(", "),
            layers.class
        )));
    }
    let hidden = config.size(layers.size)?;
    let words = config.size("vocab_size")?;
    let features = layers.features(net, hidden)?;
    let features = padding_like_first(net, &features);
    let tied = config.flag_or("tie_word_embeddings", true)?;
    let mut blocks = Vec::new();
    for start in (0..words).step_by(BLOCK) {
        let rows = start..words.min(start + BLOCK);
        net.scope(format!("vocabulary.{start}"));
        let matrix = match tied {
            true => net.transposed(layers.words, [words, hidden], rows.clone())?,
            false => net.without_prefix(|net| {
                net.transposed(layers.decoder, [words, hidden], rows.clone())
            })?,
        };
        let mut block = net.node("MatMul", &[&features, &matrix], vec![]);
        if let Some(bias) = layers.bias(net) {
            let bias = net.without_prefix(|net| net.part(bias, words, rows))?;
            block = net.node("Add", &[&block, &bias], vec![]);
        }
        blocks.push(block);
    }
    if blocks.len() > 1 {
        let blocks: Vec<&str> = blocks.iter().map(String::as_str).collect();
        net.node("Concat", &blocks, vec![int("axis", 2)]);
    }
    net.name_last(TOKEN_LOGITS);
    let dims = [
        Dim::Symbolic("batch".into()),
        Dim::Symbolic("sequence".into()),
        Dim::Fixed(words),
    ];
    net.builder().output(TOKEN_LOGITS, DType::F32, &dims);
    Ok(format!(
        "activation={:?};epsilon={};tied={tied}",
        layers.activation, layers.epsilon
    ))
}

impl Layers {
    /// The layers of a family's class, as transformers defines it (`modeling_*.py`).
    fn of(family: Family, config: &Config) -> Result<Option<Self>> {
        let bert = "embeddings.word_embeddings.weight";
        let roberta = |class| -> Result<Self> {
            Ok(Self {
                class,
                size: "hidden_size",
                dense: "lm_head.dense",
                dense_bias: true,
                // Whatever hidden_act says.
                activation: Activation::Gelu,
                norm: "lm_head.layer_norm",
                norm_bias: true,
                epsilon: config.positive_or("layer_norm_eps", 1e-12)?,
                decoder: "lm_head.decoder.weight",
                words: bert,
                biases: &["lm_head.bias", "lm_head.decoder.bias"],
            })
        };
        Ok(Some(match family {
            Family::Bert => Self {
                class: "BertForMaskedLM",
                size: "hidden_size",
                dense: "cls.predictions.transform.dense",
                dense_bias: true,
                activation: Activation::of(config, "hidden_act")?,
                norm: "cls.predictions.transform.LayerNorm",
                norm_bias: true,
                epsilon: config.positive_or("layer_norm_eps", 1e-12)?,
                decoder: "cls.predictions.decoder.weight",
                words: bert,
                biases: &["cls.predictions.bias", "cls.predictions.decoder.bias"],
            },
            Family::Roberta => roberta(match config.text_or("model_type", "")? {
                "xlm-roberta" => "XLMRobertaForMaskedLM",
                "camembert" => "CamembertForMaskedLM",
                _ => "RobertaForMaskedLM",
            })?,
            Family::Mpnet => roberta("MPNetForMaskedLM")?,
            // By the authors' code, as the family's module says.
            Family::Gte => Self {
                class: "NewForMaskedLM",
                size: "hidden_size",
                dense: "lm_head.dense",
                dense_bias: true,
                activation: Activation::of(config, "hidden_act")?,
                norm: "lm_head.norm",
                norm_bias: true,
                epsilon: config.positive_or("layer_norm_eps", 1e-12)?,
                decoder: "lm_head.decoder.weight",
                words: bert,
                biases: &["lm_head.decoder.bias"],
            },
            Family::DistilBert => Self {
                class: "DistilBertForMaskedLM",
                size: "dim",
                dense: "vocab_transform",
                dense_bias: true,
                activation: Activation::of(config, "activation")?,
                norm: "vocab_layer_norm",
                norm_bias: true,
                epsilon: distilbert::EPSILON,
                decoder: "vocab_projector.weight",
                words: bert,
                biases: &["vocab_projector.bias"],
            },
            Family::ModernBert => Self {
                class: "ModernBertForMaskedLM",
                size: "hidden_size",
                dense: "head.dense",
                dense_bias: config.flag_or("classifier_bias", false)?,
                activation: Activation::of(config, "classifier_activation")?,
                norm: "head.norm",
                norm_bias: config.flag_or("norm_bias", false)?,
                epsilon: config.positive_or("norm_eps", 1e-5)?,
                decoder: "decoder.weight",
                words: "embeddings.tok_embeddings.weight",
                biases: match config.flag_or("decoder_bias", true)? {
                    true => &["decoder.bias"],
                    false => &[],
                },
            },
            _ => return Ok(None),
        }))
    }

    /// What the vocabulary's matrix is multiplied with, `[batch, sequence, hidden]`.
    fn features(&self, net: &mut Net<'_>, hidden: usize) -> Result<String> {
        net.without_prefix(|net| {
            net.scope(self.dense);
            let dense = Linear::new(self.dense, hidden, hidden).bias(self.dense_bias);
            let dense = dense.apply(net, LAST_HIDDEN_STATE)?;
            let active = self.activation.apply(net, &dense);
            LayerNorm {
                name: self.norm,
                size: hidden,
                epsilon: self.epsilon,
                bias: self.norm_bias,
            }
            .apply(net, &active)
        })
    }

    /// The name of the bias: the first that the checkpoint holds, else the first, which is then missing.
    fn bias(&self, net: &mut Net<'_>) -> Option<&'static str> {
        net.without_prefix(|net| {
            let held = self.biases.iter().find(|name| net.holds(name));
            held.or(self.biases.first()).copied()
        })
    }
}

/// `x` with the vector of the first token in the place of every padding.
fn padding_like_first(net: &mut Net<'_>, x: &str) -> String {
    let to = vec![int("to", DataType::Bool as i64)];
    let mask = net.node("Cast", &[ATTENTION_MASK], to);
    let axis = net.builder().ints(&[2]);
    let mask = net.node("Unsqueeze", &[&mask, &axis], vec![]);
    let first = net.slice(x, 1, 0..1);
    net.node("Where", &[&mask, x, &first], vec![])
}
