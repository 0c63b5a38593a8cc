//! Chooses how to cut up products on a device: for each shape, the way that was fastest for a few numbers of rows,
//! measured at the first load. All ways but one add in the same order, and a driver may round any of them differently, so
//! with guaranteed bits there is one kernel and no choice.

use std::time::Duration;

use isovec_encoder::program::Rows;
use isovec_engine::cancel::Cancel;
use isovec_engine::{EngineError, Result};
use web_time::Instant;

use crate::arena::{Arena, BatchSize};
use crate::device::gone;
use crate::dispatch::Step;
use crate::host::Host;
use crate::kernels::HEAD;
use crate::kernels::linear::IF_MEASURED;
use crate::model::Model;

/// Rows at which kernels are compared. The fastest at one is taken from half of it on.
const ROWS: [usize; 5] = [32, 128, 512, 2048, 8192];

/// Times that a kernel is measured; the first also sees to it that everything is warm.
const ROUNDS: usize = 3;

/// What a measurement takes, roughly, so that handing it to the device is a small part of it.
const ENOUGH: Duration = Duration::from_millis(3);

/// The most dispatches of a measurement.
const MOST: u32 = 64;

/// Which of a step's kernels runs.
#[derive(Debug, Clone)]
pub(crate) struct Tuning {
    /// By step: from how many rows on, and which.
    choices: Vec<Vec<(usize, usize)>>,
    pub(crate) from: From,
}

/// Where a choice comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// What was written down for devices in general.
    Rule,
    Measured,
    Recalled,
}

impl Tuning {
    /// The choices that the dispatches name.
    pub(crate) fn rule(steps: &[Step]) -> Self {
        let choices = steps.iter().map(|step| {
            let mut choices: Vec<(usize, usize)> = Vec::new();
            for (at, (least, _)) in step.kernels.iter().enumerate() {
                if *least == IF_MEASURED {
                    continue;
                }
                // Of two from the same number of rows on, the latter runs.
                choices.retain(|(other, _)| other != least);
                choices.push((*least, at));
            }
            choices
        });
        Self {
            choices: choices.collect(),
            from: From::Rule,
        }
    }

    /// The kernel that the dispatches name for the fewest rows, for any number of them: a row's bits then depend neither on
    /// the rows beside it nor on the clock.
    pub(crate) fn one(steps: &[Step]) -> Self {
        let mut one = Self::rule(steps);
        one.choices.iter_mut().for_each(|all| all.truncate(1));
        one
    }

    /// As if each kernel of a step were the fastest for some number of rows.
    #[cfg(test)]
    pub(crate) fn all(steps: &[Step]) -> Self {
        let all = |step: &Step| (0..step.kernels.len()).map(|at| (at, at)).collect();
        Self {
            choices: steps.iter().map(all).collect(),
            from: From::Measured,
        }
    }

    /// Whether a step may be given this kernel.
    pub(crate) fn takes(&self, step: usize, kernel: usize) -> bool {
        self.choices[step].iter().any(|(_, own)| *own == kernel)
    }

    /// Whether any step's kernel depends on the rows.
    pub(crate) fn varies(&self) -> bool {
        self.choices.iter().any(|all| differ(all))
    }

    /// Choices with which one batch, whatever its rows, runs every kernel that some batch is given: by the kernel, among
    /// those of its step, that steps are given which may be given it. Where no step's kernel depends on the rows it is
    /// these very choices, and no kernel.
    pub(crate) fn alternatives(&self) -> Vec<(Option<usize>, Self)> {
        let several = self.choices.iter().filter(|all| differ(all)).flatten();
        let mut kernels: Vec<usize> = several.map(|(_, kernel)| *kernel).collect();
        kernels.sort_unstable();
        kernels.dedup();
        if kernels.is_empty() {
            return vec![(None, self.clone())];
        }
        let kernels = kernels.into_iter();
        kernels
            .map(|kernel| (Some(kernel), self.only(kernel)))
            .collect()
    }

