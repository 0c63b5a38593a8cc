//! When the process is told to stop, and when to read its files again.

use std::future::Future;

use futures_util::Stream;

use crate::error::{Error, Result};

/// Completes when the process is told to stop: by Ctrl-C (SIGINT), and on Unix by SIGTERM, as service managers and
/// Kubernetes send it. From the call on, the signals no longer end the process by themselves.
///
/// # Errors
/// [`Error::Signals`] where the system lets nobody wait for them.
pub fn stop_signal() -> Result<impl Future<Output = ()> + Send + 'static> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::Signals)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(Error::Signals)?;
        Ok(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        })
    }
    #[cfg(windows)]
    {
        let mut interrupt = tokio::signal::windows::ctrl_c().map_err(Error::Signals)?;
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
pub fn reload_signal() -> Result<impl Stream<Item = ()> + Send + 'static> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let hangup = signal(SignalKind::hangup()).map_err(Error::Signals)?;
        Ok(futures_util::stream::unfold(hangup, |mut hangup| async {
            hangup.recv().await.map(|()| ((), hangup))
        }))
    }
    #[cfg(windows)]
    Ok(futures_util::stream::pending())
}
