//! Turns for other work while long work goes on.

use crate::maybe_send::{BoxFuture, MaybeSend};

/// Gives others a turn while a model is read.
pub trait Pause: MaybeSend {
    /// Called between two weights, and every few operators.
    fn pause(&mut self) -> BoxFuture<'_, ()>;
}

/// Gives no turns, for callers that block no other work.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTurns;

impl Pause for NoTurns {
    fn pause(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
