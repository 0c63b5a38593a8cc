//! What both profiles do: load a checkpoint, run it, and add up the steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use isovec_encoder::{Executable, Pause, Run};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::describe;
use isovec_engine::engine::Batch;
use isovec_engine::maybe_send::BoxFuture;
use isovec_engine::tensor::{NamedTensor, Tensor};
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::OneThread;
use isovec_model::head::{HeadSpec, Pooling, attach_head};

/// Operator, columns of its input, columns of its result.
pub(crate) type Kind = (&'static str, usize, usize);

/// All steps of one kind in a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Total {
    pub(crate) count: usize,
    pub(crate) multiply_adds: u64,
    /// Bytes of the results.
    pub(crate) bytes: u64,
    pub(crate) milliseconds: f64,
}

/// Whatever can go wrong here ends the program.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

struct Never;

impl Pause for Never {
    fn pause(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A program with mean pooling, and the inputs that it wants.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) executable: Arc<Executable>,
    inputs: Vec<String>,
}

impl Model {
    /// Compiles a bundle.
    pub(crate) fn compile(mut bundle: ModelBundle, arithmetic: Arithmetic) -> Result<Self> {
        attach_head(&mut bundle, &HeadSpec::new(Pooling::Mean, true))?;
        let inputs = describe(&bundle).inputs.into_iter();
        let inputs = inputs.map(|input| input.name).collect();
        let (cancel, mut never) = (Cancel::new(), Never);
        let compiled = Executable::compile(&bundle, arithmetic, &cancel, &mut never);
        let executable = Arc::new(pollster::block_on(compiled)?);
        Ok(Self { executable, inputs })
    }

    /// Texts of so many tokens each.
    pub(crate) fn batch(&self, texts: usize, tokens: usize) -> Result<Batch> {
        let mut batch = Batch::default();
        for input in &self.inputs {
            let values: Vec<i64> = (0..texts * tokens)
                .map(|at| match input.as_str() {
                    "input_ids" => 1000 + (at as i64 * 37) % 20_000,
                    "attention_mask" => 1,
                    _ => 0,
                })
                .collect();
            let tensor = Tensor::from_slice(&[texts, tokens], &values)?;
            batch.inputs.push(NamedTensor::new(input.as_str(), tensor));
        }
        Ok(batch)
    }

    /// The steps of the fastest of `rounds` runs, and its milliseconds.
    pub(crate) fn fastest(
        &self,
        batch: &Batch,
        rounds: usize,
        now: impl Fn() -> f64,
    ) -> Result<(f64, BTreeMap<Kind, Total>)> {
        let mut best = (f64::INFINITY, BTreeMap::new());
        for _ in 0..rounds {
            let mut all: BTreeMap<Kind, Total> = BTreeMap::new();
            let began = now();
            let mut run = Run::new(Arc::clone(&self.executable), batch)?;
            loop {
                let step = now();
                let Some(report) = run.step(None, &OneThread)? else {
                    break;
                };
                let total = all
                    .entry((report.operator, report.inner, report.width))
                    .or_default();
                total.count += 1;
                total.multiply_adds += report.multiply_adds;
                total.bytes += report.bytes;
                total.milliseconds += now() - step;
            }
            std::hint::black_box(run.finish());
            let took = now() - began;
            if took < best.0 {
                best = (took, all);
            }
        }
        Ok(best)
    }
}
