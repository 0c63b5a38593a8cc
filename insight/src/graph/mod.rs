//! A model's graph, node by node: as the chosen engine runs it, or as it is in the model's file.
//!
//! ```no_run
//! # async fn example() -> isovec::Result<()> {
//! use isovec_insight::graph::{GraphOptions, ModelGraph};
//! use isovec::{EmbeddingConfig, models};
//!
//! let options = GraphOptions::default().with_size(1, 256);
//! let graph =
//!     ModelGraph::read(models::ALL_MINILM_L6_V2, EmbeddingConfig::default(), options).await?;
//! println!("{}", graph.to_text(false));
//! # Ok(()) }
//! ```
//!
//! # How FLOPs are counted
//! A multiplication with an addition is two. A product `[m, k] · [k, n]` takes `2 · m · k · n`, and attention
//! `4 · n · seen · width` for a text of `n` tokens, each of which meets `seen` others, once for the score and
//! once for the value (Kaplan et al., "Scaling Laws for Neural Language Models", table 1, counts the same:
//! <https://arxiv.org/abs/2001.08361>). These two counts are exact, and are nearly the whole cost. Elementwise
//! operators count a fixed amount that takes about as long: 16 for each number of a norm, a softmax or a function, 4
//! for other arithmetic. Operators that only move numbers count 4 for each number in isovec's own programs, as in its
//! profiles, and 0 elsewhere.

mod collapse;
mod html;
mod infer;
pub(crate) mod markup;
mod mermaid;
mod numbers;
mod onnx;
mod program;
#[cfg(test)]
mod tests;
mod text;
mod times;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use isovec::engine::{ModelDescription, ProviderInfo};
use isovec::inspect::{Inspected, Running, RunningGraph, inspect};
use isovec::{BoxFuture, Embedder, EmbeddingConfig, Error, ModelSource, OnProgress, Result};
use isovec_encoder::{CompileError, NoTurns, Program};
use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::describe;
use isovec_model::precision::widened;
use serde::{Deserialize, Serialize};

pub use isovec_engine::description::Dim;
pub use times::{GraphTimes, TimesError};

// For text of other origins in the program `isovec`.
#[doc(hidden)]
pub use {markup::escape, numbers::plain};

/// Which graph is shown, and the size of the batch for its counts.
#[derive(Clone)]
#[non_exhaustive]
pub struct GraphOptions {
    /// Texts of the batch that costs are counted for.
    pub rows: usize,
    /// Tokens of each of them.
    pub tokens: usize,
    /// Show the graph as the model's file has it, with its pooling head, before any engine.
    pub file: bool,
    progress: Option<Arc<dyn OnProgress>>,
    cancel: Cancel,
}

impl Default for GraphOptions {
    fn default() -> Self {
        Self {
            rows: 1,
            tokens: 128,
            file: false,
            progress: None,
            cancel: Cancel::new(),
        }
    }
}

impl fmt::Debug for GraphOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphOptions")
            .field("rows", &self.rows)
            .field("tokens", &self.tokens)
            .field("file", &self.file)
            .field("progress", &self.progress.is_some())
            .field("cancel", &self.cancel)
            .finish()
    }
}

impl GraphOptions {
    /// Counts costs for a batch of `rows` texts of `tokens` tokens each.
    #[must_use]
    pub fn with_size(mut self, rows: usize, tokens: usize) -> Self {
        (self.rows, self.tokens) = (rows, tokens);
        self
    }

    /// Chooses the graph of the file instead of the engine's. No engine is loaded then.
    #[must_use]
    pub fn with_file(mut self, file: bool) -> Self {
        self.file = file;
        self
    }

    /// Reports how far loading has come.
    #[must_use]
    pub fn with_progress(mut self, progress: impl OnProgress + 'static) -> Self {
        self.progress = Some(Arc::new(progress));
        self
    }

    /// Stops loading when `cancel` is cancelled.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }
}

/// The kind of nodes in a [`ModelGraph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GraphForm {
    /// Operators of isovec's own program, over rows without padding: the portable engine runs them one by one.
    Program,
    /// ONNX Runtime's graph after its optimisations: one kernel each.
    Optimized,
    /// ONNX operators as the model's file has them, with the pooling head.
    File,
}

/// A model's graph, ready to be shown. Serialises to JSON and back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelGraph {
    /// The id, folder or name that the model was loaded by.
    pub model: String,
    /// The engine that runs it; `None` for the graph of the file.
    pub engine: Option<ProviderInfo>,
    /// The kind of nodes.
    pub form: GraphForm,
    /// Texts of the batch that costs are counted for.
    pub rows: usize,
    /// Tokens of each of them.
    pub tokens: usize,
    /// Sums over all nodes.
    pub totals: GraphTotals,
    /// The same by kind of operator, the most expensive first.
    pub operators: Vec<OperatorShare>,
    /// Runs of nodes that say more together, in order; every node is in one.
    pub groups: Vec<GraphGroup>,
    /// In the order in which they are computed; each reads only those before it.
    pub nodes: Vec<GraphNode>,
    /// Notes for readers.
    pub notes: Vec<String>,
    /// The source of the nodes' times, if a profile was given.
    pub times: Option<GraphTimes>,
}

