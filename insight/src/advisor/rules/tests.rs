//! Rules on contexts that cannot be had here: GPUs, pages, memory that is short. Each fires on its
//! evidence, and is silent just below it.

use serde_json::{Value, json};

use super::ALL;
use crate::advisor::{AnalysisContext, Rule as _};

/// A context with everything in it and nothing to say about it.
fn well() -> Value {
    let knobs = [
        ("session.intra_op_threads", "2"),
        ("session.pool_size", "1"),
        ("session.cpu_arena", "true"),
        ("session.deterministic_compute", "false"),
        ("session.graph_optimization_level", "3"),
        ("session.profiling", "none"),
        ("io.io_binding", "true"),
        ("io.batch_optimization", "true"),
        ("memory.memory_pool", "true"),
        ("memory.max_pool_size", "32"),
        ("memory.max_pool_memory", "67108864"),
        ("memory.mmap", "true"),
        ("model.dtype", "f32"),
        ("text.max_length", "512"),
        ("batching.max_batch_size", "32"),
        ("batching.max_batch_tokens", "256"),
        ("providers.provider_auto_selection", "false"),
        ("providers.cuda.tf32", "false"),
        ("providers.tensorrt.fp16", "false"),
        ("providers.webgpu.f16", "false"),
        ("embedding_cache.memory", "none"),
        ("embedding_cache.disk", "none"),
    ];
    let effective: Vec<Value> = knobs
        .iter()
        .map(|(name, used)| knob(name, None, used))
        .collect();
    json!({
        "effective": effective,
        "capabilities": {"ragged": false, "max_batch_tokens": null, "concurrent_runs": 1, "intra_op_threads": 2, "cancels_running": true, "deterministic": false},
        "provider": {"engine": "onnxruntime", "provider": "CPU", "version": "1"},
        "model": {"inputs": [], "outputs": [], "opset": 17, "producer": "", "weights_bytes": 90_000_000, "parameters": 22_000_000, "operators": {"MatMul": 72, "Softmax": 6}},
        "stats": {
            "sessions": {"peak_waiting": 0, "peak_run_bytes": 1_000_000},
            "memory_pool": {"enabled": true, "requests": 1000, "pool_hits": 990},
            "calls": {"embedded": 100, "texts": 3200, "batches": 800},
            "tokens": {"real": 190_000, "padding": 1_000},
        },
        "profile": {"seconds": 10.0, "dropped": 0, "stages": {"run": {"count": 800, "seconds": 9.0}, "operator": {"count": 80_000, "seconds": 9.0}}, "operators": {"MatMul": {"count": 60_000, "seconds": 8.0}, "Softmax": {"count": 20_000, "seconds": 1.0}}},
        "hardware": {"cpu": {"physical_cores": 2, "logical_cores": 4, "usable_cores": 4}, "memory": {"total_bytes": 16_000_000_000_u64, "available_bytes": 8_000_000_000_u64}},
        "workload": {"texts": 3200, "distinct": 3150, "tokens": 190_000, "p50_tokens": 60, "p99_tokens": 200, "max_tokens": 400},
        "memory": {"current_bytes": 300_000_000, "peak_bytes": 400_000_000},
    })
}

fn knob(name: &str, asked: Option<&str>, used: &str) -> Value {
    let honoured = asked.is_none_or(|asked| asked == used);
    json!({"name": name, "asked": asked, "used": used, "why": "because", "honoured": honoured})
}

fn set(context: &mut Value, path: &str, value: Value) {
    if let Some(name) = path.strip_prefix("knob:") {
        let Value::Array(mut asked_used) = value else {
            panic!("{path} takes what was asked for and what is used")
        };
        let used = asked_used.pop().unwrap();
        let asked = asked_used.pop().unwrap();
        let knobs = context["effective"].as_array_mut().unwrap();
        let at = knobs.iter().position(|knob| knob["name"] == name).unwrap();
        knobs[at] = knob(name, asked.as_str(), used.as_str().unwrap());
        return;
    }
    let mut within = context;
    for part in path.split('.') {
        within = &mut within[part];
    }
    *within = value;
}

