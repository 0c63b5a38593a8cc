//! Tests the view of a model's graph, on every available engine.

use isovec::profile::{Detail, Profile, ProfileOptions, Stage};
use isovec::{EmbeddingConfig, ModelSource, blocking};
use isovec_insight::graph::{GraphForm, GraphOptions, ModelGraph, TimesError};
use isovec_test_support::{Which, engines, minilm, tiny_model};

fn read(engine: Which, source: ModelSource, options: GraphOptions) -> ModelGraph {
    let config = engine.configure(EmbeddingConfig::default());
    isovec_insight::blocking::graph(source, config, options).unwrap()
}

fn models() -> Vec<ModelSource> {
    [Some(tiny_model()), minilm()]
        .into_iter()
        .flatten()
        .collect()
}

/// A profile of a few calls, under which ONNX Runtime takes its own.
fn profile(engine: Which, source: ModelSource, texts: &[&str]) -> Profile {
    let folder = tempfile::tempdir().unwrap();
    let config = EmbeddingConfig::default().with_profiling(folder.path().join("onnxruntime"));
    let embedder = blocking::Embedder::builder(source)
        .config(engine.configure(config))
        .load()
        .unwrap();
    let session = embedder.profile(ProfileOptions::default()).unwrap();
    embedder.embed(texts).unwrap();
    session.finish()
}

#[test]
fn every_engine_shows_what_it_runs() {
    for source in models() {
        for engine in engines() {
            let graph = read(engine, source.clone(), GraphOptions::default());
            let config = engine.configure(EmbeddingConfig::default());
            let embedder = blocking::Embedder::builder(source.clone())
                .config(config)
                .load()
                .unwrap();
            assert_eq!(graph.engine.as_ref(), Some(embedder.provider()));
            let form = match engine {
                Which::OnnxRuntime => GraphForm::Optimized,
                _ => GraphForm::Program,
            };
            assert_eq!(graph.form, form);
            let description = embedder.description();
            assert_eq!(graph.totals.parameters, description.parameters);
            assert_eq!(graph.totals.weight_bytes, description.weights_bytes);
            // What nodes read is the model's, but for what folding makes of it.
            let read: u64 = graph.nodes.iter().map(|node| node.parameters).sum();
            let off = read.abs_diff(description.parameters) as f64 / description.parameters as f64;
            assert!(off < 0.02, "{read} of {}", description.parameters);
            assert_eq!(graph.totals.unknown, 0);
            let layers: Vec<_> = graph
                .groups
                .iter()
                .filter(|group| group.repeats > 1)
                .collect();
            let [layers] = layers[..] else {
                panic!("{:?}", graph.groups)
            };
            assert_eq!(layers.name, "encoder layer");
            let wanted = if source == tiny_model() { 2 } else { 6 };
            assert_eq!(layers.repeats, wanted);
            let covered: usize = graph
                .groups
                .iter()
                .map(|group| group.nodes * group.repeats)
                .sum();
            assert_eq!(covered, graph.nodes.len());
            for (at, node) in graph.nodes.iter().enumerate() {
                assert!(node.inputs.iter().all(|&input| input < at), "{node:?}");
                assert_eq!(
                    node.provider.is_none(),
                    node.operator == "input",
                    "{node:?}"
                );
            }
            let json = serde_json::to_string(&graph).unwrap();
            let again: ModelGraph = serde_json::from_str(&json).unwrap();
            // Shares are divisions, whose last digit JSON may change.
            assert_eq!((&again.nodes, &again.groups), (&graph.nodes, &graph.groups));
            assert_eq!((&again.totals, again.form), (&graph.totals, graph.form));
        }
    }
}

#[test]
fn the_file_has_every_parameter_once_and_no_engine() {
    for source in models() {
        let options = GraphOptions::default().with_file(true);
        let graph = read(Which::Portable, source.clone(), options);
        assert_eq!((graph.form, &graph.engine), (GraphForm::File, &None));
        let config = Which::Portable.configure(EmbeddingConfig::default());
        let embedder = blocking::Embedder::builder(source)
            .config(config)
            .load()
            .unwrap();
        let nodes: u64 = graph.nodes.iter().map(|node| node.parameters).sum();
        assert_eq!(nodes, embedder.description().parameters);
        for (operator, count) in &embedder.description().operators {
            let share = graph
                .operators
                .iter()
                .find(|share| share.operator == *operator);
            assert_eq!(share.map(|share| share.nodes), Some(*count), "{operator}");
        }
        assert_eq!(graph.totals.unknown, 0);
    }
}

#[test]
fn engines_agree_on_what_products_and_attention_cost() {
    for source in models() {
        let options = || GraphOptions::default().with_size(2, 32);
        let exact = |graph: &ModelGraph| -> u64 {
            let nodes = graph.nodes.iter();
            // The pooling head multiplies in an ONNX graph, and sums in a program.
            let nodes = nodes.filter(|node| !node.name.starts_with("head."));
            let products = nodes.filter(|node| {
                matches!(
                    node.operator.as_str(),
                    "linear" | "attention" | "MatMul" | "FusedMatMul"
                )
            });
            products.map(|node| node.flops.unwrap()).sum()
        };
        let file = exact(&read(
            Which::Portable,
            source.clone(),
            options().with_file(true),
        ));
        for engine in engines() {
            let graph = read(engine, source.clone(), options());
            assert_eq!(exact(&graph), file, "{}", engine.name());
        }
    }
}