/// Sums over a graph's nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GraphTotals {
    /// Parameters of the model, as [`ModelDescription`] counts them. Parameters that an engine folded into others, or
    /// leaves out, are included here and in no node.
    pub parameters: u64,
    /// Bytes of the weights as the model stores them.
    pub weight_bytes: u64,
    /// Floating-point operations of the batch.
    pub flops: u64,
    /// Bytes of all results together.
    pub result_bytes: u64,
    /// Nodes of unknown cost, because the shapes of their results are unknown.
    pub unknown: usize,
}

/// The total cost of all nodes of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OperatorShare {
    /// The operator.
    pub operator: String,
    /// How many nodes.
    pub nodes: usize,
    /// Their parameters.
    pub parameters: u64,
    /// Their floating-point operations.
    pub flops: u64,
    /// Their part of all floating-point operations, from 0 to 1.
    pub share: f64,
    /// Their time in a run, in milliseconds, where a profile was given.
    pub milliseconds: Option<f64>,
}

/// Nodes that follow one another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GraphGroup {
    /// Their name: `encoder layer`.
    pub name: String,
    /// The first of them.
    pub first: usize,
    /// How many make one copy.
    pub nodes: usize,
    /// How many equal copies there are.
    pub repeats: usize,
}

impl GraphGroup {
    /// The nodes of a copy, counted from 0.
    fn copy(&self, number: usize) -> std::ops::Range<usize> {
        let first = self.first + number * self.nodes;
        first..first + self.nodes
    }

    /// All nodes of all copies.
    fn all(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.nodes * self.repeats
    }
}

/// An operator in its place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GraphNode {
    /// The operator. The name of an operator outside ONNX's default set begins with the set's name.
    pub operator: String,
    /// The node's name in an ONNX graph, which profiles of ONNX Runtime give as well; in a program the name of the
    /// weight that it reads. May be empty.
    pub name: String,
    /// Details: `384 → 1536, gelu`.
    pub detail: String,
    /// The nodes that it reads, each once.
    pub inputs: Vec<usize>,
    /// The shape of its first result; `None` if unknown.
    pub shape: Option<Vec<Dim>>,
    /// The model's parameters that it reads. Those that several nodes read are counted at the first of them.
    pub parameters: u64,
    /// Their bytes as the model stores them.
    pub weight_bytes: u64,
    /// Bytes of its results for the batch; `None` if unknown.
    pub result_bytes: Option<u64>,
    /// Floating-point operations for the batch; `None` if unknown.
    pub flops: Option<u64>,
    /// The name of the provider that runs it; `None` if unknown.
    pub provider: Option<String>,
    /// Its time in a run, in milliseconds, where a profile was given that has it.
    pub milliseconds: Option<f64>,
}