    /// The same, but for steps that may be given this kernel: they are given it whatever the rows.
    fn only(&self, kernel: usize) -> Self {
        let choices = self.choices.iter().enumerate();
        let choices = choices.map(|(step, all)| match self.takes(step, kernel) {
            true => vec![(0, kernel)],
            false => all.clone(),
        });
        Self {
            choices: choices.collect(),
            from: self.from,
        }
    }

    /// The kernel of a step for so many rows.
    pub(crate) fn kernel(&self, step: usize, rows: usize) -> usize {
        let choices = &self.choices[step];
        let last = choices.partition_point(|(least, _)| *least <= rows);
        choices[last.saturating_sub(1)].1
    }

    /// Takes the fastest kernel of each product at each of [`ROWS`].
    fn take(&mut self, products: &[Vec<usize>], fastest: &[u8], from: From) {
        for (steps, fastest) in products.iter().zip(fastest.chunks(ROWS.len())) {
            let choices = ROWS.iter().zip(fastest).enumerate();
            let choices: Vec<(usize, usize)> = choices
                .map(|(at, (rows, kernel))| {
                    (if at == 0 { 0 } else { rows / 2 }, usize::from(*kernel))
                })
                .collect();
            for &step in steps {
                self.choices[step].clone_from(&choices);
            }
        }
        self.from = from;
    }
}

/// Whether a step's choices name more than one kernel.
fn differ(choices: &[(usize, usize)]) -> bool {
    choices.iter().any(|(_, kernel)| *kernel != choices[0].1)
}

/// Measures the model's products, or recalls what was measured at an earlier start. What goes wrong leaves the rule.
///
/// # Errors
/// A cancellation.
pub(crate) async fn tune(model: &mut Model, host: &dyn Host, cancel: &Cancel) -> Result<()> {
    let steps = &model.dispatches.steps;
    let products = products(steps);
    if products.is_empty() {
        return Ok(());
    }
    let name = kept_under(model, &products);
    let recalled = host.recall(&name).await;
    if let Some(fastest) = recalled.filter(|fastest| fits(fastest, steps, &products)) {
        model.tuning.take(&products, &fastest, From::Recalled);
        return Ok(());
    }
    match measure(model, &products, cancel).await {
        Ok(fastest) => {
            model.tuning.take(&products, &fastest, From::Measured);
            host.keep(&name, fastest).await;
        }
        Err(EngineError::Cancelled) => return Err(EngineError::Cancelled),
        Err(error) => tracing::debug!("kernels could not be measured: {error}"),
    }
    Ok(())
}

/// Steps that there is a choice for, those with the same kernels together.
fn products(steps: &[Step]) -> Vec<Vec<usize>> {
    let mut products: Vec<Vec<usize>> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        // How many texts a batch has says little of its time, and how many tokens little of attention's.
        if step.kernels.len() < 2 || step.rows != Rows::Tokens || step.quadratic {
            continue;
        }
        let alike = |product: &&mut Vec<usize>| steps[product[0]].kernels == step.kernels;
        match products.iter_mut().find(alike) {
            Some(product) => product.push(at),
            None => products.push(vec![at]),
        }
    }
    products
}

/// Whether what was kept are choices for these products.
fn fits(fastest: &[u8], steps: &[Step], products: &[Vec<usize>]) -> bool {
    let known = |(product, fastest): (&Vec<usize>, &[u8])| {
        let kernels = steps[product[0]].kernels.len();
        fastest.iter().all(|kernel| usize::from(*kernel) < kernels)
    };
    fastest.len() == products.len() * ROWS.len()
        && products.iter().zip(fastest.chunks(ROWS.len())).all(known)
}

/// What choices are kept under: everything that times depend on.
fn kept_under(model: &Model, products: &[Vec<usize>]) -> String {
    let steps = &model.dispatches.steps;
    let kernels = products
        .iter()
        .flat_map(|product| &steps[product[0]].kernels);
    let sources = kernels.map(|(_, kernel)| &*kernel.source);
    let rows = format!("{ROWS:?}");
    let arithmetic = if model.limits.half { "f16" } else { "f32" };
    let identity = model
        .device
        .identity_with(sources.chain([&*rows, arithmetic]));
    format!("{}.tiles", &identity[..32])
}

