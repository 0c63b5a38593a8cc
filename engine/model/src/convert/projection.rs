//! The projection of Stanford's ColBERT: a layer without a bias, beside the model in the checkpoint, that makes the vector that is
//! compared of a token's hidden state.
//!
//! The class `HF_ColBERT` of <https://github.com/stanford-futuredata/ColBERT> has it under the name `linear`.

use isovec_engine::description::Dim;
use isovec_engine::error::{EngineError, Result};
use isovec_engine::tensor::DType;

use super::classifier::names;
use super::config::Config;
use super::embeddings::LAST_HIDDEN_STATE;
use super::net::Net;
use crate::tokens::{COLBERT, TOKEN_VECTORS};

/// The layer's weight, `[dim, hidden]`.
const WEIGHT: &str = "linear.weight";

/// Adds the output [`TOKEN_VECTORS`], f32 `[batch, sequence, dim]`, to the hidden states of a model whose `config.json` names the
/// class [`COLBERT`].
///
/// # Errors
/// [`EngineError::Weight`] for a layer that the checkpoint lacks or that does not fit the hidden states.
pub(super) fn add(config: &Config, net: &mut Net<'_>) -> Result<()> {
    if !names(config).contains(&COLBERT) {
        return Ok(());
    }
    let hidden = config.size("hidden_size")?;
    net.without_prefix(|net| {
        net.scope("projection");
        let dim = match net.shape_of(WEIGHT) {
            Some(&[dim, _]) if dim > 0 => dim,
            found => {
                return Err(EngineError::Weight {
                    name: WEIGHT.into(),
                    detail: format!(
                        "config.json names the class {COLBERT}, whose projection is [dim, {hidden}], but the checkpoint has {}",
                        found.map_or_else(|| "none".into(), |shape| format!("{shape:?}"))
                    ),
                });
            }
        };
        let weight = net.transposed(WEIGHT, [dim, hidden], 0..dim)?;
        net.node("MatMul", &[LAST_HIDDEN_STATE, &weight], vec![]);
        net.name_last(TOKEN_VECTORS);
        let dims = [
            Dim::Symbolic("batch".into()),
            Dim::Symbolic("sequence".into()),
            Dim::Fixed(dim),
        ];
        net.builder().output(TOKEN_VECTORS, DType::F32, &dims);
        Ok(())
    })
}
