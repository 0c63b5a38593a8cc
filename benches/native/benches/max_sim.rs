//! Measures a search by late interaction: a query of 32 vectors over 1,000 texts of 180 vectors of 128 components, on one thread,
//! beside the matrix product that it is made of. Run it with `cargo xtask bench max_sim`; it fails where the search takes longer than
//! the product over the promised share.

use std::hint::black_box;
use std::time::Instant;

use isovec::fingerprint::Fingerprint;
use isovec::{CompactForm, MultiVectorEmbeddings};
use isovec_bench::AnyError;
use isovec_kernels::Arithmetic;
use isovec_kernels::gemm::{Epilogue, Kernel, Packed, Rows, gemm};
use isovec_kernels::parallel::OneThread;

const QUERY: usize = 32;
const TEXTS: usize = 1000;
const VECTORS: usize = 180;
const DIM: usize = 128;
/// Searches that are timed, one way after another.
const ROUNDS: usize = 21;
/// The least share of the product's speed.
const LEAST: f64 = 0.8;

fn main() -> Result<(), AnyError> {
    let mut state = 1u32;
    let mut vectors = |many: usize| -> Vec<f32> {
        let mut number = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 8_388_608.0 - 1.0
        };
        (0..many * DIM).map(|_| number() / 6.5).collect()
    };
    let query = vectors(QUERY);
    let texts: Vec<Vec<f32>> = (0..TEXTS).map(|_| vectors(VECTORS)).collect();
    let all = texts.concat();
    let set = MultiVectorEmbeddings::new(DIM, texts, Fingerprint::default())?;
    let asked = MultiVectorEmbeddings::new(DIM, [query.clone()], Fingerprint::default())?;
    let (int8, signs) = (
        set.compact(CompactForm::Int8),
        set.compact(CompactForm::Binary),
    );

    let kernel = Kernel::select(Arithmetic::Fast);
    let packed = Packed::new(kernel, (DIM, QUERY), &query, 1, DIM)?;
    let mut products = vec![0.0; TEXTS * VECTORS * QUERY];
    let mut product = || -> Result<(), AnyError> {
        let rows = Rows {
            values: &all,
            stride: DIM,
        };
        let out = &mut products[..];
        gemm(
            kernel,
            TEXTS * VECTORS,
            rows,
            &packed,
            &Epilogue::default(),
            out,
            QUERY,
            &OneThread,
        )?;
        black_box(out);
        Ok(())
    };
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        let mut timed = |at: usize, run: &mut dyn FnMut() -> Result<(), AnyError>| {
            let started = Instant::now();
            run()?;
            times[at].push(started.elapsed().as_secs_f64() * 1e3);
            Ok::<_, AnyError>(())
        };
        timed(0, &mut product)?;
        for (at, set) in [&set, &int8, &signs].into_iter().enumerate() {
            timed(at + 1, &mut || {
                black_box(set.search_one(&asked, 10)?);
                Ok(())
            })?;
        }
    }
    let [plain, whole, int8, binary] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    });
    println!(
        "{TEXTS} texts of {VECTORS} vectors of {DIM}, a query of {QUERY}, one thread ({}):",
        kernel.name()
    );
    println!("  the product alone {plain:.1} ms");
    for (what, took) in [("f32", whole), ("int8", int8), ("binary", binary)] {
        println!(
            "  a search in {what} {took:.1} ms, {:.2} times the product's speed",
            plain / took
        );
    }
    match plain / whole < LEAST {
        true => Err(format!("less than {LEAST} is promised").into()),
        false => Ok(()),
    }
}
