//! Texts from a stream, gathered into windows of bounded size.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use pin_project_lite::pin_project;

/// Texts that are tokenised and planned together.
pub(super) const TEXTS: usize = 512;
/// Bytes of text, at most, except for a single longer text.
const BYTES: usize = 1 << 20;

/// Texts of a stream, and the error that they ended with.
#[derive(Debug)]
pub(super) struct Window<E> {
    /// Place of the first text in the stream.
    pub(super) start: usize,
    pub(super) texts: Vec<String>,
    pub(super) error: Option<E>,
}

pin_project! {
    /// Gathers what a stream has ready: a window is full, or there is nothing more for now. A slow
    /// stream is not waited for with texts in hand.
    pub(super) struct Windows<S> {
        #[pin]
        texts: S,
        window: Vec<String>,
        bytes: usize,
        start: usize,
        ended: bool,
    }
}

impl<S> Windows<S> {
    pub(super) fn new(texts: S) -> Self {
        Self {
            texts,
            window: Vec::new(),
            bytes: 0,
            start: 0,
            ended: false,
        }
    }
}

impl<S, T, E> Stream for Windows<S>
where
    S: Stream<Item = Result<T, E>>,
    T: AsRef<str>,
{
    type Item = Window<E>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        let mut error = None;
        while !*this.ended && this.window.len() < TEXTS && *this.bytes < BYTES {
            let next = this.texts.as_mut().poll_next(context);
            let next = match next {
                Poll::Pending if !this.window.is_empty() => break,
                next => ready!(next),
            };
            match next {
                Some(Ok(text)) => {
                    let text = text.as_ref().to_owned();
                    *this.bytes += text.len();
                    this.window.push(text);
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
            texts: std::mem::take(this.window),
            error,
        }))
    }
}
