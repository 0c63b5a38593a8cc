//! A pool of memory for tensors.
//!
//! A tensor from a [`BufferPool`] returns its memory when it is dropped, wherever that happens. Buffers come in size
//! classes, a quarter of a power of two apart, so that little is wasted and many sizes share one class. When the pool
//! is full, it frees the least recently used buffer. No lock is held while a buffer is used, allocated or freed.

mod gauge;

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytemuck::Zeroable;
use smallvec::SmallVec;

pub use gauge::{Gauge, Memory, system_memory};

use crate::config::MemoryConfig;
use crate::effective::EffectiveConfig;
use crate::stats::PoolStats;
use crate::sync::{AtomicBool, Instant, Mutex, MutexGuard};
use crate::tensor::{DType, Home, LINE, Line, Tensor, byte_len};
use crate::{EngineError, Result};

/// The default number of buffers in the pool.
pub const DEFAULT_BUFFERS: usize = 32;
/// The default number of bytes in the pool.
pub const DEFAULT_BYTES: u64 = 256 << 20;
/// The part of the machine's memory in use from which it counts as short.
pub const DEFAULT_THRESHOLD: f64 = 0.8;

/// How often the machine's memory is looked at, at most. Looking takes some ten microseconds.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A buffer of this many times the size is better than a new one.
const LARGER_SERVES: usize = 4;

/// The limits of a pool.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct PoolLimits {
    /// Buffers; 0 turns the pool off.
    pub buffers: usize,
    /// Bytes of all buffers.
    pub bytes: u64,
    /// The share of memory in use from which the pool frees everything; `None`: never.
    pub pressure: Option<f64>,
}

impl PoolLimits {
    /// The limits of a configuration.
    pub fn of(config: &MemoryConfig) -> Self {
        let buffers = config.max_pool_size.unwrap_or(DEFAULT_BUFFERS);
        let pressure = config
            .memory_pressure_threshold
            .unwrap_or(DEFAULT_THRESHOLD);
        Self {
            buffers: if config.pools() { buffers } else { 0 },
            bytes: config.max_pool_memory.unwrap_or(DEFAULT_BYTES),
            pressure: config
                .memory_pressure_detection
                .unwrap_or(true)
                .then_some(pressure),
        }
    }
}

impl PoolLimits {
    /// Notes the effective values of the pool's knobs.
    pub fn note(&self, effective: &mut EffectiveConfig, config: &MemoryConfig) {
        let on = self.buffers > 0;
        effective.note_own(
            "memory.memory_pool",
            config.memory_pool.as_ref(),
            on,
            "the default",
        );
        let size = [
            (
                "memory.max_pool_size",
                config.max_pool_size.map(|n| n as u64),
                self.buffers as u64,
            ),
            ("memory.max_pool_memory", config.max_pool_memory, self.bytes),
        ];
        for (name, asked, used) in size {
            if on {
                effective.note_own(name, asked.as_ref(), used, "the default");
            } else {
                effective.note_unused(name, asked, "the pool is off");
            }
        }
        let asked = config.memory_pressure_detection;
        let detects = self.pressure.is_some() && system_memory().memory().is_some();
        let why = match (asked, detects) {
            (Some(true), false) => "this system does not report its memory",
            (Some(_), _) => "the configuration",
            (None, _) => "the default, if the system reports its memory",
        };
        effective.note("memory.memory_pressure_detection", asked, detects, why);
        let asked = config.memory_pressure_threshold;
        match self.pressure.filter(|_| detects) {
            Some(threshold) => effective.note_own(
                "memory.memory_pressure_threshold",
                asked.as_ref(),
                threshold,
                "the default",
            ),
            None => effective.note_unused(
                "memory.memory_pressure_threshold",
                asked,
                "nothing looks at the memory",
            ),
        }
    }
}

/// Memory for tensors. Clones share it.
#[derive(Clone)]
pub struct BufferPool(Arc<Inner>);

