//! Masks as numbers added to attention scores.

use isovec_engine::onnx::proto::DataType;

use super::net::Net;
use crate::onnx::builder::int;

/// What a hidden position's score is lowered by.
///
/// It is the lowest number of f16, so that the graph means the same in half precision, where a
/// lower one would be an infinity and a row with nothing to see would come out as NaN. It is far
/// enough: scores differ by hundreds at most, and already a difference of 104 makes the softmax's
/// exponential exactly 0 in f32. A visible position's score has 0 added, which changes no bit, so
/// a row's result does not depend on how much padding stands beside it.
pub(super) const HIDDEN: f32 = -65504.0;

/// `attention_mask` (i64 `[batch, sequence]`, 1 for a token and 0 for padding) as f32
/// `[batch, 1, 1, sequence]`: 0 where a token is and [`HIDDEN`] where padding is.
pub(super) fn padding_mask(net: &mut Net<'_>, attention_mask: &str) -> String {
    let one = net.builder().f32(1.0);
    let hidden = net.builder().f32(HIDDEN);
    let axes = net.builder().ints(&[1, 2]);
    let kept = net.node(
        "Cast",
        &[attention_mask],
        vec![int("to", DataType::Float as i64)],
    );
    let dropped = net.node("Sub", &[&one, &kept], vec![]);
    let scores = net.node("Mul", &[&dropped, &hidden], vec![]);
    net.node("Unsqueeze", &[&scores, &axes], vec![])
}

/// The padding mask, and besides hidden every position further away than `reach`: f32
/// `[batch, 1, sequence, sequence]`. `counting` holds 0, 1, 2, ... as f32 `[sequence]`.
pub(super) fn window_mask(
    net: &mut Net<'_>,
    padding: &str,
    counting: &str,
    reach: usize,
) -> String {
    let reach = net.builder().f32(reach as f32);
    let column = net.builder().ints(&[1]);
    let row = net.builder().ints(&[0]);
    let from = net.node("Unsqueeze", &[counting, &column], vec![]);
    let to = net.node("Unsqueeze", &[counting, &row], vec![]);
    let offset = net.node("Sub", &[&from, &to], vec![]);
    let distance = net.node("Abs", &[&offset], vec![]);
    let outside = net.node("Greater", &[&distance, &reach], vec![]);
    besides(net, padding, &outside)
}

/// The padding mask, and besides hidden every position after a token's own: f32 `[batch, 1, sequence, sequence]`. `counting` holds 0,
/// 1, 2, ... as f32 `[sequence]`.
pub(super) fn causal_mask(net: &mut Net<'_>, padding: &str, counting: &str) -> String {
    let column = net.builder().ints(&[1]);
    let row = net.builder().ints(&[0]);
    let from = net.node("Unsqueeze", &[counting, &column], vec![]);
    let to = net.node("Unsqueeze", &[counting, &row], vec![]);
    let later = net.node("Greater", &[&to, &from], vec![]);
    besides(net, padding, &later)
}

/// The padding mask with [`HIDDEN`] where a condition holds, too.
fn besides(net: &mut Net<'_>, padding: &str, condition: &str) -> String {
    let hidden = net.builder().f32(HIDDEN);
    let numbers = vec![int("to", DataType::Float as i64)];
    let scores = net.node("Cast", &[condition], numbers);
    let scores = net.node("Mul", &[&scores, &hidden], vec![]);
    // The lower of the two and not their sum, which f16 could not hold.
    net.node("Min", &[padding, &scores], vec![])
}
