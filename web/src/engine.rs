//! The factory and the engine that the SDK sees.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_channel::oneshot;
use isovec_engine::buffers::BufferPool;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::counters::{Counters, Ended};
use isovec_engine::description::{self, ModelDescription};
use isovec_engine::effective::EffectiveConfig;
use isovec_engine::engine::{
    Batch, Capabilities, Engine, EngineFactory, Probe, ProviderInfo, RunOutput,
};
use isovec_engine::maybe_send::EngineFuture;
use isovec_engine::profile::{Span, Stage};
use isovec_engine::stats::EngineStats;
use isovec_engine::tensor::{DType, Tensor};
use isovec_engine::{EngineError, Result};
use web_time::Instant;

use crate::compiled::Compiled;
use crate::executor::{Executor, Job, Pacer, Worker};
use crate::settings::Settings;
use crate::{ENGINE, guard, model, provider, rows, shapes};

/// Makes portable engines.
#[derive(Debug)]
pub struct Portable {
    executor: Arc<dyn Executor>,
}

impl Portable {
    /// Engines whose jobs `executor` runs.
    pub fn new(executor: Arc<dyn Executor>) -> Self {
        Self { executor }
    }
}

impl EngineFactory for Portable {
    fn name(&self) -> &'static str {
        ENGINE
    }

    fn probe(&self) -> Probe {
        Probe::Available {
            version: provider::version(),
            providers: provider::providers(),
        }
    }

    fn check(&self, _config: &EngineConfig) -> Result<()> {
        Ok(())
    }

    fn load<'a>(
        &'a self,
        bundle: &'a ModelBundle,
        config: &'a EngineConfig,
        cancel: &'a Cancel,
    ) -> EngineFuture<'a, Arc<dyn Engine>> {
        Box::pin(async move {
            let session = &config.session;
            let threads = self.executor.intra_op_threads(session.intra_op_threads);
            let runs = self.executor.concurrent_runs(session.pool_size, threads);
            let worker = self.executor.worker(runs)?;
            // A bundle is small beside its weights, which are shared and not copied by this.
            let (bundle, own_worker) = (bundle.clone(), Arc::clone(&worker));
            let each_has_its_own = threads.saturating_mul(runs);
            let cores = match (session.intra_op_threads, session.pool_size) {
                // Both were asked for.
                (Some(_), Some(_)) => each_has_its_own,
                _ => self.executor.cores(threads).min(each_has_its_own),
            };
            let settings = Settings::new(config, threads, runs, cores);
            let engine: Arc<dyn Engine> = submit(&worker, cancel, move |cancel| async move {
                PortableEngine::load(&bundle, settings, own_worker, &cancel).await
            })
            .await
            .map(Arc::new)?;
            Ok(engine)
        })
    }
}

/// A model, loaded.
#[derive(Debug)]
struct PortableEngine {
    model: Arc<dyn Compiled>,
    worker: Arc<dyn Worker>,
    description: ModelDescription,
    capabilities: Capabilities,
    provider: ProviderInfo,
    effective: EffectiveConfig,
    counters: Arc<Counters>,
    buffers: BufferPool,
    poison: Arc<Poison>,
}

impl PortableEngine {
    async fn load(
        bundle: &ModelBundle,
        settings: Settings,
        worker: Arc<dyn Worker>,
        cancel: &Cancel,
    ) -> Result<Self> {
        let threads = settings.threads;
        let mut pacer = Pacer::new(&worker);
        let description = description::describe(bundle);
        let model = model::load(bundle, &description, &settings, cancel, &mut pacer).await?;
        let mut capabilities = Capabilities::default();
        capabilities.ragged = model.ragged();
        capabilities.precision = model.precision();
        capabilities.cancels_running = true;
        capabilities.intra_op_threads = threads;
        capabilities.shared_threads = Some(settings.cores);
        capabilities.concurrent_runs = settings.runs;
        // No operator's sum depends on what runs beside it.
        capabilities.deterministic = settings.deterministic || model.rows_alone();
        tracing::debug!(origin = %bundle.origin, threads, "loaded a model into the {ENGINE} engine");
        Ok(Self {
            provider: provider::info(model.provider(), model.version()),
            model,
            worker,
            description,
            capabilities,
            counters: Arc::default(),
            buffers: BufferPool::new(settings.pool),
            effective: settings.effective,
            poison: Arc::default(),
        })
    }

