//! Compares a model with the processor before it is used. This finds drivers that silently compute wrong vectors.
//! Every kernel has to work for any number of rows, so kernels that serve batches of other sizes run on the same few
//! texts.

use std::sync::Arc;

use isovec_encoder::program::{NodeId, Op, Program};
use isovec_encoder::{CompileError, Executable, Run};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::{Dim, ModelDescription};
use isovec_engine::engine::{Batch, MASK};
use isovec_engine::profile::Scope;
use isovec_engine::tensor::{DType, NamedTensor, Tensor};
use isovec_engine::{EngineError, Result, onnx};
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::OneThread;

use crate::host::Host;
use crate::model::{Answer, Model};

/// Tokens of the texts: one of a single token, one that fills no group of threads, one that fills
/// more than one.
const LENGTHS: [usize; 3] = [1, 7, 70];

/// The one that is enough where the same kernels have passed with all of them on the same device and driver.
const AGAIN: usize = 1;

/// The largest L2 distance of a row, relative to its length: beyond what the order of sums does in
/// f32, far below what anybody would notice in a search.
const BOUND: f64 = 1e-3;

/// The same where the processor quantises activations and the device does not.
const BOUND_INT8: f64 = 1e-2;

/// The same where the device computes with f16: what the project promises of that precision.
const BOUND_F16: f64 = 5e-3;

/// Runs a few texts on the device, once by every kernel that a batch may be given, and compares their rows with the
/// processor's. Where that went well at an earlier start, one text and what was kept of it are enough, so that the
/// weights need not be read and packed a second time. Whether it was so is what is returned.
///
/// # Errors
/// [`EngineError::ProviderUnavailable`] when they differ, and what running fails with.
pub(crate) async fn compare(
    model: &Model,
    program: &Program,
    bundle: &ModelBundle,
    description: &ModelDescription,
    host: &dyn Host,
    cancel: &Cancel,
) -> Result<bool> {
    let int8 = bundle.weights.weights().iter();
    let int8 = int8
        .filter(|info| info.shape.len() > 1)
        .any(|info| info.dtype == DType::I8);
    let bound = match (int8, model.limits.half) {
        (true, _) => BOUND_INT8,
        (false, true) => BOUND_F16,
        (false, false) => BOUND,
    };
    let run = async |texts: &[usize]| {
        let batch = sample(program, bundle, description, model, texts)?;
        let prepared = model.prepare(&batch)?;
        let mut found = Vec::new();
        for (kernel, tuning) in model.tuning.alternatives() {
            // What a kernel leaves unwritten must not be there already, of the one before it.
            model.clear().await;
            let answers = model
                .run(&prepared, &tuning, Scope::default, cancel)
                .await?;
            found.push((kernel, answers));
        }
        Ok::<_, EngineError>((found, batch))
    };
    let name = kept_under(model, bundle);
    if let Some(bytes) = host.recall(&name).await {
        let (theirs, _) = run(&[AGAIN]).await?;
        let agrees = |theirs: &[Answer]| {
            split(&bytes, theirs).is_some_and(|kept| farthest(&kept, theirs).1 <= bound)
        };
        if theirs.iter().all(|(_, theirs)| agrees(theirs)) {
            tracing::debug!("the device agrees with the cached vectors of an earlier start");
            return Ok(true);
        }
        // That may be of a damaged file: nobody is refused by it.
    }
    let (theirs, batch) = run(&[0, 1, 2]).await?;
    let ours = on_processor(bundle, &batch, host, cancel).await?;
    for (kernel, theirs) in &theirs {
        let (output, apart) = farthest(&ours, theirs);
        if apart > bound {
            let how = kernel.map_or_else(String::new, |kernel| {
                format!(" where {}", model.how(kernel))
            });
            return Err(crate::device::unavailable(format!(
                "the adapter {} computes wrong vectors{}{how}: {output} is {apart:.1e} away from the processor's, the \
                 bound is {bound:.0e}",
                crate::device::name(&model.device.info),
                if model.limits.half { " with f16" } else { "" },
            )));
        }
    }
    tracing::debug!("the device agrees with the processor");
    let length = batch.row_lengths.iter().copied().max().unwrap_or(1);
    let outputs = model.outputs().zip(&ours);
    let again = outputs.flat_map(|(output, values)| {
        let width = values.len() / LENGTHS.len();
        // Alone, the text has no padding.
        let own = match output.of_tokens {
            true => width / length * batch.row_lengths[AGAIN],
            false => width,
        };
        &values[AGAIN * width..][..own]
    });
    let again: Vec<u8> = again.flat_map(|value| value.to_le_bytes()).collect();
    host.keep(&name, again).await;
    Ok(false)
}

