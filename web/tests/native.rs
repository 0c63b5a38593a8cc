//! The suite on threads.
#![cfg(feature = "threads")]
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

#[allow(unreachable_pub)] // The other test file uses the same.
mod suite;

use std::sync::Arc;

use isovec_engine::config::EngineConfig;
use isovec_web::executor::Executor;
use isovec_web::executor::threads::Threads;

fn executor() -> Arc<dyn Executor> {
    Arc::new(Threads)
}

macro_rules! tests {
    ($($name:ident($($executor:expr)?);)*) => {$(
        #[test]
        fn $name() {
            pollster::block_on(suite::$name($($executor)?));
        }
    )*};
}

tests! {
    agrees_with_the_reference(executor());
    blocking_gives_the_same(executor());
    runs_at_once_do_not_meet(executor());
    cancelled_from_the_start(executor());
    cancel_stops_between_operators();
    pauses_in_time();
    heavy_batches_are_run_in_pieces();
    masks_with_holes_are_refused(executor());
    convolutions_agree_with_the_reference(executor());
    convolutions_pause_and_are_cancelled();
    other_convolutions_run_on_tract(executor());
    tract_agrees_with_the_reference(executor());
    tract_runs_heavy_batches_in_groups();
    dropping_the_future_cancels();
    dropping_the_future_leaves_a_working_engine(executor());
    weights_are_read_one_at_a_time(executor());
    wrong_inputs_are_refused(executor());
    ids_beyond_the_table_are_refused(executor());
    unknown_operators_are_named(executor());
    broken_graphs_are_refused(executor());
    wrong_weights_are_refused(executor());
    a_weight_with_several_readers(executor());
    says_what_it_is(executor());
    threads_do_not_change_results(executor());
}

/// What runs have together: their share of the cores, or what each was given.
#[test]
fn runs_share_threads_unless_both_knobs_are_set() {
    let cores = isovec_engine::cores::physical();
    let threads = |threads, runs| {
        let mut config = EngineConfig::default();
        config.session.intra_op_threads = threads;
        config.session.pool_size = runs;
        let engine = pollster::block_on(suite::load_with(executor(), &suite::seeded(), &config));
        engine.capabilities().shared_threads.unwrap()
    };
    assert_eq!(threads(None, None), cores);
    assert_eq!(threads(None, Some(1)), cores.min(4));
    assert_eq!(threads(Some(1), None), cores);
    assert_eq!(threads(Some(cores + 1), None), cores + 1);
    assert_eq!(threads(Some(3), Some(cores + 1)), 3 * (cores + 1));
}
