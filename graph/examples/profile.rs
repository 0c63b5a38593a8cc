//! Where the time of a run goes, operator by operator.
//!
//! `cargo run --release -p isovec-graph --example profile -- FOLDER [TEXTS] [TOKENS] [deterministic]`

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use isovec_engine::bundle::{BundleOptions, ModelBundle};
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::Batch;
use isovec_engine::head::{HeadSpec, Pooling, attach_head};
use isovec_engine::maybe_send::BoxFuture;
use isovec_engine::tensor::{DType, NamedTensor, Tensor};
use isovec_graph::{Pause, Program, Run};
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::OneThread;

struct Never;

impl Pause for Never {
    fn pause(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("which folder?")?;
    let mut number = |default: usize| -> Result<usize, std::num::ParseIntError> {
        arguments.next().map_or(Ok(default), |text| text.parse())
    };
    let (texts, tokens) = (number(1)?, number(128)?);
    let arithmetic = match std::env::args().any(|word| word == "deterministic") {
        true => Arithmetic::Deterministic,
        false => Arithmetic::Fast,
    };
    let mut bundle = ModelBundle::from_folder(&folder, &BundleOptions::default())?;
    attach_head(&mut bundle, &HeadSpec::new(Pooling::Mean, true))?;
    let started = Instant::now();
    let (cancel, mut never) = (Cancel::new(), Never);
    let compiled = Program::compile(&bundle, arithmetic, &cancel, &mut never);
    let program = Arc::new(pollster::block_on(compiled)?);
    println!(
        "compiled in {:?}: {}",
        started.elapsed(),
        program.operators().join(" ")
    );

    let description = isovec_engine::description::describe(&bundle);
    let mut batch = Batch::default();
    for input in &description.inputs {
        let values: Vec<i64> = (0..texts * tokens)
            .map(|at| match input.name.as_str() {
                "input_ids" => 1000 + (at as i64 * 37) % 20_000,
                "attention_mask" => 1,
                _ => 0,
            })
            .collect();
        let tensor = Tensor::from_slice(&[texts, tokens], &values)?;
        assert_eq!(input.dtype, Some(DType::I64));
        batch
            .inputs
            .push(NamedTensor::new(input.name.as_str(), tensor));
    }
    let mut best: BTreeMap<(&str, usize, usize), (usize, u64, Duration)> = BTreeMap::new();
    let mut least = Duration::MAX;
    for _ in 0..15 {
        let mut all: BTreeMap<_, (usize, u64, Duration)> = BTreeMap::new();
        let began = Instant::now();
        let mut run = Run::new(Arc::clone(&program), &batch)?;
        loop {
            let step = Instant::now();
            let Some(report) = run.step(None, &OneThread)? else {
                break;
            };
            let sum = all
                .entry((report.operator, report.inner, report.width))
                .or_default();
            sum.0 += 1;
            sum.1 += report.multiply_adds;
            sum.2 += step.elapsed();
        }
        if began.elapsed() < least {
            (least, best) = (began.elapsed(), all);
        }
    }
    println!("{texts} x {tokens}: {least:?}");
    let mut rows: Vec<_> = best.into_iter().collect();
    rows.sort_by_key(|(_, (_, _, took))| std::cmp::Reverse(*took));
    for ((operator, inner, width), (count, multiply_adds, took)) in rows {
        let rate = 2.0 * multiply_adds as f64 / took.as_secs_f64() / 1e9;
        println!(
            "{operator:10} {inner:5} x {width:5} {count:3} times {took:>12.1?} {rate:8.1} GFLOP/s"
        );
    }
    Ok(())
}
