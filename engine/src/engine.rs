//! The contract between the SDK and its engines.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bundle::ModelBundle;
use crate::cancel::Cancel;
use crate::config::EngineConfig;
use crate::description::{Dim, ModelDescription};
use crate::effective::EffectiveConfig;
use crate::error::{EngineError, Result};
use crate::fingerprint::Precision;
use crate::maybe_send::{EngineFuture, MaybeSend, MaybeSync};
use crate::profile::{Event, Runs, Scope};
use crate::stats::EngineStats;
use crate::tensor::{DType, NamedTensor, Tensor};

/// The input that says which positions are seen: 1 for one that is, 0 for padding, and for a position that is computed and that no
/// other sees. Such positions stand behind those that are seen.
pub const MASK: &str = "attention_mask";

/// Named tensors that go through a model together. Axis 0 of every tensor is the row.
///
/// Owned rather than borrowed: a caller may drop the run's future while an engine's thread is
/// still reading, and the memory must outlive that.
#[derive(Debug, Default)]
pub struct Batch {
    /// One tensor per model input.
    pub inputs: Vec<NamedTensor>,
    /// How many positions of each row are computed, the rest being padding; those that the mask says are not seen are among them.
    /// Empty when rows have no length (images).
    pub row_lengths: Vec<usize>,
    /// Tensors to write outputs to, by name, where their type and size fit; the others are made
    /// by the engine. May be empty. The list itself comes back in [`RunOutput::outputs`].
    pub outputs: Vec<NamedTensor>,
    /// The scope in which the engine records its work on this batch.
    pub scope: Scope,
}

impl Batch {
    /// Number of rows: the first axis of the first input.
    pub fn rows(&self) -> usize {
        self.inputs
            .first()
            .and_then(|input| input.tensor.shape().first().copied())
            .unwrap_or(0)
    }

    /// The tensor of that name.
    pub fn input(&self, name: &str) -> Option<&Tensor> {
        self.inputs
            .iter()
            .find(|input| *input.name == *name)
            .map(|input| &input.tensor)
    }

    /// Checks the batch against a model's inputs: every one there, of its type, of a shape that
    /// fits its fixed dimensions, and with as many rows as `row_lengths` has, if it has any.
    ///
    /// # Errors
    /// [`EngineError::InvalidInput`], naming the input.
    pub fn check(&self, model: &ModelDescription) -> Result<()> {
        let rows = self.rows();
        for input in &model.inputs {
            let fail = |detail: String| {
                Err(EngineError::InvalidInput {
                    name: input.name.clone(),
                    detail,
                })
            };
            let Some(tensor) = self.input(&input.name) else {
                return fail("is missing from the batch".into());
            };
            if Some(tensor.dtype()) != input.dtype {
                let wanted = input
                    .dtype
                    .map_or_else(|| "a type isovec does not carry".into(), |d| d.to_string());
                return fail(format!("is {}, the model expects {wanted}", tensor.dtype()));
            }
            if !input.accepts(tensor.shape()) {
                return fail(format!(
                    "has shape {:?}, the model expects {}",
                    tensor.shape(),
                    input.dims_text()
                ));
            }
            if tensor.shape().first() != Some(&rows) && !tensor.shape().is_empty() {
                return fail(format!("has {} rows, the batch {rows}", tensor.shape()[0]));
            }
        }
        if !self.row_lengths.is_empty() && self.row_lengths.len() != rows {
            return Err(EngineError::InvalidInput {
                name: "row_lengths".into(),
                detail: format!("{} lengths for {rows} rows", self.row_lengths.len()),
            });
        }
        Ok(())
    }
}