#[test]
fn costs_are_those_that_a_profile_of_the_portable_engine_counts() {
    for source in models() {
        let text = "the cat sat on a mat and stocks fell while rain came over old hills";
        let profile = profile(Which::Portable, source.clone(), &[text]);
        let tokens = profile
            .events()
            .iter()
            .find_map(|event| match event.detail {
                Detail::Texts { tokens, .. } => Some(tokens),
                _ => None,
            });
        let options = GraphOptions::default().with_size(1, tokens.unwrap());
        let graph = read(Which::Portable, source, options);
        let counted = profile
            .events()
            .iter()
            .filter_map(|event| match event.detail {
                Detail::Operator {
                    multiply_adds,
                    bytes,
                    ..
                } if event.stage == Stage::Operator => {
                    Some((event.name.to_string(), 2 * multiply_adds, bytes))
                }
                _ => None,
            });
        let counted: Vec<_> = counted.collect();
        let nodes = graph.nodes.iter().filter(|node| node.operator != "input");
        let shown: Vec<_> = nodes
            .map(|node| {
                (
                    node.operator.clone(),
                    node.flops.unwrap(),
                    node.result_bytes.unwrap(),
                )
            })
            .collect();
        assert_eq!(shown, counted);
        let sum: u64 = counted.iter().map(|(_, flops, _)| flops).sum();
        assert_eq!(graph.totals.flops, sum);
    }
}

#[test]
fn a_trace_of_the_same_model_and_engine_times_every_node() {
    for engine in engines() {
        let texts = ["one text", "and another one that is longer"];
        let profile = profile(engine, tiny_model(), &texts);
        let trace = profile.to_chrome_trace();
        let mut graph = read(engine, tiny_model(), GraphOptions::default());
        let before = graph.clone();
        let taken = graph.take_times(trace.as_bytes());
        if engine == Which::WebGpu {
            assert!(matches!(taken, Err(TimesError::NotRun { .. })), "{taken:?}");
            assert_eq!(graph, before);
            continue;
        }
        taken.unwrap();
        let times = graph.times.as_ref().unwrap();
        assert!(times.runs > 0 && times.skipped == 0, "{times:?}");
        let spans = profile.events().iter();
        let spans = spans.filter(|event| event.stage == Stage::Operator);
        let all: f64 = spans.map(|event| event.took().as_secs_f64() * 1e3).sum();
        let shown = times.milliseconds * times.runs as f64;
        assert!((all - shown).abs() <= 1e-6 * all, "{all} {shown}");
        for node in graph.nodes.iter().filter(|node| node.operator != "input") {
            assert!(node.milliseconds.is_some(), "{node:?}");
        }
        assert!(
            graph.to_text(false).contains("times: "),
            "{}",
            graph.to_text(false)
        );
        assert!(graph.to_html().contains(">Time</th>"));

        // Cut off anywhere it says so, and nothing is changed.
        for part in [0, trace.len() / 2, trace.len() - 3] {
            let mut graph = before.clone();
            let cut = graph.take_times(&trace.as_bytes()[..part]);
            assert!(matches!(cut, Err(TimesError::Unreadable(_))), "{cut:?}");
            assert_eq!(graph, before);
        }
    }
}

#[test]
fn a_trace_of_another_model_or_engine_is_refused() {
    let engines = engines();
    let trace = |engine, source| profile(engine, source, &["a text"]).to_chrome_trace();
    let own = trace(Which::Portable, tiny_model());
    let mut others = Vec::new();
    if let Some(minilm) = minilm() {
        others.push((read(Which::Portable, minilm, GraphOptions::default()), &own));
    }
    let other_engine;
    if engines.contains(&Which::OnnxRuntime) {
        let options = GraphOptions::default;
        others.push((read(Which::OnnxRuntime, tiny_model(), options()), &own));
        other_engine = trace(Which::OnnxRuntime, tiny_model());
        others.push((
            read(Which::Portable, tiny_model(), options()),
            &other_engine,
        ));
    }
    for (mut graph, trace) in others {
        let refused = graph.take_times(trace.as_bytes());
        assert!(
            matches!(refused, Err(TimesError::OtherModel { .. })),
            "{refused:?}"
        );
        assert!(graph.times.is_none());
    }
    let mut graph = read(Which::Portable, tiny_model(), GraphOptions::default());
    let none = graph.take_times(&br#"{"traceEvents": []}"#[..]);
    assert!(matches!(none, Err(TimesError::NoRuns)), "{none:?}");
    let mut file = read(
        Which::Portable,
        tiny_model(),
        GraphOptions::default().with_file(true),
    );
    let refused = file.take_times(own.as_bytes());
    assert!(
        matches!(refused, Err(TimesError::NotRun { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_graph_of_nothing_is_refused() {
    let config = Which::Portable.configure(EmbeddingConfig::default());
    for (rows, tokens) in [(0, 8), (1, 0)] {
        let options = GraphOptions::default().with_size(rows, tokens);
        let error =
            isovec_insight::blocking::graph(tiny_model(), config.clone(), options).unwrap_err();
        assert_eq!(error.kind(), "Config", "{error}");
    }
}
