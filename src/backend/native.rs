//! Natively: isovec's own threads do the work, and the caller's future only waits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use futures_channel::oneshot;
use isovec_engine::EngineError;
#[cfg(feature = "ocr")]
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::EngineFactory;
use isovec_engine::panics;
#[cfg(feature = "ocr")]
use isovec_optimize::simplify::{Level, Pass, simplify};
use isovec_web::Portable;
use isovec_web::executor::Executor;
use isovec_web::executor::threads::Threads;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::config::EmbeddingConfig;
use crate::error::{Error, Result};

/// Texts that are worked on between two looks at the cancellation.
const SLICE: usize = 64;

/// Fewer texts than this are not worth waking another thread for.
const WORTH_A_THREAD: usize = 4;

/// Where engines' jobs run.
pub(super) fn executor() -> Arc<dyn Executor> {
    Arc::new(Threads)
}

/// The engine that needs nothing installed.
pub(crate) fn portable() -> Arc<dyn EngineFactory> {
    Arc::new(Portable::new(executor()))
}

/// The folder where set-up keeps models and ONNX Runtime: the variable `ISOVEC_CACHE`, else the
/// platform's folder for caches + `isovec`. `None` where none is known, as in browsers.
pub fn cache_dir() -> Option<PathBuf> {
    match std::env::var_os("ISOVEC_CACHE").filter(|folder| !folder.is_empty()) {
        Some(folder) => std::path::absolute(folder).ok(),
        None => Some(dirs::cache_dir()?.join("isovec")),
    }
}

/// Where hashes of weights are kept; `None` where they are taken at every load. Only Unix tells that a file is the same.
pub(crate) fn identities(config: &EmbeddingConfig) -> Option<PathBuf> {
    match config.model.verify {
        Some(true) => None,
        _ if cfg!(not(unix)) => None,
        _ => Some(cache_dir()?.join("identities")),
    }
}

/// The graph without what its exporter left in it: what can be computed once is not computed at each run.
#[cfg(feature = "ocr")]
pub(crate) async fn simplified(bundle: ModelBundle, cancel: &Cancel) -> Result<ModelBundle> {
    let passes: Vec<Pass> = Level::All.passes().collect();
    Ok(simplify(&bundle, &passes, cancel).await?.0)
}

/// Runs a long job that may wait for files or the network, on a thread of its own.
pub(crate) async fn offload<T: Send + 'static>(
    doing: &'static str,
    job: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let (answer, answered) = oneshot::channel();
    std::thread::Builder::new()
        .name("isovec-load".into())
        .spawn(move || answer.send(guarded(doing, || wait(job))).is_ok())
        .map_err(|error| no_threads(&error))?;
    answered.await.unwrap_or_else(|_| Err(vanished(doing)))
}

/// Runs a future to its end, on a thread of its own.
pub(crate) fn spawn(
    name: &'static str,
    future: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(move || pollster::block_on(future))
        .map_err(|error| no_threads(&error))?;
    Ok(())
}

/// Works through `items` on isovec's pool, slice by slice, until done or cancelled.
pub(crate) async fn in_slices<T, R>(
    doing: &'static str,
    items: Vec<T>,
    cancel: Cancel,
    work: impl Fn(&[T]) -> Result<Vec<R>> + Send + 'static,
) -> Result<Vec<R>>
where
    T: Send + 'static,
    R: Send + 'static,
{
    let (answer, answered) = oneshot::channel();
    // Not rayon's global pool: a caller who waits inside that one would wait for itself.
    pool()?.spawn(move || {
        let _ = answer.send(guarded(doing, || slices(&items, &cancel, work)));
    });
    answered.await.unwrap_or_else(|_| Err(vanished(doing)))
}

/// The same for callers who wait: few items are worked on where the caller is.
pub(crate) fn in_slices_blocking<T: Sync, R: Send>(
    doing: &'static str,
    items: &[T],
    cancel: &Cancel,
    work: impl Fn(&[T]) -> Result<Vec<R>> + Send,
) -> Result<Vec<R>> {
    let job = || guarded(doing, || slices(items, cancel, work));
    if items.len() < WORTH_A_THREAD {
        job()
    } else {
        pool()?.install(job)
    }
}

/// Waits for a future on this thread.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    pollster::block_on(future)
}

fn slices<T, R>(
    items: &[T],
    cancel: &Cancel,
    work: impl Fn(&[T]) -> Result<Vec<R>>,
) -> Result<Vec<R>> {
    let mut results = Vec::with_capacity(items.len());
    for slice in items.chunks(SLICE) {
        cancel.check()?;
        results.extend(work(slice)?);
    }
    Ok(results)
}

fn pool() -> Result<&'static ThreadPool> {
    static POOL: OnceLock<Result<ThreadPool>> = OnceLock::new();
    let build = || {
        ThreadPoolBuilder::new()
            .thread_name(|index| format!("isovec-{index}"))
            .build()
            .map_err(|error| no_threads(&error))
    };
    POOL.get_or_init(build).as_ref().map_err(Error::clone)
}

fn no_threads(error: &dyn std::error::Error) -> Error {
    let detail = error.to_string();
    EngineError::Runtime {
        engine: "isovec",
        doing: "starting a thread",
        detail,
    }
    .into()
}

fn vanished(doing: &'static str) -> Error {
    Error::Panicked {
        doing,
        detail: "the thread ended without an answer".into(),
    }
}

/// A panic becomes an error: it must neither end the process nor leave the caller waiting.
fn guarded<T>(doing: &'static str, job: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|panic| {
        Err(Error::Panicked {
            doing,
            detail: panics::message(&*panic),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_the_pool_goes_on() {
        let numbers: Vec<u32> = (0..200).collect();
        let result = wait(in_slices(
            "counting",
            numbers.clone(),
            Cancel::new(),
            |slice: &[u32]| {
                assert!(!slice.contains(&130), "130 is too much");
                Ok(slice.to_vec())
            },
        ));
        let error = result.unwrap_err();
        assert_eq!(error.kind(), "Panicked");
        assert!(error.to_string().contains("130 is too much"), "{error}");
        let again = wait(in_slices(
            "counting",
            numbers.clone(),
            Cancel::new(),
            |slice: &[u32]| Ok(slice.to_vec()),
        ));
        assert_eq!(again.unwrap(), numbers);
    }

    #[test]
    fn cancelling_stops_between_slices() {
        let cancel = Cancel::new();
        let seen = std::sync::atomic::AtomicUsize::new(0);
        let result = in_slices_blocking("counting", &[0u8; 1000], &cancel, |slice: &[u8]| {
            seen.fetch_add(slice.len(), std::sync::atomic::Ordering::SeqCst);
            cancel.cancel();
            Ok(slice.to_vec())
        });
        assert!(result.unwrap_err().is_cancelled());
        assert_eq!(seen.into_inner(), SLICE);
    }

    #[test]
    fn callers_inside_rayon_do_not_wait_for_themselves() {
        use rayon::prelude::*;
        let sums: Vec<usize> = (0..64usize)
            .into_par_iter()
            .map(|n| {
                let items = vec![n; 10];
                wait(in_slices(
                    "adding",
                    items,
                    Cancel::new(),
                    |slice: &[usize]| Ok(slice.to_vec()),
                ))
                .unwrap()
                .iter()
                .sum()
            })
            .collect();
        assert_eq!(sums[5], 50);
    }
}
