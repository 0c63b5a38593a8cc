//! Products against plain loops.

use std::sync::atomic::{AtomicUsize, Ordering};

use half::{bf16, f16};
use proptest::prelude::*;

use super::kernel::{MAX_PANEL, MAX_ROWS};
use super::*;
use crate::Arithmetic;
use crate::parallel::{OneThread, Pool};

/// Real threads, as many as asked for.
pub(super) struct Threads(pub(super) usize);

impl Pool for Threads {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..self.0 {
                scope.spawn(|| {
                    loop {
                        match next.fetch_add(1, Ordering::Relaxed) {
                            number if number < jobs => job(number),
                            _ => break,
                        }
                    }
                });
            }
        });
    }
}

fn kernels() -> Vec<&'static Kernel> {
    let mut all = Kernel::available(Arithmetic::Fast);
    all.extend(Kernel::available(Arithmetic::Deterministic));
    all
}

/// Values in -1..1 from a linear congruential generator (Knuth's MMIX constants).
pub(super) fn values(len: usize, seed: u64) -> Vec<f32> {
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

/// A product with all its operands, rows of A, C and the residual further apart than need be.
struct Case {
    m: usize,
    k: usize,
    n: usize,
    a: Vec<f32>,
    b: Vec<f32>,
    bias: Vec<f32>,
    residual: Vec<f32>,
    gap: usize,
}

impl Case {
    fn new(m: usize, k: usize, n: usize, gap: usize, seed: u64) -> Self {
        Self {
            m,
            k,
            n,
            a: values(m * (k + gap), seed),
            b: values(k * n, seed + 1),
            bias: values(n, seed + 2),
            residual: values(m * (n + gap), seed + 3),
            gap,
        }
    }

    fn epilogue(&self) -> Epilogue<'_> {
        Epilogue {
            bias: Some(&self.bias),
            activation: Some(halve),
            residual: Some(Rows {
                values: &self.residual,
                stride: self.n + self.gap,
            }),
            limits: None,
        }
    }

    fn packed(&self, kernel: &Kernel) -> Packed {
        Packed::new(kernel, (self.k, self.n), &self.b, self.n, 1).unwrap()
    }

    /// Runs it; values between the rows of C must stay what they were.
    fn run(&self, kernel: &Kernel, epilogue: &Epilogue<'_>, pool: &dyn Pool) -> Vec<f32> {
        let stride = self.n + self.gap;
        let mut c = vec![f32::MAX; self.m * stride];
        let a = Rows {
            values: &self.a,
            stride: self.k + self.gap,
        };
        gemm(
            kernel,
            self.m,
            a,
            &self.packed(kernel),
            epilogue,
            &mut c,
            stride,
            pool,
        )
        .unwrap();
        c.chunks_exact(stride.max(1))
            .flat_map(|row| {
                assert!(row[self.n..].iter().all(|value| *value == f32::MAX));
                row[..self.n].to_vec()
            })
            .collect()
    }

    /// The product without an epilogue, each value by `sum`, which adds `a * b` to it.
    fn naive<T: Copy>(&self, zero: T, sum: impl Fn(T, f32, f32) -> T) -> Vec<T> {
        let mut all = Vec::with_capacity(self.m * self.n);
        for i in 0..self.m {
            for j in 0..self.n {
                all.push((0..self.k).fold(zero, |so_far, step| {
                    sum(
                        so_far,
                        self.a[i * (self.k + self.gap) + step],
                        self.b[step * self.n + j],
                    )
                }));
            }
        }
        all
    }
}

pub(super) fn halve(values: &mut [f32]) {
    for value in values {
        *value *= 0.5;
    }
}

pub(super) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// The bits that a kernel must give: every product fused with its sum, or none.
fn expected(case: &Case, fused: bool) -> Vec<f32> {
    case.naive(0.0_f32, |sum, a, b| {
        if fused {
            a.mul_add(b, sum)
        } else {
            sum + a * b
        }
    })
}

