//! Rows as a stream that Ctrl-C ends.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::Stream;
use futures_util::stream::{self, StreamExt};
use futures_util::task::AtomicWaker;
use isovec::Cancel;

use super::{Input, Row, Rows};
use crate::error::{CliError, Result};

/// How long a pipe may be silent before what came so far is embedded. Long enough that a program
/// that writes without a pause fills whole windows, so that the same input makes the same batches.
const PATIENCE: Duration = Duration::from_millis(200);
/// Rows that are read ahead of a pipe.
const AHEAD: usize = 256;

/// Rows on their way to the model.
pub(crate) type Feed = Pin<Box<dyn Stream<Item = Result<Row>>>>;

/// The rows in order. A cancellation is an error in place of the next row, also while nothing
/// comes through a pipe.
pub(crate) fn feed(input: Input, cancel: &Cancel) -> Result<Feed> {
    let cancelled = || Err(CliError::Interrupted("nothing was written".into()));
    let cancel = cancel.clone();
    if !input.waits {
        let rows = input.rows.map(move |row| match cancel.is_cancelled() {
            true => cancelled(),
            false => row,
        });
        return Ok(stream::iter(rows).boxed_local());
    }
    let waker = Arc::new(AtomicWaker::new());
    let mut pipe = Pipe::open(input.rows, Arc::clone(&waker))?;
    let guard = cancel.on_cancel(move || waker.wake());
    Ok(stream::poll_fn(move |context| {
        // Kept as long as the stream is.
        let _ = &guard;
        match pipe.poll_next(context) {
            _ if cancel.is_cancelled() => Poll::Ready(Some(cancelled())),
            row => row,
        }
    })
    .boxed_local())
}

/// Rows that a thread of their own reads, since reading may wait for ever.
struct Pipe {
    rows: Receiver<Result<Row>>,
    waker: Arc<AtomicWaker>,
    /// How much longer these rows may be waited for.
    patience: Duration,
    /// Rows that came since the patience was whole.
    came: usize,
}

impl Pipe {
    fn open(rows: Rows, waker: Arc<AtomicWaker>) -> Result<Self> {
        let (sender, receiver) = mpsc::sync_channel(AHEAD);
        let reader = Arc::clone(&waker);
        std::thread::Builder::new()
            .name("isovec-input".into())
            .spawn(move || {
                for row in rows {
                    if sender.send(row).is_err() {
                        return;
                    }
                    reader.wake();
                }
                drop(sender);
                reader.wake();
            })
            .map_err(CliError::io("a thread that reads the input"))?;
        Ok(Self {
            rows: receiver,
            waker,
            patience: PATIENCE,
            came: 0,
        })
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Row>>> {
        // Waited for as long as that in all: a pipe in which a row comes now and then must not hold
        // up the windows under way either.
        if !self.patience.is_zero() {
            let since = Instant::now();
            match self.rows.recv_timeout(self.patience) {
                Ok(row) => {
                    self.patience = self.patience.saturating_sub(since.elapsed());
                    return Poll::Ready(Some(self.took(row)));
                }
                Err(RecvTimeoutError::Disconnected) => return Poll::Ready(None),
                Err(RecvTimeoutError::Timeout) => self.patience = Duration::ZERO,
            }
        }
        // Registered before looking, so that a row that comes in between wakes.
        self.waker.register(context.waker());
        match self.rows.try_recv() {
            Ok(row) => Poll::Ready(Some(self.took(row))),
            Err(TryRecvError::Disconnected) => Poll::Ready(None),
            Err(TryRecvError::Empty) => {
                // What came so far goes ahead; the next rows are waited for anew.
                self.came = AHEAD;
                Poll::Pending
            }
        }
    }

    fn took(&mut self, row: Result<Row>) -> Result<Row> {
        self.came += 1;
        if self.came >= AHEAD {
            self.came = 0;
            self.patience = PATIENCE;
        }
        row
    }
}
