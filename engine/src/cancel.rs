//! Cancellation that reaches into a running engine.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use crate::error::{EngineError, Result};

/// Something that is told of a cancellation, time and again without an allocation.
pub trait OnCancel: Send + Sync {
    /// The token was cancelled; `tag` is the value from registering. Runs on the thread that cancels and should
    /// return soon.
    fn cancelled(&self, tag: u64);
}

enum Callback {
    Once(Box<dyn FnOnce() + Send>),
    Hook(Arc<dyn OnCancel>, u64),
}

impl Callback {
    fn call(self) {
        match self {
            Self::Once(callback) => callback(),
            Self::Hook(hook, tag) => hook.cancelled(tag),
        }
    }
}

#[derive(Default)]
struct Shared {
    cancelled: AtomicBool,
    next_id: AtomicU64,
    callbacks: Mutex<Vec<(u64, Callback)>>,
}

/// A cancellation token; clones share one state. Engines look at it between operators, and
/// those that can be interrupted from outside register a callback.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Shared>);

impl Cancel {
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels; runs the registered callbacks on this thread. Idempotent.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        for (_, callback) in self.take_callbacks() {
            callback.call();
        }
    }

    /// Whether [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// # Errors
    /// [`EngineError::Cancelled`] once cancelled.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() {
            Err(EngineError::Cancelled)
        } else {
            Ok(())
        }
    }

    /// Calls `callback` when cancelled, at once if that has happened; never after the guard
    /// is dropped, except for a call already under way.
    #[must_use = "dropping the guard takes the callback back"]
    pub fn on_cancel(&self, callback: impl FnOnce() + Send + 'static) -> CancelGuard {
        self.register(Callback::Once(Box::new(callback)))
    }

    /// Tells `hook` of a cancellation, with `tag`, as [`on_cancel`](Self::on_cancel) calls its callback; for callers
    /// that register often.
    #[must_use = "dropping the guard takes the hook back"]
    pub fn hook(&self, hook: Arc<dyn OnCancel>, tag: u64) -> CancelGuard {
        self.register(Callback::Hook(hook, tag))
    }

    fn register(&self, callback: Callback) -> CancelGuard {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        self.lock().push((id, callback));
        // Looked at after registering: a cancel between the two finds the callback itself.
        if self.is_cancelled() {
            for (_, callback) in self.take_callbacks() {
                callback.call();
            }
        }
        CancelGuard {
            cancel: self.clone(),
            id,
        }
    }

    /// Completes when cancelled.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled {
            cancel: self.clone(),
            guard: None,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(u64, Callback)>> {
        self.0
            .callbacks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn take_callbacks(&self) -> Vec<(u64, Callback)> {
        std::mem::take(&mut *self.lock())
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancel")
            .field("cancelled", &self.is_cancelled())
            .finish()
    }
}

/// Keeps a callback of [`Cancel::on_cancel`] registered.
#[derive(Debug)]
pub struct CancelGuard {
    cancel: Cancel,
    id: u64,
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.cancel.lock().retain(|(id, _)| *id != self.id);
    }
}

/// The future of [`Cancel::cancelled`].
#[derive(Debug)]
pub struct Cancelled {
    cancel: Cancel,
    guard: Option<CancelGuard>,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.cancel.is_cancelled() {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        self.guard = Some(self.cancel.on_cancel(move || waker.wake()));
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn a_callback_runs_once_whether_before_or_after() {
        let count = Arc::new(AtomicUsize::new(0));
        let cancel = Cancel::new();
        let bump = |count: &Arc<AtomicUsize>| {
            let count = Arc::clone(count);
            move || {
                count.fetch_add(1, Ordering::SeqCst);
            }
        };
        let _early = cancel.on_cancel(bump(&count));
        drop(cancel.on_cancel(bump(&count)));
        cancel.cancel();
        cancel.cancel();
        assert_eq!(
            count.load(Ordering::SeqCst),
            1,
            "the dropped guard's callback must not run"
        );
        let _late = cancel.on_cancel(bump(&count));
        assert_eq!(count.load(Ordering::SeqCst), 2);
        assert!(matches!(cancel.check(), Err(EngineError::Cancelled)));
    }

    #[test]
    fn a_hook_hears_its_own_tag_until_it_is_taken_back() {
        #[derive(Default)]
        struct Heard(Mutex<Vec<u64>>);
        impl OnCancel for Heard {
            fn cancelled(&self, tag: u64) {
                self.0.lock().unwrap().push(tag);
            }
        }
        let heard = Arc::new(Heard::default());
        let cancel = Cancel::new();
        drop(cancel.hook(heard.clone(), 1));
        let _kept = cancel.hook(heard.clone(), 2);
        cancel.cancel();
        assert_eq!(*heard.0.lock().unwrap(), [2]);
        let _late = cancel.hook(heard.clone(), 3);
        assert_eq!(*heard.0.lock().unwrap(), [2, 3]);
    }
}
