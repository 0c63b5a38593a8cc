//! The advisor on real runs: every planted fault is named first, and a well-tuned run is left in peace.

use std::time::Duration;

use isovec::blocking::Embedder;
use isovec::config::ExecutionProvider;
use isovec::hardware::HardwareInfo;
use isovec::profile::ProfileOptions;
use isovec::{Cancel, Dtype, EmbeddingConfig, ModelSource};
use isovec_insight::advisor::{
    Advisor, AnalysisContext, OptimizationReport, Trial, TuneOptions, Verdict, Workload,
};
use isovec_test_support::{Which, engines, minilm, mixed_texts, tiny_model};

/// What is known after a model embedded these texts in calls of that many.
fn observed(
    model: &ModelSource,
    config: EmbeddingConfig,
    texts: &[String],
    call: usize,
) -> AnalysisContext {
    // What else the machine is doing is no fault of the configuration.
    let config = config.with_memory_pressure_detection(false);
    let embedder = Embedder::builder(model.clone())
        .config(config)
        .load()
        .unwrap();
    let session = embedder.profile(ProfileOptions::default()).unwrap();
    let mut lengths = Vec::new();
    for texts in texts.chunks(call) {
        let vectors = embedder.embed(texts).unwrap();
        lengths.extend(vectors.token_counts().iter().map(|&tokens| tokens as usize));
    }
    let mut hardware = pollster::block_on(HardwareInfo::detect()).unwrap();
    hardware.memory.available_bytes = hardware.memory.total_bytes;
    let mut context = AnalysisContext::from(&embedder)
        .with_profile(&session.finish())
        .with_workload(Workload::new(texts.iter().zip(lengths)))
        .with_hardware(hardware);
    // Other tests run in this process.
    context.memory = None;
    context
}

fn advice(
    model: &ModelSource,
    config: EmbeddingConfig,
    texts: &[String],
    call: usize,
) -> OptimizationReport {
    Advisor::new().analyze(&observed(model, config, texts, call))
}

fn names(report: &OptimizationReport) -> Vec<&str> {
    let suggestions = report.suggestions.iter();
    suggestions.map(|suggestion| &*suggestion.id).collect()
}

/// Texts of one length, so that none is padded.
fn even_texts(count: usize) -> Vec<String> {
    (0..count)
        .map(|text| format!("{text:04} {}", "and so on and on ".repeat(12)))
        .collect()
}

#[test]
fn each_planted_fault_is_named_first() {
    let Some(model) = minilm().filter(|_| engines().contains(&Which::OnnxRuntime)) else {
        return;
    };
    let cores = std::thread::available_parallelism().unwrap().get();
    let base = || Which::OnnxRuntime.configure(EmbeddingConfig::default());
    let mixed = mixed_texts(160);
    let even = even_texts(96);
    let mut repeated = mixed_texts(80);
    repeated.extend(mixed_texts(80));
    let planted = [
        (
            "padding-waste",
            base()
                .with_batch_optimization(false)
                .with_max_batch_size(64),
            &mixed,
        ),
        (
            "over-batching",
            base()
                .with_max_batch_tokens(16_384)
                .with_max_batch_size(512),
            &even,
        ),
        (
            "threads-oversubscribed",
            base().with_intra_op_threads(4 * cores).with_pool_size(2),
            &mixed,
        ),
        (
            "idle-cores",
            base().with_intra_op_threads(1).with_pool_size(1),
            &mixed,
        ),
        (
            "unfused-operators",
            base().with_graph_optimization_level(0),
            &mixed,
        ),
        (
            "pool-misses",
            base()
                .with_memory_pool(false)
                .with_pre_allocated_input_buffers(0)
                .with_pre_allocated_output_buffers(0),
            &mixed,
        ),
        ("model-not-mapped", base().with_mmap(false), &mixed),
        (
            "provider-fallback",
            base().with_execution_providers([ExecutionProvider::Cuda, ExecutionProvider::Cpu]),
            &mixed,
        ),
        ("batches-of-one", base().with_max_batch_size(1), &mixed),
        (
            "deterministic-compute",
            base().with_deterministic_compute(true),
            &mixed,
        ),
        ("repeated-texts", base(), &repeated),
    ];
    for (fault, config, texts) in planted {
        if fault == "idle-cores" && cores < 2 {
            continue;
        }
        let report = advice(&model, config.clone(), texts, 160);
        let first = report.suggestions.first();
        let first = first.unwrap_or_else(|| panic!("{fault}: nothing is suggested"));
        assert_eq!(first.id, fault, "{fault}: {:?}", names(&report));
        assert!(
            !first.evidence.is_empty() && !first.steps.is_empty(),
            "{first:?}"
        );
        assert!(
            // Nobody measured the process, and ONNX Runtime tells of operators only where it is asked to.
            report
                .not_judged
                .iter()
                .all(|rule| ["memory-peak", "attention-cost"].contains(&&*rule.rule)),
            "{report:?}"
        );
        if first.patch.is_some() {
            // The change takes the fault away.
            let mended = first.apply(&config).unwrap();
            assert_ne!(mended, config);
            let after = advice(&model, mended, texts, 160);
            assert!(
                !names(&after).contains(&fault),
                "{fault}: {:?}",
                names(&after)
            );
        }
    }
}

