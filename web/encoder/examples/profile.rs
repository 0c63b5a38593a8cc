//! Where the time of a run goes natively, operator by operator.
//!
//! `cargo run --release -p isovec-encoder --example profile -- FOLDER [TEXTS] [TOKENS] [deterministic]`

mod measure;

use std::time::Instant;

use isovec_kernels::Arithmetic;
use isovec_model::bundle::{self, BundleOptions};
use measure::{Model, Result};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("which folder?")?;
    let mut number = |default: usize| -> std::result::Result<usize, std::num::ParseIntError> {
        arguments.next().map_or(Ok(default), |text| text.parse())
    };
    let (texts, tokens) = (number(1)?, number(128)?);
    let arithmetic = match std::env::args().any(|word| word == "deterministic") {
        true => Arithmetic::Deterministic,
        false => Arithmetic::Fast,
    };
    let bundle = bundle::from_folder(&folder, &BundleOptions::default())?;
    let started = Instant::now();
    let now = || started.elapsed().as_secs_f64() * 1000.0;
    let model = Model::compile(bundle, arithmetic)?;
    println!(
        "compiled in {:.1} ms: {}",
        now(),
        model.executable.operators().join(" ")
    );

    let batch = model.batch(texts, tokens)?;
    let (took, totals) = model.fastest(&batch, 15, now)?;
    println!("{texts} x {tokens}: {took:.2} ms");
    let mut rows: Vec<_> = totals.into_iter().collect();
    rows.sort_by(|a, b| b.1.milliseconds.total_cmp(&a.1.milliseconds));
    for ((operator, inner, width), total) in rows {
        let rate = 2.0 * total.multiply_adds as f64 / total.milliseconds / 1e6;
        println!(
            "{operator:10} {inner:5} x {width:5} {:3} times {:>9.3} ms {rate:8.1} GFLOP/s",
            total.count, total.milliseconds
        );
    }
    Ok(())
}
