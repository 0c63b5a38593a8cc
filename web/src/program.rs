//! Models on our own kernels, whichever crate has the program.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::{Batch, RunOutput};
use isovec_engine::fingerprint::Precision;
use isovec_engine::maybe_send::{BoxFuture, MaybeSend, MaybeSync};
use isovec_engine::pause::Pause;
use isovec_engine::profile::Stepped;
use isovec_engine::{EngineError, Result};
use isovec_kernels::parallel::Pool;

use crate::compiled::{Compiled, Running};
use crate::executor::Pacer;
use crate::guard;
use crate::threads::Threads;

/// Multiply-adds of a thread between two looks at the clock where others wait for it: 2 to 4 ms at
/// the 8 to 20 billion a second that one thread of wasm SIMD reaches.
const SLICE: u64 = 40_000_000;

/// A program that can be run.
pub(crate) trait Program: MaybeSend + MaybeSync + Debug + Sized + 'static {
    /// One run of it.
    type Run: Steps;

    /// Gives it the page's clock. Natively the processor says which kernel is the fastest; wasm has to try.
    #[cfg(all(target_arch = "wasm32", feature = "event-loop"))]
    fn timed(self) -> Self;

    /// Whether every row is computed at its own length.
    fn ragged(&self) -> bool {
        false
    }

    /// The coarsest numbers that it computes with.
    fn precision(&self) -> Precision {
        Precision::F32
    }

    /// Starts a run.
    ///
    /// # Errors
    /// [`EngineError::InvalidInput`] when the batch does not fit the model.
    fn start(self: Arc<Self>, batch: &Batch) -> Result<Self::Run>;
}

/// A run of a program.
pub(crate) trait Steps: MaybeSend + 'static {
    /// Computes the next operator, or about `budget` multiply-adds of it; nothing when there is nothing left to do. `batch` is
    /// the one that the run began with.
    ///
    /// # Errors
    /// [`EngineError::InvalidInput`], [`EngineError::InputTooLarge`].
    fn step(
        &mut self,
        batch: &Batch,
        budget: Option<u64>,
        pool: &dyn Pool,
    ) -> Result<Option<Stepped>>;

    /// Rows of the batch.
    fn rows(&self) -> usize;

    /// The outputs: name, extents of a row's part, values.
    fn finish(self) -> Vec<(String, Vec<usize>, Vec<f32>)>;
}

/// A program, and the threads that run it.
#[derive(Debug)]
struct Loaded<P> {
    program: Arc<P>,
    threads: Threads,
}

/// A program of which a run is under way until this is dropped.
struct UnderWay<P>(Arc<Loaded<P>>);

impl<P> UnderWay<P> {
    fn begin(loaded: Arc<Loaded<P>>) -> Self {
        loaded.threads.begin();
        Self(loaded)
    }
}

impl<P> Drop for UnderWay<P> {
    fn drop(&mut self) {
        self.0.threads.end();
    }
}

/// Waits for a program to be compiled, and gives it threads.
///
/// # Errors
/// As `compiling`; a panic in it is [`EngineError::InvalidModel`].
pub(crate) async fn load<P: Program, E: From<EngineError>>(
    bundle: &ModelBundle,
    compiling: impl Future<Output = Result<P, E>>,
    (threads, cores): (usize, usize),
) -> Result<Arc<dyn Compiled>, E> {
    let program = guard::catch_in(compiling).await.unwrap_or_else(|panic| {
        let detail = format!("no program can be found for it: {panic}");
        Err(EngineError::invalid_model(&bundle.origin, detail).into())
    })?;
    #[cfg(all(target_arch = "wasm32", feature = "event-loop"))]
    let program = program.timed();
    Ok(Arc::new(Loaded {
        program: Arc::new(program),
        threads: Threads::new(threads, cores)?,
    }))
}

impl Pause for Pacer {
    fn pause(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.step())
    }
}

impl<P: Program> Compiled for Loaded<P> {
    fn version(&self) -> String {
        crate::provider::version()
    }

    fn ragged(&self) -> bool {
        self.program.ragged()
    }

    fn rows_alone(&self) -> bool {
        true
    }

    fn precision(&self) -> Precision {
        self.program.precision()
    }

    fn start(self: Arc<Self>, batch: Batch) -> Result<Box<dyn Running>> {
        Ok(Box::new(Run {
            run: Arc::clone(&self.program).start(&batch)?,
            loaded: UnderWay::begin(self),
            batch,
        }))
    }
}

struct Run<P: Program> {
    loaded: UnderWay<P>,
    run: P::Run,
    batch: Batch,
}

impl<P: Program> Running for Run<P> {
    fn step(&mut self, cancel: &Cancel, sliced: bool) -> Result<bool> {
        cancel.check()?;
        let threads = &self.loaded.0.threads;
        let budget = sliced.then(|| SLICE * threads.threads() as u64);
        let begun = self.batch.scope.operator();
        let stepped = self.run.step(&self.batch, budget, threads)?;
        if let (Some(begun), Some(step)) = (begun, stepped) {
            self.batch.scope.ran(begun, step.operator, step.into());
        }
        Ok(stepped.is_some())
    }

    fn finish(self: Box<Self>) -> Result<RunOutput> {
        let Self { run, batch, .. } = *self;
        let rows = run.rows();
        let outputs = run.finish().into_iter();
        batch.answer(outputs.map(|(name, extents, values)| {
            let shape = [rows].into_iter().chain(extents).collect();
            (name, shape, values)
        }))
    }
}