#[test]
fn a_gpu_that_a_processor_plays_is_named() {
    if !engines().contains(&Which::WebGpu) {
        return;
    }
    let config = Which::WebGpu.configure(EmbeddingConfig::default());
    let report = advice(&tiny_model(), config.clone(), &mixed_texts(64), 64);
    assert_eq!(names(&report)[0], "software-gpu", "{:?}", names(&report));
    let mended = report.suggestions[0].apply(&config).unwrap();
    assert_eq!(mended, EmbeddingConfig::default());
}

#[test]
fn a_well_tuned_run_is_left_in_peace() {
    let Some(model) = minilm() else { return };
    for which in engines() {
        if which == Which::WebGpu {
            continue;
        }
        for config in [
            EmbeddingConfig::default(),
            EmbeddingConfig::high_throughput(),
        ] {
            let report = advice(&model, which.configure(config), &mixed_texts(160), 160);
            assert_eq!(names(&report), [""; 0], "{}", which.name());
            assert!(report.judged > 20, "{report:?}");
            assert!(report.to_markdown().contains("Nothing: none of the"));
        }
        // One query at a time.
        let config = which.configure(EmbeddingConfig::low_latency());
        let report = advice(&model, config, &mixed_texts(40), 1);
        assert_eq!(names(&report), [""; 0], "{}", which.name());
    }
}

/// A trial that takes next to no time; its verdicts on speed are not looked at.
fn short() -> Trial {
    let mut trial = Trial::default();
    trial.rounds = 6;
    trial.turn = Duration::from_millis(2);
    trial
}

#[test]
fn a_trial_tells_other_vectors_from_the_same() {
    let texts = mixed_texts(24);
    for which in engines() {
        let load = |config| {
            Embedder::builder(tiny_model())
                .config(which.configure(config))
                .load()
                .unwrap()
        };
        let baseline = load(EmbeddingConfig::default());
        let trial = short();
        let same = trial
            .run_blocking(&baseline, &load(EmbeddingConfig::high_throughput()), &texts)
            .unwrap();
        assert_ne!(
            same.verdict,
            Verdict::OtherVectors,
            "{}: {same}",
            which.name()
        );
        assert!(same.distance.unwrap() <= 1e-5 && same.compatible, "{same}");
        assert_eq!((same.baseline.len(), same.candidate.len()), (6, 6));

        let cut = load(EmbeddingConfig::default().with_max_length(8));
        let other = trial.run_blocking(&baseline, &cut, &texts).unwrap();
        assert_eq!(other.verdict, Verdict::OtherVectors, "{other}");
        assert!(!other.compatible);

        let narrow = load(EmbeddingConfig::default().with_dtype(Dtype::Int8));
        let other = trial.run_blocking(&baseline, &narrow, &texts).unwrap();
        assert_eq!(other.verdict, Verdict::OtherVectors, "{other}");
        assert!(
            other.compatible && other.distance.unwrap() > 1e-4,
            "{other}"
        );
        let mut wide = short();
        wide.tolerance = 0.2;
        let near = wide.run_blocking(&baseline, &narrow, &texts).unwrap();
        assert_ne!(near.verdict, Verdict::OtherVectors, "{near}");
    }
}

