//! From token ids to the first hidden vectors.

use isovec_engine::description::Dim;
use isovec_engine::error::Result;
use isovec_engine::onnx::proto::DataType;
use isovec_engine::tensor::DType;

use super::config::Config;
use super::net::Net;
use crate::onnx::builder::int;

/// Names of the graph's inputs and of its output.
pub(super) const INPUT_IDS: &str = "input_ids";
pub(super) const ATTENTION_MASK: &str = "attention_mask";
pub(super) const TOKEN_TYPE_IDS: &str = "token_type_ids";
pub(super) const LAST_HIDDEN_STATE: &str = "last_hidden_state";

/// Declares an input, i64 `[batch, sequence]`.
pub(super) fn declare_input(net: &mut Net<'_>, name: &str) {
    let dims = [
        Dim::Symbolic("batch".into()),
        Dim::Symbolic("sequence".into()),
    ];
    net.builder().input(name, DType::I64, &dims);
}

/// Declares the output, f32 `[batch, sequence, hidden]`, and gives its name to what the last node
/// computes.
pub(super) fn declare_output(net: &mut Net<'_>, hidden: usize) {
    let dims = [
        Dim::Symbolic("batch".into()),
        Dim::Symbolic("sequence".into()),
        Dim::Fixed(hidden),
    ];
    let name = net.name_last(LAST_HIDDEN_STATE);
    net.builder().output(&name, DType::F32, &dims);
}

/// The length of the batch's sequences, a tensor of one i64.
pub(super) fn sequence_length(net: &mut Net<'_>) -> String {
    net.node("Shape", &[INPUT_IDS], vec![int("start", 1), int("end", 2)])
}

/// A table whose rows are looked up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table<'a> {
    /// Name of the module: its tensor is `{name}.weight`.
    pub(super) name: &'a str,
    /// Number of rows.
    pub(super) rows: usize,
    /// Size of a row.
    pub(super) size: usize,
}

impl Table<'_> {
    /// The rows at `ids`.
    pub(super) fn lookup(&self, net: &mut Net<'_>, ids: &str) -> Result<String> {
        let table = self.weight(net)?;
        Ok(net.gather(&table, ids, 0))
    }

    /// The first rows, as many as the sequence is long: positions 0, 1, 2, ... A sequence longer
    /// than the table is an error when the graph runs, since the sums then do not fit.
    pub(super) fn first(&self, net: &mut Net<'_>, length: &str) -> Result<String> {
        let table = self.weight(net)?;
        Ok(net.rows(&table, length))
    }

    /// Row 0, `[1, size]`.
    pub(super) fn row_zero(&self, net: &mut Net<'_>) -> Result<String> {
        let table = self.weight(net)?;
        if self.rows == 1 {
            return Ok(table);
        }
        Ok(net.slice(&table, 0, 0..1))
    }

    fn weight(&self, net: &mut Net<'_>) -> Result<String> {
        net.weight(&format!("{}.weight", self.name), &[self.rows, self.size])
    }
}

/// Positions of RoBERTa and its kin: tokens count from `padding_id + 1`, padding stands at
/// `padding_id`.
///
/// What is padding is read from the ids and not from the attention mask, because that is how the
/// models were trained and how their reference implementation (transformers,
/// `create_position_ids_from_input_ids`) runs them: a padding token that a text spells out is not
/// counted there although it is attended to. For padding that a batch adds, both agree.
///
/// Counts are i32, which tract keeps as numbers (an i64 it takes for a dimension, and cannot sum).
pub(super) fn counted_positions(net: &mut Net<'_>, padding_id: usize) -> String {
    let padding = net.builder().i64s(&[], &[padding_id as i64]);
    // Never past the counts that a config may hold, which fit.
    let base = net.builder().i32(padding_id as i32);
    let axis = net.builder().i64s(&[], &[1]);
    let padding = net.node("Equal", &[INPUT_IDS, &padding], vec![]);
    let token = net.node("Not", &[&padding], vec![]);
    let to = vec![int("to", DataType::Int32 as i64)];
    let token = net.node("Cast", &[&token], to);
    let count = net.node("CumSum", &[&token, &axis], vec![]);
    let place = net.node("Mul", &[&count, &token], vec![]);
    net.node("Add", &[&place, &base], vec![])
}

/// The id that pads, which must be in the vocabulary.
pub(super) fn padding_id(config: &Config, default: usize, vocabulary: usize) -> Result<usize> {
    let id = config.count_or("pad_token_id", default)?;
    if id >= vocabulary {
        return Err(config.wrong(
            "pad_token_id",
            &format!("is {id}, but vocab_size is {vocabulary}"),
        ));
    }
    Ok(id)
}

/// How many positions are left for tokens when they count from `padding_id + 1`.
pub(super) fn counted_limit(config: &Config, positions: usize, padding_id: usize) -> Result<usize> {
    positions
        .checked_sub(padding_id + 1)
        .filter(|&limit| limit > 0)
        .ok_or_else(|| {
            config.wrong(
                "max_position_embeddings",
                &format!("is {positions}, which leaves no position after padding id {padding_id}"),
            )
        })
}
