//! The nodes of isovec's own program.

use isovec_encoder::Program;
use isovec_encoder::program::{Node, NormKind, Op, Rows, Which};
use isovec_engine::bundle::ModelBundle;

use super::{Dim, GraphForm, GraphNode, INPUT, ModelGraph};

impl ModelGraph {
    pub(super) fn take_program(&mut self, program: &Program, bundle: &ModelBundle) {
        self.form = GraphForm::Program;
        let weights = program.weights_by_node(bundle);
        let nodes = program.nodes.iter().zip(weights).enumerate();
        self.nodes = nodes
            .map(|(at, (node, weights))| {
                let (rows, axis) = match node.rows {
                    Rows::Tokens => {
                        let tokens = (self.rows as u64).saturating_mul(self.tokens as u64);
                        (tokens, "tokens")
                    }
                    Rows::Texts => (self.rows as u64, "texts"),
                };
                let mut inputs: Vec<usize> = node.op.inputs().iter().map(|id| id.0).collect();
                inputs.sort_unstable();
                inputs.dedup();
                let flops = match node.op.name() {
                    INPUT => 0,
                    _ => rows
                        .saturating_mul(program.multiply_adds(at, self.tokens))
                        .saturating_mul(2),
                };
                let row_bytes = (node.width as u64).saturating_mul(size_of::<f32>() as u64);
                GraphNode {
                    operator: node.op.name().into(),
                    name: match &node.op {
                        Op::Input(name) => name.clone(),
                        _ => weights.name.unwrap_or_default(),
                    },
                    detail: detail(program, node),
                    inputs,
                    shape: Some(vec![Dim::Symbolic(axis.into()), Dim::Fixed(node.width)]),
                    parameters: weights.parameters,
                    weight_bytes: weights.bytes,
                    result_bytes: Some(rows.saturating_mul(row_bytes)),
                    flops: Some(flops),
                    provider: None,
                    milliseconds: None,
                }
            })
            .collect();
    }
}

/// What a node's operator leaves open.
fn detail(program: &Program, node: &Node) -> String {
    let width = node.width;
    let word = |text: String| text.to_lowercase().replace(" {", "").replace(" }", "");
    match &node.op {
        Op::Input(_) => String::new(),
        Op::Values(_) => format!("{width} for each position"),
        Op::Position => "place in the text".into(),
        Op::Length => "length of the text".into(),
        Op::Gather { .. } => String::new(),
        Op::Linear(linear) => {
            let mut parts = vec![format!("{} → {width}", program.nodes[linear.x.0].width)];
            parts.extend(linear.activation.map(|f| word(format!("{f:?}"))));
            parts.extend(linear.residual.map(|_| "+ residual".into()));
            parts.join(", ")
        }
        Op::Norm(norm) => {
            let kind = match norm.kind {
                NormKind::Layer => "layer",
                NormKind::RootMeanSquare => "root mean square",
            };
            let groups = match norm.size {
                size if size == width => String::new(),
                size => format!(", groups of {size}"),
            };
            let residual = norm.residual.map_or("", |_| ", + residual");
            format!("{kind}{groups}{residual}")
        }
        Op::Attention(attention) => {
            let reach = attention.reach.map(|reach| match attention.causal {
                true => format!(", {reach} tokens before"),
                false => format!(", {reach} tokens each way"),
            });
            let bias = attention.bias.as_ref().map_or("", |_| ", relative bias");
            let causal = if attention.causal { ", causal" } else { "" };
            let (heads, size) = (attention.heads, attention.size);
            format!(
                "{heads} heads of {size}{causal}{}{bias}",
                reach.unwrap_or_default()
            )
        }
        Op::Map { f, .. } => word(format!("{f:?}")),
        Op::Zip { f, .. } => word(format!("{f:?}")),
        Op::Select { .. } => "select".into(),
        Op::Copy { .. } => "other columns".into(),
        Op::Concat { parts, .. } => format!("{} parts", parts.len()),
        Op::Reduce { f, size, .. } => format!("{} of {size}", word(format!("{f:?}"))),
        Op::Softmax { size, .. } => format!("softmax of {size}"),
        Op::Pool { f, .. } => word(format!("{f:?}")),
        Op::WeightedSum { .. } => "weighted sum".into(),
        Op::Take { which, .. } => match which {
            Which::FromFirst(place) => format!("token {place}"),
            Which::FromLast(place) => format!("token {place} from the last"),
        },
        Op::CumSum { .. } => "along the text".into(),
    }
}