#[test]
fn a_trial_and_tuning_can_be_stopped() {
    let cancel = Cancel::new();
    cancel.cancel();
    let mut trial = short();
    trial.cancel = Some(cancel);
    let config = Which::Portable.configure(EmbeddingConfig::default());
    let embedder = Embedder::builder(tiny_model())
        .config(config.clone())
        .load()
        .unwrap();
    let texts = mixed_texts(8);
    let error = trial
        .run_blocking(&embedder, &embedder, &texts)
        .unwrap_err();
    assert!(error.is_cancelled(), "{error}");
    let mut options = TuneOptions::default();
    options.trial = trial;
    let error = isovec_insight::blocking::tune(tiny_model(), config, &texts, options).unwrap_err();
    assert!(error.is_cancelled(), "{error}");
}

#[test]
fn what_is_suggested_can_be_tried() {
    for which in engines() {
        if which != Which::OnnxRuntime {
            continue;
        }
        let config = which.configure(EmbeddingConfig::default().with_graph_optimization_level(0));
        let texts = mixed_texts(32);
        let context = observed(&tiny_model(), config.clone(), &texts, 32);
        let mut report = Advisor::new().analyze(&context);
        let embedder = Embedder::builder(tiny_model())
            .config(config)
            .load()
            .unwrap();
        let mut heard = Vec::new();
        let (embedder, trial) = (embedder.into(), short());
        let verified = report.verify(tiny_model(), &embedder, &texts, &trial, |title| {
            heard.push(title.to_owned());
        });
        pollster::block_on(verified).unwrap();
        let found = report.suggestion("unfused-operators").unwrap();
        let trial = found.verified.as_ref().unwrap();
        assert_ne!(trial.verdict, Verdict::OtherVectors, "{trial}");
        assert!(heard.contains(&found.title), "{heard:?}");
        assert!(report.to_markdown().contains("**Measured:**"));
    }
}

#[test]
fn tuning_keeps_only_what_a_trial_found_better() {
    for which in engines() {
        let mut options = TuneOptions::default();
        options.trial = short();
        options.trial.gives_up = true;
        options.time = Duration::from_secs(20);
        let config = which.configure(EmbeddingConfig::debug());
        let texts = mixed_texts(48);
        let report =
            isovec_insight::blocking::tune(tiny_model(), config.clone(), &texts, options).unwrap();
        let mut expected = config;
        for step in &report.steps {
            let better = step
                .suggestion
                .verified
                .as_ref()
                .is_some_and(|trial| trial.verdict == Verdict::Better);
            assert_eq!(step.kept, better, "{step:?}");
            assert!(
                step.failed.is_some() || step.suggestion.verified.is_some(),
                "{step:?}"
            );
            if step.kept {
                expected = step.suggestion.apply(&expected).unwrap();
            }
        }
        assert_eq!(report.config, expected, "{}", which.name());
        assert!(!report.steps.is_empty(), "{}", which.name());
        assert_eq!(
            report.overall.is_some(),
            report.steps.iter().any(|step| step.kept)
        );
        let json = serde_json::to_string(&report).unwrap();
        let read: isovec_insight::advisor::TuneReport = serde_json::from_str(&json).unwrap();
        assert_eq!(read.config, report.config);
    }
}
