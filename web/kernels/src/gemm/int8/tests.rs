//! Products of whole numbers against plain loops.

use proptest::prelude::*;

use super::super::kernel::{MAX_PANEL, MAX_ROWS};
use super::super::tests::{Threads, bits, halve, values};
use super::quantise::{Scale, limit, magnitude};
use super::*;
use crate::gemm::{Epilogue, Rows};
use crate::parallel::{OneThread, Pool};

const BITS: [ActivationBits; 2] = [ActivationBits::Wide, ActivationBits::Eight];

/// Every kernel of this machine, of both wanted.
fn kernels() -> impl Iterator<Item = &'static Int8Kernel> {
    BITS.into_iter().flat_map(Int8Kernel::available)
}

/// What a product must give, bit for bit: the same whole numbers, added in 64 bits, group by group.
fn expected(
    bits: ActivationBits,
    (m, k, n): (usize, usize, usize),
    (a, b): (&[f32], &[f32]),
) -> Vec<f32> {
    let line = |values: &[f32], limit: u16| {
        let scale = Scale::new(magnitude(values), limit);
        let numbers: Vec<i64> = values
            .iter()
            .map(|value| i64::from(scale.quantise(*value)))
            .collect();
        (scale.scale, numbers)
    };
    let (group, most) = match bits {
        ActivationBits::Wide => (k.max(1), limit(k)),
        ActivationBits::Eight => (128, 127),
    };
    let columns: Vec<_> = (0..n)
        .map(|j| line(&(0..k).map(|i| b[i * n + j]).collect::<Vec<_>>(), 127))
        .collect();
    (0..m)
        .flat_map(|i| {
            let row = &a[i * k..(i + 1) * k];
            let groups: Vec<_> = row.chunks(group).map(|group| line(group, most)).collect();
            columns
                .iter()
                .map(move |(column, right)| {
                    let parts = groups.iter().zip(right.chunks(group));
                    let parts = parts.map(|((row, left), right)| {
                        let sum: i64 = left.iter().zip(right).map(|(a, b)| a * b).sum();
                        assert!(i32::try_from(sum).is_ok());
                        sum as f32 * (row * column)
                    });
                    parts.reduce(|all, part| all + part).unwrap_or(0.0)
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

fn run(
    kernel: &Int8Kernel,
    (m, k, n): (usize, usize, usize),
    (a, b): (&[f32], &[f32]),
    epilogue: &Epilogue<'_>,
    pool: &dyn Pool,
) -> Vec<f32> {
    let mut rows = Activations::default();
    let from = Rows {
        values: a,
        stride: k,
    };
    let b = Int8Weights::new(kernel, (k, n), b, n, 1).unwrap();
    rows.quantise(m, from, &b, pool).unwrap();
    let mut c = vec![f32::MAX; m * (n + 2)];
    gemm_int8(kernel, &rows, &b, epilogue, &mut c, n + 2, pool).unwrap();
    c.chunks_exact(n + 2)
        .flat_map(|row| {
            assert_eq!(row[n..], [f32::MAX; 2]);
            row[..n].to_vec()
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn products_have_the_bits_of_a_plain_loop(
        m in 1_usize..30,
        k in prop_oneof![0_usize..70, 120_usize..300],
        n in 1_usize..100,
        seed in 0_u64..1000,
    ) {
        let (a, b) = (values(m * k, seed), values(k * n, seed + 1));
        for wanted in BITS {
            let want = bits(&expected(wanted, (m, k, n), (&a, &b)));
            for kernel in Int8Kernel::available(wanted) {
                let got = run(kernel, (m, k, n), (&a, &b), &Epilogue::default(), &OneThread);
                prop_assert_eq!(bits(&got), &want[..], "{} {:?}", kernel.name(), wanted);
            }
        }
    }

    #[test]
    fn quantising_is_off_by_half_a_step(value in -1.0_f32..=1.0, limit in 1_u16..=32767) {
        let scale = Scale::new(1.0, limit);
        let exact = f64::from(value) * f64::from(limit);
        prop_assert!((f64::from(scale.quantise(value)) - exact).abs() <= 0.51);
    }
}

#[test]
fn every_tile_has_the_bits_of_a_plain_loop() {
    for kernel in kernels() {
        assert!(kernel.rows() <= MAX_ROWS && kernel.panel() <= MAX_PANEL);
        for m in 1..=2 * kernel.rows() {
            let (k, n) = (141, 4 * kernel.panel() + 3);
            let (a, b) = (values(m * k, 1), values(k * n, 2));
            let got = run(
                kernel,
                (m, k, n),
                (&a, &b),
                &Epilogue::default(),
                &OneThread,
            );
            let want = expected(kernel.form().bits, (m, k, n), (&a, &b));
            assert_eq!(bits(&got), bits(&want), "{kernel:?} with {m} rows");
        }
    }
}

#[test]
fn the_largest_sums_do_not_overflow() {
    for k in [1, 2, 511, 1536, 4097] {
        let (a, b) = (vec![-3.0; k], vec![7.0; 2 * k]);
        for kernel in kernels() {
            let got = run(
                kernel,
                (1, k, 2),
                (&a, &b),
                &Epilogue::default(),
                &OneThread,
            );
            let exact = -21.0 * k as f32;
            assert!(
                got.iter().all(|sum| (sum / exact - 1.0).abs() < 1e-6),
                "{got:?}"
            );
        }
    }
    for kernel in kernels() {
        let mut weights = Int8Weights::zeros(kernel, (1536, 1)).unwrap();
        // What is set again does not count twice.
        for number in [127, -128] {
            weights.set_quantised(0, &[number; 1536], 1.0).unwrap();
        }
        let mut rows = Activations::default();
        let from = Rows {
            values: &[1.0; 1536],
            stride: 1536,
        };
        rows.quantise(1, from, &weights, &OneThread).unwrap();
        let (mut c, none) = ([0.0], Epilogue::default());
        gemm_int8(kernel, &rows, &weights, &none, &mut c, 1, &OneThread).unwrap();
        assert!((c[0] / (-128.0 * 1536.0) - 1.0).abs() < 1e-6, "{c:?}");
    }
}

#[test]
fn the_error_is_that_of_the_weights() {
    let (m, k, n) = (5, 384, 40);
    let (a, b) = (values(m * k, 5), values(k * n, 6));
    // Steps of 1/127 of uniform weights have a deviation of 1/127/sqrt(12) beside 1/sqrt(3);
    // activations of eight bits add as much.
    for (bits, most) in BITS.into_iter().zip([1.1, 1.1 * 2.0_f64.sqrt()]) {
        let none = Epilogue::default();
        let got = run(
            Int8Kernel::select(bits),
            (m, k, n),
            (&a, &b),
            &none,
            &OneThread,
        );
        let (mut wrong, mut all) = (0.0, 0.0);
        for i in 0..m {
            for j in 0..n {
                let exact: f64 = (0..k)
                    .map(|step| f64::from(a[i * k + step]) * f64::from(b[step * n + j]))
                    .sum();
                wrong += (f64::from(got[i * n + j]) - exact).powi(2);
                all += exact.powi(2);
            }
        }
        let relative = (wrong / all).sqrt();
        assert!(relative < most / 254.0, "{bits:?}: {relative}");
    }
}

#[test]
fn groups_have_scales_of_their_own() {
    // One scale for the row would round all of the second group to 0.
    let (k, n) = (256, 1);
    let a: Vec<f32> = (0..k).map(|at| if at < 128 { 1.0 } else { 1e-4 }).collect();
    let b: Vec<f32> = (0..k).map(|at| if at < 128 { 0.0 } else { 1.0 }).collect();
    for kernel in Int8Kernel::available(ActivationBits::Eight) {
        let got = run(
            kernel,
            (1, k, n),
            (&a, &b),
            &Epilogue::default(),
            &OneThread,
        );
        assert!((got[0] / 128e-4 - 1.0).abs() < 1e-3, "{got:?}");
    }
}

#[test]
fn threads_change_no_bit() {
    for (m, k, n) in [(200, 70, 130), (3, 700, 700), (1, 1031, 600)] {
        let (a, b) = (values(m * k, 3), values(k * n, 4));
        let bias = values(n, 5);
        let residual = values(m * n, 6);
        let epilogue = Epilogue {
            bias: Some(&bias),
            activation: Some(halve),
            residual: Some(Rows {
                values: &residual,
                stride: n,
            }),
            limits: None,
        };
        for kernel in kernels() {
            let want: Vec<f32> = expected(kernel.form().bits, (m, k, n), (&a, &b))
                .iter()
                .enumerate()
                .map(|(at, sum)| (sum + bias[at % n]) * 0.5 + residual[at])
                .collect();
            let alone = run(kernel, (m, k, n), (&a, &b), &epilogue, &OneThread);
            assert_eq!(bits(&alone), bits(&want));
            let split = run(kernel, (m, k, n), (&a, &b), &epilogue, &Threads(3));
            assert_eq!(bits(&split), bits(&want), "{}", kernel.name());
        }
    }
}

#[test]
fn what_is_not_finite_is_seen_and_zeros_are_zeros() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for kernel in kernels() {
            let mut a = vec![1.0; 3 * 5];
            a[7] = bad;
            let b = vec![1.0; 5 * 2];
            let got = run(
                kernel,
                (3, 5, 2),
                (&a, &b),
                &Epilogue::default(),
                &OneThread,
            );
            assert!(got[2..4].iter().all(|value| value.is_nan()), "{got:?}");
            assert!(
                got[..2]
                    .iter()
                    .chain(&got[4..])
                    .all(|value| (value - 5.0).abs() < 1e-4),
                "{got:?}"
            );

            let (a, mut b) = (vec![1.0; 5], vec![1.0; 5 * 2]);
            b[1] = bad;
            let got = run(
                kernel,
                (1, 5, 2),
                (&a, &b),
                &Epilogue::default(),
                &OneThread,
            );
            assert!(!got[0].is_nan() && got[1].is_nan(), "{got:?}");
        }
    }
    for (kernel, zero) in kernels().flat_map(|kernel| {
        let zeros = [0.0, -0.0, f32::MIN_POSITIVE / 2.0];
        zeros.map(|zero| (kernel, zero))
    }) {
        let (a, b) = (vec![zero; 4], vec![1.0; 4]);
        let none = Epilogue::default();
        let got = run(kernel, (1, 4, 1), (&a, &b), &none, &OneThread);
        assert_eq!(got, [0.0]);
    }
}

#[test]
fn activations_are_used_again() {
    for kernel in kernels() {
        let mut rows = Activations::default();
        let long = Rows {
            values: &[1.0; 9],
            stride: 3,
        };
        let weights = Int8Weights::zeros(kernel, (3, 1)).unwrap();
        rows.quantise(3, long, &weights, &OneThread).unwrap();
        let short = Rows {
            values: &[2.0; 3],
            stride: 3,
        };
        rows.quantise(1, short, &weights, &OneThread).unwrap();
        let mut fresh = Activations::default();
        fresh.quantise(1, short, &weights, &OneThread).unwrap();
        assert_eq!(rows.values(), fresh.values());
        assert_eq!(rows.scales(), fresh.scales());
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let kernel = Int8Kernel::select(ActivationBits::Wide);
    let none = Epilogue::default();
    let b = Int8Weights::new(kernel, (4, 5), &[1.0; 20], 5, 1).unwrap();
    let mut a = Activations::default();
    let three = Rows {
        values: &[1.0; 12],
        stride: 4,
    };
    assert!(a.quantise(4, three, &b, &OneThread).is_err());
    a.quantise(3, three, &b, &OneThread).unwrap();
    let short = gemm_int8(kernel, &a, &b, &none, &mut [0.0; 14], 5, &OneThread).unwrap_err();
    assert!(short.to_string().contains("C has 14 values"));
    let narrow = Int8Weights::zeros(kernel, (3, 5)).unwrap();
    a.quantise(3, three, &narrow, &OneThread).unwrap();
    let other = gemm_int8(kernel, &a, &b, &none, &mut [0.0; 15], 5, &OneThread).unwrap_err();
    assert!(other.to_string().contains("rows of 3 values"));

    let mut packings = vec![kernel];
    for other in kernels() {
        if packings.iter().all(|known| !known.shares_packing(other)) {
            packings.push(other);
        }
    }
    for [one, another] in packings.windows(2).map(|two| [two[0], two[1]]) {
        let b = Int8Weights::zeros(one, (4, 5)).unwrap();
        a.quantise(3, three, &b, &OneThread).unwrap();
        let c = &mut [0.0; 15];
        let packed = gemm_int8(another, &a, &b, &none, c, 5, &OneThread).unwrap_err();
        assert!(packed.to_string().contains("pack it for that kernel"));
        if one.form() != another.form() {
            let b = Int8Weights::zeros(another, (4, 5)).unwrap();
            let lies = gemm_int8(another, &a, &b, &none, c, 5, &OneThread).unwrap_err();
            assert!(lies.to_string().contains("quantise it for that kernel"));
        }
    }

    assert!(Int8Weights::new(kernel, (4, 5), &[1.0; 19], 5, 1).is_err());
    assert!(Int8Weights::new(kernel, (1 << 20, 1), &[1.0], 1, 1).is_err());
    assert!(Int8Weights::zeros(kernel, (2, usize::MAX)).is_err());
    let mut weights = Int8Weights::zeros(kernel, (2, 3)).unwrap();
    assert!(weights.set_column(3, &[1.0; 2]).is_err());
    assert!(weights.set_column(0, &[1.0; 3]).is_err());
}
