//! Adapters (LoRA, <https://arxiv.org/abs/2106.09685>) of jina-embeddings-v3: a layer's weight is `W + s B A`, with another `A` and `B` of
//! low rank for each task.
//!
//! The graph computes with `A` of all tasks at once, side by side, and multiplies what comes out with the scale in the columns of the one
//! that is asked for and with 0 in the others. So texts of several tasks go through one batch, and a text without a task gets `W` alone.

use std::ops::Range;

use isovec_engine::error::Result;
use serde_json::Value;

use super::config::Config;
use super::embeddings::declare_input;
use super::linear::Linear;
use super::net::Net;
use super::source::Recipe;

/// The input with the adapter of each token, i64 `[batch, sequence]`: its number, or how many there are for none.
pub const ADAPTER_IDS: &str = "adapter_ids";

/// The metadata entry with the adapters' names, a list in JSON.
pub(super) const NAMES: &str = "isovec.adapters";

/// What `config.json` says of adapters.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spec {
    /// Their names, in the order of their numbers.
    pub(super) names: Vec<String>,
    rank: usize,
    scale: f32,
}

impl Spec {
    /// Reads it; no name where the model has no adapters.
    pub(super) fn of(config: &Config) -> Result<Self> {
        let key = "lora_adaptations";
        let names = match config.value(key) {
            None => Vec::new(),
            Some(Value::Array(names)) => {
                let names = names.iter().map(|name| name.as_str().map(str::to_owned));
                let names: Option<Vec<String>> = names.collect();
                names.ok_or_else(|| config.wrong(key, "does not hold names alone"))?
            }
            Some(_) => return Err(config.wrong(key, "is not a list")),
        };
        let rank = config.size_or("lora_rank", 4)?;
        let alpha = config.positive_or("lora_alpha", 1.0)?;
        Ok(Self {
            names,
            rank,
            scale: (alpha / rank as f64) as f32,
        })
    }

    /// What decides vectors and no tensor shows.
    pub(super) fn deciding(&self) -> String {
        format!("{:?} {:e}", self.names, self.scale)
    }
}

/// The adapters of a graph.
#[derive(Debug)]
pub(super) struct Adapters {
    count: usize,
    rank: usize,
    /// What their columns are multiplied with, `[batch, sequence, count * rank]`.
    chosen: String,
}

impl Adapters {
    /// Declares the input that chooses among them; `None` where there are none.
    pub(super) fn declare(spec: &Spec, net: &mut Net<'_>) -> Option<Self> {
        let (count, rank) = (spec.names.len(), spec.rank);
        if count == 0 {
            return None;
        }
        declare_input(net, ADAPTER_IDS);
        net.scope("adapters");
        let recipe = Recipe::AdapterScales {
            count,
            rank,
            scale: spec.scale,
        };
        let shape = vec![count + 1, count * rank];
        let table = net.recipe("adapters.scales".into(), shape, recipe);
        Some(Self {
            count,
            rank,
            chosen: net.gather(&table, ADAPTER_IDS, 0),
        })
    }

    /// `s A x` of the chosen adapter of a layer, and 0 in the place of the others. `input` is the size of `x`.
    pub(super) fn low(
        &self,
        net: &mut Net<'_>,
        layer: &str,
        input: usize,
        x: &str,
    ) -> Result<String> {
        let shape = [self.count, self.rank, input];
        let down = weight(net, &down(layer), shape, [2, 0, 1], 0..self.rank)?;
        let low = net.node("MatMul", &[x, &down], vec![]);
        Ok(net.node("Mul", &[&low, &self.chosen], vec![]))
    }

    /// The layer's product with `x`, with what its adapter adds; `low` is what [`low`](Self::low) made of it.
    pub(super) fn apply(
        &self,
        net: &mut Net<'_>,
        layer: &Linear,
        x: &str,
        low: &str,
    ) -> Result<String> {
        let own = layer.clone().stored_as(original(&layer.name));
        let own = own.apply(net, x)?;
        let shape = [self.count, layer.output, self.rank];
        let up = weight(
            net,
            &up(&layer.name),
            shape,
            [0, 2, 1],
            layer.outputs.clone(),
        )?;
        let more = net.node("MatMul", &[low, &up], vec![]);
        Ok(net.node("Add", &[&own, &more], vec![]))
    }

