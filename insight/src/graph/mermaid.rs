//! A graph as a Mermaid flowchart (<https://mermaid.js.org/syntax/flowchart.html>), which GitHub and others draw.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{GraphGroup, INPUT, ModelGraph, numbers};

/// Nodes that are drawn, at most: what draws them refuses much larger ones (Mermaid's `maxEdges` is 500 by
/// default), and nobody could read them.
const MOST: usize = 250;

/// Edges that are drawn, at most.
const MOST_EDGES: usize = 450;

/// Characters of a line of a label.
const LABEL: usize = 40;

impl ModelGraph {
    /// The graph as a Mermaid flowchart. Equal layers are drawn once, with their number and a dotted way back; of
    /// a graph with more than 250 nodes or 450 edges the beginning, and where it is cut. Ends with a line feed.
    pub fn to_mermaid(&self) -> String {
        let mut text = String::from("flowchart TD\n");
        for line in self.headline() {
            let _ = writeln!(text, "%% {}", comment(&line));
        }
        // By node, the one that it is drawn as.
        let mut drawn: Vec<Option<usize>> = vec![None; self.nodes.len()];
        let mut count = 0;
        for (number, group) in self.groups.iter().enumerate() {
            let shown = group.nodes.min(MOST - count);
            if shown == 0 {
                break;
            }
            let _ = writeln!(
                text,
                "  subgraph g{number}[\"{}\"]",
                escape(&self.title(group, None))
            );
            for at in group.copy(0).take(shown) {
                let _ = writeln!(text, "    {}", self.box_of(at, group));
            }
            let _ = writeln!(text, "  end");
            for at in group.all() {
                let place = (at - group.first) % group.nodes;
                drawn[at] = (place < shown).then_some(group.first + place);
            }
            count += shown;
        }
        let (edges, left_out) = self.edges(&drawn);
        for (from, to) in edges {
            let _ = match from < to {
                true => writeln!(text, "  n{from} --> n{to}"),
                // From the end of a layer to the beginning of the next.
                false => writeln!(text, "  n{from} -. \"next\" .-> n{to}"),
            };
        }
        let all: usize = self.groups.iter().map(|group| group.nodes).sum();
        if count < all || left_out > 0 {
            let nodes = numbers::some(all - count, "more node");
            let edges = numbers::some(left_out, "more edge");
            let _ = writeln!(text, "  cut[\"… cut here: {nodes} and {edges}\"]");
        }
        text
    }

    fn box_of(&self, at: usize, group: &GraphGroup) -> String {
        let node = &self.nodes[at];
        let mut lines = vec![numbers::short(&node.operator, LABEL)];
        let texts = [node.detail.as_str(), node.name.as_str()];
        lines.extend(
            texts
                .iter()
                .filter(|text| !text.is_empty())
                .map(|text| numbers::short(text, LABEL)),
        );
        lines.push(numbers::short(&numbers::shape(node), LABEL));
        if let Some(flops) = node.flops.filter(|&flops| flops > 0) {
            lines.push(numbers::flops(flops));
        }
        lines.extend(self.time(at, group, false).map(numbers::milliseconds));
        let lines: Vec<String> = lines.iter().map(|line| escape(line)).collect();
        let label = lines.join("<br/>");
        match node.operator == INPUT {
            true => format!("n{at}([\"{label}\"])"),
            false => format!("n{at}[\"{label}\"]"),
        }
    }

    /// Edges between nodes that are drawn, each once, in order; and how many there was no room for.
    fn edges(&self, drawn: &[Option<usize>]) -> (Vec<(usize, usize)>, usize) {
        let mut edges = BTreeSet::new();
        let mut left_out = BTreeSet::new();
        for (at, node) in self.nodes.iter().enumerate() {
            for &input in &node.inputs {
                match (drawn[input], drawn[at]) {
                    (Some(from), Some(to)) => edges.insert((to, from)),
                    _ => left_out.insert((input, at)),
                };
            }
        }
        let more = edges.len().saturating_sub(MOST_EDGES);
        let edges = edges.into_iter().take(MOST_EDGES);
        let edges = edges.map(|(to, from)| (from, to)).collect();
        (edges, left_out.len() + more)
    }
}

/// Text between quotes: whatever could end it or be markup is written by its number, which Mermaid takes between `#`
/// and `;`.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in numbers::plain(text).chars() {
        match c {
            '"' | '#' | ';' | '<' | '>' | '&' | '`' | '\\' | '%' | '$' | '*' | '_' | '~' | '|'
            | '{' | '}' => {
                let _ = write!(escaped, "#{};", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// Text behind `%%`: braces there begin a directive.
fn comment(text: &str) -> String {
    numbers::plain(text).replace(['{', '}', '%'], " ")
}
