//! Scaled dot-product attention with several heads (<https://arxiv.org/abs/1706.03762>).

use isovec_engine::error::Result;

use super::config::Config;
use super::net::Net;
use super::rotary::Rotary;
use crate::onnx::builder::{int, ints};

/// How a hidden vector is cut into heads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heads {
    /// Number of heads.
    pub(super) count: usize,
    /// Size of one.
    pub(super) size: usize,
}

impl Heads {
    /// Reads the number of heads under `key` and checks that it divides `hidden`.
    pub(super) fn of(config: &Config, key: &str, hidden: usize) -> Result<Self> {
        Self::or(config, key, config.size(key)?, hidden)
    }

    /// The same, with a number for a config that has none.
    pub(super) fn or(config: &Config, key: &str, default: usize, hidden: usize) -> Result<Self> {
        let count = config.size_or(key, default)?;
        if !hidden.is_multiple_of(count) {
            return Err(config.wrong(
                key,
                &format!("is {count}, which does not divide the hidden size {hidden}"),
            ));
        }
        Ok(Self {
            count,
            size: hidden / count,
        })
    }

    /// The size of all of them.
    pub(super) fn width(self) -> usize {
        self.count * self.size
    }
}

/// What is done to the scores before the softmax.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Scores<'a> {
    /// Added to them: a mask that broadcasts to `[batch, heads, sequence, sequence]`. None where nothing is padding.
    pub(super) mask: Option<&'a str>,
    /// Added before the mask: a bias of the same kind.
    pub(super) bias: Option<&'a str>,
    /// Turns queries and keys by their positions first.
    pub(super) rotary: Option<&'a Rotary>,
}

/// `softmax(q k^T / sqrt(size) + bias + mask) v`, all of them `[batch, sequence, hidden]`.
pub(super) fn attention(
    net: &mut Net<'_>,
    heads: Heads,
    (query, key, value): (&str, &str, &str),
    scores: Scores<'_>,
) -> String {
    let scale = net.builder().f32((1.0 / (heads.size as f64).sqrt()) as f32);
    // Scaled here and not after the product, which is larger.
    let query = net.node("Mul", &[query, &scale], vec![]);
    let [query, key, value] = [&query, key, value].map(|x| split(net, heads, x));
    attend(net, heads, heads, (query, key, value), scores)
}

/// `softmax(q k^T + bias + mask) v` of scaled queries, with heads `[batch, sequence, heads, size]`, as `[batch, sequence, hidden]`.
/// Where there are fewer heads of keys and values, each serves as many neighbouring heads of queries.
pub(super) fn attend(
    net: &mut Net<'_>,
    heads: Heads,
    shared: Heads,
    (mut query, mut key, mut value): (String, String, String),
    scores: Scores<'_>,
) -> String {
    if let Some(rotary) = scores.rotary {
        query = rotary.turn(net, &query);
        key = rotary.turn(net, &key);
    }
    if shared.count < heads.count {
        let each = heads.count / shared.count;
        let own: Vec<i64> = (0..heads.count).map(|head| (head / each) as i64).collect();
        let own = net.builder().ints(&own);
        key = net.gather(&key, &own, 2);
        value = net.gather(&value, &own, 2);
    }
    let query = net.node("Transpose", &[&query], vec![ints("perm", &[0, 2, 1, 3])]);
    let key = net.node("Transpose", &[&key], vec![ints("perm", &[0, 2, 3, 1])]);
    let value = net.node("Transpose", &[&value], vec![ints("perm", &[0, 2, 1, 3])]);

    let mut sum = net.node("MatMul", &[&query, &key], vec![]);
    if let Some(bias) = scores.bias {
        sum = net.node("Add", &[&sum, bias], vec![]);
    }
    if let Some(mask) = scores.mask {
        sum = net.node("Add", &[&sum, mask], vec![]);
    }
    context_of(net, heads, &sum, &value)
}

/// `softmax(scores) v`, of scores `[batch, heads, sequence, sequence]` and values `[batch, heads, sequence, size]`, as
/// `[batch, sequence, hidden]`.
pub(super) fn context_of(net: &mut Net<'_>, heads: Heads, scores: &str, value: &str) -> String {
    let probabilities = net.node("Softmax", &[scores], vec![int("axis", -1)]);
    let context = net.node("MatMul", &[&probabilities, value], vec![]);
    let context = net.node("Transpose", &[&context], vec![ints("perm", &[0, 2, 1, 3])]);
    let shape = net.builder().ints(&[0, 0, heads.width() as i64]);
    net.node("Reshape", &[&context, &shape], vec![])
}

/// `[batch, sequence, hidden]` → `[batch, sequence, heads, size]`.
pub(super) fn split(net: &mut Net<'_>, heads: Heads, x: &str) -> String {
    let shape = net
        .builder()
        .ints(&[0, 0, heads.count as i64, heads.size as i64]);
    net.node("Reshape", &[x, &shape], vec![])
}
