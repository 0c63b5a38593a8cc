//! When the process is told to stop, and when to read its files again.

use std::future::Future;
use std::io;

use futures_util::Stream;

/// Completes when the process is told to stop: by Ctrl-C (SIGINT), and on Unix by SIGTERM, as service managers and
/// Kubernetes send it. From the call on, the signals no longer end the process by themselves.
///
/// # Errors
/// The system's, where it lets nobody wait for them.
pub fn stop_signal() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        Ok(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        })
    }
    #[cfg(windows)]
    {
        let mut interrupt = tokio::signal::windows::ctrl_c()?;
        Ok(async move {
            interrupt.recv().await;
        })
    }
}

/// An item whenever the process is told to read its files again: on Unix by SIGHUP, which no longer ends the process from the
/// call on; elsewhere never. Signals that come while an item is worked on are one.
///
/// # Errors
/// As [`stop_signal`].
pub fn reload_signal() -> io::Result<impl Stream<Item = ()> + Send + 'static> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let hangup = signal(SignalKind::hangup())?;
        Ok(futures_util::stream::unfold(hangup, |mut hangup| async {
            hangup.recv().await.map(|()| ((), hangup))
        }))
    }
    #[cfg(windows)]
    Ok(futures_util::stream::pending())
}