    /// Checks a batch before anything is computed.
    fn admit(&self, batch: &Batch) -> Result<()> {
        self.poison.check()?;
        batch.check(&self.description)?;
        shapes::check(batch, &self.description)
    }
}

impl Engine for PortableEngine {
    fn provider(&self) -> &ProviderInfo {
        &self.provider
    }

    fn description(&self) -> &ModelDescription {
        &self.description
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn effective(&self) -> &EffectiveConfig {
        &self.effective
    }

    fn stats(&self) -> EngineStats {
        let mut stats = EngineStats::default();
        self.counters.read(&mut stats);
        stats.sessions.count = self.capabilities.concurrent_runs;
        stats.memory_pool = self.buffers.stats();
        stats.io_binding.fallback = Some("the processor computes where the tensors are".into());
        stats.provider.engine.clone_from(&self.provider.engine);
        stats.provider.selected.clone_from(&self.provider.provider);
        stats
    }

    fn alloc(&self, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        let started = Instant::now();
        let (tensor, reused) = self.buffers.take(dtype, shape)?;
        self.counters.buffer(started.elapsed(), reused);
        Ok(tensor)
    }

    fn run<'a>(&'a self, batch: Batch, cancel: &'a Cancel) -> EngineFuture<'a, RunOutput> {
        Box::pin(async move {
            self.admit(&batch)?;
            let counters = Arc::clone(&self.counters);
            let asked = Instant::now();
            let waiting = batch.scope.span(Stage::Wait);
            let job = Paced {
                model: Arc::clone(&self.model),
                worker: Arc::clone(&self.worker),
                poison: Arc::clone(&self.poison),
            };
            submit(&self.worker, cancel, move |cancel| async move {
                drop(waiting);
                counters.waited(asked.elapsed());
                let started = Instant::now();
                let sizes = Sizes::of(&batch);
                let result = job.run(batch, &cancel).await;
                sizes.count(&counters, started.elapsed(), &result);
                result
            })
            .await
        })
    }

    fn run_blocking(&self, batch: Batch, cancel: &Cancel) -> Result<RunOutput> {
        cancel.check()?;
        self.admit(&batch)?;
        self.counters.waited(Duration::ZERO);
        let started = Instant::now();
        let sizes = Sizes::of(&batch);
        let result = self.run_here(batch, cancel);
        sizes.count(&self.counters, started.elapsed(), &result);
        result
    }
}

impl PortableEngine {
    fn run_here(&self, mut batch: Batch, cancel: &Cancel) -> Result<RunOutput> {
        let _run = enter(&mut batch);
        let model = Arc::clone(&self.model);
        let mut run = self.poison.guard(|| model.start(batch))?;
        while self.poison.guard(|| run.step(cancel, false))? {}
        self.poison.guard(|| run.finish())
    }
}

/// Opens the span of a batch's run, in which its operators are recorded.
fn enter(batch: &mut Batch) -> Span {
    let run = batch.scope.span(Stage::Run);
    batch.scope = run.scope().clone();
    run
}

/// The bytes of a batch's inputs, which are copied to the runtime.
struct Sizes(Vec<usize>);

impl Sizes {
    fn of(batch: &Batch) -> Self {
        let bytes = batch.inputs.iter().map(|input| input.tensor.byte_len());
        Self(bytes.collect())
    }

