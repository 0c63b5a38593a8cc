//! The head of sparse vectors: a weight for each word of the vocabulary, pooled over a text's tokens.
//!
//! Formula: `SpladePooling` of sentence-transformers. The weight of a word is the maximum, or the sum, over the text's tokens of
//! `log(1 + relu(x))`, `x` being the number that a masked language model gives the word at the token.
//!
//! The logarithm grows with `x`, so the maximum of the logarithms is the logarithm of the maximum. The graph therefore gives the
//! maximum of `x` itself, and whoever reads it takes logarithms of the few numbers above 0 alone ([`Weighting`]). A sum needs the
//! logarithms before it, and its graph holds them.
//!
//! Where a converted graph puts words together from blocks, each block is pooled before they are put together, so that no engine
//! holds a number for each token and each word.

use std::collections::HashMap;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::Dim;
use isovec_engine::engine::MASK;
use isovec_engine::error::{EngineError, Result};
use isovec_engine::onnx::proto::{DataType, GraphProto, NodeProto};
use isovec_engine::tensor::DType;

use crate::bundle::prune;
use crate::convert::TOKEN_LOGITS_MADE;
use crate::head::{
    LOGITS, OUTPUT, graph_of, needs_mask, needs_no_head, remember, rename, tensor_type,
    unused_prefix,
};
use crate::onnx::GraphBuilder;
use crate::onnx::builder::{int, ints, value_info};

/// The output of a converted masked language model: a number for each token and word, f32 `[batch, sequence, vocabulary]`. At
/// padding the numbers are those of the first token.
pub const TOKEN_LOGITS: &str = "token_logits";

/// Below this, `log(1 + x)` is computed by its series, because f32 loses `x` beside 1.
const SMALL: f32 = 1.0 / 64.0;

/// How a text's tokens are pooled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// The largest number.
    Max,
    /// The sum.
    Sum,
}

/// The head of sparse vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Splade {
    /// How a text's tokens are pooled.
    pub over: Over,
    /// Whether the logarithm is taken twice: `log(1 + log(1 + relu(x)))`, the activation `log1p_relu`.
    pub twice: bool,
}

impl Splade {
    /// A canonical text of the head, for fingerprints.
    pub fn identity(&self) -> String {
        let over = match self.over {
            Over::Max => "max",
            Over::Sum => "sum",
        };
        let activation = if self.twice { "log1p_relu" } else { "relu" };
        format!("splade;pooling={over};activation={activation}")
    }

    /// What is still to be done with the graph's numbers.
    pub fn weighting(&self) -> Weighting {
        Weighting {
            logarithms: match (self.over, self.twice) {
                (Over::Sum, _) => 0,
                (Over::Max, false) => 1,
                (Over::Max, true) => 2,
            },
        }
    }
}

/// Makes a weight of a graph's number for a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weighting {
    logarithms: u8,
}

impl Weighting {
    /// The number itself where it is above 0: relu.
    pub const RELU: Self = Self { logarithms: 0 };

    /// The weight: 0 for what is not above 0. Computed at f64, and rounded once.
    pub fn of(self, x: f32) -> f32 {
        if x <= 0.0 {
            return 0.0;
        }
        (0..self.logarithms).fold(f64::from(x), |x, _| x.ln_1p()) as f32
    }
}

/// What is known of a completed graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparseInfo {
    /// The words of the vocabulary.
    pub words: usize,
    /// What decides the numbers of words and no tensor shows; empty for a graph that was not converted.
    pub made: String,
}

