//! Cancelled runs, in every state that a run can be in.

use std::sync::Arc;
use std::thread;

use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::description::describe;
use isovec_engine::engine::{Batch, Engine};
use isovec_engine::error::EngineError;
use isovec_engine::fingerprint::Precision;

use super::models::*;
use super::{available, poll};
use crate::engine::{OrtEngine, Parts, c_names};
use crate::graph;
use crate::options::Options;
use crate::runtime::runtime;
use crate::settings::Settings;
use crate::sys::Session;

/// An engine for [`looping`] whose inside the test can look at.
fn engine() -> Arc<OrtEngine> {
    let bundle = looping();
    let runtime = runtime(None).unwrap();
    let mut config = EngineConfig::default();
    config.session.pool_size = Some(1);
    let settings = Settings::new(&config, &describe(&bundle), &Options::default());
    let options = settings.options().unwrap();
    let graph = graph::serialise(&bundle).unwrap();
    let description = describe(&bundle);
    let inputs = c_names(description.inputs.iter().map(|input| &input.name), "test").unwrap();
    let session = Session::new(&runtime.env, &graph, &options, &inputs, Vec::new()).unwrap();
    let parts = Parts {
        runtime,
        description,
        settings,
        session,
        precision: Precision::F32,
        origin: "test".into(),
    };
    Arc::new(OrtEngine::new(parts, &Cancel::new()).unwrap())
}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

/// The engine still gives answers.
fn works(engine: &OrtEngine) {
    let mut output = engine
        .run_blocking(looping_batch(3), &Cancel::new())
        .unwrap();
    assert_eq!(
        output.take("y").unwrap().as_slice::<f32>().unwrap(),
        [-1.0, -2.0, -3.0, -4.0]
    );
}

fn assert_cancelled<T: std::fmt::Debug>(result: Result<T, EngineError>) {
    assert!(matches!(result, Err(EngineError::Cancelled)), "{result:?}");
}

#[test]
fn a_run_is_refused_once_cancelled() {
    if !available() {
        return;
    }
    let engine = engine();
    let cancel = Cancel::new();
    cancel.cancel();
    assert_cancelled(engine.run_blocking(looping_batch(FOR_EVER), &cancel));
    assert_cancelled(pollster::block_on(
        engine.run(looping_batch(FOR_EVER), &cancel),
    ));
    works(&engine);
}

#[test]
fn a_run_under_way_is_cancelled() {
    if !available() {
        return;
    }
    let engine = engine();
    for blocking in [true, false] {
        let cancel = Cancel::new();
        let run = {
            let (engine, cancel) = (Arc::clone(&engine), cancel.clone());
            thread::spawn(move || {
                if blocking {
                    engine.run_blocking(looping_batch(FOR_EVER), &cancel)
                } else {
                    pollster::block_on(engine.run(looping_batch(FOR_EVER), &cancel))
                }
            })
        };
        until(|| engine.busy());
        cancel.cancel();
        assert_cancelled(run.join().unwrap());
        works(&engine);
    }
}

#[test]
fn dropping_the_future_ends_the_run_and_frees_the_session() {
    if !available() {
        return;
    }
    let engine = engine();
    let cancel = Cancel::new();
    let mut run = engine.run(looping_batch(FOR_EVER), &cancel);
    assert!(poll(&mut run).is_pending());
    until(|| engine.busy());
    drop(run);
    works(&engine);
    assert!(!cancel.is_cancelled());
}

#[test]
fn runs_that_wait_are_cancelled_without_disturbing_the_one_that_runs() {
    if !available() {
        return;
    }
    let engine = engine();
    let (first, second) = (Cancel::new(), Cancel::new());
    let mut running = engine.run(looping_batch(FOR_EVER), &first);
    assert!(poll(&mut running).is_pending());
    until(|| engine.busy());
    // Queued behind it; dropped there.
    let mut queued = engine.run(looping_batch(FOR_EVER), &second);
    assert!(poll(&mut queued).is_pending());
    drop(queued);
    // Waiting for the session; cancelled there.
    let waiting = {
        let (engine, second) = (Arc::clone(&engine), second.clone());
        thread::spawn(move || engine.run_blocking(looping_batch(FOR_EVER), &second))
    };
    second.cancel();
    assert_cancelled(waiting.join().unwrap());
    assert!(
        poll(&mut running).is_pending(),
        "the other run was disturbed"
    );
    first.cancel();
    assert_cancelled(pollster::block_on(running));
    works(&engine);
}

#[test]
fn an_engine_dropped_during_a_run_lets_go_of_everything() {
    if !available() {
        return;
    }
    let engine = engine();
    let inside = Arc::downgrade(engine.shared());
    let cancel = Cancel::new();
    let mut run = engine.run(looping_batch(FOR_EVER), &cancel);
    assert!(poll(&mut run).is_pending());
    until(|| engine.busy());
    drop(run);
    drop(engine);
    until(|| inside.strong_count() == 0);
}

#[test]
fn a_poisoned_engine_says_so_to_everyone() {
    if !available() {
        return;
    }
    let engine = engine();
    engine.poison("it broke");
    let cancel = Cancel::new();
    let batch = || -> Batch { looping_batch(1) };
    for error in [
        engine.run_blocking(batch(), &cancel).unwrap_err(),
        pollster::block_on(engine.run(batch(), &cancel)).unwrap_err(),
    ] {
        assert!(
            matches!(&error, EngineError::EnginePoisoned { detail, .. } if detail == "it broke"),
            "{error}"
        );
    }
}
