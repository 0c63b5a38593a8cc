//! The cancel token of a call.

use isovec_engine::cancel::{Cancel, CancelGuard};

/// Cancelled with the caller's, and when the call is dropped.
pub(crate) struct OwnCancel(pub(crate) Cancel, #[allow(dead_code)] Option<CancelGuard>);

impl OwnCancel {
    pub(crate) fn linked(caller: Option<&Cancel>) -> Self {
        let own = Cancel::new();
        let link = own.clone();
        Self(
            own,
            caller.map(|caller| caller.on_cancel(move || link.cancel())),
        )
    }
}

impl Drop for OwnCancel {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
