//! Heads that give something for each token: a vector of unit length for late interaction, or a weight.
//!
//! Formula of vectors: the token's hidden state through dense layers, then divided by its L2 norm (ColBERT,
//! <https://arxiv.org/abs/2004.12832>; the classes `HF_ColBERT` of Stanford and `ColBERT` of PyLate; `colbert_linear` of BGE-M3). Of
//! weights: the hidden state through one layer with one output (`sparse_linear` of BGE-M3, <https://arxiv.org/abs/2402.03216>). Which
//! tokens of a text count is not the graph's to know: it gives a row for each, at padding too.

use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::{Dim, default_opset};
use isovec_engine::error::{EngineError, Result};
use isovec_engine::onnx::proto::DataType;
use isovec_engine::tensor::DType;

use crate::bundle::prune;
use crate::head::{
    Dense, Head, OUTPUT, find_source, fixed_last_dim, graph_of, needs_mask, needs_no_head,
    remember, rename, tensor_type, unused_prefix,
};
use crate::onnx::GraphBuilder;
use crate::onnx::builder::value_info;

/// The class that `config.json` of Stanford's ColBERT names.
pub const COLBERT: &str = "HF_ColBERT";

/// The output of a converted [`COLBERT`]: a vector for each token, of any length, f32 `[batch, sequence, dim]`.
pub const TOKEN_VECTORS: &str = "token_vectors";

/// What is known of a completed graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokensInfo {
    /// Components of a token's vector.
    pub dim: usize,
    /// A canonical text of the head, for fingerprints.
    pub identity: String,
}

/// Makes a vector of unit length for each token the one output of a graph, f32 `[batch, sequence, dim]` under the name [`OUTPUT`],
/// and removes what no longer leads there. The dense layers are applied in order; without any, the graph's own projection
/// ([`TOKEN_VECTORS`]) is, where it has one.
///
/// # Errors
/// [`EngineError::UnsupportedModel`] when the graph gives no vector for each token, has no mask, or ends in another head;
/// [`EngineError::InvalidModel`] when the layers do not fit one another.
pub fn attach_tokens(bundle: &mut ModelBundle, dense: &[Dense]) -> Result<TokensInfo> {
    attach(bundle, dense, Rows::Unit)
}

/// Makes a number for each token the one output of a graph, f32 `[batch, sequence, 1]` under the name [`OUTPUT`]: its hidden state
/// through a layer with one output. What is below 0 is no weight, which is not the graph's to say.
///
/// # Errors
/// As [`attach_tokens`]; [`EngineError::InvalidModel`] for a layer with another number of outputs.
pub fn attach_token_weights(bundle: &mut ModelBundle, layer: &Dense) -> Result<TokensInfo> {
    if layer.out_features != 1 {
        let detail = format!(
            "the layer that weighs tokens has {} outputs, and not one",
            layer.out_features
        );
        return Err(EngineError::invalid_model(&bundle.origin, detail));
    }
    attach(bundle, std::slice::from_ref(layer), Rows::AsComputed)
}

/// What becomes of a token's row behind the layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// It is scaled to unit length.
    Unit,
    /// Nothing.
    AsComputed,
}

fn attach(bundle: &mut ModelBundle, dense: &[Dense], rows: Rows) -> Result<TokensInfo> {
    let origin = bundle.origin.clone();
    let opset = default_opset(&bundle.graph);
    let unsupported = |reason: String, hint: &str| EngineError::UnsupportedModel {
        origin: origin.clone(),
        reason,
        hint: hint.into(),
    };
    needs_no_head(bundle)?;
    if opset < 13 {
        return Err(unsupported(
            format!(
                "its operator set is version {opset}, and a head for each token needs at least 13"
            ),
            "Export the model again with a newer opset",
        ));
    }
    let graph = graph_of(bundle)?;
    let own = graph.output.iter().find(|it| it.name == TOKEN_VECTORS);
    let own = own.filter(|_| dense.is_empty()).cloned();
    let source = own.or_else(|| match find_source(graph) {
        Some((source, false)) => Some(source),
        _ => None,
    });
    let Some(source) = source else {
        let outputs: Vec<&str> = graph.output.iter().map(|it| it.name.as_str()).collect();
        return Err(unsupported(
            format!(
                "none of its outputs ({}) is a vector for each token",
                outputs.join(", ")
            ),
            "This head needs a model that gives hidden states [batch, sequence, hidden]",
        ));
    };
    needs_mask(graph, &origin)?;
    let mut features = fixed_last_dim(&source);
    let (element, dims) = tensor_type(&source).unwrap_or((DataType::Float as i32, None));
    let mut head = Head {
        graph: GraphBuilder::new(graph, unused_prefix(graph)),
        opset,
    };
    let mut value = source.name.clone();
    if element != DataType::Float as i32 {
        value = head.cast(&value, DataType::Float);
    }
    for layer in dense {
        layer.check(features, &origin)?;
        value = head.dense_of_tokens(&value, layer);
        features = Some(layer.out_features);
    }
    let Some(dim) = features.filter(|&dim| dim > 0) else {
        return Err(unsupported(
            "its graph does not state the number of components of a token's vector".into(),
            "Export the model with that number fixed",
        ));
    };
    if rows == Rows::Unit {
        value = head.normalize(&value, 2);
    }
    rename(graph, OUTPUT, &format!("{OUTPUT}.in_graph"));
    GraphBuilder::new(graph, "").named_node("Identity", &[&value], OUTPUT, Vec::new());
    let open = |at: usize, name: &str| match dims.as_ref().and_then(|dims| dims.get(at)) {
        Some(Dim::Symbolic(own)) if !own.is_empty() => Dim::Symbolic(own.clone()),
        _ => Dim::Symbolic(name.into()),
    };
    let dims = [open(0, "batch"), open(1, "sequence"), Dim::Fixed(dim)];
    graph.output = vec![value_info(OUTPUT, DType::F32, &dims)];
    let layers: Vec<String> = dense.iter().map(Dense::identity).collect();
    let kind = match rows {
        Rows::Unit => "tokens",
        Rows::AsComputed => "token weights",
    };
    let identity = format!("{kind};dense=[{}];dim={dim}", layers.join(","));
    remember(bundle, identity.clone());
    prune(bundle);
    Ok(TokensInfo { dim, identity })
}
