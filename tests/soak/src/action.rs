//! The random actions of a caller, and the checks of their results.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use futures_util::future::join_all;
use futures_util::{FutureExt, StreamExt, stream};
use isovec::profile::ProfileOptions;
use isovec::{Cancel, EmbedOptions, Embedder, Embeddings, Error, Prompt, Shutdown, blocking};

use crate::ledger::Ended;
use crate::rng::Rng;
use crate::slot::{Loaded, Slot};
use crate::texts;

/// Looks at a future before it is given up, as a power of two: enough for most to be answered.
const LOOKS: usize = 13;
/// Texts of a window of a stream, as the SDK gathers them.
const WINDOW: usize = 512;
/// Texts of a stream, as a power of two more than a call's.
const STREAM: usize = 5;

/// What all callers share.
pub(crate) struct World {
    pub(crate) slots: Vec<Slot>,
    pub(crate) texts: Vec<String>,
    pub(crate) done: Done,
}

/// What was done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) actions: AtomicU64,
    pub(crate) vectors: AtomicU64,
    pub(crate) given_up: AtomicU64,
    pub(crate) loads: AtomicU64,
    pub(crate) devices_lost: AtomicU64,
}

type Outcome = Result<(), String>;

/// One action: which one, on what and how far follows from the numbers alone.
pub(crate) fn act(world: &World, rng: &mut Rng) -> Outcome {
    let slot = &world.slots[rng.below(world.slots.len())];
    let loaded = slot.current();
    let call = Action {
        world,
        slot,
        loaded: &loaded,
    };
    let outcome = match rng.below(64) {
        0..10 => call.whole(rng),
        10..18 => call.dropped(rng),
        18..26 => call.cancelled(rng),
        26..40 => call.batched(rng),
        40..46 => call.waiting(rng),
        46..52 => call.streamed(rng),
        52..55 => call.refused(rng),
        55..57 => call.profiled(rng),
        57..59 => call.shut_down(rng),
        59 => call.lost(),
        60 => call.given_up_load(rng),
        _ => call.reloaded(rng),
    };
    world.done.actions.fetch_add(1, SeqCst);
    let released = slot.release(loaded);
    outcome.and(released)
}

struct Action<'w> {
    world: &'w World,
    slot: &'w Slot,
    loaded: &'w Loaded,
}

/// What a call may fail with beside what was asked of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum May {
    Nothing,
    BeCancelled,
}

