//! What the commands that answer over HTTP share.

use std::ffi::OsString;

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

/// Runs something on threads of its own, which errors call `threads`. What clients have left of their work when it ends, those
/// that are gone and those that do not read, is not waited for.
pub(crate) fn on_threads<T>(threads: &str, work: impl Future<Output = T>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(CliError::io(threads))?;
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