    fn count(&self, counters: &Counters, took: Duration, result: &Result<RunOutput>) {
        counters.ran(took, Ended::of(result));
        for &bytes in &self.0 {
            counters.input(bytes);
        }
        for output in result.iter().flat_map(|result| &result.outputs) {
            counters.output(output.tensor.byte_len());
        }
    }
}

/// What a run needs of its engine while it goes on.
struct Paced {
    model: Arc<dyn Compiled>,
    worker: Arc<dyn Worker>,
    poison: Arc<Poison>,
}

impl Paced {
    /// Runs a batch with pauses, in groups of rows where the worker has a time slice.
    async fn run(self, mut batch: Batch, cancel: &Cancel) -> Result<RunOutput> {
        let _run = enter(&mut batch);
        let mut pacer = Pacer::new(&self.worker);
        let rows = batch.rows();
        let together = match self.worker.time_slice() {
            Some(_) => self.model.rows_together(&batch),
            None => rows,
        };
        if together >= rows {
            return self.run_group(batch, cancel, &mut pacer).await;
        }
        let (mut groups, mut from) = (Vec::new(), 0);
        while from < rows {
            let to = rows.min(from + together);
            let group = rows::take(&batch, from..to)?;
            groups.push(self.run_group(group, cancel, &mut pacer).await?);
            from = to;
        }
        rows::join(groups, batch)
    }

    async fn run_group(
        &self,
        batch: Batch,
        cancel: &Cancel,
        pacer: &mut Pacer,
    ) -> Result<RunOutput> {
        let sliced = self.worker.time_slice().is_some();
        let model = Arc::clone(&self.model);
        let mut run = self.poison.guard(|| model.start(batch))?;
        while self.poison.guard(|| run.step(cancel, sliced))? {
            pacer.step().await;
        }
        self.poison.guard(|| run.finish())
    }
}

/// Remembers a panic: what it interrupted may have left locks and scratch memory behind in a
/// state that nobody vouches for.
#[derive(Debug, Default)]
struct Poison(Mutex<Option<String>>);

impl Poison {
    fn check(&self) -> Result<()> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(()),
            Some(detail) => Err(EngineError::EnginePoisoned {
                engine: ENGINE,
                detail: detail.clone(),
            }),
        }
    }

    /// Runs `work`; if it panics, this and every later use of the engine is refused.
    fn guard<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        match guard::catch(work) {
            Ok(result) => result,
            Err(detail) => {
                *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(detail.clone());
                Err(EngineError::EnginePoisoned {
                    engine: ENGINE,
                    detail,
                })
            }
        }
    }
}

/// Has a worker run `work`, and waits for its result, or for the caller to give up: then the
/// answer does not wait for an operator to end. Dropping the future cancels the work.
async fn submit<T, W, F>(worker: &Arc<dyn Worker>, cancel: &Cancel, work: W) -> Result<T>
where
    T: isovec_engine::maybe_send::MaybeSend + 'static,
    W: FnOnce(Cancel) -> F,
    F: Future<Output = Result<T>> + isovec_engine::maybe_send::MaybeSend + 'static,
{
    cancel.check()?;
    // The work's own token: it must not outlive this future, whose caller's token may.
    let own = CancelOnDrop(Cancel::new());
    let forward = own.0.clone();
    let _forward = cancel.on_cancel(move || forward.cancel());
    let (answer, mut result) = oneshot::channel();
    let work = work(own.0.clone());
    let job: Job = Box::pin(async move {
        let _ = answer.send(work.await);
    });
    let mut running = worker.run(job);
    let mut cancelled = pin!(own.0.cancelled());
    std::future::poll_fn(|context| {
        let finished = running.as_mut().poll(context).is_ready();
        match result.try_recv() {
            Ok(Some(result)) => Poll::Ready(result),
            Ok(None) if !finished => match cancelled.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(Err(EngineError::Cancelled)),
                Poll::Pending => Poll::Pending,
            },
            _ => Poll::Ready(Err(EngineError::Runtime {
                engine: ENGINE,
                doing: "waiting for its worker",
                detail: "the worker dropped the job".into(),
            })),
        }
    })
    .await
}

struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_the_engine_and_not_the_process() {
        let poison = Poison::default();
        assert_eq!(poison.guard(|| Ok(1)).unwrap(), 1);
        assert!(matches!(
            poison.guard::<()>(|| Err(EngineError::Cancelled)),
            Err(EngineError::Cancelled)
        ));
        poison.check().unwrap();
        let error = poison.guard::<()>(|| panic!("lost its way")).unwrap_err();
        assert!(error.to_string().contains("lost its way"), "{error}");
        assert!(matches!(
            poison.check(),
            Err(EngineError::EnginePoisoned { .. })
        ));
    }
}
