//! Providers that cannot lie, knobs that do what they say: the real ONNX Runtime, which here is
//! the processor's build, asked for what it does not have.

use isovec::blocking::Embedder;
use isovec::config::ExecutionProvider;
use isovec::{EmbeddingConfig, Error};
use isovec_test_support::{Which, engines, minilm, tiny_model};

/// A configuration for ONNX Runtime, if it is here.
fn onnxruntime() -> Option<EmbeddingConfig> {
    engines()
        .contains(&Which::OnnxRuntime)
        .then(|| Which::OnnxRuntime.configure(EmbeddingConfig::default()))
}

fn refused(config: EmbeddingConfig) -> Error {
    match Embedder::builder(tiny_model()).config(config).load() {
        Ok(embedder) => panic!("it loaded on {}", embedder.provider()),
        Err(error) => error,
    }
}

const GPU_THEN_CPU: [ExecutionProvider; 3] = [
    ExecutionProvider::TensorRt,
    ExecutionProvider::Cuda,
    ExecutionProvider::Cpu,
];

#[test]
fn a_provider_that_is_not_there_is_passed_over_with_its_cause() {
    let Some(config) = onnxruntime() else { return };
    for detection in [true, false] {
        let config = config
            .clone()
            .with_execution_providers(GPU_THEN_CPU)
            .with_hardware_detection(detection);
        let embedder = Embedder::builder(tiny_model())
            .config(config)
            .load()
            .unwrap();
        assert_eq!(embedder.provider().provider, "CPU");
        embedder.embed(["a text"]).unwrap();
        let provider = embedder.stats().engine.provider;
        let events: Vec<(&str, &str)> = provider
            .fallbacks
            .iter()
            .map(|event| (event.from.as_str(), event.to.as_str()))
            .collect();
        assert_eq!(events, [("tensorrt", "cpu"), ("cuda", "cpu")]);
        let cause = &provider.fallbacks[1].cause;
        assert!(cause.contains("does not have it"), "{cause}");
        // Who has the nodes is read back from the session.
        let nodes: Vec<&str> = provider
            .nodes
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(nodes, ["CPUExecutionProvider"]);
        assert!(provider.nodes[0].1 > 10, "{:?}", provider.nodes);
        assert_eq!((provider.runs, provider.success_rate()), (1, 1.0));

        let knob = embedder
            .effective_config()
            .get("providers.execution_providers");
        let knob = knob.unwrap();
        assert_eq!((knob.used.as_str(), knob.honoured), ("cpu", false));
    }
}

#[test]
fn strict_makes_it_an_error_before_the_model_is_touched() {
    let Some(config) = onnxruntime() else { return };
    let config = config
        .with_execution_providers([ExecutionProvider::Cuda, ExecutionProvider::Cpu])
        .with_strict_providers(true);
    // There is no such model: whoever looked at it would say so.
    let Err(error) = Embedder::builder("./no/such/model")
        .config(config.clone())
        .load()
    else {
        panic!("a model that is not there was loaded")
    };
    assert_eq!(error.kind(), "ProviderUnavailable", "{error}");
    assert!(error.to_string().contains("onnxruntime-gpu"), "{error}");
    // A chain without the processor does not end there by itself.
    let alone = config
        .with_strict_providers(false)
        .with_execution_providers([ExecutionProvider::Cuda]);
    assert_eq!(refused(alone).kind(), "ProviderUnavailable");
}

#[test]
fn paths_that_cannot_be_written_are_refused_before_the_model_is_touched() {
    let Some(config) = onnxruntime() else { return };
    let config = config
        .with_profiling("/dev/null/profile")
        .with_optimized_model_cache("/dev/null/cache");
    let Err(Error::Engine(error)) = Embedder::builder("./no/such/model").config(config).load()
    else {
        panic!("nothing was refused")
    };
    assert_eq!(error.kind(), "Config");
    let text = error.to_string();
    for knob in ["session.profiling", "session.optimized_model_cache"] {
        assert!(text.contains(knob), "{text}");
    }
}