/// The outputs that the processor computes.
async fn on_processor(
    bundle: &ModelBundle,
    batch: &Batch,
    host: &dyn Host,
    cancel: &Cancel,
) -> Result<Vec<Vec<f32>>> {
    let mut pause = host.pause()?;
    // As the GPU computes it, which rounds no activations.
    let bundle = &bundle.clone().with_rounded_activations(false);
    let executable = Executable::compile(bundle, Arithmetic::Fast, cancel, &mut *pause).await;
    let executable = executable.map_err(|error| match error {
        CompileError::Engine(error) => error,
        other => EngineError::invalid_model(&bundle.origin, other.to_string()),
    })?;
    let mut run = Run::new(Arc::new(executable), batch)?;
    while run.step(None, &OneThread)?.is_some() {
        cancel.check()?;
        pause.pause().await;
    }
    let outputs = run.finish().into_iter();
    Ok(outputs.map(|(_, _, values)| values).collect())
}

/// What the processor's outputs are kept under: everything that they, and the device's, depend on.
fn kept_under(model: &Model, bundle: &ModelBundle) -> String {
    /// Changed with whatever changes the texts, how the processor computes them, or what is compared with that.
    const RULES: u32 = 3;
    let part = |hash: &str| hash.chars().take(32).collect::<String>();
    let arithmetic = if model.limits.half { "f16" } else { "f32" };
    let kernels = model.kernels().chain([arithmetic]);
    format!(
        "{}-{}-{}-{RULES}.f32",
        part(&bundle.identity.0),
        part(&onnx::graph_identity(&bundle.graph)),
        part(&model.device.identity_with(kernels)),
    )
}

/// Kept outputs, if they are of the same sizes as these.
fn split(bytes: &[u8], like: &[Answer]) -> Option<Vec<Vec<f32>>> {
    let (all, []) = bytes.as_chunks() else {
        return None;
    };
    let all: Vec<f32> = all.iter().copied().map(f32::from_le_bytes).collect();
    let mut rest = &all[..];
    let outputs = like.iter().map(|(_, _, values)| {
        let (own, behind) = rest.split_at_checked(values.len())?;
        rest = behind;
        Some(own.to_vec())
    });
    let outputs = outputs.collect::<Option<Vec<_>>>()?;
    rest.is_empty().then_some(outputs)
}

/// The output with the row that is the farthest away, and how far.
fn farthest<'a>(ours: &[Vec<f32>], theirs: &'a [Answer]) -> (&'a str, f64) {
    let rows = ours
        .iter()
        .zip(theirs)
        .flat_map(|(ours, (name, shape, theirs))| {
            let width = (theirs.len() / shape[0].max(1)).max(1);
            let rows = ours.chunks(width).zip(theirs.chunks(width));
            let alike = ours.len() == theirs.len();
            rows.map(move |(ours, theirs)| match alike {
                true => (name.as_str(), distance(ours, theirs)),
                false => (name.as_str(), f64::INFINITY),
            })
        });
    rows.max_by(|(_, a), (_, b)| a.total_cmp(b))
        .unwrap_or(("nothing", f64::INFINITY))
}

/// The L2 distance of two rows, relative to the first's length; infinite where one has a number and the other has none.
fn distance(exact: &[f32], other: &[f32]) -> f64 {
    let sum = |terms: &mut dyn Iterator<Item = f64>| terms.map(|x| x * x).sum::<f64>().sqrt();
    let apart = sum(&mut exact.iter().zip(other).map(|(a, b)| {
        let alike = a == b || a.is_nan() && b.is_nan();
        if alike {
            0.0
        } else {
            f64::from(*a) - f64::from(*b)
        }
    }));
    let finite = exact.iter().filter(|x| x.is_finite());
    let apart = apart / sum(&mut finite.map(|x| f64::from(*x))).max(1e-12);
    if apart.is_nan() { f64::INFINITY } else { apart }
}

/// So many numbers between -2 and 2, as those of pictures are, that do not repeat soon.
fn colors(many: usize) -> Vec<f32> {
    let number = |at: usize| ((at * 7919) % 104_729) as f32 / 26_182.25 - 2.0;
    (0..many).map(number).collect()
}