impl Action<'_> {
    /// Texts by their numbers: some may come twice.
    fn pick(&self, rng: &mut Rng) -> Vec<usize> {
        let count = rng.spread(self.slot.kind.size);
        (0..count).map(|_| rng.below(texts::COUNT)).collect()
    }

    fn texts<'t>(&'t self, picked: &'t [usize]) -> impl Iterator<Item = &'t str> {
        picked.iter().map(|&text| &*self.world.texts[text])
    }

    /// Closes the books of a call: its vectors are the ones that were expected, and its error is one that may be.
    fn close(&self, picked: &[usize], result: isovec::Result<Embeddings>, may: May) -> Outcome {
        let (ended, outcome) = match result {
            Ok(embeddings) => (Ended::Well, self.compare(picked, embeddings.iter())),
            Err(error) if error.is_cancelled() => (
                Ended::Cancelled,
                match may {
                    May::BeCancelled => Ok(()),
                    May::Nothing => Err(self.fault(&error)),
                },
            ),
            // Somebody shut the batcher down, or its queue is full: both are answers.
            Err(Error::ShutDown | Error::Overloaded { .. }) => (Ended::Failed, Ok(())),
            Err(error) => (Ended::Failed, Err(self.fault(&error))),
        };
        self.loaded.ledger.ends(picked.len(), ended);
        if ended == Ended::Cancelled {
            self.world.done.given_up.fetch_add(1, SeqCst);
        }
        outcome
    }

    fn compare<'v>(
        &self,
        picked: &[usize],
        vectors: impl ExactSizeIterator<Item = &'v [f32]>,
    ) -> Outcome {
        let (name, got) = (self.slot.kind.name, vectors.len());
        if got != picked.len() {
            return Err(format!("{name}: {got} vectors of {} texts", picked.len()));
        }
        self.world.done.vectors.fetch_add(got as u64, SeqCst);
        let mut pairs = picked.iter().zip(vectors);
        pairs.try_for_each(|(&text, vector)| self.slot.kind.check(text, vector))
    }

    fn fault(&self, error: &Error) -> String {
        format!("{}: {}: {error}", self.slot.kind.name, error.kind())
    }

    /// A call of the embedder's or of the batcher's.
    fn call(
        &self,
        rng: &mut Rng,
        picked: &[usize],
        options: EmbedOptions,
    ) -> isovec::BoxFuture<'static, isovec::Result<Embeddings>> {
        self.loaded.ledger.begins(picked.len());
        match rng.once_in(2) {
            true => self.loaded.embedder.embed_with(self.texts(picked), options),
            false => self.loaded.batcher.embed_with(self.texts(picked), options),
        }
    }

    /// Waits for all.
    fn whole(&self, rng: &mut Rng) -> Outcome {
        let picked = self.pick(rng);
        let result = pollster::block_on(self.call(rng, &picked, EmbedOptions::default()));
        self.close(&picked, result, May::Nothing)
    }

    /// Looks some times, and drops the call if it is not over.
    fn dropped(&self, rng: &mut Rng) -> Outcome {
        let picked = self.pick(rng);
        let mut call = self.call(rng, &picked, EmbedOptions::default());
        match look(&mut call, 1 + rng.spread(LOOKS)) {
            Some(result) => self.close(&picked, result, May::Nothing),
            None => {
                drop(call);
                self.gave_up(&picked);
                Ok(())
            }
        }
    }

    fn gave_up(&self, picked: &[usize]) {
        self.loaded.ledger.ends(picked.len(), Ended::Cancelled);
        self.world.done.given_up.fetch_add(1, SeqCst);
    }

    /// Looks some times, cancels, and waits for what comes.
    fn cancelled(&self, rng: &mut Rng) -> Outcome {
        let picked = self.pick(rng);
        let cancel = Cancel::new();
        let options = EmbedOptions::default().with_cancel(cancel.clone());
        let mut call = self.call(rng, &picked, options);
        let answered = match rng.once_in(8) {
            true => None,
            false => look(&mut call, 1 + rng.spread(LOOKS)),
        };
        cancel.cancel();
        let result = answered.unwrap_or_else(|| pollster::block_on(call));
        self.close(&picked, result, May::BeCancelled)
    }

    /// Several calls at once to the batcher, some of which are given up.
    fn batched(&self, rng: &mut Rng) -> Outcome {
        let calls: Vec<_> = (0..=rng.below(8))
            .map(|_| {
                let picked = self.pick(rng);
                self.loaded.ledger.begins(picked.len());
                let mut call = self.loaded.batcher.embed(self.texts(&picked));
                let stays = !rng.once_in(4);
                let looks = 1 + rng.spread(LOOKS);
                async move {
                    let result = match stays {
                        true => Some(call.await),
                        false => looked(&mut call, looks).await,
                    };
                    (picked, result)
                }
            })
            .collect();
        // All of them are closed, whatever is wrong with one.
        let mut outcome = Ok(());
        for (picked, result) in pollster::block_on(join_all(calls)) {
            match result {
                Some(result) => outcome = outcome.and(self.close(&picked, result, May::Nothing)),
                None => self.gave_up(&picked),
            }
        }
        outcome
    }

    /// The handle for callers who wait.
    fn waiting(&self, rng: &mut Rng) -> Outcome {
        let picked = self.pick(rng);
        self.loaded.ledger.begins(picked.len());
        let waiting = blocking::Embedder::from(self.loaded.embedder.clone());
        let texts: Vec<&str> = self.texts(&picked).collect();
        self.close(&picked, waiting.embed(texts), May::Nothing)
    }

    /// A stream, taken to its end or dropped in the middle.
    fn streamed(&self, rng: &mut Rng) -> Outcome {
        let count = rng.spread(self.slot.kind.size + STREAM);
        let picked: Vec<usize> = (0..count).map(|_| rng.below(texts::COUNT)).collect();
        let wanted = match rng.once_in(2) {
            true => count,
            false => rng.below(count + 1),
        };
        let ledger = &self.loaded.ledger;
        ledger.begins(count);
        let owned: Vec<String> = self.texts(&picked).map(str::to_owned).collect();
        let mut taken = Vec::new();
        let mut outcome = Ok(());
        {
            let mut items = pin!(self.loaded.embedder.embed_stream(stream::iter(owned)));
            while taken.len() < wanted {
                match pollster::block_on(items.next()) {
                    Some(Ok(embedded)) => taken.push(embedded.vector),
                    Some(Err(error)) => {
                        outcome = Err(self.fault(&error));
                        break;
                    }
                    None => break,
                }
            }
            // As long as it is dropped with something under way, nobody knows how much.
            if taken.len() < count && rng.once_in(2) {
                let _ = items.next().now_or_never();
            }
        }
        let windows = count.div_ceil(WINDOW);
        let least = taken.len().div_ceil(WINDOW);
        let most = match taken.len() == count {
            true => least,
            // Two are under way at a time, and a look may begin another.
            false => windows.min(least + 3),
        };
        ledger.streamed(taken.len(), count - taken.len(), (least, most));
        outcome?;
        if taken.len() < wanted {
            let name = self.slot.kind.name;
            return Err(format!(
                "{name}: a stream ended after {} of {count} texts",
                taken.len()
            ));
        }
        self.compare(&picked[..taken.len()], taken.iter().map(Vec::as_slice))
    }

    /// A call that is wrong, which harms nobody else.
    fn refused(&self, rng: &mut Rng) -> Outcome {
        let mut picked = self.pick(rng);
        picked.push(0);
        let options = EmbedOptions::default().with_prompt(Prompt::Named("no such".into()));
        let result = pollster::block_on(self.call(rng, &picked, options));
        self.loaded.ledger.ends(picked.len(), Ended::Failed);
        match result {
            Err(Error::Config(_) | Error::ShutDown | Error::Overloaded { .. }) => Ok(()),
            Err(error) => Err(self.fault(&error)),
            Ok(_) => Err(format!(
                "{}: an unknown prompt was taken",
                self.slot.kind.name
            )),
        }
    }

    /// A call while a profile is taken, which is dropped or read.
    fn profiled(&self, rng: &mut Rng) -> Outcome {
        let session = self.loaded.embedder.profile(ProfileOptions::default());
        let outcome = self.whole(rng);
        match session {
            Ok(session) if rng.once_in(2) => drop(session.finish()),
            Ok(_) | Err(Error::AlreadyProfiled(_)) => {}
            Err(error) => return outcome.and(Err(self.fault(&error))),
        }
        outcome
    }

    /// Another batcher comes and goes, while the first is used.
    fn shut_down(&self, rng: &mut Rng) -> Outcome {
        let batcher = isovec::DynamicBatcher::new(&self.loaded.embedder);
        let how = match rng.once_in(2) {
            true => Shutdown::Drain,
            false => Shutdown::Cancel,
        };
        let picked = self.pick(rng);
        self.loaded.ledger.begins(picked.len());
        let mut call = batcher.embed(self.texts(&picked));
        let answered = look(&mut call, 1 + rng.spread(LOOKS));
        let end = batcher.shutdown(how);
        let result = answered.unwrap_or_else(|| pollster::block_on(call));
        pollster::block_on(end);
        // Even a drain refuses a call that was still tokenised.
        self.close(&picked, result, May::Nothing)
    }

    /// Takes every GPU's device away.
    fn lost(&self) -> Outcome {
        if self.slot.kind.is_gpu {
            let lost = isovec_gpu::lose_devices();
            self.world.done.devices_lost.fetch_add(lost as u64, SeqCst);
        }
        Ok(())
    }

    /// A load that nobody waits for.
    fn given_up_load(&self, rng: &mut Rng) -> Outcome {
        let cancel = Cancel::new();
        let kind = &self.slot.kind;
        let mut load = Embedder::builder(kind.source())
            .config(kind.config())
            .cancel(cancel.clone())
            .load();
        let loaded = match look(&mut load, 1 + rng.spread(LOOKS)) {
            Some(loaded) => loaded,
            None if rng.once_in(2) => return Ok(()),
            None => {
                cancel.cancel();
                pollster::block_on(load)
            }
        };
        match loaded {
            Ok(_) => Ok(()),
            Err(error) if error.is_cancelled() => Ok(()),
            Err(error) => Err(self.fault(&error)),
        }
    }

    /// Another embedder takes the place of this one, which is disposed of when its last caller is gone.
    fn reloaded(&self, rng: &mut Rng) -> Outcome {
        let kind = &self.slot.kind;
        let embedder = pollster::block_on(
            Embedder::builder(kind.source())
                .config(kind.config())
                .load(),
        )
        .map_err(|error| self.fault(&error))?;
        self.world.done.loads.fetch_add(1, SeqCst);
        let before = self.slot.replace(Loaded::new(embedder));
        match rng.below(3) {
            0 => pollster::block_on(before.batcher.shutdown(Shutdown::Drain)),
            1 => pollster::block_on(before.batcher.shutdown(Shutdown::Cancel)),
            _ => {}
        }
        self.slot.release(before)
    }
}

