//! Bodies that nobody reads, because their requests are refused by their heads.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long a refused body is read on, only to be thrown away: a client that is still writing would not read the answer.
const DISCARD: Duration = Duration::from_secs(2);

/// Reads a body to its end and throws it away, for a time.
pub(crate) async fn discard<B: HttpBody + Unpin>(mut body: B) {
    let all = async { while let Some(Ok(_)) = body.frame().await {} };
    // In time or not, the answer is the same.
    let _ = timeout(DISCARD, all).await;
}

/// A body, and where it comes back if it is dropped before anybody read of it.
pub(crate) fn lent(body: Incoming) -> (Body, oneshot::Receiver<Incoming>) {
    let (back, unread) = oneshot::channel();
    let lent = Lent {
        body: Some(body),
        back: Some(back),
    };
    (Body::new(lent), unread)
}

struct Lent {
    body: Option<Incoming>,
    /// None once somebody reads.
    back: Option<oneshot::Sender<Incoming>>,
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.back = None;
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or_else(SizeHint::default, Incoming::size_hint)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(back), Some(body)) = (self.back.take(), self.body.take()) {
            // Nobody wants it where the whole request is dropped.
            let _ = back.send(body);
        }
    }
}
