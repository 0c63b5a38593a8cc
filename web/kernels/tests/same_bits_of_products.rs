//! The bits of deterministic products and of whole numbers, which are the same on every machine:
//! this file runs natively and in a browser, on every tile that the machine has.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

use isovec_kernels::Arithmetic;
use isovec_kernels::gemm::{
    ActivationBits, Activations, Epilogue, Int8Kernel, Int8Weights, Kernel, Packed, Rows, gemm,
    gemm_int8,
};
use isovec_kernels::parallel::OneThread;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

#[cfg(target_arch = "wasm32")]
wasm_bindgen_test_configure!(run_in_browser);

/// Enough rows for every tile; sums of one block of steps and of several; full panels and a rest.
const SHAPES: [(usize, usize, usize); 3] = [(1, 37, 131), (17, 37, 131), (17, 1100, 35)];
/// By [`hash`], of a loop that multiplies and adds (see the test that holds it to that).
const F32: u64 = 0x69a4_df97_3c02_598c;
/// By [`hash`], of what the kernels of all machines agreed on.
const INT8: u64 = 0x5762_9cb8_4bf1_7214;
/// The same with activations of eight bits.
const EIGHT: u64 = 0x1079_26b4_5924_5c22;

/// Values in -1..1 from a linear congruential generator (Knuth's MMIX constants).
fn values(len: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    (0..len)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) as f32 / (1 << 23) as f32) - 1.0
        })
        .collect()
}

/// FNV-1a over the bits of values.
fn hash(so_far: u64, values: &[f32]) -> u64 {
    values
        .iter()
        .flat_map(|value| value.to_bits().to_le_bytes())
        .fold(so_far, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

/// The hash of all shapes' results, given A, B, the bias and the shape.
fn all(mut run: impl FnMut(&[f32], &[f32], &[f32], (usize, usize, usize)) -> Vec<f32>) -> u64 {
    SHAPES
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |so_far, &(m, k, n)| {
            let (a, b, bias) = (values(m * k, 1), values(k * n, 2), values(n, 3));
            hash(so_far, &run(&a, &b, &bias, (m, k, n)))
        })
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn deterministic_products_have_the_bits_of_every_machine() {
    let plain = all(|a, b, bias, (m, k, n)| {
        let sum = |i: usize, j: usize| (0..k).fold(0.0, |sum, l| sum + a[i * k + l] * b[l * n + j]);
        (0..m * n)
            .map(|at| sum(at / n, at % n) + bias[at % n])
            .collect()
    });
    assert_eq!(plain, F32, "a plain loop gave {plain:#x}");
    for kernel in Kernel::available(Arithmetic::Deterministic) {
        let got = all(|a, b, bias, (m, k, n)| {
            let b = Packed::new(kernel, (k, n), b, n, 1).unwrap();
            let a = Rows {
                values: a,
                stride: k,
            };
            let epilogue = Epilogue {
                bias: Some(bias),
                ..Epilogue::default()
            };
            let mut c = vec![0.0; m * n];
            gemm(kernel, m, a, &b, &epilogue, &mut c, n, &OneThread).unwrap();
            c
        });
        assert_eq!(got, F32, "{} gave {got:#x}", kernel.name());
    }
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn fast_products_are_near_deterministic_ones() {
    for (m, k, n) in SHAPES {
        let (a, b) = (values(m * k, 1), values(k * n, 2));
        let run = |kernel: &Kernel| {
            let b = Packed::new(kernel, (k, n), &b, n, 1).unwrap();
            let a = Rows {
                values: &a,
                stride: k,
            };
            let mut c = vec![0.0; m * n];
            gemm(
                kernel,
                m,
                a,
                &b,
                &Epilogue::default(),
                &mut c,
                n,
                &OneThread,
            )
            .unwrap();
            c
        };
        let exact = run(Kernel::select(Arithmetic::Deterministic));
        for kernel in Kernel::available(Arithmetic::Fast) {
            let got = run(kernel);
            let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-4;
            assert!(got.iter().zip(&exact).all(near), "{}", kernel.name());
        }
    }
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn products_of_whole_numbers_have_the_bits_of_every_machine() {
    let wanted = [(ActivationBits::Wide, INT8), (ActivationBits::Eight, EIGHT)];
    let kernels = wanted.into_iter().flat_map(|(bits, want)| {
        let all = Int8Kernel::available(bits).into_iter();
        all.map(move |kernel| (kernel, want))
    });
    for (kernel, want) in kernels {
        let got = all(|a, b, bias, (m, k, n)| {
            let b = Int8Weights::new(kernel, (k, n), b, n, 1).unwrap();
            let mut rows = Activations::default();
            let a = Rows {
                values: a,
                stride: k,
            };
            rows.quantise(m, a, &b, &OneThread).unwrap();
            let epilogue = Epilogue {
                bias: Some(bias),
                ..Epilogue::default()
            };
            let mut c = vec![0.0; m * n];
            gemm_int8(kernel, &rows, &b, &epilogue, &mut c, n, &OneThread).unwrap();
            c
        });
        assert_eq!(got, want, "{kernel:?} gave {got:#x}");
    }
}
