//! A connection of which the first bytes were read already.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

/// A connection that gives out again what was read of it.
#[derive(Debug)]
pub(crate) struct Begun<S> {
    first: Bytes,
    stream: S,
}

impl<S: AsyncRead + Unpin> Begun<S> {
    /// Reads as much as tells whether a connection begins as `wanted` does; `None` if it ends before.
    pub(crate) async fn read(mut stream: S, wanted: &[u8]) -> Option<Self> {
        let mut first = Vec::with_capacity(wanted.len());
        let mut bytes = vec![0; wanted.len()];
        while first.len() < wanted.len() && wanted.starts_with(&first) {
            let left = wanted.len() - first.len();
            match stream.read(&mut bytes[..left]).await {
                Ok(read) if read > 0 => first.extend_from_slice(&bytes[..read]),
                _ => return None,
            }
        }
        Some(Self {
            first: first.into(),
            stream,
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Begun<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, into);
        }
        let take = self.first.len().min(into.remaining());
        into.put_slice(&self.first[..take]);
        self.first.advance(take);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Begun<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_read_is_there_again() {
        for (sent, begins) in [
            (&b"abcdef"[..], true),
            (b"abc", true),
            (b"abx", true),
            (b"x", true),
            (b"ab", false),
            (b"", false),
        ] {
            let begun = Begun::read(sent, b"abc").await;
            assert_eq!(begun.is_some(), begins, "{sent:?}");
            let Some(mut begun) = begun else { continue };
            let mut all = Vec::new();
            begun.read_to_end(&mut all).await.unwrap();
            assert_eq!(all, sent);
        }
    }
}
