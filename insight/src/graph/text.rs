//! A graph as a tree on a terminal.

use std::fmt::Write;

use super::{GraphForm, GraphGroup, GraphNode, INPUT, ModelGraph, numbers};

/// Nodes of a group that are shown unless everything is asked for.
const MOST: usize = 200;

/// Characters of a name that are shown unless everything is asked for.
const NAME: usize = 48;

/// Kinds of operators that are shown unless everything is asked for.
const KINDS: usize = 12;

impl ModelGraph {
    /// The graph as a tree. Equal layers are shown once, and of very long groups the beginning, unless `expand`
    /// is set. Ends with a line feed.
    pub fn to_text(&self, expand: bool) -> String {
        let mut text = String::new();
        for line in self.headline() {
            let _ = writeln!(text, "{line}");
        }
        self.shares(&mut text, expand);
        for group in &self.groups {
            let copies = match expand {
                true => group.repeats,
                false => 1,
            };
            for copy in 0..copies {
                let _ = writeln!(text, "\n{}", self.title(group, expand.then_some(copy)));
                self.tree(&mut text, group, copy, expand);
            }
        }
        text
    }

    /// What the graph is, in a few lines.
    pub(super) fn headline(&self) -> Vec<String> {
        let size = format!(
            "{} of {}",
            numbers::some(self.rows, "text"),
            numbers::some(self.tokens, "token")
        );
        let form = match (self.form, &self.engine) {
            (GraphForm::Program, Some(engine)) => format!("as {engine} runs it"),
            (GraphForm::Optimized, Some(engine)) => format!("as {engine} optimised it"),
            (_, Some(engine)) => format!("as the file has it; {engine} runs it"),
            (_, None) => "as the file has it, with its pooling head".into(),
        };
        let computed = self.nodes.iter().filter(|node| node.operator != INPUT);
        let totals = &self.totals;
        let mut lines = vec![
            format!("{}, {form}", numbers::plain(&self.model)),
            format!(
                "{}, {}, {} of weights",
                numbers::some(computed.count(), "node"),
                numbers::parameters(totals.parameters),
                numbers::bytes(totals.weight_bytes),
            ),
            format!(
                "for {size}: {}, {} of results",
                numbers::flops(totals.flops),
                numbers::bytes(totals.result_bytes),
            ),
        ];
        if totals.unknown > 0 {
            lines.push(format!(
                "{} without known cost: the extents of their results are not known",
                numbers::some(totals.unknown, "node")
            ));
        }
        if let Some(times) = &self.times {
            lines.push(times.line());
        }
        lines.extend(
            self.notes
                .iter()
                .map(|note| format!("note: {}", numbers::plain(note))),
        );
        lines
    }

    fn shares(&self, text: &mut String, expand: bool) {
        let shown = if expand { usize::MAX } else { KINDS };
        if self.operators.is_empty() {
            return;
        }
        let _ = writeln!(text, "\nby operator");
        for share in self.operators.iter().take(shown) {
            let time = share
                .milliseconds
                .map(numbers::milliseconds)
                .unwrap_or_default();
            let line = format!(
                "  {:<28} {:>5} × {:>14} {:>8}  {time}",
                numbers::short(&share.operator, 28),
                share.nodes,
                numbers::flops(share.flops),
                numbers::percent(share.share),
            );
            let _ = writeln!(text, "{}", line.trim_end());
        }
        let more = self.operators.len().saturating_sub(shown);
        if more > 0 {
            let _ = writeln!(text, "  … and {}", numbers::some(more, "other kind"));
        }
    }