/// The fastest kernel of each product at each of [`ROWS`].
async fn measure(model: &Model, products: &[Vec<usize>], cancel: &Cancel) -> Result<Vec<u8>> {
    let started = Instant::now();
    let (arena, most) = arena(model).await?;
    let mut fastest = vec![0; products.len() * ROWS.len()];
    for (bucket, rows) in ROWS.into_iter().enumerate() {
        let rows = rows.min(most);
        // Products read of a batch how many tokens it has, and nothing else.
        let words = [rows as u32, 1];
        let words = bytemuck::cast_slice(&words);
        model.device.queue.write_buffer(&arena.batch, 0, words);
        for (product, steps) in products.iter().enumerate() {
            let mut best = (Duration::MAX, 0);
            for kernel in 0..model.dispatches.steps[steps[0]].kernels.len() {
                cancel.check()?;
                let time = time(model, &arena, (steps[0], kernel), rows).await?;
                best = best.min((time, kernel as u8));
            }
            fastest[product * ROWS.len() + bucket] = best.1;
        }
    }
    tracing::debug!(?fastest, took = ?started.elapsed(), "measured which kernels are the fastest");
    Ok(fastest)
}

/// Memory for the most rows that are measured, and how many those are: where the device does not have it, for fewer.
async fn arena(model: &Model) -> Result<(Arena, usize)> {
    let mut refused = String::new();
    for rows in ROWS.into_iter().rev() {
        let tokens = rows.min(model.most_tokens);
        let watch = model.device.watch();
        let arena = model.fixed().arena(&BatchSize {
            tokens,
            texts: 1,
            words: HEAD,
        });
        match watch.close().await {
            Ok(()) => return Ok((arena, tokens)),
            Err(error) => refused = error,
        }
    }
    Err(gone(&refused))
}