impl Batch {
    /// The answer to the batch: outputs by name, extents and values, written to the tensors that it
    /// brought where they fit.
    ///
    /// # Errors
    /// [`EngineError::InputTooLarge`] when memory for another cannot be had, `InvalidInput` for values
    /// that are not as many as their extents say.
    pub fn answer(
        mut self,
        outputs: impl IntoIterator<Item = (String, Vec<usize>, Vec<f32>)>,
    ) -> Result<RunOutput> {
        let mut answered = Vec::new();
        for (name, shape, values) in outputs {
            let given = self
                .outputs
                .iter()
                .position(|output| *output.name == *name)
                .map(|at| self.outputs.swap_remove(at));
            answered.push(match given {
                Some(mut output)
                    if output.tensor.shape() == shape
                        && output.tensor.dtype() == DType::F32
                        && shape.iter().product::<usize>() == values.len() =>
                {
                    output
                        .tensor
                        .as_mut_slice::<f32>()?
                        .copy_from_slice(&values);
                    output
                }
                _ => NamedTensor::new(name, Tensor::from_slice(&shape, &values)?),
            });
        }
        Ok(RunOutput {
            outputs: answered,
            inputs: self.inputs,
            row_lengths: self.row_lengths,
        })
    }

    /// Rows of zeros, which every table has an entry for, all of them tokens: to measure with.
    /// `None` for a model whose inputs are not rows of whole numbers with a length that varies.
    ///
    /// # Errors
    /// [`EngineError::InputTooLarge`] when it cannot be allocated.
    pub fn sample(
        model: &ModelDescription,
        rows: usize,
        row_length: usize,
    ) -> Result<Option<Self>> {
        let mut batch = Self {
            row_lengths: vec![row_length; rows],
            ..Self::default()
        };
        for input in &model.inputs {
            let (Some(dtype @ (DType::I64 | DType::I32)), Some([axis, Dim::Symbolic(_)])) =
                (input.dtype, input.dims.as_deref())
            else {
                return Ok(None);
            };
            if matches!(axis, Dim::Fixed(fixed) if *fixed != rows) {
                return Ok(None);
            }
            let mut tensor = Tensor::zeros(dtype, &[rows, row_length])?;
            // A mask of zeros says that there is nothing to compute.
            match dtype {
                _ if *input.name != *MASK => {}
                DType::I64 => tensor.as_mut_slice::<i64>()?.fill(1),
                _ => tensor.as_mut_slice::<i32>()?.fill(1),
            }
            batch
                .inputs
                .push(NamedTensor::new(input.name.as_str(), tensor));
        }
        Ok((!batch.inputs.is_empty()).then_some(batch))
    }
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct RunOutput {
    /// The model's outputs, in the model's order.
    pub outputs: Vec<NamedTensor>,
    /// The batch's own tensors, to be used again.
    pub inputs: Vec<NamedTensor>,
    /// The batch's own row lengths, to be used again.
    pub row_lengths: Vec<usize>,
}

impl RunOutput {
    /// The output of that name.
    pub fn output(&self, name: &str) -> Option<&Tensor> {
        self.outputs
            .iter()
            .find(|output| *output.name == *name)
            .map(|output| &output.tensor)
    }

    /// The lists, emptied, for the next batch: their tensors go back to where they came from.
    pub fn into_spare(self) -> Batch {
        let mut spare = Batch {
            inputs: self.inputs,
            row_lengths: self.row_lengths,
            outputs: self.outputs,
            scope: Scope::default(),
        };
        spare.inputs.clear();
        spare.row_lengths.clear();
        spare.outputs.clear();
        spare
    }

    /// Takes the output of that name.
    pub fn take(&mut self, name: &str) -> Option<Tensor> {
        let at = self
            .outputs
            .iter()
            .position(|output| *output.name == *name)?;
        Some(self.outputs.swap_remove(at).tensor)
    }
}

/// The capabilities of an engine with a given model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Capabilities {
    /// Rows are run at their own length; padding costs nothing.
    pub ragged: bool,
    /// Rows times positions that one run takes, where there is a limit.
    pub max_batch_tokens: Option<usize>,
    /// Runs that make progress at the same time; more than this wait inside the engine.
    pub concurrent_runs: usize,
    /// Threads that really work on one operator; fewer where runs share them.
    pub intra_op_threads: usize,
    /// Threads that all runs share. `None`: each has `intra_op_threads` of its own.
    pub shared_threads: Option<usize>,
    /// Cancelling stops a run that has begun, not only one that waits.
    pub cancels_running: bool,
    /// The bits of a row's result, if it runs alone and unpadded, do not depend on other rows or on other work at the
    /// same time.
    pub deterministic: bool,
    /// The coarsest numbers that it computes with, whatever the weights are stored as.
    pub precision: Precision,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            ragged: false,
            max_batch_tokens: None,
            concurrent_runs: 1,
            intra_op_threads: 1,
            shared_threads: None,
            cancels_running: false,
            deterministic: false,
            precision: Precision::F32,
        }
    }
}

