//! What happens when a device goes away, cannot hold a model, is not there, or is asked for what it
//! cannot do: a typed error, never a wrong vector.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

mod common;

use common::{batch, config, factory, has_adapter, load, run};
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::Engine;
use isovec_gpu::{GpuEngine, Options};
use isovec_model::head::Pooling;
use isovec_test_models::bundles::bundle;
use isovec_test_models::checkpoint::Stored;
use isovec_test_models::models;
use isovec_test_models::texts::texts;

#[test]
fn a_device_lost_between_batches_is_named() {
    if !has_adapter() {
        return;
    }
    let bundle = bundle(&models::bert(), Stored::F32, Pooling::Mean);
    let engine = load(&bundle);
    let texts = texts(&[5, 9]);
    run(&engine, batch(&engine, &texts, 0));
    engine.lose_device();
    let error = engine
        .run_blocking(batch(&engine, &texts, 0), &Cancel::new())
        .unwrap_err();
    assert_eq!(error.kind(), "DeviceLost", "{error}");
}

/// Whenever it happens, the batch has all of its vectors or a typed error.
#[test]
fn a_device_lost_during_a_batch_leaves_no_wrong_vector() {
    if !has_adapter() {
        return;
    }
    let bundle = bundle(&models::bert(), Stored::F32, Pooling::Mean);
    let texts = texts(&[64; 40]);
    let expected = {
        let engine = load(&bundle);
        run(&engine, batch(&engine, &texts, 0))
    };
    let handed_over = |engine: &GpuEngine| engine.stats().gpu.unwrap().submissions;
    let whole = {
        let engine = load(&bundle);
        let before = handed_over(&engine);
        run(&engine, batch(&engine, &texts, 0));
        handed_over(&engine) - before
    };
    let mut lost = 0;
    // As soon as so many parts of it were handed to the device, the last of which leaves it time to be over.
    for parts in 0..=whole {
        let engine = load(&bundle);
        let before = handed_over(&engine);
        std::thread::scope(|scope| {
            let running =
                scope.spawn(|| engine.run_blocking(batch(&engine, &texts, 0), &Cancel::new()));
            while handed_over(&engine) < before + parts && !running.is_finished() {
                std::thread::yield_now();
            }
            engine.lose_device();
            match running.join().unwrap() {
                Ok(output) => {
                    let found = output.outputs[0].tensor.as_slice::<f32>().unwrap();
                    assert_eq!(found, expected, "after {parts} of {whole}");
                }
                Err(error) => {
                    assert_eq!(error.kind(), "DeviceLost", "{error}");
                    lost += 1;
                }
            }
        });
    }
    assert!(lost > 0, "no batch noticed");
}

/// Tables that are larger than a buffer may be are cut; the vectors are the same.
#[test]
fn a_table_larger_than_a_buffer_is_cut_up() {
    if !has_adapter() {
        return;
    }
    for stored in [Stored::F32, Stored::F16] {
        let bundle = bundle(&models::bert(), stored, Pooling::Mean);
        let texts = texts(&[5, 9, 17]);
        let whole = load(&bundle);
        let expected = run(&whole, batch(&whole, &texts, 0));
        let table = models::VOCABULARY * models::HIDDEN * 4;
        let limited = factory().with_binding_limit(table as u64 / 2);
        let engine =
            pollster::block_on(limited.load_model(&bundle, &config(), &Cancel::new())).unwrap();
        assert_eq!(run(&engine, batch(&engine, &texts, 0)), expected);
    }
}

#[test]
fn an_adapter_that_cannot_hold_the_model_is_refused() {
    if !has_adapter() {
        return;
    }
    let bundle = bundle(&models::bert(), Stored::F32, Pooling::Mean);
    let limited = factory().with_binding_limit(256);
    let error =
        pollster::block_on(limited.load_model(&bundle, &config(), &Cancel::new())).unwrap_err();
    assert_eq!(error.kind(), "ProviderUnavailable", "{error}");
    // What it lacks first depends on the adapter: places for the parts of a table, or room for the rest.
    let lacks = ["the device has", "a buffer of the adapter"];
    let message = error.to_string();
    assert!(lacks.iter().any(|lack| message.contains(lack)), "{message}");
}

#[test]
fn a_processor_that_plays_a_gpu_is_not_chosen_by_itself() {
    if !has_adapter() {
        return;
    }
    let bundle = bundle(&models::bert(), Stored::F32, Pooling::Mean);
    let engine = load(&bundle);
    if !engine.stats().gpu.unwrap().software {
        return;
    }
    let factory = factory().with_options(Options::default());
    let error =
        pollster::block_on(factory.load_model(&bundle, &config(), &Cancel::new())).unwrap_err();
    assert_eq!(error.kind(), "ProviderUnavailable", "{error}");
    assert!(error.to_string().contains("software_adapter"), "{error}");
}

/// Longer than its tables, and ids beyond them: refused, and the next batch runs.
#[test]
fn what_does_not_fit_is_refused() {
    if !has_adapter() {
        return;
    }
    let engine = load(&bundle(&models::bert(), Stored::F32, Pooling::Mean));
    let good = texts(&[3]);
    let expected = run(&engine, batch(&engine, &good, 0));
    let mut bad = vec![texts(&[65])];
    bad.extend(
        [models::VOCABULARY as i64, -1, i64::MAX].map(|id| vec![(vec![1, id, 2], vec![0; 3])]),
    );
    for bad in bad {
        let error = engine
            .run_blocking(batch(&engine, &bad, 0), &Cancel::new())
            .unwrap_err();
        assert_eq!(error.kind(), "InvalidInput", "{error}");
    }
    assert_eq!(run(&engine, batch(&engine, &good, 0)), expected);
}

#[test]
fn a_cancelled_run_ends_and_the_next_one_runs() {
    if !has_adapter() {
        return;
    }
    let engine = load(&bundle(&models::bert(), Stored::F32, Pooling::Mean));
    let cancel = Cancel::new();
    cancel.cancel();
    let texts = texts(&[5, 9]);
    let error = engine
        .run_blocking(batch(&engine, &texts, 0), &cancel)
        .unwrap_err();
    assert_eq!(error.kind(), "Cancelled");
    run(&engine, batch(&engine, &texts, 0));
}

/// Nothing but the vectors comes back, and a batch's words go up.
#[test]
fn what_crosses_is_counted() {
    if !has_adapter() {
        return;
    }
    let engine = load(&bundle(&models::bert(), Stored::F32, Pooling::Mean));
    let before = engine.stats();
    let texts = texts(&[5, 9, 17]);
    run(&engine, batch(&engine, &texts, 0));
    let after = engine.stats();
    let down = after.io_binding.from_device_bytes - before.io_binding.from_device_bytes;
    assert_eq!(down, (texts.len() * models::HIDDEN * 4) as u64);
    let (before, after) = (before.gpu.unwrap(), after.gpu.unwrap());
    assert_eq!(
        after.dispatches - before.dispatches,
        after.dispatches_per_run as u64
    );
    assert_eq!(
        after.pipelines, before.pipelines,
        "kernels are compiled once"
    );
    // One for products of each shape (three, of which the one behind attention has no activation), for
    // attention, for norms, before the first layer and after the last.
    assert_eq!(after.pipelines, 8);
    let layers = models::bert().config["num_hidden_layers"].as_u64().unwrap() as usize;
    assert_eq!(after.dispatches_per_run, 7 * layers + 2);
}
