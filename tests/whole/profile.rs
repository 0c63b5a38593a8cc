//! What a profile says of real calls, on every engine that is here.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::join_all;
use isovec::profile::{Detail, Ended, Event, Profile, ProfileOptions, ProfileSession, Stage};
use isovec::{Cancel, DynamicBatcher, EmbedOptions, Embedder, EmbeddingConfig, blocking};
use isovec_test_support::{engines, mixed_texts, tiny_model};

fn of(profile: &Profile, stage: Stage) -> Vec<&Event> {
    let events = profile.events().iter();
    events.filter(|event| event.stage == stage).collect()
}

fn end(event: &Event) -> Duration {
    event.start + event.took()
}

fn within(inner: &Event, outer: &Event) -> bool {
    outer.start <= inner.start && end(inner) <= end(outer)
}

fn loaded(config: &EmbeddingConfig) -> Vec<(isovec_test_support::Which, Embedder)> {
    let load = |engine: isovec_test_support::Which| {
        let config = engine.configure(config.clone());
        let embedder = blocking::Embedder::builder(tiny_model())
            .config(config)
            .load()
            .unwrap();
        (engine, Embedder::from(embedder))
    };
    engines().into_iter().map(load).collect()
}

#[test]
fn a_call_is_seen_from_its_text_to_its_vector() {
    for (engine, embedder) in loaded(&EmbeddingConfig::default().with_max_batch_size(4)) {
        let texts = mixed_texts(10);
        let plain = pollster::block_on(embedder.embed(&texts)).unwrap();
        for blocking in [false, true] {
            let session = embedder.profile(ProfileOptions::default()).unwrap();
            let profiled = match blocking {
                true => blocking::Embedder::from(embedder.clone()).embed(&texts),
                false => pollster::block_on(embedder.embed(&texts)),
            };
            assert_eq!(profiled.unwrap().as_slice(), plain.as_slice());
            let profile = session.finish();
            let [request] = of(&profile, Stage::Request)[..] else {
                panic!("{profile:?}")
            };
            let wanted = Detail::Request {
                texts: 10,
                ended: Ended::Well,
            };
            assert_eq!(request.detail, wanted);
            let [tokenize] = of(&profile, Stage::Tokenize)[..] else {
                panic!("{profile:?}")
            };
            let tokens = plain.token_counts().iter().sum::<u32>() as usize;
            let wanted = Detail::Texts { texts: 10, tokens };
            assert_eq!(tokenize.detail, wanted);
            let batches = of(&profile, Stage::Batch);
            let mut sums = (0, 0);
            for batch in &batches {
                let Detail::Batch {
                    rows,
                    tokens,
                    positions,
                    requests,
                } = &batch.detail
                else {
                    panic!("{batch:?}")
                };
                assert!(tokens <= positions);
                assert_eq!(Some(requests[0]), request.request);
                sums = (sums.0 + rows, sums.1 + tokens);
            }
            assert_eq!(sums, (10, tokens));
            for (stage, inside) in [(Stage::Run, &batches), (Stage::Copy, &batches)] {
                let found = of(&profile, stage);
                assert_eq!(found.len(), inside.len(), "{stage:?}");
                for event in found {
                    let outer = inside.iter().find(|outer| outer.batch == event.batch);
                    assert!(within(event, outer.unwrap()), "{event:?} {outer:?}");
                }
            }
            assert!(
                profile
                    .events()
                    .iter()
                    .all(|event| { event.request == request.request && within(event, request) })
            );
            let operators = of(&profile, Stage::Operator);
            let gpu = embedder.stats().engine.gpu.filter(|gpu| gpu.timestamps);
            if let Some(gpu) = &gpu {
                assert_eq!(operators.len(), batches.len() * gpu.dispatches_per_run);
                let timed: u64 = gpu.kernels.iter().map(|kernels| kernels.dispatches).sum();
                assert!(timed >= operators.len() as u64, "{gpu:?}");
                assert!(gpu.kernels.iter().all(|kernels| kernels.seconds > 0.0));
            }
            if engine == isovec_test_support::Which::Portable || gpu.is_some() {
                let names: HashSet<&str> = operators.iter().map(|one| one.name.as_ref()).collect();
                assert!(
                    names.contains("linear") && names.contains("attention"),
                    "{names:?}"
                );
                let runs = of(&profile, Stage::Run);
                assert!(operators.iter().all(|one| {
                    runs.iter()
                        .any(|run| run.batch == one.batch && within(one, run))
                }));
            }
        }
    }
}