/// The provider that really computes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderInfo {
    /// The engine, by its factory's name.
    pub engine: String,
    /// The provider: `CPU`, `wasm simd128`, ...
    pub provider: String,
    /// The version of the runtime underneath.
    pub version: String,
}

impl ProviderInfo {
    /// Names an engine, its provider, and its runtime's version.
    pub fn new(
        engine: impl Into<String>,
        provider: impl Into<String>,
        version: impl Into<String>,
    ) -> Self {
        Self {
            engine: engine.into(),
            provider: provider.into(),
            version: version.into(),
        }
    }
}

impl std::fmt::Display for ProviderInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} on {}", self.engine, self.version, self.provider)
    }
}

/// A loaded model. Takes `&self`: how runs share the machine is the engine's affair.
pub trait Engine: MaybeSend + MaybeSync + std::fmt::Debug {
    /// The provider that really computes, read back from the runtime if possible.
    fn provider(&self) -> &ProviderInfo;

    /// The model as this engine sees it.
    fn description(&self) -> &ModelDescription;

    /// The capabilities of this engine with this model.
    fn capabilities(&self) -> &Capabilities;

    /// The value in effect of each knob of this engine.
    fn effective(&self) -> &EffectiveConfig;

    /// The statistics of this engine so far.
    fn stats(&self) -> EngineStats;

    /// Ends the runtime's own profile, if the configuration asked for one (`session.profiling`), and returns its
    /// events of these runs. Later calls, and engines without such a profile, return nothing.
    fn end_profile(&self, runs: &Runs) -> Vec<Event> {
        let _ = runs;
        Vec::new()
    }

    /// Bytes that a run of that many rows of that length is predicted to take in addition to the weights; `None` if
    /// there is no prediction yet.
    fn predicted_bytes(&self, rows: usize, row_length: usize) -> Option<u64> {
        let _ = (rows, row_length);
        None
    }

    /// Memory that this engine reads and writes without a copy. Its content is undefined: the caller has to write all
    /// of it.
    ///
    /// # Errors
    /// [`EngineError::InputTooLarge`] when it cannot be allocated.
    fn alloc(&self, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        Tensor::zeros(dtype, shape)
    }

    /// Runs a batch. Polling never computes natively, and computes for at most about 10 ms at
    /// a time on the web. Dropping the future cancels the run.
    fn run<'a>(&'a self, batch: Batch, cancel: &'a Cancel) -> EngineFuture<'a, RunOutput>;

    /// Runs a batch on the calling thread, which it blocks.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    fn run_blocking(&self, batch: Batch, cancel: &Cancel) -> Result<RunOutput>;
}

/// Whether an engine that is compiled in can be used here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Probe {
    /// It can.
    Available {
        /// The runtime's version.
        version: String,
        /// Its providers, best first.
        providers: Vec<String>,
    },
    /// It cannot.
    Unavailable {
        /// Why.
        reason: String,
        /// How to get it.
        hint: String,
    },
}

/// Makes engines of one kind. What these alone can be told it has been told when it was made.
pub trait EngineFactory: MaybeSend + MaybeSync + std::fmt::Debug {
    /// The engine's name, as the config and the command line write it.
    fn name(&self) -> &'static str;

    /// Looks whether this engine can be used, without loading a model.
    fn probe(&self) -> Probe;

    /// Refuses a configuration that cannot work with any model, before a model is read: paths that cannot be written,
    /// missing devices, an invalid library.
    ///
    /// # Errors
    /// [`EngineError::Config`] with all faults, [`EngineError::EngineUnavailable`].
    fn check(&self, config: &EngineConfig) -> Result<()>;

    /// Loads a model: checks it, takes its weights one tensor at a time, prepares it to run.
    fn load<'a>(
        &'a self,
        bundle: &'a ModelBundle,
        config: &'a EngineConfig,
        cancel: &'a Cancel,
    ) -> EngineFuture<'a, Arc<dyn Engine>>;
}
