//! Which of several kernels is the fastest here, found by trying them.
//!
//! A wasm module does not know its processor. With 16 vector registers a tile for 32 spills and
//! takes twice the time; with 32, a tile for 16 leaves units idle. Kernels of one width of panel
//! use the same packed matrices, so that weights can be packed before this is known.

use super::{Activations, Epilogue, Int8Kernel, Int8Weights, Kernel, Mismatch, Packed, Rows};
use super::{gemm, gemm_int8};
use crate::Arithmetic;
use crate::parallel::OneThread;

/// Seconds of work in a turn: well above the steps of 0.1 ms of a browser's clock.
const TURN: f64 = 0.003;
/// Products in a turn at most, for a clock that stands still.
const MOST: u32 = 1000;
/// Turns of each kernel. The first ones also wait for the browser's optimising compiler.
const TURNS: usize = 8;
/// How much faster another kernel has to be than the first: less may be noise.
const CLEARLY: f64 = 0.9;
/// The product that is tried, which the tiles of all kernels cut evenly: rows and columns.
const SIDE: usize = 48;
/// Its steps of k.
const STEPS: usize = 256;

impl Kernel {
    /// Of the kernels that use the same packed matrices as [`Kernel::select`]'s, the one that is
    /// the fastest here, by a clock in seconds. Takes some 50 ms where there is a choice (in wasm)
    /// and no time elsewhere.
    pub fn measured(arithmetic: Arithmetic, now: &mut dyn FnMut() -> f64) -> &'static Self {
        let first = Self::select(arithmetic);
        let mut same = Self::available(arithmetic);
        without_scalar(&mut same);
        same.retain(|kernel| kernel.panel() == first.panel());
        let a = vec![1.0; SIDE * STEPS];
        let mut c = vec![0.0; SIDE * SIDE];
        let b = Packed::new(first, (STEPS, SIDE), &a, SIDE, 1);
        let found = fastest(&same, now, |kernel| {
            let b = b.as_ref().map_err(Clone::clone)?;
            let none = Epilogue::default();
            gemm(kernel, SIDE, rows(&a), b, &none, &mut c, SIDE, &OneThread)
        });
        found.unwrap_or(first)
    }
}

impl Int8Kernel {
    /// As [`Kernel::measured`], for weights of 8 bits.
    pub fn measured(now: &mut dyn FnMut() -> f64) -> &'static Self {
        let first = Self::select();
        let mut same = Self::available();
        without_scalar(&mut same);
        same.retain(|kernel| kernel.panel() == first.panel());
        let values = vec![1.0; SIDE * STEPS];
        let mut a = Activations::default();
        let mut c = vec![0.0; SIDE * SIDE];
        let b = Int8Weights::new(first, (STEPS, SIDE), &values, SIDE, 1);
        let ready = a.quantise(SIDE, STEPS, rows(&values), &OneThread);
        let found = fastest(&same, now, |kernel| {
            ready.clone()?;
            let b = b.as_ref().map_err(Clone::clone)?;
            gemm_int8(
                kernel,
                &a,
                b,
                &Epilogue::default(),
                &mut c,
                SIDE,
                &OneThread,
            )
        });
        found.unwrap_or(first)
    }
}

/// Takes the scalar kernel, which is the last, from several.
fn without_scalar<K>(kernels: &mut Vec<K>) {
    if kernels.len() > 1 {
        kernels.pop();
    }
}

fn rows(values: &[f32]) -> Rows<'_> {
    Rows {
        values,
        stride: STEPS,
    }
}

/// The fastest, the first unless another is clearly faster; nothing if there is nothing to choose.
fn fastest<K>(
    kernels: &[&'static K],
    now: &mut dyn FnMut() -> f64,
    mut run: impl FnMut(&K) -> Result<(), Mismatch>,
) -> Option<&'static K> {
    if kernels.len() < 2 {
        return None;
    }
    let mut best = vec![f64::INFINITY; kernels.len()];
    for _ in 0..TURNS {
        for (kernel, best) in kernels.iter().zip(&mut best) {
            let start = now();
            let mut times = 0;
            let mut passed = 0.0;
            while passed < TURN && times < MOST {
                run(kernel).ok()?;
                times += 1;
                passed = now() - start;
            }
            *best = best.min(passed / f64::from(times));
        }
    }
    let (mut chosen, mut time) = (0, best[0] * CLEARLY);
    for (number, best) in best.into_iter().enumerate().skip(1) {
        if best < time {
            (chosen, time) = (number, best);
        }
    }
    kernels.get(chosen).copied()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Two kernels that take these times, the clock being moved by them alone.
    fn choose(times: [f64; 2]) -> usize {
        static KERNELS: [usize; 2] = [0, 1];
        let clock = Cell::new(0.0);
        let found = fastest(&[&KERNELS[0], &KERNELS[1]], &mut || clock.get(), |kernel| {
            clock.set(clock.get() + times[*kernel]);
            Ok(())
        });
        *found.unwrap()
    }

    #[test]
    fn another_kernel_is_chosen_only_if_it_is_clearly_faster() {
        assert_eq!(choose([1e-3, 0.5e-3]), 1);
        assert_eq!(choose([1e-3, 0.95e-3]), 0);
        assert_eq!(choose([1e-3, 2e-3]), 0);
        assert_eq!(choose([0.0, 0.0]), 0, "a clock that stands still");
    }

    #[test]
    fn what_is_measured_can_use_what_was_packed_for_the_selected() {
        let start = std::time::Instant::now();
        let mut now = || start.elapsed().as_secs_f64();
        for arithmetic in [Arithmetic::Fast, Arithmetic::Deterministic] {
            let kernel = Kernel::measured(arithmetic, &mut now);
            assert_eq!(kernel.panel(), Kernel::select(arithmetic).panel());
            assert_eq!(kernel.arithmetic(), arithmetic);
        }
        assert_eq!(
            Int8Kernel::measured(&mut now).panel(),
            Int8Kernel::select().panel()
        );
    }
}
