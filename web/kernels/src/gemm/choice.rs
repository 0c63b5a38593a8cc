//! Finds the fastest of several kernels on this machine during normal work.
//!
//! A wasm module does not know its processor. With 16 vector registers a tile for 32 spills and takes twice the time;
//! with 32, a tile for 16 leaves units idle. Kernels with panels of one width use the same packed matrices and give
//! the same bits, so they can take turns.

use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use super::{ActivationBits, Int8Kernel, Kernel};
use crate::Arithmetic;

/// Tells the time, counted from any fixed point.
pub type Clock = fn() -> Duration;

/// A kernel's time before anything counts: the browser's better code has to come first.
const WARM_UP: Duration = Duration::from_millis(20);
/// A kernel's time that decides: many steps of a browser's clock, which may be 1 ms each.
const ENOUGH: Duration = Duration::from_millis(50);
/// How much faster another kernel has to be than the first: less may be noise.
const CLEARLY: f64 = 0.85;

/// What makes products alike: rows, steps of the sum, columns.
type Extents = [usize; 3];

/// The most shapes that are told apart; others run on the first kernel. Each text length is one.
const SHAPES: usize = 64;
/// The most times that are remembered of a kernel and a shape.
const TIMES: usize = 64;

/// Kernels that take turns until it is known which is the fastest, and then that one.
#[derive(Debug)]
pub struct Choice<K: 'static> {
    kernels: Vec<&'static K>,
    clock: Option<Clock>,
    chosen: OnceLock<&'static K>,
    trial: Mutex<Trial>,
}

/// What the kernels were seen to take.
#[derive(Debug, Default)]
struct Trial {
    /// By kernel, all of it.
    spent: Vec<Duration>,
    shapes: Vec<Shape>,
}

/// Work of one kind: only that compares.
#[derive(Debug)]
struct Shape {
    extents: Extents,
    /// By kernel: how long it took each time, since it was warm.
    seen: Vec<Vec<Duration>>,
    /// Whose turn it is.
    turn: usize,
}

impl Choice<Kernel> {
    /// The kernels that can use operands packed for [`Kernel::select`].
    #[must_use]
    pub fn f32(arithmetic: Arithmetic, clock: Option<Clock>) -> Self {
        let first = Kernel::select(arithmetic);
        let all = Kernel::available(arithmetic);
        Self::between(all, clock, |kernel| kernel.panel() == first.panel())
    }
}

impl Choice<Int8Kernel> {
    /// The kernels that can use operands packed for [`Int8Kernel::select`].
    #[must_use]
    pub fn int8(bits: ActivationBits, clock: Option<Clock>) -> Self {
        let first = Int8Kernel::select(bits);
        Self::between(Int8Kernel::available(bits), clock, |kernel| {
            kernel.shares_packing(first)
        })
    }
}

impl<K> Choice<K> {
    /// Of those that fit, without the scalar one, which is the last.
    fn between(
        mut kernels: Vec<&'static K>,
        clock: Option<Clock>,
        fits: impl Fn(&K) -> bool,
    ) -> Self {
        if kernels.len() > 1 {
            kernels.pop();
        }
        kernels.retain(|kernel| fits(kernel));
        let trial = Trial {
            spent: vec![Duration::ZERO; kernels.len()],
            shapes: Vec::new(),
        };
        Self {
            chosen: OnceLock::new(),
            trial: Mutex::new(trial),
            kernels,
            clock,
        }
    }

    /// Computes a product of `[rows, steps of the sum, columns]` with a kernel; without a clock,
    /// or without a choice, with the first.
    pub fn run<R>(&self, extents: [usize; 3], work: impl FnOnce(&'static K) -> R) -> R {
        if let Some(chosen) = self.chosen.get() {
            return work(chosen);
        }
        let (Some(clock), true) = (self.clock, self.kernels.len() > 1) else {
            return work(self.kernels[0]);
        };
        // Others who work meanwhile measure nothing: they would measure each other.
        let Ok(mut trial) = self.trial.try_lock() else {
            return work(self.kernels[0]);
        };
        let Some((shape, kernel)) = trial.turn(extents) else {
            drop(trial);
            return work(self.kernels[0]);
        };
        let started = clock();
        let result = work(self.kernels[kernel]);
        trial.took(shape, kernel, clock().saturating_sub(started));
        if let Some(fastest) = trial.fastest() {
            let _ = self.chosen.set(self.kernels[fastest]);
        }
        result
    }
}

impl Trial {
    /// The place of a shape, and the kernel whose turn it is there; nothing for one too many.
    fn turn(&mut self, extents: Extents) -> Option<(usize, usize)> {
        let kernels = self.spent.len();
        let known = (self.shapes.iter()).position(|shape| shape.extents == extents);
        if known.is_none() && self.shapes.len() == SHAPES {
            return None;
        }
        let place = known.unwrap_or_else(|| {
            self.shapes.push(Shape {
                extents,
                seen: vec![Vec::new(); kernels],
                turn: 0,
            });
            self.shapes.len() - 1
        });
        let shape = &mut self.shapes[place];
        shape.turn = (shape.turn + 1) % kernels;
        Some((place, shape.turn))
    }

    fn took(&mut self, shape: usize, kernel: usize, time: Duration) {
        if self.spent[kernel] >= WARM_UP {
            let seen = &mut self.shapes[shape].seen[kernel];
            if seen.len() < TIMES {
                seen.push(time);
            }
        }
        self.spent[kernel] += time;
    }

