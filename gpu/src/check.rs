//! A model is compared with the processor before anybody may use it: that is how drivers are caught
//! that compute wrong vectors without a word.

use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::ModelDescription;
use isovec_engine::engine::Batch;
use isovec_engine::head::MASK;
use isovec_engine::tensor::{DType, NamedTensor, Tensor};
use isovec_engine::{EngineError, Result};
use isovec_graph::plan::{NodeId, Op, Plan};
use isovec_graph::{CompileError, Pause, Program, Run};
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::OneThread;

use crate::model::Model;

/// Tokens of the texts: one of a single token, one that fills no group of threads, one that fills
/// more than one.
const LENGTHS: [usize; 3] = [1, 23, 70];

/// The largest L2 distance of a row, relative to its length: beyond what the order of sums does in
/// f32, far below what anybody would notice in a search.
const BOUND: f64 = 1e-3;

/// The same where the processor quantises activations and the device does not.
const BOUND_INT8: f64 = 1e-2;

/// Runs a few rows on both.
///
/// # Errors
/// [`EngineError::ProviderUnavailable`] when they differ, and what running fails with.
pub(crate) async fn compare(
    model: &Model,
    plan: &Plan,
    bundle: &ModelBundle,
    description: &ModelDescription,
    cancel: &Cancel,
    pause: &mut dyn Pause,
) -> Result<()> {
    let batch = sample(plan, bundle, description, model)?;
    let program = Program::compile(bundle, Arithmetic::Fast, cancel, pause).await;
    let program = program.map_err(|error| match error {
        CompileError::Engine(error) => error,
        other => EngineError::invalid_model(&bundle.origin, other.to_string()),
    })?;
    let mut run = Run::new(Arc::new(program), &batch)?;
    while run.step(None, &OneThread)?.is_some() {
        cancel.check()?;
        pause.pause().await;
    }
    let ours = run.finish();
    let theirs = model.run(&model.prepare(&batch)?, || (), cancel).await?;
    let int8 = bundle.weights.weights().iter();
    let int8 = int8
        .filter(|info| info.shape.len() > 1)
        .any(|info| info.dtype == DType::I8);
    let bound = if int8 { BOUND_INT8 } else { BOUND };
    for ((name, _, ours), (_, _, theirs)) in ours.iter().zip(&theirs) {
        let rows = LENGTHS.len();
        let worst = (0..rows)
            .map(|row| {
                let part = |all: &[f32]| {
                    let width = all.len() / rows;
                    all[row * width..(row + 1) * width].to_vec()
                };
                distance(&part(ours), &part(theirs))
            })
            .fold(0.0, f64::max);
        if worst.is_nan() || worst > bound {
            return Err(crate::device::unavailable(format!(
                "the adapter {} computes wrong vectors: {name} is {worst:.1e} away from the processor's, \
                 the bound is {bound:.0e}",
                crate::device::name(&model.device.info)
            )));
        }
        tracing::debug!(output = %name, distance = worst, "the device agrees with the processor");
    }
    Ok(())
}

/// The L2 distance of two rows, relative to the first's length.
fn distance(exact: &[f32], other: &[f32]) -> f64 {
    let sum = |terms: &mut dyn Iterator<Item = f64>| terms.map(|x| x * x).sum::<f64>().sqrt();
    let apart = sum(&mut exact
        .iter()
        .zip(other)
        .map(|(a, b)| f64::from(*a) - f64::from(*b)));
    apart / sum(&mut exact.iter().map(|x| f64::from(*x))).max(1e-12)
}