fn found(context: &Value) -> Vec<String> {
    let context: AnalysisContext = serde_json::from_value(context.clone()).unwrap();
    let all = ALL.iter().flat_map(|rule| {
        assert!(
            rule.needs().iter().all(|&part| context.has(part)),
            "{}",
            rule.id
        );
        rule.check(&context)
    });
    all.map(|suggestion| {
        assert!(
            !suggestion.evidence.is_empty() && !suggestion.steps.is_empty(),
            "{suggestion:?}"
        );
        assert!(!suggestion.expected.reason.is_empty(), "{suggestion:?}");
        assert!(
            !suggestion.example.rust.is_empty() || suggestion.patch.is_none(),
            "{suggestion:?}"
        );
        suggestion.id
    })
    .collect()
}

/// A context that differs from a good one in these.
fn with(changes: &[(&str, Value)]) -> Value {
    let mut context = well();
    for (path, value) in changes {
        set(&mut context, path, value.clone());
    }
    context
}

#[test]
fn a_good_context_is_left_in_peace() {
    assert_eq!(found(&well()), [""; 0]);
}

#[test]
fn each_fires_on_its_evidence_and_not_just_below() {
    let cuda = ("provider.provider", json!("CUDA"));
    let many = |tokens: u64| ("stats.tokens.real", json!(tokens));
    let gpu = |software: bool| {
        (
            "stats.gpu",
            json!({"adapter": "a GPU", "backend": "vulkan", "software": software, "dispatches_per_run": 44}),
        )
    };
    let on_gpu = [
        (
            "provider",
            json!({"engine": "gpu", "provider": "WebGPU (Vulkan)", "version": "1"}),
        ),
        ("knob:batching.max_batch_tokens", json!([null, "8192"])),
        ("stats.tokens", json!({"real": 9_600_000, "padding": 0})),
    ];
    let adapters = |f16: bool| {
        (
            "hardware.adapters",
            json!([{"name": "a GPU", "backend": "vulkan", "shader_f16": f16}]),
        )
    };
    let page = |isolated: bool| ("hardware.page", json!({"cross_origin_isolated": isolated}));
    let wasm = (
        "provider",
        json!({"engine": "portable", "provider": "wasm simd128", "version": "1"}),
    );
    type Changes = Vec<(&'static str, Value)>;
    let cases: Vec<(&str, Changes, Changes)> = vec![
        (
            "mixed-precision",
            vec![
                cuda.clone(),
                ("knob:providers.cuda.tf32", json!([null, "false"])),
            ],
            vec![
                cuda.clone(),
                ("knob:providers.cuda.tf32", json!(["true", "true"])),
            ],
        ),
        (
            "mixed-precision",
            [&on_gpu[..], &[gpu(false), adapters(true)]].concat(),
            [&on_gpu[..], &[gpu(false), adapters(false)]].concat(),
        ),
        (
            "flash-attention",
            vec![
                cuda.clone(),
                ("knob:providers.cuda.tf32", json!(["true", "true"])),
                ("stats.calls.texts", json!(1000)),
            ],
            vec![
                cuda.clone(),
                ("knob:providers.cuda.tf32", json!(["true", "true"])),
                ("stats.calls.texts", json!(1000)),
                (
                    "model.operators",
                    json!({"com.microsoft.MultiHeadAttention": 6}),
                ),
            ],
        ),
        (
            "gpu-for-small-batches",
            [
                &on_gpu[..2],
                &[
                    gpu(false),
                    ("stats.tokens", json!({"real": 200_000, "padding": 0})),
                ],
            ]
            .concat(),
            [
                &on_gpu[..2],
                &[
                    gpu(false),
                    ("stats.tokens", json!({"real": 205_000, "padding": 0})),
                ],
            ]
            .concat(),
        ),
        ("software-gpu", vec![gpu(true)], vec![]),
        (
            "io-binding-off",
            vec![("knob:io.io_binding", json!(["false", "false"]))],
            vec![("knob:io.io_binding", json!([null, "false"]))],
        ),
        (
            "idle-cores",
            vec![
                ("knob:session.intra_op_threads", json!(["1", "1"])),
                ("capabilities.intra_op_threads", json!(1)),
            ],
            vec![("knob:session.intra_op_threads", json!(["2", "2"]))],
        ),
        (
            "threads-oversubscribed",
            vec![("capabilities.concurrent_runs", json!(3))],
            // As many as two threads of each core, which may be shared.
            vec![
                ("capabilities.concurrent_runs", json!(4)),
                ("capabilities.shared_threads", json!(4)),
            ],
        ),
        (
            "calls-of-one",
            vec![
                (
                    "stats.calls",
                    json!({"embedded": 800, "texts": 800, "batches": 800}),
                ),
                ("stats.sessions.peak_waiting", json!(2)),
            ],
            vec![
                (
                    "stats.calls",
                    json!({"embedded": 800, "texts": 800, "batches": 800}),
                ),
                ("stats.sessions.peak_waiting", json!(1)),
            ],
        ),
        (
            "over-batching",
            vec![
                ("knob:batching.max_batch_tokens", json!(["4096", "4096"])),
                ("stats.tokens.real", json!(820_000)),
            ],
            vec![
                ("knob:batching.max_batch_tokens", json!(["4096", "4096"])),
                ("stats.tokens.real", json!(815_000)),
            ],
        ),
        (
            // A size for each length, as they are measured.
            "over-batching",
            vec![
                (
                    "knob:batching.max_batch_tokens",
                    json!([null, "4096 in texts of up to 32, 256 up to 128, 128 beyond"]),
                ),
                ("stats.tokens.real", json!(820_000)),
            ],
            vec![
                (
                    "knob:batching.max_batch_tokens",
                    json!([null, "512 in texts of up to 32, 256 up to 128, 128 beyond"]),
                ),
                ("stats.tokens.real", json!(820_000)),
            ],
        ),
        (
            "padding-waste",
            vec![
                ("knob:io.batch_optimization", json!(["false", "false"])),
                ("stats.tokens.padding", json!(26_000)),
            ],
            vec![
                ("knob:io.batch_optimization", json!(["false", "false"])),
                ("stats.tokens.padding", json!(25_000)),
            ],
        ),
        (
            "repeated-texts",
            vec![("workload.distinct", json!(2870))],
            vec![
                ("workload.distinct", json!(2870)),
                ("knob:embedding_cache.memory", json!(["1000000", "1000000"])),
            ],
        ),
        (
            "memory-pressure",
            vec![("hardware.memory.available_bytes", json!(1_500_000_000))],
            vec![("hardware.memory.available_bytes", json!(1_700_000_000))],
        ),
        (
            "memory-pressure",
            vec![
                ("stats.memory_pool.pressure_cleanups", json!(1)),
                // A page does not know how much memory there is.
                ("hardware.memory", json!({})),
            ],
            vec![("hardware.memory", json!({}))],
        ),
        (
            // All limits are low already.
            "memory-pressure",
            vec![
                ("stats.memory_pool.pressure_cleanups", json!(1)),
                ("knob:memory.memory_pool", json!(["false", "false"])),
            ],
            vec![
                ("stats.memory_pool.pressure_cleanups", json!(1)),
                ("knob:memory.memory_pool", json!(["false", "false"])),
                ("knob:batching.max_batch_tokens", json!(["64", "64"])),
            ],
        ),
        (
            "memory-peak",
            vec![
                ("memory.peak_bytes", json!(610_000_000)),
                ("stats.sessions.peak_run_bytes", json!(90_000_000)),
            ],
            vec![
                ("memory.peak_bytes", json!(590_000_000)),
                ("stats.sessions.peak_run_bytes", json!(90_000_000)),
            ],
        ),
        (
            // The peak was not one of runs.
            "memory-peak",
            vec![
                ("memory.peak_bytes", json!(610_000_000)),
                ("stats.sessions.peak_run_bytes", json!(78_000_000)),
            ],
            vec![
                ("memory.peak_bytes", json!(610_000_000)),
                ("stats.sessions.peak_run_bytes", json!(77_000_000)),
            ],
        ),
        (
            "pool-misses",
            vec![(
                "stats.memory_pool",
                json!({"enabled": true, "requests": 100, "pool_hits": 70, "evictions": 20}),
            )],
            vec![(
                "stats.memory_pool",
                json!({"enabled": true, "requests": 100, "pool_hits": 70, "evictions": 2}),
            )],
        ),
        (
            "smaller-weights",
            vec![("model.weights_bytes", json!(500_000_000))],
            vec![
                ("model.weights_bytes", json!(500_000_000)),
                ("knob:model.dtype", json!(["f16", "f16"])),
            ],
        ),
        (
            // Large wherever it runs; without a word on memory nobody can say of a smaller one.
            "smaller-weights",
            vec![
                ("model.weights_bytes", json!(500_000_000)),
                ("hardware.memory", json!({})),
            ],
            vec![("hardware.memory", json!({}))],
        ),
        (
            "products-in-int8",
            vec![
                many(2_000_000),
                ("hardware.cpu.simd", json!(["avx2", "avx512vnni"])),
            ],
            vec![
                many(2_000_000),
                ("hardware.cpu.simd", json!(["avx2", "avx512f"])),
            ],
        ),
        (
            // Another engine, fewer bits already, and products that are of whole numbers.
            "products-in-int8",
            vec![
                many(2_000_000),
                ("hardware.cpu.simd", json!(["avxvnni"])),
                ("model.operators", json!({"MatMul": 10, "Gemm": 2})),
            ],
            vec![
                many(2_000_000),
                ("hardware.cpu.simd", json!(["avxvnni"])),
                ("model.operators", json!({"MatMul": 9, "Gemm": 2})),
            ],
        ),
        (
            "products-in-int8",
            vec![many(2_000_000), ("hardware.cpu.simd", json!(["i8mm"]))],
            vec![
                many(2_000_000),
                ("hardware.cpu.simd", json!(["i8mm"])),
                (
                    "model.operators",
                    json!({"MatMul": 72, "DequantizeLinear": 36}),
                ),
            ],
        ),
        (
            "products-in-int8",
            vec![
                many(2_000_000),
                ("hardware.cpu.simd", json!(["avx512vnni"])),
            ],
            vec![
                many(2_000_000),
                ("hardware.cpu.simd", json!(["avx512vnni"])),
                (
                    "provider",
                    json!({"engine": "portable", "provider": "CPU", "version": "1"}),
                ),
            ],
        ),
        (
            "products-in-int8",
            vec![
                many(1_000_000),
                ("hardware.cpu.simd", json!(["avx512vnni"])),
            ],
            vec![many(999_999), ("hardware.cpu.simd", json!(["avx512vnni"]))],
        ),
        (
            // Few tokens are enough where it is tried, and nothing else is.
            "products-in-int8",
            vec![
                ("trials", json!(true)),
                ("hardware.cpu.simd", json!(["avx512vnni"])),
            ],
            vec![
                ("trials", json!(true)),
                ("hardware.cpu.simd", json!(["avx2"])),
            ],
        ),
        (
            "attention-cost",
            vec![
                ("profile.operators.Softmax.seconds", json!(4.0)),
                ("stats.calls.texts", json!(900)),
                ("stats.calls.batches", json!(900)),
                ("knob:session.graph_optimization_level", json!([null, "3"])),
            ],
            vec![
                ("profile.operators.Softmax.seconds", json!(4.0)),
                ("stats.calls.texts", json!(1000)),
                ("stats.calls.batches", json!(1000)),
            ],
        ),
        (
            "unfused-operators",
            vec![("knob:session.graph_optimization_level", json!(["1", "1"]))],
            vec![("knob:session.graph_optimization_level", json!(["2", "2"]))],
        ),
        (
            "unfused-operators",
            vec![(
                "profile.operators",
                json!({"MatMul": {"count": 60_000, "seconds": 6.0}, "Add": {"count": 120_000, "seconds": 3.0}}),
            )],
            vec![(
                "profile.operators",
                json!({"MatMul": {"count": 60_000, "seconds": 7.0}, "Add": {"count": 120_000, "seconds": 2.0}}),
            )],
        ),
        (
            "page-not-isolated",
            vec![wasm.clone(), page(false)],
            vec![wasm, page(true)],
        ),
    ];
    for (rule, fires, silent) in cases {
        let there = found(&with(&fires));
        assert!(
            there.contains(&rule.to_owned()),
            "{rule} does not fire: {there:?}, {fires:?}"
        );
        let below = found(&with(&silent));
        assert!(
            !below.contains(&rule.to_owned()),
            "{rule} fires: {silent:?}"
        );
    }
}

#[test]
fn a_profile_that_is_left_on_is_named_where_it_is_not_the_looking_that_asks_for_it() {
    let names = |context: Value| -> Vec<String> {
        let context: AnalysisContext = serde_json::from_value(context).unwrap();
        let found = ALL.iter().flat_map(|rule| rule.check(&context));
        found.map(|found| found.id).collect()
    };
    let mut context = with(&[("knob:session.profiling", json!(["run.json", "run.json"]))]);
    assert_eq!(names(context.clone()), [""; 0]);
    context["config"] = json!({});
    assert_eq!(names(context.clone()), [""; 0]);
    context["config"] = json!({"session": {"profiling": "run.json"}});
    assert_eq!(names(context.clone()), ["runtime-profile-on"]);
    context["config"] = Value::Null;
    context["profile"] = Value::Null;
    assert_eq!(names(context), ["runtime-profile-on"]);
}