/// Whether a kernel fuses: known from the machine, as the result would tell nothing in a test.
fn fuses(kernel: &Kernel) -> bool {
    kernel.arithmetic() == Arithmetic::Fast
        && ["AVX", "NEON"]
            .iter()
            .any(|name| kernel.name().starts_with(name))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn products_have_the_bits_of_a_plain_loop(
        m in 1_usize..30, k in 0_usize..70, n in 1_usize..100, gap in 0_usize..4, seed in 0_u64..1000,
    ) {
        let case = Case::new(m, k, n, gap, seed);
        for kernel in kernels() {
            let got = case.run(kernel, &Epilogue::default(), &OneThread);
            prop_assert_eq!(
                bits(&got), bits(&expected(&case, fuses(kernel))), "{}", kernel.name()
            );
        }
    }

    #[test]
    fn products_are_near_those_in_f64(
        m in 1_usize..20, k in 1_usize..1200, n in 1_usize..60, seed in 0_u64..1000,
    ) {
        let case = Case::new(m, k, n, 1, seed);
        let exact = case.naive(0.0_f64, |sum, a, b| sum + f64::from(a) * f64::from(b));
        for kernel in kernels() {
            let got = case.run(kernel, &Epilogue::default(), &OneThread);
            for (got, exact) in got.iter().zip(&exact) {
                // Each of k additions rounds a sum that is below k.
                let bound = (k * k) as f64 * f64::from(f32::EPSILON);
                prop_assert!((f64::from(*got) - exact).abs() <= bound.min(1e-3));
            }
        }
    }

    #[test]
    fn the_epilogue_is_bias_activation_residual(
        m in 1_usize..20, k in 1_usize..600, n in 1_usize..120, gap in 0_usize..4, seed in 0_u64..1000,
    ) {
        let case = Case::new(m, k, n, gap, seed);
        for kernel in kernels() {
            let got = case.run(kernel, &case.epilogue(), &OneThread);
            let want: Vec<f32> = expected(&case, fuses(kernel)).iter().enumerate().map(|(at, sum)| {
                let (row, column) = (at / n, at % n);
                (sum + case.bias[column]) * 0.5 + case.residual[row * (n + gap) + column]
            }).collect();
            prop_assert_eq!(bits(&got), bits(&want), "{}", kernel.name());
        }
    }

    #[test]
    fn bytes_in_any_pieces_pack_to_the_same(
        k in 0_usize..40, n in 0_usize..50, piece in 1_usize..40, seed in 0_u64..1000,
    ) {
        for kernel in Kernel::available(Arithmetic::Fast) {
            for stored in [Stored::F32, Stored::F16, Stored::Bf16] {
                let (rounded, rows) = stored_bytes(&values(k * n, seed), stored);
                let want = Packed::new(kernel, (k, n), &rounded, n, 1).unwrap();
                let transposed: Vec<u8> = (0..n)
                    .flat_map(|j| (0..k).map(move |i| (i * n + j) * stored.bytes()))
                    .flat_map(|at| rows[at..at + stored.bytes()].to_vec())
                    .collect();
                for (order, bytes) in [(Order::Rows, &rows), (Order::Columns, &transposed)] {
                    // In pieces, and as a whole.
                    for piece in [piece, bytes.len().max(1)] {
                        let mut packer = Packer::new(kernel, (k, n), order, stored).unwrap();
                        for piece in bytes.chunks(piece) {
                            packer.push(piece).unwrap();
                        }
                        let packed = packer.finish().unwrap();
                        prop_assert_eq!(bits(packed.values()), bits(want.values()));
                    }
                }
            }
        }
    }
}

