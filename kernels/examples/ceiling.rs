//! What `benches/wasm/kernels.mjs` measures in node and in a page: plain exports, no bindings.

mod measure;

use std::cell::RefCell;

use isovec_kernels::Arithmetic;
use isovec_kernels::gemm::Kernel;
use measure::ceiling;
use measure::product::Product;

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

/// Kernels of an arithmetic.
#[unsafe(no_mangle)]
pub extern "C" fn kernels(deterministic: bool) -> usize {
    available(deterministic).len()
}

/// The letter at `at` in the name of a kernel, 0 after its end.
#[unsafe(no_mangle)]
pub extern "C" fn kernel_name(deterministic: bool, kernel: usize, at: usize) -> u32 {
    let all = available(deterministic);
    let letter = all
        .get(kernel)
        .and_then(|kernel| kernel.name().as_bytes().get(at));
    letter.copied().unwrap_or(0).into()
}

/// Makes the operands of a product; whether that went well.
#[unsafe(no_mangle)]
pub extern "C" fn prepare(
    deterministic: bool,
    kernel: usize,
    m: usize,
    k: usize,
    n: usize,
) -> bool {
    let all = available(deterministic);
    let made = all
        .get(kernel)
        .and_then(|kernel| Product::new(kernel, m, k, n).ok());
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

fn available(deterministic: bool) -> Vec<&'static Kernel> {
    Kernel::available(if deterministic {
        Arithmetic::Deterministic
    } else {
        Arithmetic::Fast
    })
}
