//! Items from a stream, gathered into windows of bounded size.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use pin_project_lite::pin_project;

use crate::model::Item;

/// Items that are encoded and planned together.
pub(super) const ITEMS: usize = 512;
/// Bytes of items, at most, except for a single larger item.
const BYTES: usize = 1 << 20;

/// Items of a stream, and the error that they ended with.
#[derive(Debug)]
pub(super) struct Window<I, E> {
    /// Place of the first item in the stream.
    pub(super) start: usize,
    pub(super) items: Vec<I>,
    pub(super) error: Option<E>,
}

pin_project! {
    /// Gathers what a stream has ready: a window is full, or there is nothing more for now. A slow
    /// stream is not waited for with items in hand.
    pub(super) struct Windows<S, I> {
        #[pin]
        items: S,
        window: Vec<I>,
        bytes: usize,
        start: usize,
        ended: bool,
    }
}

impl<S, I> Windows<S, I> {
    pub(super) fn new(items: S) -> Self {
        Self {
            items,
            window: Vec::new(),
            bytes: 0,
            start: 0,
            ended: false,
        }
    }
}

impl<S, T, E> Stream for Windows<S, T::Owned>
where
    S: Stream<Item = Result<T, E>>,
    T: Item,
{
    type Item = Window<T::Owned, E>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        let mut error = None;
        while !*this.ended && this.window.len() < ITEMS && *this.bytes < BYTES {
            let next = this.items.as_mut().poll_next(context);
            let next = match next {
                Poll::Pending if !this.window.is_empty() => break,
                next => ready!(next),
            };
            match next {
                Some(Ok(item)) => {
                    *this.bytes += item.bytes();
                    this.window.push(item.owned());
                }
                Some(Err(fault)) => {
                    error = Some(fault);
                    *this.ended = true;
                }
                None => *this.ended = true,
            }
        }
        if this.window.is_empty() && error.is_none() {
            return Poll::Ready(None);
        }
        let start = *this.start;
        *this.start += this.window.len();
        *this.bytes = 0;
        Poll::Ready(Some(Window {
            start,
            items: std::mem::take(this.window),
            error,
        }))
    }
}