impl ModelGraph {
    /// Reads a model's graph. Unless the file's own graph is requested, the model is loaded long enough to get the
    /// graph that its engine runs.
    ///
    /// # Errors
    /// As [`Embedder::load`](isovec::Embedder::load), and [`Error::Config`] for a size of 0.
    pub fn read(
        source: impl Into<ModelSource>,
        config: EmbeddingConfig,
        options: GraphOptions,
    ) -> BoxFuture<'static, Result<Self>> {
        let source = source.into();
        Box::pin(async move {
            if options.rows == 0 || options.tokens == 0 {
                let fault = "a graph is counted for at least 1 text of at least 1 token";
                return Err(Error::Config(vec![fault.into()]));
            }
            let mut graph = Self::empty(source.to_string(), options.rows, options.tokens);
            let cancel = options.cancel;
            let mut model = Embedder::builder(source)
                .config(config)
                .cancel(cancel.clone());
            if let Some(progress) = options.progress {
                model = model.progress(move |step| progress(step));
            }
            let Inspected {
                bundle, running, ..
            } = inspect(model, options.file).await?;
            match running {
                None => {
                    graph.describe(&describe(&bundle));
                    graph.take_file(&bundle);
                }
                Some(running) => graph.take_running(&bundle, running, &cancel).await?,
            }
            graph.finish();
            Ok(graph)
        })
    }

    fn empty(model: String, rows: usize, tokens: usize) -> Self {
        Self {
            model,
            engine: None,
            form: GraphForm::File,
            rows,
            tokens,
            totals: GraphTotals::default(),
            operators: Vec::new(),
            groups: Vec::new(),
            nodes: Vec::new(),
            notes: Vec::new(),
            times: None,
        }
    }

    /// The graph as the engine runs it that the configuration comes to.
    async fn take_running(
        &mut self,
        bundle: &ModelBundle,
        running: Running,
        cancel: &Cancel,
    ) -> Result<()> {
        self.describe(&running.description);
        self.engine = Some(running.provider.clone());
        let Running {
            provider, nodes_of, ..
        } = running;
        match running.graph {
            RunningGraph::Optimized(graph, large) => {
                self.take_onnx(&graph, &large, GraphForm::Optimized);
                self.place(&nodes_of);
            }
            RunningGraph::Unwritten(error) => {
                self.take_given(bundle);
                self.notes.push(format!(
                    "ONNX Runtime cannot write down what it made of this graph, which is shown as the \
                     file has it: {error}"
                ));
                self.place(&nodes_of);
            }
            RunningGraph::Program => {
                let program = Program::read(bundle, cancel, &mut NoTurns).await;
                let program = program.map_err(|error| match error {
                    CompileError::Engine(error) => error,
                    other => EngineError::invalid_model(&bundle.origin, other.to_string()),
                })?;
                self.take_program(&program, bundle);
                self.place_all(&provider.provider);
                if provider.engine == "gpu" {
                    self.notes.push(
                        "The GPU engine writes what lies between products and attention into the kernels that \
                         read it, and joins products of one input: it has fewer dispatches than there are nodes \
                         here."
                            .into(),
                    );
                }
            }
            _ => {
                self.take_given(bundle);
                self.place_all(&provider.provider);
                self.notes.push(
                    "tract runs this model, from the graph as the file has it, which it optimises for itself."
                        .into(),
                );
            }
        }
        Ok(())
    }

    /// The graph of the file.
    fn take_file(&mut self, bundle: &ModelBundle) {
        self.take_onnx(&bundle.graph, bundle.weights.weights(), GraphForm::File);
    }

    /// The graph that the engine was given.
    fn take_given(&mut self, bundle: &ModelBundle) {
        let held = widened(bundle);
        self.take_onnx(&held.graph, held.weights.weights(), GraphForm::File);
    }

    /// Names the provider of the nodes, where one has them all.
    fn place(&mut self, nodes_of: &[(String, usize)]) {
        let mut all = nodes_of.iter().filter(|(_, nodes)| *nodes > 0);
        match (all.next(), all.next()) {
            (Some((provider, _)), None) => self.place_all(provider),
            (Some(_), Some(_)) => {
                let who = nodes_of.iter();
                let who: Vec<_> = who.map(|(name, nodes)| format!("{name} {nodes}")).collect();
                self.notes.push(format!(
                    "Several providers have nodes ({}); a profile shows the provider of each node.",
                    who.join(", ")
                ));
            }
            _ => {}
        }
    }

    fn place_all(&mut self, provider: &str) {
        let computed = self.nodes.iter_mut();
        for node in computed.filter(|node| node.operator != INPUT) {
            node.provider = Some(provider.to_owned());
        }
    }

    /// What is known of the whole model, beside its nodes.
    fn describe(&mut self, description: &ModelDescription) {
        self.totals.parameters = description.parameters;
        self.totals.weight_bytes = description.weights_bytes;
    }

    /// Sums and groups, when the nodes are there.
    fn finish(&mut self) {
        let computed = self.nodes.iter().filter(|node| node.operator != INPUT);
        let mut operators: BTreeMap<&str, OperatorShare> = BTreeMap::new();
        let totals = &mut self.totals;
        (totals.flops, totals.result_bytes, totals.unknown) = (0, 0, 0);
        for node in computed {
            let flops = node.flops.unwrap_or(0);
            totals.flops = totals.flops.saturating_add(flops);
            totals.result_bytes = totals
                .result_bytes
                .saturating_add(node.result_bytes.unwrap_or(0));
            totals.unknown += usize::from(node.flops.is_none());
            let share = operators
                .entry(&node.operator)
                .or_insert_with(|| OperatorShare {
                    operator: node.operator.clone(),
                    nodes: 0,
                    parameters: 0,
                    flops: 0,
                    share: 0.0,
                    milliseconds: None,
                });
            share.nodes += 1;
            share.parameters = share.parameters.saturating_add(node.parameters);
            share.flops = share.flops.saturating_add(flops);
            if let Some(time) = node.milliseconds {
                *share.milliseconds.get_or_insert(0.0) += time;
            }
        }
        let mut operators: Vec<_> = operators.into_values().collect();
        for share in &mut operators {
            share.share = share.flops as f64 / totals.flops.max(1) as f64;
        }
        operators.sort_by(|a, b| {
            let key = |share: &OperatorShare| (share.flops, share.nodes);
            key(b)
                .cmp(&key(a))
                .then_with(|| a.operator.cmp(&b.operator))
        });
        self.operators = operators;
        self.groups = collapse::groups(&self.nodes);
    }
}

/// The operator of what is given and not computed.
const INPUT: &str = "input";
