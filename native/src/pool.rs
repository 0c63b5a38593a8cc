//! Sessions, and the order in which callers get them.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

use isovec_engine::cancel::OnCancel;
use isovec_engine::error::Result;

use crate::sync::{Condvar, Mutex, MutexGuard};

/// Items that one caller at a time may use, handed out first come, first served. (A plain mutex
/// lets whoever happens to run take it, and some callers then wait very long.)
#[derive(Debug)]
pub(crate) struct Pool<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    idle: Vec<T>,
    waiting: VecDeque<u64>,
    /// Those who wait elsewhere, for one of these to take their turn.
    lined_up: usize,
    next_ticket: u64,
    usage: Usage,
}

/// Who uses the items, now and at the most.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) in_use: usize,
    pub(crate) peak_in_use: usize,
    pub(crate) waiting: usize,
    pub(crate) peak_waiting: usize,
}

impl Usage {
    fn took(&mut self) {
        self.in_use += 1;
        self.peak_in_use = self.peak_in_use.max(self.in_use);
    }

    fn waits(&mut self, waiting: usize) {
        self.waiting = waiting;
        self.peak_waiting = self.peak_waiting.max(waiting);
    }
}

impl<T> State<T> {
    fn count_waiting(&mut self) {
        self.usage.waits(self.waiting.len() + self.lined_up);
    }
}

impl<T> Pool<T> {
    pub(crate) fn new(items: Vec<T>) -> Self {
        Self {
            state: Mutex::new(State {
                idle: items,
                waiting: VecDeque::new(),
                lined_up: 0,
                next_ticket: 0,
                usage: Usage::default(),
            }),
            changed: Condvar::new(),
        }
    }

    /// Takes an item if one is idle and nobody waits.
    pub(crate) fn try_take(&self) -> Option<Lease<'_, T>> {
        let mut state = self.lock();
        if !state.waiting.is_empty() {
            return None;
        }
        let item = state.idle.pop()?;
        state.usage.took();
        drop(state);
        Some(Lease {
            pool: self,
            item: Some(item),
            over: false,
        })
    }

    /// Counts somebody who waits elsewhere for an item.
    pub(crate) fn line_up(&self) {
        let mut state = self.lock();
        state.lined_up += 1;
        state.count_waiting();
    }

    /// Counts one of them out.
    pub(crate) fn step_up(&self) {
        let mut state = self.lock();
        state.lined_up -= 1;
        state.count_waiting();
    }

    /// Who uses the items.
    pub(crate) fn usage(&self) -> Usage {
        self.lock().usage
    }

    /// Waits for an item. `check` is asked at first and at every [`wake`](Self::wake); its error
    /// ends the wait.
    pub(crate) fn take(&self, check: impl Fn() -> Result<()>) -> Result<Lease<'_, T>> {
        let mut state = self.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.push_back(ticket);
        state.count_waiting();
        loop {
            if let Err(error) = check() {
                state.waiting.retain(|&waiting| waiting != ticket);
                state.count_waiting();
                drop(state);
                // The next in line may have been waiting for this one to go.
                self.changed.notify_all();
                return Err(error);
            }
            if state.waiting.front() == Some(&ticket)
                && let Some(item) = state.idle.pop()
            {
                state.waiting.pop_front();
                state.count_waiting();
                state.usage.took();
                let more = !state.idle.is_empty() && !state.waiting.is_empty();
                drop(state);
                if more {
                    self.changed.notify_all();
                }
                return Ok(Lease {
                    pool: self,
                    item: Some(item),
                    over: false,
                });
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Has everyone who waits look at their `check` again.
    pub(crate) fn wake(&self) {
        // Locked, so that nobody is between looking and waiting.
        drop(self.lock());
        self.changed.notify_all();
    }

    /// Whether every item is in somebody's hands.
    #[cfg(test)]
    pub(crate) fn exhausted(&self) -> bool {
        self.lock().idle.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Nothing in here can panic halfway through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send> OnCancel for Pool<T> {
    fn cancelled(&self, _tag: u64) {
        self.wake();
    }
}

/// An item out of a [`Pool`], which goes back when dropped.
#[derive(Debug)]
pub(crate) struct Lease<'pool, T> {
    pool: &'pool Pool<T>,
    item: Option<T>,
    over: bool,
}

impl<T> Deref for Lease<'_, T> {
    type Target = Option<T>;

    fn deref(&self) -> &Option<T> {
        &self.item
    }
}

impl<T> DerefMut for Lease<'_, T> {
    fn deref_mut(&mut self) -> &mut Option<T> {
        &mut self.item
    }
}

impl<T> Lease<'_, T> {
    /// Gives the item back before the lease is dropped, which then does nothing.
    pub(crate) fn give_back(&mut self) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let mut state = self.pool.lock();
        state.usage.in_use -= 1;
        if let Some(item) = self.item.take() {
            state.idle.push(item);
        }
        drop(state);
        self.pool.changed.notify_all();
    }
}

impl<T> Drop for Lease<'_, T> {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread;

    use isovec_engine::error::EngineError;

    use super::*;

    fn waiting<T>(pool: &Pool<T>, count: usize) {
        while pool.lock().waiting.len() != count {
            thread::yield_now();
        }
    }

    #[test]
    fn callers_are_served_in_the_order_they_came() {
        let pool = Arc::new(Pool::new(vec![()]));
        let order = Arc::new(Mutex::new(Vec::new()));
        let held = pool.take(|| Ok(())).unwrap();
        let threads: Vec<_> = (0..5)
            .map(|caller| {
                let (own, order) = (Arc::clone(&pool), Arc::clone(&order));
                let thread = thread::spawn(move || {
                    let _lease = own.take(|| Ok(())).unwrap();
                    order.lock().unwrap().push(caller);
                });
                waiting(&pool, caller + 1);
                thread
            })
            .collect();
        drop(held);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_wait_that_is_given_up_lets_the_next_one_in() {
        let pool = Arc::new(Pool::new(vec![()]));
        let stop = Arc::new(AtomicBool::new(false));
        let held = pool.take(|| Ok(())).unwrap();
        let first = {
            let (pool, stop) = (Arc::clone(&pool), Arc::clone(&stop));
            thread::spawn(move || {
                pool.take(|| {
                    if stop.load(Ordering::SeqCst) {
                        Err(EngineError::Cancelled)
                    } else {
                        Ok(())
                    }
                })
                .is_err()
            })
        };
        waiting(&pool, 1);
        let second = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.take(|| Ok(())).is_ok())
        };
        waiting(&pool, 2);
        stop.store(true, Ordering::SeqCst);
        pool.wake();
        assert!(first.join().unwrap(), "the first was not given up");
        drop(held);
        assert!(second.join().unwrap());
        assert!(pool.lock().waiting.is_empty());
    }

    #[test]
    fn as_many_callers_as_items_run_at_once() {
        let pool = Arc::new(Pool::new(vec![(), ()]));
        let inside = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (pool, inside) = (Arc::clone(&pool), Arc::clone(&inside));
                thread::spawn(move || {
                    let _lease = pool.take(|| Ok(())).unwrap();
                    inside.fetch_add(1, Ordering::SeqCst);
                    // Ends only when both are inside.
                    while inside.load(Ordering::SeqCst) < 2 {
                        thread::yield_now();
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    }
}