#[test]
fn a_profile_is_written_where_it_was_asked_for() {
    let Some(config) = onnxruntime() else { return };
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("profile");
    let embedder = Embedder::builder(tiny_model())
        .config(config.with_profiling(&prefix))
        .load()
        .unwrap();
    embedder.embed(["a text"]).unwrap();
    drop(embedder);
    // The engine's threads let go of the session when they have seen that it is over.
    let found = || -> Option<String> {
        let entry = std::fs::read_dir(folder.path()).unwrap().flatten().next()?;
        let text = std::fs::read_to_string(entry.path()).unwrap();
        (entry.file_name().to_str()?.starts_with("profile") && !text.is_empty()).then_some(text)
    };
    // Looks with a pause after each, so many that only what never comes is given up.
    let written = (0..10_000).find_map(|_| {
        // A part of it may end like the whole.
        let text = found().filter(|text| serde_json::from_str::<serde_json::Value>(text).is_ok());
        if text.is_none() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        text
    });
    let text = written.expect("no profile was written");
    assert!(text.contains("MatMul"), "{text}");
}

#[test]
fn the_optimised_graph_is_kept_and_gives_the_same_vectors() {
    let Some(config) = onnxruntime() else { return };
    let folder = tempfile::tempdir().unwrap();
    let config = config.with_optimized_model_cache(folder.path());
    let texts = ["a text", "and another one that is longer"];
    let kept = || -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(folder.path()).unwrap().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let first = Embedder::builder(tiny_model())
        .config(config.clone())
        .load()
        .unwrap();
    let expected = first.embed(texts).unwrap();
    let [file] = &kept()[..] else {
        panic!("{:?}", kept())
    };
    assert_eq!(file.extension().unwrap(), "onnx");
    let again = Embedder::builder(tiny_model())
        .config(config.clone())
        .load()
        .unwrap();
    assert_eq!(again.embed(texts).unwrap().as_slice(), expected.as_slice());
    assert_eq!(kept().len(), 1);
    // A damaged one is not trusted: it is made again.
    let whole = std::fs::read(file).unwrap();
    std::fs::write(file, &whole[..whole.len() / 2]).unwrap();
    let repaired = Embedder::builder(tiny_model())
        .config(config)
        .load()
        .unwrap();
    assert_eq!(
        repaired.embed(texts).unwrap().as_slice(),
        expected.as_slice()
    );
    let (repaired, whole) = (std::fs::metadata(file).unwrap().len(), whole.len() as u64);
    assert!(
        repaired > whole / 2 + 1,
        "{repaired} bytes after repair, {whole} before"
    );
}

#[test]
fn a_memory_limit_below_the_weights_is_refused_and_one_above_is_kept() {
    let Some(config) = onnxruntime() else { return };
    let error = refused(config.clone().with_memory_limit(10_000));
    assert_eq!(error.kind(), "Config", "{error}");
    assert!(error.to_string().contains("memory.memory_limit"), "{error}");

    let roomy = Embedder::builder(tiny_model())
        .config(config.clone())
        .load()
        .unwrap();
    let weights = roomy.description().weights_bytes;
    let tight = config.with_memory_limit(weights + 30_000);
    let embedder = Embedder::builder(tiny_model())
        .config(tight)
        .load()
        .unwrap();
    let short = vec!["a text"; 40];
    let expected = roomy.embed(&short).unwrap();
    assert_eq!(embedder.embed(&short).unwrap().len(), 40);
    assert_eq!(expected.len(), 40);
    let (split, whole) = (embedder.stats().calls.batches, roomy.stats().calls.batches);
    assert!(
        split > whole,
        "{split} batches with a limit, {whole} without"
    );
}

#[test]
fn slots_run_at_the_same_time_and_are_counted_one_by_one() {
    let Some(config) = onnxruntime() else { return };
    let config = config.with_pool_size(3).with_intra_op_threads(1);
    let model = minilm().unwrap_or_else(tiny_model);
    let embedder = Embedder::builder(model).config(config).load().unwrap();
    assert_eq!(embedder.capabilities().concurrent_runs, 3);
    std::thread::scope(|scope| {
        for caller in 0..6 {
            let embedder = &embedder;
            scope.spawn(move || {
                for call in 0..8 {
                    let text = format!("caller {caller} calls for the {call}th time");
                    embedder.embed([text]).unwrap();
                }
            });
        }
    });
    let sessions = embedder.stats().engine.sessions;
    assert_eq!(
        (sessions.count, sessions.in_use, sessions.waiting),
        (3, 0, 0)
    );
    assert_eq!(
        sessions
            .per_session
            .iter()
            .map(|share| share.runs)
            .sum::<u64>(),
        48
    );
    assert!(
        sessions.peak_in_use >= 2 && sessions.peak_in_use <= 3,
        "{sessions:?}"
    );
    assert_eq!((sessions.run.count, sessions.wait.count), (48, 48));
}