/// Texts of ids that every table has a row for.
fn sample(
    plan: &Plan,
    bundle: &ModelBundle,
    description: &ModelDescription,
    model: &Model,
) -> Result<Batch> {
    // Tables of positions may begin with rows for something else.
    let computed = |ids: NodeId| !matches!(plan.nodes[ids.0].op, Op::Input(_));
    let tables = plan.nodes.iter().zip(&plan.places);
    let tables = tables.filter_map(|(node, place)| match (&node.op, place) {
        (Op::Gather { ids, .. }, Some(place)) if computed(*ids) => {
            Some(plan.table(bundle, *place).1 / 2)
        }
        _ => None,
    });
    let longest = tables
        .chain([model.most_tokens / LENGTHS.len()])
        .chain(plan.positions)
        .min()
        .unwrap_or(usize::MAX)
        .max(1);
    let lengths = LENGTHS.map(|length| length.min(longest));
    let length = lengths.iter().copied().max().unwrap_or(1);
    let read = |name: &str| {
        let reads = |op: &Op| matches!(op, Op::Input(input) if input == name);
        plan.nodes.iter().any(|node| reads(&node.op))
    };
    let mut batch = Batch {
        row_lengths: lengths.to_vec(),
        ..Batch::default()
    };
    for input in &description.inputs {
        let rows = model.ids().iter().filter(|(name, _)| *name == input.name);
        let rows = rows.map(|(_, rows)| *rows).min().unwrap_or(1).max(1);
        let mut values = Vec::new();
        for (row, own) in lengths.iter().enumerate() {
            values.extend((0..length).map(|at| match (at < *own, input.name == MASK) {
                (real, true) => i64::from(real),
                // Steps through the table that meet all parts of it.
                (true, false) if read(&input.name) => ((row * 7919 + at * 104_729) % rows) as i64,
                _ => 0,
            }));
        }
        let shape = [lengths.len(), length];
        let tensor = match input.dtype {
            Some(DType::I32) => {
                let values: Vec<i32> = values.iter().map(|&value| value as i32).collect();
                Tensor::from_slice(&shape, &values)?
            }
            _ => Tensor::from_slice(&shape, &values)?,
        };
        batch
            .inputs
            .push(NamedTensor::new(input.name.as_str(), tensor));
    }
    Ok(batch)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

    use isovec_engine::bundle::BundleOptions;
    use isovec_engine::description::describe;
    use isovec_engine::head::{HeadSpec, Pooling, attach_head};
    use isovec_engine::maybe_send::BoxFuture;

    use super::*;
    use crate::device::{Device, Wanted};

    struct Never;

    impl Pause for Never {
        fn pause(&mut self) -> BoxFuture<'_, ()> {
            Box::pin(std::future::ready(()))
        }
    }

    fn tiny(pooling: Pooling) -> ModelBundle {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/tiny-bert");
        let mut bundle = ModelBundle::from_folder(folder, &BundleOptions::default()).unwrap();
        attach_head(&mut bundle, &HeadSpec::new(pooling, true)).unwrap();
        bundle
    }

    /// A device that computes something else, such as another pooling, is found out.
    #[test]
    fn a_device_that_computes_something_else_is_refused() {
        let (right, wrong) = (tiny(Pooling::Mean), tiny(Pooling::Cls));
        let (cancel, description) = (Cancel::new(), describe(&right));
        let wanted = Wanted {
            software: true,
            ..Wanted::default()
        };
        pollster::block_on(async {
            let plan = Plan::read(&wrong).await.unwrap();
            let device = match Device::open(&wanted).await {
                Ok(device) => Arc::new(device),
                Err(error) if std::env::var("ISOVEC_REQUIRE_GPU").is_ok_and(|v| v == "1") => {
                    panic!("{error}")
                }
                Err(error) => return eprintln!("not run: {error}"),
            };
            let model = Model::load(&wrong, &plan, device, &cancel, &mut Never)
                .await
                .unwrap();
            let mut never = Never;
            compare(&model, &plan, &wrong, &description, &cancel, &mut never)
                .await
                .unwrap();
            let error = compare(&model, &plan, &right, &description, &cancel, &mut never)
                .await
                .unwrap_err();
            assert_eq!(error.kind(), "ProviderUnavailable");
            assert!(error.to_string().contains("wrong vectors"), "{error}");
        });
    }

    #[test]
    fn distances_are_relative_and_a_nan_is_no_small_one() {
        assert!((distance(&[3.0, 4.0], &[3.0, 4.5]) - 0.1).abs() < 1e-9);
        assert!(distance(&[1.0], &[f32::NAN]).is_nan());
    }
}