struct Inner {
    limits: PoolLimits,
    gauge: Arc<dyn Gauge>,
    short: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Idle buffers by their class, in its order, the one used last at the end. Shelves stay when they are
    /// empty: nothing is allocated once every class was seen.
    shelves: Vec<(usize, Vec<Idle>)>,
    clock: u64,
    looked: Option<Instant>,
    stats: PoolStats,
}

struct Idle {
    lines: Vec<Line>,
    since: u64,
}

impl BufferPool {
    /// A pool over the machine's memory.
    pub fn new(limits: PoolLimits) -> Self {
        Self::with_gauge(limits, system_memory())
    }

    /// A pool that asks `gauge` how short memory is.
    pub fn with_gauge(limits: PoolLimits, gauge: Arc<dyn Gauge>) -> Self {
        let mut state = State::default();
        state.stats.enabled = limits.buffers > 0;
        Self(Arc::new(Inner {
            limits,
            gauge,
            short: AtomicBool::new(false),
            state: Mutex::new(state),
        }))
    }

    /// A tensor of that type and shape, and whether its memory had been used before. It holds the values of its last
    /// use.
    ///
    /// # Errors
    /// [`EngineError::InputTooLarge`] when its size overflows or cannot be allocated.
    pub fn take(&self, dtype: DType, shape: &[usize]) -> Result<(Tensor, bool)> {
        let bytes = byte_len(dtype, shape)?;
        let class = class(bytes.div_ceil(LINE));
        self.look(Instant::now());
        let found = self.0.lock().take(class);
        let reused = found.is_some();
        let lines = match found {
            Some(lines) => lines,
            None => new_lines(class)?,
        };
        let mut state = self.0.lock();
        state.stats.requests += 1;
        if reused {
            state.stats.pool_hits += 1;
        } else {
            state.stats.total_allocations += 1;
        }
        state.lend(bytes_of(&lines));
        drop(state);
        let home = Arc::clone(&self.0) as Arc<dyn Home>;
        Ok((Tensor::in_memory(dtype, shape, lines, home), reused))
    }

    /// Makes `count` buffers of at least `bytes` ahead of any request, as far as the limits go.
    ///
    /// # Errors
    /// [`EngineError::InputTooLarge`] when they cannot be had.
    pub fn reserve(&self, count: usize, bytes: usize) -> Result<()> {
        let class = class(bytes.div_ceil(LINE));
        for _ in 0..count.min(self.0.limits.buffers) {
            let lines = new_lines(class)?;
            let mut state = self.0.lock();
            state.stats.total_allocations += 1;
            // Counted as lent, because giving it back is how it gets on its shelf.
            state.lend(bytes_of(&lines));
            drop(state);
            self.0.take_back(lines);
        }
        Ok(())
    }

    /// Whether memory was short when it was last looked at.
    pub fn memory_is_short(&self) -> bool {
        self.0.short.load(Ordering::Relaxed)
    }

    /// The counts so far.
    pub fn stats(&self) -> PoolStats {
        self.0.lock().stats.clone()
    }