/// What a dispatch of a step's kernel takes.
async fn time(
    model: &Model,
    arena: &Arena,
    (step, kernel): (usize, usize),
    rows: usize,
) -> Result<Duration> {
    let (mut best, mut repeats) = (Duration::MAX, 1);
    for _ in 0..ROUNDS {
        let mut encoder = model
            .device
            .device
            .create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        for _ in 0..repeats {
            model.dispatch(&mut pass, arena, (step, kernel), rows);
        }
        drop(pass);
        let watch = model.device.watch();
        let started = Instant::now();
        model.device.queue.submit([encoder.finish()]);
        let verdict = watch.close();
        model.device.done().await?;
        let took = started.elapsed();
        verdict.await.map_err(|error| gone(&error))?;
        best = best.min(took / repeats);
        repeats = (ENOUGH.as_nanos() / took.as_nanos().max(1)).clamp(1, u128::from(MOST)) as u32;
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kernels: &[&str]) -> Step {
        let kernels = kernels.iter().enumerate().map(|(at, source)| {
            let kernel = crate::kernels::Kernel {
                source: (*source).into(),
                ..Default::default()
            };
            (at * 100, kernel)
        });
        Step {
            name: "linear",
            kernels: kernels.collect(),
            constants: crate::constants::Regions::default().add(Default::default()),
            reads: Vec::new(),
            slot: 0,
            rows: Rows::Tokens,
            cost: 1,
            quadratic: false,
            inner: 4,
            width: 4,
            row_bytes: 16,
        }
    }

    #[test]
    fn each_product_gets_the_kernel_that_is_fastest_for_its_rows() {
        let steps = [
            step(&["a", "b", "c"]),
            step(&["x"]),
            step(&["d", "e"]),
            step(&["a", "b", "c"]),
        ];
        let products = products(&steps);
        assert_eq!(products, [vec![0, 3], vec![2]]);
        let mut tuning = Tuning::rule(&steps);
        let kernels = |tuning: &Tuning, step| {
            [1, 63, 64, 255, 256, 1023, 1024, 4095, 4096, 9000]
                .map(|rows| tuning.kernel(step, rows))
        };
        assert_eq!(kernels(&tuning, 0), [0, 0, 0, 2, 2, 2, 2, 2, 2, 2]);
        let fastest = [1, 0, 2, 2, 1, 0, 0, 1, 0, 1];
        assert!(fits(&fastest, &steps, &products));
        tuning.take(&products, &fastest, From::Measured);
        for step in [0, 3] {
            assert_eq!(kernels(&tuning, step), [1, 1, 0, 0, 2, 2, 2, 2, 1, 1]);
        }
        assert_eq!(kernels(&tuning, 1), [0; 10]);
        assert_eq!(kernels(&tuning, 2), [0, 0, 0, 0, 1, 1, 0, 0, 1, 1]);
    }

    fn alternatives(tuning: &Tuning) -> Vec<Option<usize>> {
        let alternatives = tuning.alternatives().into_iter();
        alternatives.map(|(kernel, _)| kernel).collect()
    }

    #[test]
    fn alternatives_run_every_kernel_that_a_batch_is_given() {
        let steps = [step(&["a", "b", "c"]), step(&["x"]), step(&["d", "e"])];
        let products = products(&steps);
        let mut tuning = Tuning::rule(&steps);
        assert!(tuning.varies());
        assert_eq!(alternatives(&tuning), [Some(0), Some(1), Some(2)]);
        let kernels = |tuning: &Tuning, rows| [0, 1, 2].map(|step| tuning.kernel(step, rows));
        let given = tuning.alternatives();
        for rows in [1, 9000] {
            assert_eq!(kernels(&given[0].1, rows), [0, 0, 0]);
            assert_eq!(kernels(&given[1].1, rows), [1, 0, 1]);
        }
        // What has no such kernel goes by its rows.
        assert_eq!(kernels(&given[2].1, 1), [2, 0, 0]);
        assert_eq!(kernels(&given[2].1, 9000), [2, 0, 1]);
        // A kernel that was measured to be slow is given to no batch.
        tuning.take(&products, &[2, 2, 1, 1, 1, 0, 0, 0, 0, 0], From::Measured);
        assert_eq!(alternatives(&tuning), [Some(1), Some(2)]);
        tuning.take(&products, &[2, 2, 2, 2, 2, 1, 1, 1, 1, 1], From::Measured);
        assert!(!tuning.varies());
        assert_eq!(alternatives(&tuning), [None]);
        assert_eq!(kernels(&tuning.alternatives()[0].1, 1), [2, 0, 1]);
    }

    #[test]
    fn kernels_that_no_rule_leads_to_are_no_alternatives() {
        let mut told = step(&["a", "b", "c"]);
        (told.kernels[1].0, told.kernels[2].0) = (0, IF_MEASURED);
        let tuning = Tuning::rule(&[told]);
        assert_eq!([1, 9000].map(|rows| tuning.kernel(0, rows)), [1, 1]);
        assert_eq!(alternatives(&tuning), [None]);
    }

    #[test]
    fn where_bits_are_promised_there_is_one_kernel() {
        let steps = [step(&["a", "b", "c"]), step(&["x"])];
        let one = Tuning::one(&steps);
        assert_eq!([1, 150, 9000].map(|rows| one.kernel(0, rows)), [0; 3]);
        assert!(!one.varies());
        assert_eq!(one.from, From::Rule);
    }

    #[test]
    fn choices_of_other_products_do_not_fit() {
        let steps = [step(&["a", "b"])];
        let products = products(&steps);
        assert!(fits(&[0, 1, 1, 0, 1], &steps, &products));
        assert!(!fits(&[0, 1, 2, 0, 1], &steps, &products));
        assert!(!fits(&[0, 1, 1, 0], &steps, &products));
        assert!(!fits(&[0; 10], &steps, &products));
        assert!(!fits(&[], &steps, &products));
    }
}
