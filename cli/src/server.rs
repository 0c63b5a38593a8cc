//! What the commands that answer over HTTP share.

use std::ffi::OsString;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::time::Duration;

#[cfg(feature = "tls")]
use futures_util::{Stream, StreamExt as _};

use crate::error::{CliError, Result};

/// Has glibc keep as many heaps as there are cores, and not eight times as many: a server's threads come and go, and what each of so
/// many heaps keeps for later grows with the requests. `MALLOC_ARENA_MAX` says otherwise. Elsewhere it does nothing. No other thread
/// may have been started.
pub(crate) fn keep_few_heaps() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if std::env::var_os("MALLOC_ARENA_MAX").is_none()
        && let Ok(cores) = std::thread::available_parallelism()
    {
        let heaps = i32::try_from(cores.get()).unwrap_or(i32::MAX);
        // SAFETY: it only sets a number that glibc looks at when a thread first allocates, and there is no other thread.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, heaps);
        }
    }
}

/// How often memory goes back to the system.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const GIVE_BACK: Duration = Duration::from_secs(30);

/// Has glibc give back, now and then, the memory that it keeps for later: what the largest requests of a day took is otherwise held
/// for ever. `MALLOC_TRIM_THRESHOLD_` says otherwise. Elsewhere it does nothing.
async fn give_back_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if std::env::var_os("MALLOC_TRIM_THRESHOLD_").is_none() {
        let mut times = tokio::time::interval(GIVE_BACK);
        // It takes milliseconds, which no request on this thread is to wait for.
        while tokio::task::spawn_blocking(trim).await.is_ok() {
            times.tick().await;
        }
    }
}

/// Gives back the pages of glibc's heaps on which nothing lies.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim() {
    // SAFETY: it takes the locks that every other call of the allocator takes, and touches nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Runs something on threads of its own, which errors call `threads`. What clients have left of their work when it ends, those
/// that are gone and those that do not read, is not waited for.
pub(crate) fn on_threads<T>(threads: &str, work: impl Future<Output = T>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(CliError::io(threads))?;
    runtime.spawn(give_back_memory());
    let ended = runtime.block_on(work);
    runtime.shutdown_background();
    Ok(ended)
}

/// Where a supervisor wants to hear that the server is ready.
pub(crate) fn notify_socket() -> Option<OsString> {
    std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty())
}

/// Reads a certificate and its key again, as `reload` does, whenever `again` has an item.
#[cfg(feature = "tls")]
pub(crate) fn reload_tls<E: std::fmt::Display>(
    again: impl Stream<Item = ()> + Send + 'static,
    reload: impl Fn() -> Result<(), E> + Send + 'static,
) {
    tokio::spawn(again.for_each(move |()| {
        match reload() {
            Ok(()) => tracing::info!("the certificate was read again"),
            Err(error) => {
                tracing::error!(%error, "the certificate cannot be read; the one of before is used");
            }
        }
        std::future::ready(())
    }));
}

/// Sets the options that were given, and leaves the others at their defaults.
pub(crate) fn set<T: Copy, const N: usize>(options: [(&mut T, Option<T>); N]) {
    for (option, given) in options {
        *option = given.unwrap_or(*option);
    }
}

/// Completes when the process is told to stop, as `signal` says. From then on a second signal ends the process at once.
pub(crate) fn until_stopped<S, E>(
    signal: impl Fn() -> Result<S, E>,
) -> Result<impl Future<Output = ()>, E>
where
    S: Future<Output = ()> + Send + 'static,
{
    let stop = signal()?;
    Ok(async move {
        stop.await;
        if let Ok(again) = signal() {
            tokio::spawn(async {
                again.await;
                // Everybody inside is let down, as was asked for.
                std::process::exit(130);
            });
        }
    })
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Bytes of this process that are in memory (proc(5)).
    fn resident() -> usize {
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = text.lines().find(|line| line.starts_with("VmRSS:"));
        let kib = line.unwrap().split_whitespace().nth(1).unwrap();
        kib.parse::<usize>().unwrap() << 10
    }

    #[test]
    fn memory_that_nobody_uses_goes_back() {
        const BYTES: usize = 64 << 20;
        // Small enough for a heap. Each byte is written, so that it is in memory.
        let mut blocks: Vec<Box<[u8]>> = (0..BYTES >> 12).map(|_| vec![1; 4000].into()).collect();
        // What lies behind them keeps the heap as large as it is.
        let last = blocks.pop();
        drop(blocks);
        let before = resident();
        trim();
        let after = resident();
        assert!(after + BYTES / 2 < before, "{before} bytes, then {after}");
        drop(last);
    }
}