    /// Looks at the machine's memory now and then, and lets go of everything when it is short.
    fn look(&self, now: Instant) {
        let Some(threshold) = self.0.limits.pressure else {
            return;
        };
        {
            let mut state = self.0.lock();
            if state
                .looked
                .is_some_and(|last| now.duration_since(last) < LOOK_EVERY)
            {
                return;
            }
            state.looked = Some(now);
        }
        let short = self
            .0
            .gauge
            .memory()
            .is_some_and(|memory| memory.used_part() >= threshold);
        self.0.short.store(short, Ordering::Relaxed);
        if short {
            let mut state = self.0.lock();
            let idle = state.clear();
            if !idle.is_empty() {
                state.stats.pressure_cleanups += 1;
            }
            drop(state);
            tracing::debug!(target: "isovec", "memory is short: {} buffers were freed", idle.len());
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here can panic halfway through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Home for Inner {
    fn take_back(&self, lines: Vec<Line>) {
        // Freed after the lock.
        let mut evicted = SmallVec::<[Vec<Line>; 2]>::new();
        {
            let mut state = self.lock();
            let bytes = bytes_of(&lines);
            state.stats.lent_memory_bytes = state.stats.lent_memory_bytes.saturating_sub(bytes);
            if self.limits.buffers == 0 || bytes > self.limits.bytes {
                if self.limits.buffers > 0 {
                    state.stats.evictions += 1;
                }
                evicted.push(lines);
                return;
            }
            state.clock += 1;
            let idle = Idle {
                since: state.clock,
                lines,
            };
            state.stats.current_buffers += 1;
            state.stats.current_memory_bytes += bytes;
            state.shelf(floor_class(idle.lines.len())).push(idle);
            while (state.stats.current_buffers > self.limits.buffers
                || state.stats.current_memory_bytes > self.limits.bytes)
                && let Some(oldest) = state.evict()
            {
                evicted.push(oldest);
            }
        }
    }
}

impl State {
    fn take(&mut self, class: usize) -> Option<Vec<Line>> {
        let most = class.saturating_mul(LARGER_SERVES);
        let first = self.shelves.partition_point(|(of, _)| *of < class);
        let shelves = self.shelves[first..].iter_mut();
        let mut serving = shelves.take_while(|(of, _)| *of <= most);
        let idle = serving.find_map(|(_, shelf)| shelf.pop())?;
        self.gone(&idle.lines);
        Some(idle.lines)
    }

    /// The shelf of a class, made where there is none.
    fn shelf(&mut self, class: usize) -> &mut Vec<Idle> {
        let at = self.shelves.partition_point(|(of, _)| *of < class);
        if self.shelves.get(at).is_none_or(|(of, _)| *of != class) {
            self.shelves.insert(at, (class, Vec::new()));
        }
        &mut self.shelves[at].1
    }

    fn lend(&mut self, bytes: u64) {
        self.stats.lent_memory_bytes += bytes;
        let all = self.stats.lent_memory_bytes + self.stats.current_memory_bytes;
        self.stats.peak_memory_bytes = self.stats.peak_memory_bytes.max(all);
    }

    /// Takes out the buffer that was unused for longest: on every shelf that is the first.
    fn evict(&mut self) -> Option<Vec<Line>> {
        let shelves = self.shelves.iter_mut().map(|(_, shelf)| shelf);
        let full = shelves.filter(|shelf| !shelf.is_empty());
        let oldest = full.min_by_key(|shelf| shelf[0].since)?;
        let idle = oldest.remove(0);
        self.gone(&idle.lines);
        self.stats.evictions += 1;
        Some(idle.lines)
    }

    fn gone(&mut self, lines: &[Line]) {
        self.stats.current_buffers -= 1;
        self.stats.current_memory_bytes -= bytes_of(lines);
    }

    fn clear(&mut self) -> Vec<Idle> {
        self.stats.current_buffers = 0;
        self.stats.current_memory_bytes = 0;
        let shelves = self.shelves.iter_mut();
        shelves
            .flat_map(|(_, shelf)| std::mem::take(shelf))
            .collect()
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool")
            .field("limits", &self.0.limits)
            .field("stats", &self.0.lock().stats)
            .finish_non_exhaustive()
    }
}

fn bytes_of(lines: &[Line]) -> u64 {
    (lines.len() * LINE) as u64
}

fn new_lines(count: usize) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    lines
        .try_reserve_exact(count)
        .map_err(|_| EngineError::InputTooLarge {
            asked: (count as u64).saturating_mul(LINE as u64),
            limit: 0,
            unit: "bytes that the machine has free",
        })?;
    lines.resize(count, Line::zeroed());
    Ok(lines)
}

/// The least class that holds so many lines: 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, ...
fn class(lines: usize) -> usize {
    let lines = lines.max(1);
    let step = step(lines);
    lines.div_ceil(step) * step
}

/// The largest class that so many lines hold.
fn floor_class(lines: usize) -> usize {
    let lines = lines.max(1);
    lines - lines % step(lines)
}

/// A quarter of the power of two below.
fn step(lines: usize) -> usize {
    ((1 << lines.ilog2()) / 4).max(1)
}

#[cfg(test)]
mod tests;