/// Looks at a future so many times.
fn look<F: Future + Unpin>(future: &mut F, looks: usize) -> Option<F::Output> {
    (0..looks).find_map(|_| {
        thread::yield_now();
        future.now_or_never()
    })
}

/// The same within another future, which is asked again every time.
async fn looked<F: Future + Unpin>(future: &mut F, looks: usize) -> Option<F::Output> {
    let mut left = looks;
    std::future::poll_fn(|context| {
        thread::yield_now();
        if let std::task::Poll::Ready(output) = future.poll_unpin(context) {
            return std::task::Poll::Ready(Some(output));
        }
        left -= 1;
        if left == 0 {
            return std::task::Poll::Ready(None);
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await
}

/// One call of all texts, when nothing else is under way: what was expected.
pub(crate) fn at_rest(world: &World, slot: &Slot) -> Outcome {
    let loaded: Arc<Loaded> = slot.current();
    let action = Action {
        world,
        slot,
        loaded: &loaded,
    };
    let picked: Vec<usize> = (0..texts::COUNT).step_by(3).collect();
    action.loaded.ledger.begins(picked.len());
    let embedding = action.loaded.embedder.embed(action.texts(&picked));
    let outcome = action.close(&picked, pollster::block_on(embedding), May::Nothing);
    outcome.and(slot.balanced(&loaded))
}

/// The same as [`Action::reloaded`], when nothing else is under way.
pub(crate) fn anew(slot: &Slot) -> Outcome {
    let kind = &slot.kind;
    let embedder = pollster::block_on(
        Embedder::builder(kind.source())
            .config(kind.config())
            .load(),
    )
    .map_err(|error| format!("{}: {error}", kind.name))?;
    slot.release(slot.replace(Loaded::new(embedder)))
}
