//! What `benches/wasm/kernels.mjs` measures in node and in a page: plain exports, no bindings.

mod measure;

use std::cell::RefCell;

use isovec_kernels::Arithmetic;
use isovec_kernels::gemm::{ActivationBits, Int8Kernel, Kernel};
use measure::ceiling;
use measure::product::{Product, Way};

thread_local! {
    static PRODUCT: RefCell<Option<Product>> = const { RefCell::new(None) };
}

/// The additions and multiplications of `steps` steps without memory.
#[unsafe(no_mangle)]
pub extern "C" fn run_ceiling(fused: bool, steps: usize) -> f64 {
    let (total, flops) = ceiling::run(fused, steps);
    std::hint::black_box(total);
    flops
}

/// How many ways there are to compute a product: 0 is f32 at its fastest, 1 deterministic f32, 2
/// weights of 8 bits.
#[unsafe(no_mangle)]
pub extern "C" fn kernels(kind: u32) -> usize {
    ways(kind).len()
}

/// The letter at `at` in the name of a kernel, 0 after its end.
#[unsafe(no_mangle)]
pub extern "C" fn kernel_name(kind: u32, kernel: usize, at: usize) -> u32 {
    let all = ways(kind);
    let letter = all
        .get(kernel)
        .and_then(|way| way.name().as_bytes().get(at));
    letter.copied().unwrap_or(0).into()
}

/// Makes the operands of a product; whether that went well.
#[unsafe(no_mangle)]
pub extern "C" fn prepare(kind: u32, kernel: usize, m: usize, k: usize, n: usize) -> bool {
    let all = ways(kind);
    let made = all
        .get(kernel)
        .and_then(|way| Product::new(*way, m, k, n).ok());
    PRODUCT.with_borrow_mut(|product| *product = made);
    PRODUCT.with_borrow(Option::is_some)
}

/// Computes what was prepared, so many times; whether that went well.
#[unsafe(no_mangle)]
pub extern "C" fn run_product(times: usize) -> bool {
    PRODUCT.with_borrow_mut(|product| match product {
        Some(product) => (0..times).all(|_| product.run().is_ok()),
        None => false,
    })
}

fn ways(kind: u32) -> Vec<Way> {
    let f32 = |arithmetic| {
        let kernels = Kernel::available(arithmetic).into_iter();
        kernels.map(Way::F32).collect()
    };
    let int8 = |bits| {
        let kernels = Int8Kernel::available(bits).into_iter();
        kernels.map(Way::Int8).collect()
    };
    match kind {
        0 => f32(Arithmetic::Fast),
        1 => f32(Arithmetic::Deterministic),
        2 => int8(ActivationBits::Wide),
        3 => int8(ActivationBits::Eight),
        _ => Vec::new(),
    }
}
