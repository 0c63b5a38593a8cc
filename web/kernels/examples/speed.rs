//! Measures the matrix products natively, one thread: GFLOP/s of every kernel of this machine at
//! MiniLM's shapes, and the most that the machine does without memory.
//!
//! `cargo run --release --example speed -p isovec-kernels [m,k,n ...]`

mod measure;

use std::time::Instant;

use isovec_kernels::Arithmetic;
use isovec_kernels::gemm::{ActivationBits, Int8Kernel, Kernel};
use measure::ceiling;
use measure::product::{Product, Way};

/// MiniLM's: attention's projections and the two layers after it, for a short text, a long one
/// and a batch.
const SHAPES: [(usize, usize, usize); 8] = [
    (1, 384, 1536),
    (16, 384, 384),
    (16, 384, 1536),
    (16, 1536, 384),
    (128, 384, 384),
    (128, 384, 1536),
    (128, 1536, 384),
    (1024, 384, 1536),
];

/// Runs until a tenth of a second has passed at least five times over; the best GFLOP/s.
fn best(flops: f64, mut run: impl FnMut()) -> f64 {
    let each = (1e9 / flops).ceil() as usize;
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let start = Instant::now();
        for _ in 0..each {
            run();
        }
        best = best.min(start.elapsed().as_secs_f64() / each as f64);
    }
    flops / best / 1e9
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let asked: Vec<(usize, usize, usize)> = std::env::args()
        .skip(1)
        .filter_map(|shape| {
            let mut sizes = shape.split(',').map(str::parse);
            match (sizes.next(), sizes.next(), sizes.next()) {
                (Some(Ok(m)), Some(Ok(k)), Some(Ok(n))) => Some((m, k, n)),
                _ => None,
            }
        })
        .collect();
    let shapes = if asked.is_empty() {
        &SHAPES[..]
    } else {
        &asked
    };
    for (name, fused) in [("fused", true), ("split", false)] {
        let steps = 1_000_000;
        let (_, flops) = ceiling::run(fused, steps);
        let speed = best(flops, || {
            std::hint::black_box(ceiling::run(fused, steps));
        });
        println!("ceiling, {name}: {speed:.1} GFLOP/s");
    }
    let mut ways = Vec::new();
    for arithmetic in [Arithmetic::Fast, Arithmetic::Deterministic] {
        let kernels = Kernel::available(arithmetic).into_iter();
        ways.extend(kernels.map(|kernel| (format!("f32 {arithmetic:?}"), Way::F32(kernel))));
    }
    for bits in [ActivationBits::Wide, ActivationBits::Eight] {
        let kernels = Int8Kernel::available(bits).into_iter();
        ways.extend(kernels.map(|kernel| (format!("int8 {bits:?}"), Way::Int8(kernel))));
    }
    for (kind, way) in ways {
        println!("{kind}, {}", way.name());
        for &(m, k, n) in shapes {
            let mut product = Product::new(way, m, k, n)?;
            let mut result = Ok(());
            let speed = best((2 * m * k * n) as f64, || result = product.run());
            result?;
            println!("  {m}x{k}x{n}: {speed:.1} GFLOP/s");
        }
    }
    Ok(())
}
