//! Reading a request's body: bounded in bytes and time.

use axum::body::Body;
use axum::http::Request;
use axum::http::header::CONTENT_LENGTH;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout_at};

use crate::failure::{Failure, Kind};
use crate::unread::discard;

/// Bounds the bytes of all bodies together.
pub trait Room {
    /// Takes room for more bytes.
    ///
    /// # Errors
    /// That there is none.
    fn take(&mut self, bytes: usize) -> Result<(), Failure>;
}

/// Reads a body into memory, which `room` is taken for.
///
/// # Errors
/// A body of more than `most` bytes, one that is not there at `until`, one that ends too early, and one that there is
/// no room for.
pub async fn read(
    request: Request<Body>,
    room: &mut impl Room,
    most: usize,
    until: Instant,
) -> Result<Bytes, Failure> {
    let (head, mut body) = request.into_parts();
    let told = head.headers.get(CONTENT_LENGTH);
    let told = told.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if told.is_some_and(|told| told > most as u64) {
        return Err(too_large(most));
    }
    let mut whole = Whole::default();
    loop {
        let frame = match timeout_at(until, body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => break,
            Ok(Some(Err(_))) => {
                return Err(Failure::new(
                    Kind::Invalid,
                    "the body ended before it was complete",
                ));
            }
            Err(_) => {
                return Err(Failure::new(
                    Kind::SlowBody,
                    "the body did not arrive in time",
                ));
            }
        };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if whole.len() + data.len() > most {
            discard(body).await;
            return Err(too_large(most));
        }
        if let Err(refused) = room.take(data.len()) {
            discard(body).await;
            return Err(refused);
        }
        whole.push(data);
    }
    Ok(whole.bytes())
}

/// A body that is put together of the data of its frames.
#[derive(Debug, Default)]
pub struct Whole {
    first: Bytes,
    all: BytesMut,
}

impl Whole {
    /// The next data. Most bodies come as one frame, which is not copied.
    pub fn push(&mut self, data: Bytes) {
        if self.is_empty() {
            self.first = data;
        } else {
            self.all.extend_from_slice(&std::mem::take(&mut self.first));
            self.all.extend_from_slice(&data);
        }
    }

    /// Bytes that are there.
    pub fn len(&self) -> usize {
        self.first.len() + self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All data, in one.
    pub fn bytes(self) -> Bytes {
        if self.all.is_empty() {
            self.first
        } else {
            self.all.freeze()
        }
    }
}

fn too_large(most: usize) -> Failure {
    Failure::new(
        Kind::TooLarge,
        format!("the body is larger than {most} bytes; send the texts in several requests"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_frame_is_not_copied_and_more_are_put_together() {
        let frames = [
            Bytes::new(),
            Bytes::from_static(b"a"),
            Bytes::from_static(b"bc"),
            Bytes::from_static(b"d"),
        ];
        let whole = |frames: &[Bytes]| {
            let mut whole = Whole::default();
            frames.iter().cloned().for_each(|data| whole.push(data));
            (whole.len(), whole.bytes())
        };
        assert_eq!(whole(&[]), (0, Bytes::new()));
        assert_eq!(whole(&frames), (4, Bytes::from_static(b"abcd")));
        let (length, one) = whole(&frames[..2]);
        assert_eq!((length, one.as_ptr()), (1, frames[1].as_ptr()));
    }
}