/// Makes the pooled numbers of words the one output of a graph, f32 `[batch, vocabulary]` under the name [`OUTPUT`], and removes
/// what no longer leads there.
///
/// # Errors
/// [`EngineError::UnsupportedModel`] when the graph gives no number for each token and word, or ends in another head.
pub fn attach_splade(bundle: &mut ModelBundle, splade: Splade) -> Result<SparseInfo> {
    let origin = bundle.origin.clone();
    let unsupported = |reason: String, hint: &str| EngineError::UnsupportedModel {
        origin: origin.clone(),
        reason,
        hint: hint.into(),
    };
    needs_no_head(bundle)?;
    let mut entries = bundle.graph.metadata_props.iter();
    let made = entries.find(|entry| entry.key == TOKEN_LOGITS_MADE);
    let made = made.map(|entry| entry.value.clone()).unwrap_or_default();
    let graph = graph_of(bundle)?;
    let Some(source) = Source::of(graph) else {
        let outputs: Vec<&str> = graph.output.iter().map(|it| it.name.as_str()).collect();
        return Err(unsupported(
            format!(
                "none of its outputs ({}) is a number for each token and word",
                outputs.join(", ")
            ),
            "Sparse vectors come of safetensors of a class that ends in ForMaskedLM (of BERT, RoBERTa, XLM-R, CamemBERT, MPNet, DistilBERT, ModernBERT, GTE), and of their ONNX files",
        ));
    };
    needs_mask(graph, &origin)?;
    let mut head = Head {
        graph: GraphBuilder::new(graph, unused_prefix(graph)),
    };
    let first = head.graph.graph().node.len();
    let mut ends = Vec::new();
    let blocks = source.blocks.iter().map(|block| {
        let block = match source.element == DataType::Float as i32 {
            true => block.clone(),
            false => head.cast(block, DataType::Float),
        };
        let pooled = match splade.over {
            Over::Max => head.largest(&block, source.padding_is_first),
            Over::Sum => head.sum(&block, splade.twice),
        };
        ends.push(head.graph.graph().node.len());
        pooled
    });
    let blocks: Vec<String> = blocks.collect();
    pool_early(head.graph.graph(), &source.blocks, first, &ends);
    let value = match &blocks[..] {
        [only] => only.clone(),
        blocks => {
            let blocks: Vec<&str> = blocks.iter().map(String::as_str).collect();
            head.graph.node("Concat", &blocks, vec![int("axis", 1)])
        }
    };
    rename(graph, OUTPUT, &format!("{OUTPUT}.in_graph"));
    GraphBuilder::new(graph, "").named_node("Identity", &[&value], OUTPUT, Vec::new());
    let dims = [source.batch, Dim::Fixed(source.words)];
    graph.output = vec![value_info(OUTPUT, DType::F32, &dims)];
    remember(bundle, splade.identity());
    prune(bundle);
    Ok(SparseInfo {
        words: source.words,
        made,
    })
}

/// Moves the nodes that pool a block to where the block is made: engines that run nodes in the graph's order hold one block then.
/// Those of the blocks stand one after another from `first` on, and each block's end at its place in `ends`.
fn pool_early(graph: &mut GraphProto, blocks: &[String], first: usize, ends: &[usize]) {
    let mut pooling = graph.node.split_off(first).into_iter();
    let mut from = first;
    let mut after: HashMap<&str, Vec<NodeProto>> = HashMap::new();
    for (block, &end) in blocks.iter().zip(ends) {
        let own = pooling.by_ref().take(end - from).collect();
        after.insert(block, own);
        from = end;
    }
    for node in std::mem::take(&mut graph.node) {
        let made = node.output.iter();
        let own: Vec<NodeProto> = made
            .filter_map(|output| after.remove(output.as_str()))
            .flatten()
            .collect();
        graph.node.push(node);
        graph.node.extend(own);
    }
}

/// Where the numbers of tokens and words are in a graph.
struct Source {
    /// Values `[batch, sequence, words]`, whose words one after another are the vocabulary.
    blocks: Vec<String>,
    element: i32,
    batch: Dim,
    words: usize,
    padding_is_first: bool,
}

impl Source {
    fn of(graph: &GraphProto) -> Option<Self> {
        [TOKEN_LOGITS, LOGITS].into_iter().find_map(|name| {
            let output = graph.output.iter().find(|output| output.name == name)?;
            let (element, dims) = tensor_type(output)?;
            let [batch, _, Dim::Fixed(words)] = &dims?[..] else {
                return None;
            };
            let converted = name == TOKEN_LOGITS;
            let last = graph.node.iter().find(|node| {
                converted && node.op_type == "Concat" && node.output.iter().any(|it| it == name)
            });
            Some(Self {
                blocks: last.map_or_else(|| vec![name.to_owned()], |last| last.input.clone()),
                element,
                batch: batch.clone(),
                words: *words,
                padding_is_first: converted,
            })
        })
    }
}

