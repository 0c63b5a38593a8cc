//! Assigns the times of a trace to nodes.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use serde::{Deserialize, Serialize};

use super::{Dim, GraphForm, INPUT, ModelGraph, numbers};
use crate::trace::{Any, RawEvent, TraceError, walk};

/// The source of the times of a graph's nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GraphTimes {
    /// Runs of the engine that the times are the mean of.
    pub runs: usize,
    /// Runs in the trace that are of another model, or of which events were dropped.
    pub skipped: usize,
    /// Texts in a run, on average.
    pub texts: f64,
    /// Tokens in a run, on average.
    pub tokens: f64,
    /// Time of all operators in a run, in milliseconds.
    pub milliseconds: f64,
}

impl GraphTimes {
    pub(super) fn line(&self) -> String {
        let skipped = match self.skipped {
            0 => String::new(),
            skipped => format!("; {} left out", numbers::some(skipped, "other run")),
        };
        format!(
            "times: {} a run, the mean of {} with {:.1} texts and {:.0} tokens each{skipped}",
            numbers::milliseconds(self.milliseconds),
            numbers::some(self.runs, "run"),
            self.texts,
            self.tokens,
        )
    }
}

/// Why a trace says nothing of a graph's nodes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TimesError {
    /// It is no trace, ends in the middle, or cannot be read.
    #[error("the trace {0}; record it again with `isovec embed --profile`, and let that finish")]
    Unreadable(#[from] TraceError),
    /// No run of an engine is in it.
    #[error("the trace has no operators of any run; record one of a command that embeds texts")]
    NoRuns,
    /// Not one of its runs is of this graph.
    #[error(
        "the trace is of another model or engine ({detail}); record it with this model and the same options"
    )]
    OtherModel {
        /// Where the first run differs.
        detail: String,
    },
    /// The shown nodes are not those that were timed.
    #[error("{why}, so a trace has no times of these nodes; {hint}")]
    NotRun {
        /// The reason.
        why: &'static str,
        /// An alternative.
        hint: &'static str,
    },
}