    /// A group's name and sums: of all copies, or of one.
    pub(super) fn title(&self, group: &GraphGroup, copy: Option<usize>) -> String {
        let (nodes, name) = match copy {
            Some(copy) if group.repeats > 1 => {
                let name = format!("{} {} of {}", group.name, copy + 1, group.repeats);
                (&self.nodes[group.copy(copy)], name)
            }
            _ if group.repeats > 1 => {
                let name = format!("{} × {}", group.name, group.repeats);
                (&self.nodes[group.all()], name)
            }
            _ => (&self.nodes[group.all()], group.name.clone()),
        };
        let sum = |of: fn(&GraphNode) -> u64| nodes.iter().map(of).fold(0, u64::saturating_add);
        let flops = sum(|node| node.flops.unwrap_or(0));
        let mut parts = vec![numbers::some(nodes.len(), "node")];
        let parameters = sum(|node| node.parameters);
        if parameters > 0 {
            parts.push(numbers::parameters(parameters));
        }
        if flops > 0 {
            let share = flops as f64 / self.totals.flops.max(1) as f64;
            parts.push(format!(
                "{} ({})",
                numbers::flops(flops),
                numbers::percent(share)
            ));
        }
        let times: Vec<f64> = nodes.iter().filter_map(|node| node.milliseconds).collect();
        if !times.is_empty() {
            parts.push(numbers::milliseconds(times.iter().sum()));
        }
        format!("{name} ({})", parts.join(", "))
    }

    fn tree(&self, text: &mut String, group: &GraphGroup, copy: usize, expand: bool) {
        let nodes = group.copy(copy);
        let shown = match expand {
            true => nodes.len(),
            false => nodes.len().min(MOST),
        };
        let cut = nodes.len() - shown;
        for (row, at) in nodes.clone().take(shown).enumerate() {
            let last = row + 1 == shown && cut == 0;
            let branch = if last { "└─" } else { "├─" };
            let line = self.line(at, group, expand);
            let _ = writeln!(text, "{branch} {line}");
        }
        if cut > 0 {
            let _ = writeln!(text, "└─ … {}, not shown", numbers::some(cut, "more node"));
        }
    }

    /// A node on a line: what it is, its result, what it costs.
    fn line(&self, at: usize, group: &GraphGroup, expand: bool) -> String {
        let node = &self.nodes[at];
        let most = if expand { usize::MAX } else { NAME };
        let mut parts = Vec::new();
        if node.parameters > 0 {
            parts.push(numbers::parameters(node.parameters));
        }
        match node.flops {
            Some(0) => {}
            Some(flops) => parts.push(numbers::flops(flops)),
            None => parts.push("cost unknown".into()),
        }
        if let Some(time) = self.time(at, group, expand) {
            parts.push(numbers::milliseconds(time));
        }
        // What all of them have is said once, at the top.
        let all = self.engine.as_ref().map(|engine| engine.provider.as_str());
        if let Some(provider) = node.provider.as_deref().filter(|own| !names(all, own)) {
            parts.push(format!("on {}", numbers::plain(provider)));
        }
        let mut name = numbers::short(&node.operator, most);
        for (open, part) in [(" ", &node.detail), ("  ", &node.name)] {
            if !part.is_empty() {
                name.push_str(open);
                name.push_str(&numbers::short(part, most));
            }
        }
        let line = format!("{name}  {}  {}", numbers::shape(node), parts.join(", "));
        line.trim_end().to_owned()
    }

    /// A node's time, or where its copies are shown as one, what one of them takes on average.
    pub(super) fn time(&self, at: usize, group: &GraphGroup, expand: bool) -> Option<f64> {
        if expand || group.repeats == 1 {
            return self.nodes[at].milliseconds;
        }
        let place = (at - group.first) % group.nodes;
        let copies = (0..group.repeats).map(|copy| group.copy(copy).start + place);
        let times: Vec<f64> = copies
            .filter_map(|at| self.nodes[at].milliseconds)
            .collect();
        (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
    }
}

/// Whether a provider is the one that the engine computes on: ONNX Runtime writes `CPUExecutionProvider` for `CPU`.
fn names(engine: Option<&str>, provider: &str) -> bool {
    engine.is_some_and(|engine| {
        provider == engine || provider.strip_suffix("ExecutionProvider") == Some(engine)
    })
}
