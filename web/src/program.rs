//! Models on our own kernels.

use std::sync::Arc;

use isovec_encoder::{CompileError, Executable, Pause, Stepped};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::{Batch, RunOutput};
use isovec_engine::fingerprint::Precision;
use isovec_engine::maybe_send::BoxFuture;
use isovec_engine::profile::Detail;
use isovec_engine::{EngineError, Result};
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::Pool;

use crate::compiled::{Compiled, Running};
use crate::executor::Pacer;
use crate::guard;
use crate::threads::Threads;

/// Multiply-adds of a thread between two looks at the clock where others wait for it: 2 to 4 ms at
/// the 8 to 20 billion a second that one thread of wasm SIMD reaches.
pub(crate) const SLICE: u64 = 40_000_000;

/// An executable, and the threads that run it.
#[derive(Debug)]
struct Loaded {
    executable: Arc<Executable>,
    threads: Threads,
}

/// Compiles a bundle's graph.
///
/// # Errors
/// As [`Executable::compile`]; a panic is [`EngineError::InvalidModel`].
pub(crate) async fn compile(
    bundle: &ModelBundle,
    arithmetic: Arithmetic,
    (threads, runs): (usize, usize),
    cancel: &Cancel,
    pacer: &mut Pacer,
) -> Result<Arc<dyn Compiled>, CompileError> {
    let executable = guard::catch_in(Executable::compile(bundle, arithmetic, cancel, pacer)).await;
    let executable = executable.unwrap_or_else(|panic| {
        let detail = format!("no program can be found for it: {panic}");
        Err(EngineError::invalid_model(&bundle.origin, detail).into())
    })?;
    Ok(Arc::new(Loaded {
        executable: Arc::new(timed(executable)),
        threads: Threads::new(threads, runs)?,
    }))
}

/// Natively the processor says what it has; wasm has to try.
fn timed(executable: Executable) -> Executable {
    #[cfg(all(target_arch = "wasm32", feature = "event-loop"))]
    let executable = executable.with_clock(crate::executor::event_loop::clock);
    executable
}

impl Pause for Pacer {
    fn pause(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.step())
    }
}

impl Compiled for Loaded {
    fn version(&self) -> String {
        crate::provider::version()
    }

    fn ragged(&self) -> bool {
        true
    }

    fn precision(&self) -> Precision {
        match self.executable.rounds_activations() {
            true => Precision::Int8Fast,
            false => Precision::F32,
        }
    }

    fn start(self: Arc<Self>, batch: Batch) -> Result<Box<dyn Running>> {
        Ok(Box::new(Run {
            run: isovec_encoder::Run::new(Arc::clone(&self.executable), &batch)?,
            loaded: self,
            batch,
        }))
    }
}

/// A step as a profile has it.
fn detail(step: Stepped) -> Detail {
    Detail::Operator {
        rows: step.rows,
        inner: step.inner,
        width: step.width,
        multiply_adds: step.multiply_adds,
        bytes: step.bytes,
    }
}

struct Run {
    loaded: Arc<Loaded>,
    run: isovec_encoder::Run,
    batch: Batch,
}

impl Running for Run {
    fn step(&mut self, cancel: &Cancel, sliced: bool) -> Result<bool> {
        cancel.check()?;
        let threads = &self.loaded.threads;
        let budget = sliced.then(|| SLICE * threads.threads() as u64);
        let begun = self.batch.scope.operator();
        let stepped = self.run.step(budget, threads)?;
        if let (Some(begun), Some(step)) = (begun, stepped) {
            self.batch.scope.ran(begun, step.operator, detail(step));
        }
        Ok(stepped.is_some())
    }

    fn finish(self: Box<Self>) -> Result<RunOutput> {
        let Self { run, batch, .. } = *self;
        let texts = run.texts();
        let outputs = run.finish().into_iter();
        batch.answer(outputs.map(|(name, extents, values)| {
            let shape = [texts].into_iter().chain(extents).collect();
            (name, shape, values)
        }))
    }
}
