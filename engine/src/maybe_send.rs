//! What `Send` means on each target: threads natively, one event loop in the browser.
//!
//! Handles of JavaScript and of a browser's GPU are `!Send` on wasm32, so the contract requires `Send` only on targets with
//! threads.

use std::future::Future;
use std::pin::Pin;

use crate::error::EngineError;

#[cfg(not(target_arch = "wasm32"))]
mod target {
    use super::{Future, Pin};

    /// `Send` natively, nothing on wasm32.
    pub trait MaybeSend: Send {}
    impl<T: Send + ?Sized> MaybeSend for T {}

    /// `Sync` natively, nothing on wasm32.
    pub trait MaybeSync: Sync {}
    impl<T: Sync + ?Sized> MaybeSync for T {}

    /// A boxed future, `Send` natively and local on wasm32.
    pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
}

#[cfg(target_arch = "wasm32")]
mod target {
    use super::{Future, Pin};

    /// `Send` natively, nothing on wasm32.
    pub trait MaybeSend {}
    impl<T: ?Sized> MaybeSend for T {}

    /// `Sync` natively, nothing on wasm32.
    pub trait MaybeSync {}
    impl<T: ?Sized> MaybeSync for T {}

    /// A boxed future, `Send` natively and local on wasm32.
    pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;
}

pub use target::{BoxFuture, MaybeSend, MaybeSync};

/// The future that every async call of the contract returns.
pub type EngineFuture<'a, T> = BoxFuture<'a, Result<T, EngineError>>;