    /// The fastest, the first unless another is clearly faster; nothing while too little is known.
    fn fastest(&self) -> Option<usize> {
        if self.spent.iter().any(|&spent| spent < WARM_UP + ENOUGH) {
            return None;
        }
        // Every shape that all kernels have had, weighed by how often it came.
        let mut times = vec![0.0; self.spent.len()];
        for shape in &self.shapes {
            if shape.seen.iter().all(|seen| !seen.is_empty()) {
                let often: usize = shape.seen.iter().map(Vec::len).sum();
                for (time, seen) in times.iter_mut().zip(&shape.seen) {
                    *time += often as f64 * undisturbed(seen);
                }
            }
        }
        let (mut fastest, mut least) = (0, times.first()? * CLEARLY);
        for (kernel, time) in times.into_iter().enumerate().skip(1) {
            if time < least {
                (fastest, least) = (kernel, time);
            }
        }
        Some(fastest)
    }
}

/// The mean of the shorter half, in seconds: in the longer ones the processor may have done
/// something else.
fn undisturbed(seen: &[Duration]) -> f64 {
    let mut seen = seen.to_vec();
    seen.sort_unstable();
    seen.truncate(seen.len().div_ceil(2));
    let sum: Duration = seen.iter().sum();
    sum.as_secs_f64() / seen.len() as f64
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    static KERNELS: [usize; 2] = [0, 1];

    fn choice(clock: Option<Clock>) -> Choice<usize> {
        // The third stands for the scalar one.
        Choice::between(vec![&KERNELS[0], &KERNELS[1], &2], clock, |_| true)
    }

    /// The kernel that is used in the end, and how often each was before, where they take these
    /// microseconds for each row.
    fn settled(times: [u64; 2], rows: &[usize]) -> (usize, [u32; 2]) {
        let choice = choice(Some(|| NOW.get()));
        let mut used = [0; 2];
        for _ in 0..10_000 {
            for &rows in rows {
                choice.run([rows, 1, 1], |kernel| {
                    used[*kernel] += u32::from(choice.chosen.get().is_none());
                    let took = Duration::from_micros(times[*kernel] * rows as u64);
                    NOW.set(NOW.get() + took);
                });
            }
        }
        (choice.run([1; 3], |kernel| *kernel), used)
    }

    #[test]
    fn another_kernel_is_chosen_only_if_it_is_clearly_faster() {
        assert_eq!(settled([100, 50], &[8]).0, 1);
        assert_eq!(settled([100, 95], &[8]).0, 0);
        assert_eq!(settled([100, 200], &[8]).0, 0);
    }

    #[test]
    fn kernels_take_turns_for_each_shape() {
        // Strictly by turns, one kernel would get all the large ones.
        let (chosen, used) = settled([100, 80], &[64, 1]);
        assert_eq!(chosen, 1);
        assert!(used[0].abs_diff(used[1]) <= 2, "{used:?}");
        assert!(used[0] < 100, "it ends: {used:?}");
    }

    #[test]
    fn a_clock_that_stands_still_decides_nothing() {
        assert_eq!(settled([0, 0], &[1]).1, [10_000 / 2; 2]);
    }

    #[test]
    fn a_processor_that_was_elsewhere_meanwhile_decides_nothing() {
        let choice = choice(Some(|| NOW.get()));
        for turn in 0..1000 {
            choice.run([1; 3], |kernel| {
                // Every third time of the first kernel takes ten times as long.
                let disturbed = *kernel == 0 && turn % 3 == 0;
                let took = Duration::from_micros(if disturbed { 10_000 } else { 1_000 });
                NOW.set(NOW.get() + took);
            });
        }
        assert_eq!(choice.chosen.get(), Some(&&KERNELS[0]));
    }

    #[test]
    fn texts_of_ever_new_lengths_are_not_all_remembered() {
        let choice = choice(Some(|| NOW.get()));
        for rows in 0..10 * SHAPES {
            choice.run([rows, 1, 1], |_| ());
        }
        assert_eq!(choice.trial.lock().unwrap().shapes.len(), SHAPES);
    }

    #[test]
    fn without_a_clock_the_first_does_everything() {
        let choice = choice(None);
        for _ in 0..3 {
            assert_eq!(choice.run([1; 3], |kernel| *kernel), 0);
        }
    }

    #[test]
    fn while_another_measures_nothing_waits() {
        let choice = choice(Some(|| NOW.get()));
        let inner = choice.run([1; 3], |_| choice.run([1; 3], |kernel| *kernel));
        assert_eq!(inner, 0);
    }

    #[test]
    fn all_of_a_choice_can_use_what_was_packed_for_the_selected() {
        for arithmetic in [Arithmetic::Fast, Arithmetic::Deterministic] {
            let choice = Choice::f32(arithmetic, None);
            assert!(!choice.kernels.is_empty());
            for kernel in choice.kernels {
                assert_eq!(kernel.panel(), Kernel::select(arithmetic).panel());
                assert_eq!(kernel.arithmetic(), arithmetic);
            }
        }
        for bits in [ActivationBits::Wide, ActivationBits::Eight] {
            for kernel in Choice::int8(bits, None).kernels {
                assert_eq!(kernel.panel(), Int8Kernel::select(bits).panel());
            }
        }
    }
}