#[test]
fn matrices_in_shared_pages_are_those_apart() {
    // Three fill the room, which is more than a huge page; the fourth has memory of its own.
    let extents = (400, 512);
    let kernel = Kernel::select(Arithmetic::Fast);
    let each = Packed::values_of(kernel, extents).unwrap();
    let mut pages = Pages::reserve(3 * each);
    let all: Vec<(Packed, Packed)> = (0..4)
        .map(|seed| {
            let matrix = values(extents.0 * extents.1, seed);
            let (_, bytes) = stored_bytes(&matrix, Stored::F32);
            let mut packer =
                Packer::within(&mut pages, kernel, extents, Order::Rows, Stored::F32).unwrap();
            packer.push(&bytes).unwrap();
            let apart = Packed::new(kernel, extents, &matrix, extents.1, 1).unwrap();
            (packer.finish().unwrap(), apart)
        })
        .collect();
    drop(pages);
    for (packed, apart) in &all {
        assert_eq!(bits(packed.values()), bits(apart.values()));
    }
    let starts = |at: usize| all[at].0.values().as_ptr();
    if cfg!(all(target_os = "linux", not(miri))) {
        assert_eq!(starts(1), starts(0).wrapping_add(each));
        assert_eq!(starts(2), starts(1).wrapping_add(each));
    }
    // A copy has memory of its own, and so has one that gets another shape.
    let (mut first, apart) = all.into_iter().next().unwrap();
    let mut copy = first.clone();
    copy.repack(kernel, (1, 1), &[7.0], 1, 1).unwrap();
    assert_eq!(bits(first.values()), bits(apart.values()));
    first.repack(kernel, (2, 1), &[7.0, 8.0], 1, 1).unwrap();
    assert_eq!(first.values()[kernel.panel()], 8.0);
    assert_eq!(copy.values()[0], 7.0);
}

/// Values as they are after being stored, and their bytes.
fn stored_bytes(values: &[f32], stored: Stored) -> (Vec<f32>, Vec<u8>) {
    let pairs: Vec<(f32, Vec<u8>)> = values
        .iter()
        .map(|value| match stored {
            Stored::F32 => (*value, value.to_le_bytes().to_vec()),
            Stored::F16 => {
                let short = f16::from_f32(*value);
                (short.to_f32(), short.to_le_bytes().to_vec())
            }
            Stored::Bf16 => {
                let short = bf16::from_f32(*value);
                (short.to_f32(), short.to_le_bytes().to_vec())
            }
        })
        .collect();
    (
        pairs.iter().map(|(value, _)| *value).collect(),
        pairs.into_iter().flat_map(|(_, bytes)| bytes).collect(),
    )
}

#[test]
fn every_tile_has_the_bits_of_a_plain_loop() {
    for kernel in kernels() {
        assert!(kernel.rows() <= MAX_ROWS && kernel.panel() <= MAX_PANEL);
        for m in 1..=2 * kernel.rows() {
            // Full panels for the tiles that take several, and a last one that is not full.
            let case = Case::new(m, 13, 4 * kernel.panel() + 3, 1, 7);
            let got = case.run(kernel, &Epilogue::default(), &OneThread);
            assert_eq!(
                bits(&got),
                bits(&expected(&case, fuses(kernel))),
                "{} with {m} rows",
                kernel.name()
            );
        }
    }
}

#[test]
fn threads_change_no_bit() {
    for (m, k, n) in [
        (200, 70, 130),
        (3, 700, 700),
        (60, 1100, 90),
        (1, 1030, 600),
    ] {
        let case = Case::new(m, k, n, 1, 11);
        for kernel in kernels() {
            let alone = case.run(kernel, &case.epilogue(), &OneThread);
            for threads in [2, 3, 5] {
                let split = case.run(kernel, &case.epilogue(), &Threads(threads));
                assert_eq!(bits(&split), bits(&alone), "{}", kernel.name());
            }
        }
    }
}

#[test]
fn a_transposed_matrix_packs_to_the_same() {
    for kernel in Kernel::available(Arithmetic::Fast) {
        let b = values(7 * 45, 3);
        let transposed: Vec<f32> = (0..45)
            .flat_map(|j| (0..7).map(move |i| i * 45 + j))
            .map(|at| b[at])
            .collect();
        let rows = Packed::new(kernel, (7, 45), &b, 45, 1).unwrap();
        let columns = Packed::new(kernel, (7, 45), &transposed, 1, 7).unwrap();
        assert_eq!(rows.values(), columns.values());
    }
}

