//! The parity suite on every preset: however the machine is used, the vectors are the same.

use isovec::{Embedder, EmbeddingConfig, ModelSource};
use isovec_parity::Reference;
use isovec_test_support::{Which, engines, tiny_model};

type Preset = (&'static str, fn() -> EmbeddingConfig);

const PRESETS: [Preset; 6] = [
    ("high_throughput", EmbeddingConfig::high_throughput),
    ("low_latency", EmbeddingConfig::low_latency),
    ("gpu", EmbeddingConfig::gpu),
    ("cpu", EmbeddingConfig::cpu),
    ("memory_constrained", EmbeddingConfig::memory_constrained),
    ("debug", EmbeddingConfig::debug),
];

fn check(source: &ModelSource, reference: &Reference, which: Which, (name, preset): Preset) {
    // This one names providers of both engines, so it cannot be held to one of them.
    let config = match name {
        "gpu" => preset(),
        _ => which.configure(preset()),
    };
    let report = pollster::block_on(async {
        let embedder = Embedder::builder(source.clone())
            .config(config)
            .load()
            .await
            .unwrap();
        let at = format!("{name} on {}", which.name());
        if name != "gpu" {
            assert_eq!(embedder.provider().engine, which.name(), "{at}");
        }
        let stats = embedder.stats();
        let fallbacks = &stats.engine.provider.fallbacks;
        if name == "gpu" && stats.engine.provider.selected == "CPU" {
            // A machine without one: what was passed over is on record, with a cause each.
            assert!(!fallbacks.is_empty(), "{at}: fell back in silence");
            for event in fallbacks {
                assert!(!event.cause.is_empty(), "{at}: {event:?}");
            }
        } else if name != "gpu" {
            assert!(fallbacks.is_empty(), "{at}: {fallbacks:?}");
        }
        isovec_parity::run(&embedder, reference).await.unwrap()
    });
    println!("{name}, {}: {report}", which.name());
    assert!(
        report.broken().is_empty(),
        "{name} on {}: {}",
        which.name(),
        report.broken().join("; ")
    );
}

#[test]
fn the_tiny_model_with_every_preset_on_every_engine() {
    for which in engines() {
        for preset in PRESETS {
            check(&tiny_model(), &Reference::tiny(), which, preset);
        }
    }
}

/// Every preset, with every tenth text: the tiny model has had the others.
#[test]
fn minilm_with_every_preset_on_onnx_runtime() {
    let Some(model) = isovec_test_support::minilm() else {
        return;
    };
    if !engines().contains(&Which::OnnxRuntime) {
        return;
    }
    let whole = Reference::minilm();
    let rows: Vec<usize> = (0..whole.texts.len()).step_by(10).collect();
    let part = Reference {
        texts: rows.iter().map(|&row| whole.texts[row].clone()).collect(),
        vectors: rows
            .iter()
            .flat_map(|&row| whole.vector(row))
            .copied()
            .collect(),
        dim: whole.dim,
    };
    for preset in PRESETS {
        check(&model, &part, Which::OnnxRuntime, preset);
    }
}