#[test]
fn a_batch_names_the_requests_whose_texts_are_in_it() {
    let config = EmbeddingConfig::default()
        .with_preferred_batch_size(8)
        .with_max_wait(Duration::from_millis(50));
    for (_, embedder) in loaded(&config) {
        let batcher = DynamicBatcher::new(&embedder);
        let session = embedder.profile(ProfileOptions::default()).unwrap();
        let calls = (0..8).map(|_| batcher.embed(["a text"]));
        for vectors in pollster::block_on(join_all(calls)) {
            vectors.unwrap();
        }
        let profile = session.finish();
        let requests = of(&profile, Stage::Request);
        let ids: HashSet<u64> = requests
            .iter()
            .map(|event| event.request.unwrap())
            .collect();
        assert_eq!(ids.len(), 8);
        let mut served: Vec<u64> = Vec::new();
        for batch in of(&profile, Stage::Batch) {
            let Detail::Batch { requests, .. } = &batch.detail else {
                panic!("{batch:?}")
            };
            served.extend(requests);
        }
        assert_eq!(served.len(), 8, "each text ran once");
        assert_eq!(served.into_iter().collect::<HashSet<_>>(), ids);
        for queue in of(&profile, Stage::Queue) {
            let request = requests
                .iter()
                .find(|request| request.request == queue.request);
            assert!(within(queue, request.unwrap()));
        }
        assert_eq!(of(&profile, Stage::Queue).len(), 8);
    }
}

#[test]
fn onnx_runtimes_operators_stand_in_their_runs() {
    if !engines().contains(&isovec_test_support::Which::OnnxRuntime) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = EmbeddingConfig::default().with_profiling(folder.path().join("own"));
    let config = isovec_test_support::Which::OnnxRuntime.configure(config);
    let embedder = blocking::Embedder::builder(tiny_model())
        .config(config)
        .load()
        .unwrap();
    // Not in the profile, and in ONNX Runtime's own.
    embedder.embed(["before"]).unwrap();
    let session = embedder.profile(ProfileOptions::default()).unwrap();
    for _ in 0..3 {
        embedder.embed(["a text", "and another one"]).unwrap();
    }
    let profile = session.finish();
    let runs = of(&profile, Stage::Run);
    assert_eq!(runs.len(), 3);
    let operators = of(&profile, Stage::Operator);
    for run in runs {
        let own = operators.iter().filter(|one| one.batch == run.batch);
        let own: Vec<_> = own.filter(|one| one.name.contains("MatMul")).collect();
        assert!(!own.is_empty(), "{operators:?}");
        // Their times are whole microseconds.
        let end = end(run) + Duration::from_micros(50);
        assert!(
            own.iter()
                .all(|one| one.start >= run.start && self::end(one) <= end)
        );
    }
    // It was ended with the first session, and running goes on.
    let session = embedder.profile(ProfileOptions::default()).unwrap();
    embedder.embed(["after"]).unwrap();
    assert!(of(&session.finish(), Stage::Operator).is_empty());
}

#[test]
fn who_gives_up_and_what_fails_is_seen_too() {
    for (_, embedder) in loaded(&EmbeddingConfig::default()) {
        let session = ProfileSession::start(ProfileOptions::default());
        embedder.profile_into(&session).unwrap();
        let again = embedder.profile(ProfileOptions::default());
        assert_eq!(again.unwrap_err().kind(), "AlreadyProfiled");
        let cancel = Cancel::new();
        cancel.cancel();
        let options = EmbedOptions::default().with_cancel(cancel);
        pollster::block_on(embedder.embed_with(["a text"], options)).unwrap_err();
        let named = EmbedOptions::default().with_prompt(isovec::Prompt::Named("none".into()));
        pollster::block_on(embedder.embed_with(["a text"], named)).unwrap_err();
        // Never polled: there was no request.
        drop(embedder.embed(["a text"]));
        let profile = session.finish();
        let ended = |event: &&Event| match event.detail {
            Detail::Request { ended, .. } => ended,
            _ => panic!("{event:?}"),
        };
        let ended: Vec<Ended> = of(&profile, Stage::Request).iter().map(ended).collect();
        assert_eq!(ended, [Ended::Cancelled, Ended::Failed]);
        embedder.profile(ProfileOptions::default()).unwrap();
    }
}