#[test]
fn repacking_leaves_nothing_behind() {
    let kernel = Kernel::select(Arithmetic::Fast);
    let mut packed = Packed::new(kernel, (9, 50), &[1.0; 450], 50, 1).unwrap();
    packed.repack(kernel, (2, 3), &[2.0; 6], 3, 1).unwrap();
    let fresh = Packed::new(kernel, (2, 3), &[2.0; 6], 3, 1).unwrap();
    assert_eq!(packed.values(), fresh.values());
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let kernel = Kernel::select(Arithmetic::Fast);
    let b = Packed::new(kernel, (4, 5), &[1.0; 20], 5, 1).unwrap();
    let run = |a: usize, a_stride, epilogue: &Epilogue<'_>, c: usize, c_stride| {
        let (a, mut c) = (vec![0.0; a], vec![0.0; c]);
        let a = Rows {
            values: &a,
            stride: a_stride,
        };
        gemm(kernel, 3, a, &b, epilogue, &mut c, c_stride, &OneThread)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    let none = Epilogue::default();
    assert_eq!(run(12, 4, &none, 15, 5), "");
    assert!(run(11, 4, &none, 15, 5).contains("A has 11 values"));
    assert!(run(12, 3, &none, 15, 5).contains("rows of A overlap"));
    assert!(run(12, 4, &none, 14, 5).contains("C has 14 values"));
    assert!(run(12, usize::MAX, &none, 15, 5).contains("too few"));
    let bias = Epilogue {
        bias: Some(&[0.0; 4]),
        ..none
    };
    assert!(run(12, 4, &bias, 15, 5).contains("the bias has 4 values for 5 columns"));
    let residual = Epilogue {
        residual: Some(Rows {
            values: &[0.0; 14],
            stride: 5,
        }),
        ..none
    };
    assert!(run(12, 4, &residual, 15, 5).contains("the residual has 14 values"));

    assert!(Packed::new(kernel, (4, 5), &[1.0; 19], 5, 1).is_err());
    assert!(Packed::new(kernel, (usize::MAX, 2), &[1.0], usize::MAX, 1).is_err());
    assert!(Packer::new(kernel, (usize::MAX, 2), Order::Rows, Stored::F32).is_err());
    let mut packer = Packer::new(kernel, (1, 2), Order::Rows, Stored::F16).unwrap();
    packer.push(&[0; 3]).unwrap();
    assert!(packer.push(&[0; 2]).is_err());
    assert!(
        packer
            .finish()
            .unwrap_err()
            .to_string()
            .contains("last 1 bytes")
    );
}

#[test]
fn a_matrix_for_another_panel_is_refused() {
    let all = Kernel::available(Arithmetic::Fast);
    let (Some(first), Some(last)) = (all.first(), all.last()) else {
        panic!("there is always the scalar kernel");
    };
    if first.panel() == last.panel() {
        return;
    }
    let b = Packed::new(first, (1, 1), &[1.0], 1, 1).unwrap();
    let a = Rows {
        values: &[1.0],
        stride: 1,
    };
    let none = Epilogue::default();
    let error = gemm(last, 1, a, &b, &none, &mut [0.0], 1, &OneThread).unwrap_err();
    assert!(error.to_string().contains("pack it for that kernel"));
}

#[test]
fn an_epilogue_does_its_parts_in_order() {
    let case = Case::new(5, 7, 40, 2, 9);
    for kernel in kernels() {
        let plain = case.run(kernel, &Epilogue::default(), &OneThread);
        for parts in 0..16 {
            let has = |part: i32| parts & part != 0;
            let all = case.epilogue();
            let epilogue = Epilogue {
                bias: all.bias.filter(|_| has(1)),
                activation: all.activation.filter(|_| has(2)),
                residual: all.residual.filter(|_| has(4)),
                limits: has(8).then_some((-0.5, 0.75)),
            };
            let want = plain.iter().enumerate().map(|(at, &sum)| {
                let (row, column) = (at / case.n, at % case.n);
                let mut x = sum;
                if has(1) {
                    x += case.bias[column];
                }
                if has(2) {
                    x *= 0.5;
                }
                if has(4) {
                    x += case.residual[row * (case.n + case.gap) + column];
                }
                if has(8) { x.clamp(-0.5, 0.75) } else { x }
            });
            let want: Vec<f32> = want.collect();
            let got = case.run(kernel, &epilogue, &OneThread);
            assert_eq!(bits(&got), bits(&want), "{} {parts}", kernel.name());
        }
    }
}
