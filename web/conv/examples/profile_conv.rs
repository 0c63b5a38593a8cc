//! Where the time of a picture goes: operators of the large networks with seeded weights, one thread.
//!
//! `cargo run --release -p isovec-conv --example profile_conv [network]`
#![allow(clippy::unwrap_used)] // A program to measure with.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use isovec_conv::{Executable, Run};
use isovec_engine::cancel::Cancel;
use isovec_engine::pause::NoTurns;
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::OneThread;
use isovec_test_models::convolutions::{Net, efficientnet_b0, mobilenet_v2, resnet_50};

/// Runs of each network.
const ROUNDS: usize = 20;

/// Makes a network; its output.
type Make = fn() -> (Net, String);

fn main() {
    let all: [(&str, Make); 3] = [
        ("resnet_50", resnet_50),
        ("mobilenet_v2", mobilenet_v2),
        ("efficientnet_b0", efficientnet_b0),
    ];
    let named = std::env::args().nth(1);
    for (name, make) in all {
        if named.as_deref().is_some_and(|named| named != name) {
            continue;
        }
        let (mut net, output) = make();
        let bundle = net.bundle(&[&output]);
        let (cancel, mut turns) = (Cancel::new(), NoTurns);
        let executable = Executable::compile(&bundle, Arithmetic::Fast, &cancel, &mut turns);
        let executable = Arc::new(pollster::block_on(executable).unwrap());
        let batch = net.batch(&net.pictures(1, 1));
        let mut least = Duration::MAX;
        let mut steps: Vec<(String, u64, Duration)> = Vec::new();
        for _ in 0..ROUNDS {
            let started = Instant::now();
            let mut run = Run::new(Arc::clone(&executable), &batch).unwrap();
            let mut at = 0;
            loop {
                let begun = Instant::now();
                let Some(step) = run.step(&batch, None, &OneThread).unwrap() else {
                    break;
                };
                let took = begun.elapsed();
                if at == steps.len() {
                    let what = format!(
                        "{:<10} {:>6} pixels {:>5} to {:>4}",
                        step.operator, step.rows, step.inner, step.width
                    );
                    steps.push((what, step.multiply_adds, took));
                }
                steps[at].2 = steps[at].2.min(took);
                at += 1;
            }
            run.finish();
            least = least.min(started.elapsed());
        }
        let mega = |cost: u64| cost as f64 / 1e6;
        println!(
            "{name}: {least:.2?}, {:.0} million multiply-adds",
            mega(executable.cost())
        );
        let mut kinds: BTreeMap<String, (u64, Duration)> = BTreeMap::new();
        for (what, cost, took) in steps {
            let rate = mega(cost) / took.as_secs_f64() / 1e3;
            println!(
                "  {what} {:>8.1} us {rate:>6.1} G/s",
                took.as_secs_f64() * 1e6
            );
            let kind = what.split(' ').next().unwrap().to_owned();
            let sum = kinds.entry(kind).or_default();
            *sum = (sum.0 + cost, sum.1 + took);
        }
        for (kind, (cost, took)) in kinds {
            let rate = mega(cost) / took.as_secs_f64() / 1e3;
            println!(
                "{kind:<12} {:>8.2} ms {rate:>6.1} G/s",
                took.as_secs_f64() * 1e3
            );
        }
    }
}