impl ModelGraph {
    /// Takes the times of nodes from a Chrome trace that
    /// [`Profile::write_chrome_trace`](isovec::profile::Profile::write_chrome_trace) or `isovec embed --profile` wrote, of
    /// the same model on the same engine: for each node the mean of all runs. A model whose operators have the same extents is not told apart from this one.
    ///
    /// # Errors
    /// [`TimesError`]; the graph is then as it was.
    pub fn take_times(&mut self, trace: impl Read) -> Result<(), TimesError> {
        match (self.form, &self.engine) {
            (GraphForm::Program, Some(engine)) if engine.engine == "gpu" => {
                return Err(TimesError::NotRun {
                    why: "the GPU engine times its dispatches, each of several of these nodes",
                    hint: "look at it with `isovec trace`, or take both of the portable engine",
                });
            }
            (GraphForm::Program | GraphForm::Optimized, _) => {}
            (GraphForm::File, None) => {
                return Err(TimesError::NotRun {
                    why: "this is the graph as the file has it, before any engine",
                    hint: "show the engine's graph (without --onnx)",
                });
            }
            (GraphForm::File, Some(_)) => {
                return Err(TimesError::NotRun {
                    why: "the engine made another graph of this one, which it does not give away",
                    hint: "look at the trace with `isovec trace`",
                });
            }
        }
        let (events, sizes) = read(trace)?;
        if events.is_empty() {
            return Err(TimesError::NoRuns);
        }
        let names: HashMap<&str, usize> = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.operator != INPUT && !node.name.is_empty())
            .map(|(at, node)| (node.name.as_str(), at))
            .collect();
        let mut sums = vec![0.0; self.nodes.len()];
        let mut providers: Vec<Option<String>> = vec![None; self.nodes.len()];
        let (mut runs, mut skipped, mut texts, mut tokens) = (0_usize, 0, 0.0, 0.0);
        let mut first_fault = None;
        for (batch, mut run) in events {
            run.sort_by(|a, b| a.start.total_cmp(&b.start));
            let size = sizes.get(&batch).copied();
            let laid = match self.form {
                GraphForm::Optimized => self.by_name(&run, &names),
                _ => self.in_order(&run, size),
            };
            match laid {
                Ok(places) => {
                    runs += 1;
                    let (rows, positions) = size.unwrap_or_default();
                    texts += rows as f64;
                    tokens += positions as f64;
                    for (event, at) in run.into_iter().zip(places) {
                        sums[at] += event.took / 1e3;
                        if event.provider.is_some() {
                            providers[at] = event.provider;
                        }
                    }
                }
                Err(fault) => {
                    skipped += 1;
                    first_fault.get_or_insert(fault);
                }
            }
        }
        if runs == 0 {
            let detail = first_fault.unwrap_or_default();
            return Err(TimesError::OtherModel { detail });
        }
        let mean = |sum: f64| sum / runs as f64;
        for ((node, sum), provider) in self.nodes.iter_mut().zip(&sums).zip(providers) {
            node.milliseconds = (node.operator != INPUT).then(|| mean(*sum));
            node.provider = provider.or(node.provider.take());
        }
        self.times = Some(GraphTimes {
            runs,
            skipped,
            texts: mean(texts),
            tokens: mean(tokens),
            milliseconds: mean(sums.iter().sum()),
        });
        self.finish();
        Ok(())
    }

    /// The nodes of a run's events on ONNX Runtime, which names them.
    fn by_name(
        &self,
        run: &[Operator],
        names: &HashMap<&str, usize>,
    ) -> Result<Vec<usize>, String> {
        let mut seen = vec![false; self.nodes.len()];
        let mut places = Vec::with_capacity(run.len());
        for event in run {
            let Some(name) = &event.node else {
                return Err(format!("operator {:?} has no node's name", event.name));
            };
            match names.get(name.as_str()) {
                // Of operators outside the default set a profile has the name alone.
                Some(&at) if self.nodes[at].operator.rsplit('.').next() == Some(&event.name) => {
                    seen[at] = true;
                    places.push(at);
                }
                _ => return Err(format!("{} {name:?} is not in this graph", event.name)),
            }
        }
        let missing = names.values().find(|at| !seen[**at]);
        match missing {
            Some(&at) => Err(format!("{:?} did not run", self.nodes[at].name)),
            None => Ok(places),
        }
    }

    /// The nodes of a run's events on the portable engine, which runs them in order, each in one piece or several.
    fn in_order(&self, run: &[Operator], size: Option<(u64, u64)>) -> Result<Vec<usize>, String> {
        let (texts, tokens) = size.ok_or("its batch is not in the trace")?;
        let mut nodes = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.operator != INPUT);
        let mut current = nodes.next();
        let mut done = 0_u64;
        let mut places = Vec::with_capacity(run.len());
        for event in run {
            let Some((at, node)) = current else {
                return Err(format!("it runs {} after the last node", event.name));
            };
            let (axis, width) = match node.shape.as_deref() {
                Some([Dim::Symbolic(axis), Dim::Fixed(width)]) => (axis.as_str(), *width as u64),
                _ => return Err("a node has no rows".into()),
            };
            if event.name != node.operator || event.width != Some(width) {
                return Err(format!(
                    "its operator {} is {} of {} columns, node {at} here {} of {width}",
                    places.len(),
                    event.name,
                    event.width.unwrap_or_default(),
                    node.operator,
                ));
            }
            places.push(at);
            done = done.saturating_add(event.rows.unwrap_or_default());
            let rows = if axis == "tokens" { tokens } else { texts };
            if done >= rows {
                (current, done) = (nodes.next(), 0);
            }
        }
        match current {
            Some((at, node)) => Err(format!("it ends before node {at}, {}", node.operator)),
            None => Ok(places),
        }
    }
}

/// Operators by batch.
type Runs = BTreeMap<u64, Vec<Operator>>;

/// Texts and tokens by batch.
type Sizes = BTreeMap<u64, (u64, u64)>;

/// An operator of a run.
struct Operator {
    name: String,
    /// In microseconds.
    start: f64,
    took: f64,
    rows: Option<u64>,
    width: Option<u64>,
    node: Option<String>,
    provider: Option<String>,
}

impl Operator {
    fn of(event: &RawEvent<'_>) -> Self {
        let text = |any: &Any<'_>| Some(any.text().to_owned()).filter(|text| !text.is_empty());
        let args = &event.args;
        Self {
            name: event.name.text().to_owned(),
            start: event.ts.number().unwrap_or_default(),
            took: event.dur.number().unwrap_or_default(),
            rows: args.rows.count(),
            width: args.width.count(),
            node: text(&args.node),
            provider: text(&args.provider),
        }
    }
}

/// The operators of a whole trace, and the texts and tokens of its batches.
fn read(trace: impl Read) -> Result<(Runs, Sizes), TraceError> {
    let (mut runs, mut sizes) = (Runs::new(), Sizes::new());
    let seen = walk(trace, |event| {
        let args = &event.args;
        let Some(batch) = args.batch.count() else {
            return;
        };
        match event.cat.text() {
            "operator" => runs.entry(batch).or_default().push(Operator::of(event)),
            "batch" => {
                if let (Some(rows), Some(tokens)) = (args.rows.count(), args.tokens.count()) {
                    sizes.insert(batch, (rows, tokens));
                }
            }
            _ => {}
        }
    })?;
    match seen.cut {
        None => Ok((runs, sizes)),
        Some((at, why)) => Err(TraceError::Cut { at, why }),
    }
}