    /// The rows of a table at `ids`, with what the adapter adds; row 0 for every token without `ids`.
    pub(super) fn look_up(
        &self,
        net: &mut Net<'_>,
        table: &str,
        [rows, size]: [usize; 2],
        ids: Option<&str>,
    ) -> Result<String> {
        let own = net.weight(&original(table), &[rows, size])?;
        let shape = [self.count, rows, self.rank];
        let down = weight(net, &down(table), shape, [1, 0, 2], 0..rows)?;
        let [own, low] = [own, down].map(|weight| match ids {
            Some(ids) => net.gather(&weight, ids, 0),
            None if rows == 1 => weight,
            None => net.slice(&weight, 0, 0..1),
        });
        let low = net.node("Mul", &[&low, &self.chosen], vec![]);
        let shape = [self.count, self.rank, size];
        let up = weight(net, &up(table), shape, [0, 1, 2], 0..self.rank)?;
        let more = net.node("MatMul", &[&low, &up], vec![]);
        Ok(net.node("Add", &[&more, &own], vec![]))
    }
}

/// A tensor of three axes, of which the first is the adapters', with its axes in another order; the adapters' and the one behind it then
/// are one. Of the middle axis some entries are taken.
fn weight(
    net: &mut Net<'_>,
    name: &str,
    shape: [usize; 3],
    order: [usize; 3],
    middle: Range<usize>,
) -> Result<String> {
    let tensor = net.checked(name, &shape)?;
    let mut extents = shape;
    extents[1] = middle.len();
    let [a, b, c] = order.map(|axis| extents[axis]);
    let out = match order {
        [0, ..] => vec![a * b, c],
        _ => vec![a, b * c],
    };
    let graph_name = match middle.len() == shape[1] {
        true => format!("{name}.turned"),
        false => format!("{name}.{}.turned", middle.start),
    };
    let recipe = Recipe::Turned {
        tensor,
        order,
        middle,
    };
    Ok(net.recipe(graph_name, out, recipe))
}

/// Names in the checkpoint: of a layer's own weight, and of its adapters'.
pub(super) fn original(layer: &str) -> String {
    format!("{layer}.parametrizations.weight.original")
}

fn down(layer: &str) -> String {
    format!("{layer}.parametrizations.weight.0.lora_A")
}

fn up(layer: &str) -> String {
    format!("{layer}.parametrizations.weight.0.lora_B")
}

/// The table that [`Recipe::AdapterScales`] stands for, `[count + 1, count * rank]`.
pub(super) fn scales(count: usize, rank: usize, scale: f32) -> Vec<f32> {
    let row = |adapter| (0..count * rank).map(move |at| at / rank == adapter);
    let own = (0..=count).flat_map(row);
    own.map(|own| if own { scale } else { 0.0 }).collect()
}

/// A tensor of three axes, of whose middle one some entries are taken, with its axes in another order.
pub(super) fn turned(
    values: &[f32],
    shape: [usize; 3],
    order: [usize; 3],
    middle: Range<usize>,
) -> Vec<f32> {
    let steps = [shape[1] * shape[2], shape[2], 1];
    let first = middle.start * steps[1];
    let mut extents = shape;
    extents[1] = middle.len();
    let mut out = Vec::with_capacity(extents.iter().product());
    let [a, b, c] = order;
    for i in 0..extents[a] {
        for j in 0..extents[b] {
            let start = first + i * steps[a] + j * steps[b];
            out.extend((0..extents[c]).map(|k| values[start + k * steps[c]]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_turn_and_entries_are_taken() {
        let values: Vec<f32> = (0..12).map(|n| n as f32).collect();
        // [2, 3, 2]: of the middle axis the second and the third.
        let all = turned(&values, [2, 3, 2], [0, 2, 1], 1..3);
        assert_eq!(all, [2.0, 4.0, 3.0, 5.0, 8.0, 10.0, 9.0, 11.0]);
        let turned_up = turned(&values, [2, 3, 2], [1, 0, 2], 0..3);
        assert_eq!(turned_up[..6], [0.0, 1.0, 6.0, 7.0, 2.0, 3.0]);
        assert_eq!(turned(&values, [2, 3, 2], [0, 1, 2], 0..3), values);
    }

    #[test]
    fn an_adapter_has_its_own_columns_and_none_has_no_column() {
        let rows = scales(2, 2, 0.25);
        let wanted = [[0.25, 0.25, 0.0, 0.0], [0.0, 0.0, 0.25, 0.25], [0.0; 4]];
        assert_eq!(rows, wanted.concat());
    }
}