/// Those of the texts, of ids that every table has a row for.
fn sample(
    program: &Program,
    bundle: &ModelBundle,
    description: &ModelDescription,
    model: &Model,
    texts: &[usize],
) -> Result<Batch> {
    // Tables of positions may begin with rows for something else.
    let computed = |ids: NodeId| !matches!(program.nodes[ids.0].op, Op::Input(_));
    let tables = program.nodes.iter().zip(&program.places);
    let tables = tables.filter_map(|(node, place)| match (&node.op, place) {
        (Op::Gather { ids, .. }, Some(place)) if computed(*ids) => {
            Some(program.table(bundle, *place).1 / 2)
        }
        _ => None,
    });
    let longest = tables
        .chain([model.most_tokens / LENGTHS.len()])
        .chain(program.positions)
        .min()
        .unwrap_or(usize::MAX)
        .max(1);
    // A picture's tokens are of one number.
    let fixed = description.inputs.iter().find_map(|input| {
        let dims = (input.dtype == Some(DType::F32)).then_some(input.dims.as_deref());
        match dims.flatten() {
            Some([_, Dim::Fixed(tokens), _]) => Some(*tokens),
            _ => None,
        }
    });
    let lengths: Vec<usize> = texts
        .iter()
        .map(|text| fixed.unwrap_or_else(|| LENGTHS[*text].min(longest)))
        .collect();
    let length = lengths.iter().copied().max().unwrap_or(1);
    let read = |name: &str| {
        let reads = |op: &Op| matches!(op, Op::Input(input) if input == name);
        program.nodes.iter().any(|node| reads(&node.op))
    };
    let mut batch = Batch {
        row_lengths: lengths.clone(),
        ..Batch::default()
    };
    for input in &description.inputs {
        if let (Some(DType::F32), Some([.., Dim::Fixed(width)])) =
            (input.dtype, input.dims.as_deref())
        {
            let shape = [lengths.len(), length, *width];
            let tensor = Tensor::from_slice(&shape, &colors(shape.iter().product()))?;
            let name = input.name.as_str();
            batch.inputs.push(NamedTensor::new(name, tensor));
            continue;
        }
        let rows = model.ids().iter().filter(|(name, _)| *name == input.name);
        let rows = rows.map(|(_, rows)| *rows).min().unwrap_or(1).max(1);
        let mut values = Vec::new();
        for (row, own) in texts.iter().zip(&lengths) {
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

    use std::collections::HashMap;
    use std::sync::Mutex;

    use isovec_encoder::{NoTurns, Pause};
    use isovec_engine::description::describe;
    use isovec_engine::maybe_send::BoxFuture;
    use isovec_model::bundle::{self, BundleOptions};
    use isovec_model::head::{HeadSpec, Pooling, attach_head};

    use super::*;
    use crate::device::{Wanted, testing};
    use crate::host::Alone;
    use crate::limits::Limits;
    use crate::tuning::Tuning;

    /// Gives no turns, and keeps what it is given.
    #[derive(Default)]
    struct Shelf {
        kept: Mutex<HashMap<String, Vec<u8>>>,
    }

    impl Host for Shelf {
        fn pause(&self) -> Result<Box<dyn Pause>> {
            Ok(Box::new(Alone))
        }

        fn recall<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Vec<u8>>> {
            let kept = self.kept.lock().unwrap().get(name).cloned();
            Box::pin(std::future::ready(kept))
        }

        fn keep<'a>(&'a self, name: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, ()> {
            self.kept.lock().unwrap().insert(name.into(), bytes);
            Box::pin(std::future::ready(()))
        }
    }

    fn tiny(pooling: Pooling) -> ModelBundle {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/tiny-bert");
        let mut bundle = bundle::from_folder(folder, &BundleOptions::default()).unwrap();
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
            let program = Program::read(&wrong, &cancel, &mut NoTurns).await.unwrap();
            let host = Shelf::default();
            let Some(device) = testing::device(&wanted).await else {
                return;
            };
            let limits = Limits {
                half: false,
                ..device.limits
            };
            let model = Model::load(&wrong, &program, device, limits, &cancel, &mut Alone)
                .await
                .unwrap();
            let recalls = async |bundle| {
                compare(&model, &program, bundle, &description, &host, &cancel).await
            };
            assert!(!recalls(&wrong).await.unwrap(), "the processor computes");
            assert!(recalls(&wrong).await.unwrap(), "and is not asked again");
            let error = recalls(&right).await.unwrap_err();
            assert_eq!(error.kind(), "ProviderUnavailable");
            assert!(error.to_string().contains("wrong vectors"), "{error}");
            // What was kept and is damaged has no say.
            for damage in [
                |bytes: &mut Vec<u8>| bytes.truncate(10),
                |bytes: &mut Vec<u8>| bytes.extend([0; 4]),
                |bytes: &mut Vec<u8>| bytes.fill(0x3f),
                |bytes: &mut Vec<u8>| bytes.fill(0xff),
            ] {
                host.kept.lock().unwrap().values_mut().for_each(damage);
                assert!(!recalls(&wrong).await.unwrap());
                assert!(recalls(&right).await.is_err());
            }
            assert!(recalls(&wrong).await.unwrap(), "it was mended");
            // Another model's is not this one's.
            assert_eq!(host.kept.lock().unwrap().len(), 1);
        });
    }

    /// A kernel that does nothing is the fastest, and these texts have too few rows to be given it by rule.
    #[test]
    fn kernels_for_other_numbers_of_rows_are_compared_at_every_start() {
        let bundle = tiny(Pooling::Mean);
        let (cancel, description, host) = (Cancel::new(), describe(&bundle), Shelf::default());
        let wanted = Wanted {
            software: true,
            tiles: Some(true),
            subgroups: Some(false),
            ..Wanted::default()
        };
        pollster::block_on(async {
            let program = Program::read(&bundle, &cancel, &mut NoTurns).await.unwrap();
            let Some(device) = testing::device(&wanted).await else {
                return;
            };
            let limits = Limits {
                half: false,
                ..device.limits
            };
            let mut model = Model::load(&bundle, &program, device, limits, &cancel, &mut Alone)
                .await
                .unwrap();
            let recalls = async |model: &Model| {
                compare(model, &program, &bundle, &description, &host, &cancel).await
            };
            assert!(!recalls(&model).await.unwrap(), "the processor computes");
            assert!(recalls(&model).await.unwrap(), "and is not asked again");
            let begins = "var sum0_1 = vec4<f32>();";
            let ends = format!("{begins}\nif (rows > 0u) {{ return; }}");
            assert!(model.mutate(begins, &ends) > 0, "only large tiles have it");
            // As if the driver had got it right at the start before.
            let kept = host.kept.lock().unwrap().values().next().cloned();
            let name = kept_under(&model, &bundle);
            host.kept.lock().unwrap().insert(name, kept.unwrap());
            let error = recalls(&model).await.unwrap_err().to_string();
            assert!(error.contains("wrong vectors"), "{error}");
            assert!(error.contains("by tiles of 8 rows a thread"), "{error}");
        });
    }

    /// Also those that only a measurement takes, and with groups of so few threads that sums have several steps a thread.
    #[test]
    fn every_kernel_computes_the_same() {
        let bundle = tiny(Pooling::Mean);
        let (cancel, description) = (Cancel::new(), describe(&bundle));
        for (subgroups, threads) in [(false, 256), (false, 32), (true, 256)] {
            let wanted = Wanted {
                software: true,
                tiles: Some(true),
                subgroups: Some(subgroups),
                ..Wanted::default()
            };
            pollster::block_on(async {
                let program = Program::read(&bundle, &cancel, &mut NoTurns).await.unwrap();
                let Some(device) = testing::device(&wanted).await else {
                    return;
                };
                let limits = Limits {
                    half: false,
                    threads,
                    ..device.limits
                };
                let mut model = Model::load(&bundle, &program, device, limits, &cancel, &mut Alone)
                    .await
                    .unwrap();
                model.tuning = Tuning::all(&model.dispatches.steps);
                let batch = sample(&program, &bundle, &description, &model, &[0, 1, 2]).unwrap();
                let ours = on_processor(&bundle, &batch, &Alone, &cancel)
                    .await
                    .unwrap();
                let prepared = model.prepare(&batch).unwrap();
                let kernels = model.tuning.alternatives();
                assert_eq!(kernels.len(), if subgroups { 5 } else { 4 });
                for (kernel, tuning) in kernels {
                    model.clear().await;
                    let theirs = model.run(&prepared, &tuning, Scope::default, &cancel);
                    let theirs = theirs.await.unwrap();
                    let (_, apart) = farthest(&ours, &theirs);
                    assert!(apart < 2e-6, "{kernel:?}, {threads} threads: {apart:.1e}");
                }
                // And each is compared before it is used.
                let host = Shelf::default();
                let halves = "left > 0u; left /= 2u";
                assert!(model.mutate(halves, "left > 1u; left /= 2u") > 0);
                let error = compare(&model, &program, &bundle, &description, &host, &cancel);
                let error = error.await.unwrap_err().to_string();
                assert!(error.contains("by threads that share a sum"), "{error}");
            });
        }
    }

    #[test]
    fn distances_are_relative_and_a_nan_is_no_small_one() {
        assert!((distance(&[3.0, 4.0], &[3.0, 4.5]) - 0.1).abs() < 1e-9);
        assert_eq!(distance(&[1.0], &[f32::NAN]), f64::INFINITY);
        assert_eq!(distance(&[1.0], &[-f32::NAN]), f64::INFINITY);
        assert_eq!(distance(&[f32::INFINITY], &[1.0]), f64::INFINITY);
        let none = [f32::NAN, f32::INFINITY, 2.0];
        assert_eq!(distance(&none, &none), 0.0);
        assert_eq!(distance(&none, &[f32::NAN, f32::INFINITY, 3.0]), 0.5);
    }
}
