//! Finds layers: runs of nodes that repeat.

use std::collections::HashMap;
use std::ops::Range;

use super::{GraphGroup, GraphNode, INPUT};

/// Nodes of a layer, at most: looking for longer ones takes time in proportion.
const LONGEST: usize = 1024;

/// Nodes that a group of equal ones has at least, in all its copies.
const LEAST: usize = 4;

/// Cuts the nodes into groups: equal layers together, and what is before, between and behind them.
pub(super) fn groups(nodes: &[GraphNode]) -> Vec<GraphGroup> {
    let alike = kinds(nodes);
    let mut found = Vec::new();
    repeats(nodes, &alike, 0..nodes.len(), DEPTH, &mut found);
    found.sort_by_key(|group: &GraphGroup| group.first);
    let first_layer = found.iter().position(|group| is_layer(group, nodes));
    let mut groups = Vec::new();
    let mut at = 0;
    for (place, group) in found.iter().enumerate() {
        let before = match first_layer {
            Some(first) if place <= first => "embeddings",
            Some(_) => "between",
            None => "nodes",
        };
        rest(before, at, group.first, &mut groups);
        at = group.all().end;
        groups.push(group.clone());
    }
    let last = if first_layer.is_some() {
        "head"
    } else {
        "nodes"
    };
    rest(last, at, nodes.len(), &mut groups);
    groups
}

fn rest(name: &str, from: usize, to: usize, groups: &mut Vec<GraphGroup>) {
    if from < to {
        groups.push(group(name, from, to - from, 1));
    }
}

fn group(name: &str, first: usize, nodes: usize, repeats: usize) -> GraphGroup {
    GraphGroup {
        name: name.into(),
        first,
        nodes,
        repeats,
    }
}

/// Whether the copies of a group are layers of an encoder.
fn is_layer(group: &GraphGroup, nodes: &[GraphNode]) -> bool {
    group.repeats > 1 && attentions(&nodes[group.copy(0)]) > 0
}

/// How often the nodes attend: attention as one operator, or as the softmax that is left of it.
fn attentions(nodes: &[GraphNode]) -> usize {
    let named = |node: &&GraphNode| {
        let softmax = node.operator.ends_with("Softmax") || node.detail.starts_with("softmax");
        softmax || node.operator.to_lowercase().contains("attention")
    };
    nodes.iter().filter(named).count()
}

/// A number for each node: equal for nodes that do the same to results of the same operators.
fn kinds(nodes: &[GraphNode]) -> Vec<usize> {
    let mut known = HashMap::new();
    let kinds = nodes.iter().enumerate().map(|(at, node)| {
        // Not how far away they are: what is read by all layers is computed before the first of them, or among its
        // nodes.
        let inputs: Vec<&str> = node
            .inputs
            .iter()
            .map(|&input| nodes[input].operator.as_str())
            .collect();
        let shape = node.shape.as_ref().map(|dims| format!("{dims:?}"));
        let key = (
            &node.operator,
            &node.detail,
            shape,
            node.flops,
            inputs,
            (node.operator == INPUT).then_some(at),
        );
        let next = known.len();
        *known.entry(key).or_insert(next)
    });
    kinds.collect()
}

/// How often what is left beside copies is looked at again, so that no graph takes long.
const DEPTH: usize = 6;

/// Finds the copies that take up most of the nodes between two places, and then what is left and right of them.
fn repeats(
    nodes: &[GraphNode],
    alike: &[usize],
    place: Range<usize>,
    depth: usize,
    found: &mut Vec<GraphGroup>,
) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    let Range {
        start: from,
        end: to,
    } = place;
    let mut best: Option<(usize, usize, usize, usize)> = None;
    for period in 1..=((to - from) / 2).min(LONGEST) {
        let mut start = from;
        while start + period < to {
            let run = alike[start..to - period]
                .iter()
                .zip(&alike[start + period..to])
                .take_while(|(a, b)| a == b)
                .count();
            let copies = run / period + 1;
            let covered = copies * period;
            if copies > 1 && covered >= LEAST && best.is_none_or(|(most, ..)| covered > most) {
                best = Some((covered, start, period, run + period - covered));
            }
            start += run + 1;
        }
    }
    let Some((covered, start, period, slack)) = best else {
        return;
    };
    // Where copies may begin at several places, a layer begins where the fewest results go across.
    let start = (start..=start + slack)
        .min_by_key(|&start| (crossing(nodes, start, start + period), usize::MAX - start))
        .unwrap_or(start);
    let attends = attentions(&nodes[start..start + period]);
    let name = match attends {
        0 => "equal nodes".to_owned(),
        1 => "encoder layer".to_owned(),
        several => format!("{several} encoder layers"),
    };
    repeats(nodes, alike, from..start, depth, found);
    found.push(group(&name, start, period, covered / period));
    repeats(nodes, alike, start + covered..to, depth, found);
}

/// Results from before a copy that are read in it.
fn crossing(nodes: &[GraphNode], from: usize, to: usize) -> usize {
    let mut read: Vec<usize> = nodes[from..to]
        .iter()
        .flat_map(|node| node.inputs.iter().copied().filter(|&input| input < from))
        .collect();
    read.sort_unstable();
    read.dedup();
    read.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(operators: &[&str]) -> Vec<GraphNode> {
        let nodes = operators.iter().enumerate();
        nodes
            .map(|(at, operator)| GraphNode {
                operator: (*operator).into(),
                inputs: at.checked_sub(1).into_iter().collect(),
                ..GraphNode::default()
            })
            .collect()
    }

    #[test]
    fn layers_begin_behind_the_norm_and_every_node_is_in_a_group() {
        let mut operators = vec![INPUT, "gather", "norm"];
        for _ in 0..6 {
            operators.extend(["linear", "attention", "linear", "norm"]);
        }
        operators.push("pool");
        let nodes = chain(&operators);
        let groups = groups(&nodes);
        let seen: Vec<_> = groups
            .iter()
            .map(|group| (group.name.as_str(), group.first, group.nodes, group.repeats))
            .collect();
        let wanted = [
            ("embeddings", 0, 3, 1),
            ("encoder layer", 3, 4, 6),
            ("head", 27, 1, 1),
        ];
        assert_eq!(seen, wanted);
    }

    #[test]
    fn what_does_not_repeat_is_one_group_and_ten_thousand_nodes_are_soon_cut() {
        let nodes = chain(&["a", "b", "c"]);
        assert_eq!(groups(&nodes), [group("nodes", 0, 3, 1)]);
        assert!(groups(&[]).is_empty());
        let many: Vec<String> = (0..10_000)
            .map(|at| format!("op{}", at * at % 977))
            .collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let nodes = chain(&many);
        let covered: usize = groups(&nodes).iter().map(|group| group.all().len()).sum();
        assert_eq!(covered, 10_000);
    }
}