/// Writes the head's nodes.
struct Head<'g> {
    graph: GraphBuilder<'g>,
}

impl Head<'_> {
    /// `[batch, sequence, words]` to `[batch, words]`: the largest number of the real positions.
    fn largest(&mut self, block: &str, padding_is_first: bool) -> String {
        let real = match padding_is_first {
            true => block.to_owned(),
            false => {
                let mask = self.cast(MASK, DataType::Bool);
                let axis = self.graph.ints(&[2]);
                let mask = self.graph.node("Unsqueeze", &[&mask, &axis], vec![]);
                let lowest = self.graph.f32(f32::MIN);
                self.graph.node("Where", &[&mask, block, &lowest], vec![])
            }
        };
        let over = vec![ints("axes", &[1]), int("keepdims", 0)];
        self.graph.node("ReduceMax", &[&real], over)
    }

    /// The same: the sum of the real positions' weights.
    fn sum(&mut self, block: &str, twice: bool) -> String {
        let mut weights = self.graph.node("Relu", &[block], vec![]);
        for _ in 0..1 + usize::from(twice) {
            weights = self.log_1p(&weights);
        }
        let mask = self.cast(MASK, DataType::Float);
        let axis = self.graph.ints(&[1]);
        let row = self.graph.node("Unsqueeze", &[&mask, &axis], vec![]);
        let sum = self.graph.node("MatMul", &[&row, &weights], vec![]);
        self.graph.node("Squeeze", &[&sum, &axis], vec![])
    }

    /// `log(1 + x)` of numbers that are not below 0.
    fn log_1p(&mut self, x: &str) -> String {
        let one = self.graph.f32(1.0);
        let shifted = self.graph.node("Add", &[x, &one], vec![]);
        let log = self.graph.node("Log", &[&shifted], vec![]);
        // x - x²/2 + x³/3 - x⁴/4 + x⁵/5, by Horner's rule.
        let mut series = self.graph.f32(1.0 / 5.0);
        for term in [1.0 / 4.0, 1.0 / 3.0, 1.0 / 2.0, 1.0] {
            let term = self.graph.f32(term);
            let rest = self.graph.node("Mul", &[x, &series], vec![]);
            series = self.graph.node("Sub", &[&term, &rest], vec![]);
        }
        let series = self.graph.node("Mul", &[x, &series], vec![]);
        let small = self.graph.f32(SMALL);
        let is_small = self.graph.node("Less", &[x, &small], vec![]);
        self.graph
            .node("Where", &[&is_small, &series, &log], vec![])
    }

    fn cast(&mut self, value: &str, to: DataType) -> String {
        self.graph
            .node("Cast", &[value], vec![int("to", to as i64)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_is_the_logarithm_of_what_is_above_0() {
        let max = |twice| {
            Splade {
                over: Over::Max,
                twice,
            }
            .weighting()
        };
        for x in [-1.0, -0.0, 0.0, f32::MIN] {
            assert_eq!(max(false).of(x).to_bits(), 0);
        }
        assert_eq!(max(false).of(1.0), 2f32.ln());
        assert_eq!(max(false).of(1e-6), 1e-6_f64.ln_1p() as f32);
        assert_eq!(max(true).of(1.0), 2f64.ln().ln_1p() as f32);
        let sum = Splade {
            over: Over::Sum,
            twice: true,
        };
        assert_eq!(sum.weighting(), Weighting::RELU);
        assert_eq!(
            (Weighting::RELU.of(0.75), Weighting::RELU.of(-0.75)),
            (0.75, 0.0)
        );
    }

    #[test]
    fn heads_of_other_numbers_have_other_names() {
        let all = [Over::Max, Over::Sum]
            .iter()
            .flat_map(|&over| [false, true].map(|twice| Splade { over, twice }.identity()));
        let all: std::collections::BTreeSet<String> = all.collect();
        assert_eq!(all.len(), 4);
    }
}
