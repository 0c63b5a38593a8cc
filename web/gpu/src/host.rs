//! The services that an engine needs from the SDK.

use isovec_encoder::Pause;
use isovec_engine::Result;
use isovec_engine::maybe_send::{BoxFuture, MaybeSend, MaybeSync};

/// The host of the engine: it gives other work a turn while a model is loaded, and has a cache for the next start.
pub trait Host: MaybeSend + MaybeSync {
    /// A way to let others have a turn while a model is loaded.
    ///
    /// # Errors
    /// When the platform has none to give.
    fn pause(&self) -> Result<Box<dyn Pause>>;

    /// The cached entry of a name, if it exists.
    fn recall<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Vec<u8>>>;

    /// Caches an entry for the next start, completely or not at all. A failure only makes the next start slower.
    fn keep<'a>(&'a self, name: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, ()>;
}

/// A host that keeps nothing where that is not wanted.
pub(crate) struct Discreet<'a> {
    pub(crate) host: &'a dyn Host,
    pub(crate) keeps: bool,
}

impl Host for Discreet<'_> {
    fn pause(&self) -> Result<Box<dyn Pause>> {
        self.host.pause()
    }

    fn recall<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Vec<u8>>> {
        match self.keeps {
            true => self.host.recall(name),
            false => Alone.recall(name),
        }
    }

    fn keep<'a>(&'a self, name: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, ()> {
        match self.keeps {
            true => self.host.keep(name, bytes),
            false => Box::pin(std::future::ready(())),
        }
    }
}

/// A host of programs that do nothing else meanwhile: it gives no turns and keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Host for Alone {
    fn pause(&self) -> Result<Box<dyn Pause>> {
        Ok(Box::new(Self))
    }

    fn recall<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, Option<Vec<u8>>> {
        Box::pin(std::future::ready(None))
    }

    fn keep<'a>(&'a self, _name: &'a str, _bytes: Vec<u8>) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl Pause for Alone {
    fn pause(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
