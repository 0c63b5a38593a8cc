//! Runs batches from the queue, as many at a time as the engine supports.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::future::poll_fn;
use futures_util::stream::FuturesUnordered;
use isovec_engine::engine::RunOutput;
use isovec_engine::maybe_send::BoxFuture;

use super::core::{Core, Due};
use super::state::Batch;
use crate::backend;
use crate::error::Result;
use crate::model::encoded::Encoded;
use crate::model::rows;
use crate::sync::Delay;

/// Starts the one driver of a batcher.
pub(super) fn start(core: Arc<Core>) -> Result<()> {
    backend::spawn("isovec-batcher", async move {
        let abandoned = Abandon(&core);
        let mut driver = Driver {
            core: &core,
            runs: FuturesUnordered::new(),
            timer: None,
        };
        poll_fn(|context| driver.poll(context)).await;
        drop(driver);
        std::mem::forget(abandoned);
    })
}

/// Tells the callers when the driver ends in any other way than by itself.
struct Abandon<'c>(&'c Core);

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// A batch that ran.
struct Done {
    batch: Batch,
    output: Result<RunOutput>,
}

struct Driver<'c> {
    core: &'c Arc<Core>,
    runs: FuturesUnordered<BoxFuture<'static, Done>>,
    timer: Option<Delay>,
}

impl Driver<'_> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // Before looking: whoever comes afterwards wakes us.
        self.core.driver.register(context.waker());
        loop {
            // New runs begin here, with their first poll.
            while let Poll::Ready(Some(done)) = self.runs.poll_next_unpin(context) {
                self.settle(done);
            }
            match self.core.due() {
                Due::Run(batch) => self.run(batch),
                Due::Wait(more) => {
                    let timer = self.timer.get_or_insert_with(|| Delay::new(more));
                    timer.reset(more);
                    if Pin::new(timer).poll(context).is_pending() {
                        return Poll::Pending;
                    }
                }
                Due::Nothing => return Poll::Pending,
                Due::End => return Poll::Ready(()),
            }
        }
    }

    fn run(&mut self, mut batch: Batch) {
        let model = Arc::clone(&self.core.model);
        self.runs.push(Box::pin(async move {
            let ran = model.run_texts(&batch.texts, &batch.cancel, &mut batch.span);
            let output = ran.await;
            Done { batch, output }
        }));
    }

    fn settle(&mut self, done: Done) {
        let Done { batch, output } = done;
        let rows = batch.texts.len();
        match output {
            Err(error) if rows > 1 && error.is_one_texts() => {
                for half in self.core.halves(batch) {
                    self.run(half);
                }
            }
            Err(error) => self.core.settle(batch, Err(error)),
            Ok(output) => {
                let late = batch.texts.iter().any(Encoded::is_late);
                let vectors = rows::vectors(&output, rows, self.core.model.dim, late);
                self.core.settle(batch, vectors);
            }
        }
    }
}
