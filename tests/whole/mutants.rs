//! The parity suite must fail for models that are almost right. Each mutant is the real graph
//! with one classic mistake; a bound that lets it pass would be no bound.

use std::sync::Arc;

use bytes::Bytes;
use isovec::{Embedder, EmbeddingConfig, ModelSource};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::maybe_send::EngineFuture;
use isovec_engine::onnx::proto::{DataType, GraphProto, NodeProto};
use isovec_engine::weights::{WeightInfo, WeightSource, Weights};
use isovec_model::bundle::{self, BundleOptions};
use isovec_model::onnx::builder::{GraphBuilder, int};
use isovec_parity::{BOUNDS, Deviation, Reference};
use isovec_test_support::Which;

const MASK: &str = "attention_mask";

fn graph(bundle: &mut ModelBundle) -> &mut GraphProto {
    bundle.graph.graph.as_mut().unwrap()
}

/// Puts nodes in front of all others, so that every node may read what they give.
fn put_first(graph: &mut GraphProto, write: impl FnOnce(&mut GraphBuilder<'_>)) {
    let nodes: Vec<NodeProto> = std::mem::take(&mut graph.node);
    write(&mut GraphBuilder::new(graph, "mutant."));
    graph.node.extend(nodes);
}

/// GELU by its tanh approximation: erf(x/√2) becomes tanh(√(2/π)(x + 0.044715 x³)).
fn tanh_for_erf(bundle: &mut ModelBundle) {
    let graph = graph(bundle);
    let mut mutated = 0;
    for node in std::mem::take(&mut graph.node) {
        if node.op_type != "Erf" {
            graph.node.push(node);
            continue;
        }
        mutated += 1;
        let (input, output) = (&node.input[0], &node.output[0]);
        let mut builder = GraphBuilder::new(graph, format!("mutant{mutated}."));
        // The node reads z = x/√2.
        let square = builder.node("Mul", &[input, input], vec![]);
        let cubic = builder.f32(0.044_715 * 2.0);
        let inner = builder.node("Mul", &[&square, &cubic], vec![]);
        let one = builder.f32(1.0);
        let inner = builder.node("Add", &[&inner, &one], vec![]);
        let inner = builder.node("Mul", &[&inner, input], vec![]);
        let scale = builder.f32(2.0 / std::f32::consts::PI.sqrt());
        let inner = builder.node("Mul", &[&inner, &scale], vec![]);
        builder.named_node("Tanh", &[&inner], output, vec![]);
    }
    assert!(mutated > 0, "the graph has no Erf to replace");
}

/// The epsilon of most other models.
fn wrong_epsilon(bundle: &mut ModelBundle) {
    let mut mutated = 0;
    for node in graph(bundle)
        .node
        .iter_mut()
        .filter(|node| node.op_type == "LayerNormalization")
    {
        for attribute in node
            .attribute
            .iter_mut()
            .filter(|attribute| attribute.name == "epsilon")
        {
            attribute.f = 1e-5;
            mutated += 1;
        }
    }
    assert!(mutated > 0, "the graph has no epsilon to change");
}

/// Every token believes that it stands one further on.
fn positions_off_by_one(bundle: &mut ModelBundle) {
    bundle.weights = Arc::new(Rotated(bundle.weights.clone()));
}

/// Weights whose position table is turned by one row.
#[derive(Debug)]
struct Rotated(Weights);

impl WeightSource for Rotated {
    fn weights(&self) -> &[WeightInfo] {
        self.0.weights()
    }

    fn read<'a>(&'a self, index: usize) -> EngineFuture<'a, Bytes> {
        let info = &self.0.weights()[index];
        let turn = info
            .name
            .contains("position_embeddings")
            .then(|| info.byte_len() / info.shape[0]);
        Box::pin(async move {
            let bytes = self.0.read(index).await?;
            let Some(row) = turn else { return Ok(bytes) };
            let mut turned = bytes.to_vec();
            turned.rotate_left(row);
            Ok(turned.into())
        })
    }
}

/// Attention sees the padding; the pooling still does not.
fn mask_ignored(bundle: &mut ModelBundle) {
    let graph = graph(bundle);
    for node in &mut graph.node {
        node.input
            .iter_mut()
            .filter(|name| *name == MASK)
            .for_each(|name| *name = "mutant.ones".into());
    }
    put_first(graph, |builder| ones(builder, "mutant.ones"));
}

fn ones(builder: &mut GraphBuilder<'_>, name: &str) {
    let zero = builder.i64s(&[], &[0]);
    let one = builder.i64s(&[], &[1]);
    let zeros = builder.node("Mul", &[MASK, &zero], vec![]);
    builder.named_node("Add", &[&zeros, &one], name, vec![]);
}

/// The pooling sees one padding row in every text that has padding; attention still does not.
fn pooling_over_a_padding_row(graph: &mut GraphProto) {
    let mut mutated = 0;
    for node in &mut graph.node {
        if node.output.iter().any(|output| output.starts_with("head.")) {
            for name in node.input.iter_mut().filter(|name| *name == MASK) {
                *name = "mutant.wide".into();
                mutated += 1;
            }
        }
    }
    assert!(mutated > 0, "the head reads no mask");
    put_first(graph, |builder| {
        // Columns counted from 1, up to the row's length and one more.
        ones(builder, "mutant.ones");
        let one = builder.i64s(&[], &[1]);
        let column = builder.node("CumSum", &["mutant.ones", &one], vec![]);
        let axes = builder.ints(&[1]);
        let length = builder.node("ReduceSum", &[MASK, &axes], vec![int("keepdims", 1)]);
        let wide = builder.node("Add", &[&length, &one], vec![]);
        let inside = builder.node("LessOrEqual", &[&column, &wide], vec![]);
        builder.named_node(
            "Cast",
            &[&inside],
            "mutant.wide",
            vec![int("to", DataType::Int64 as i64)],
        );
    });
}

/// The largest deviation that the suite's calls see for a model that a mutation went over.
fn deviation(
    folder: &std::path::Path,
    reference: &Reference,
    which: Which,
    mutate: impl Fn(&mut ModelBundle),
    after_head: impl Fn(&mut GraphProto),
) -> Deviation {
    let mut bundle = bundle::from_folder(folder, &BundleOptions::default()).unwrap();
    mutate(&mut bundle);
    let head = isovec_model::head::HeadSpec::new(isovec::config::Pooling::Mean, true);
    isovec_model::head::attach_head(&mut bundle, &head).unwrap();
    after_head(graph(&mut bundle));
    let model = pollster::block_on(isovec_model::onnx::write_model(&bundle)).unwrap();
    let mut files: Vec<(String, Bytes)> = bundle
        .files
        .into_iter()
        .filter(|(name, _)| name != "config.json")
        .collect();
    files.push(("model.onnx".into(), model.into()));
    let config = which
        .configure(EmbeddingConfig::default())
        .with_max_batch_size(32)
        .with_max_batch_tokens(32 * 512);
    let source = ModelSource::bytes("mutant", files);
    let report = pollster::block_on(async {
        isovec_parity::run(
            &Embedder::builder(source)
                .config(config)
                .load()
                .await
                .unwrap(),
            reference,
        )
        .await
        .unwrap()
    });
    report.reference
}

fn suite_fails_for_every_mutant(folder: &std::path::Path, reference: &Reference) {
    let nothing = |_: &mut GraphProto| {};
    for which in [Which::Portable, Which::OnnxRuntime] {
        let right = deviation(folder, reference, which, |_| {}, nothing);
        assert!(right.within(&BOUNDS), "the unmutated model: {right}");
    }
    type Mutant = (
        &'static str,
        Which,
        fn(&mut ModelBundle),
        fn(&mut GraphProto),
    );
    let mutants: [Mutant; 5] = [
        ("tanh for erf", Which::Portable, tanh_for_erf, |_| {}),
        ("layer norm epsilon", Which::Portable, wrong_epsilon, |_| {}),
        (
            "positions off by one",
            Which::Portable,
            positions_off_by_one,
            |_| {},
        ),
        // Mistakes about padding show only where there is some: the portable engine packs texts
        // without any.
        ("mask ignored", Which::OnnxRuntime, mask_ignored, |_| {}),
        (
            "pooling over a padding row",
            Which::OnnxRuntime,
            |_| {},
            pooling_over_a_padding_row,
        ),
    ];
    for (name, which, mutate, after_head) in mutants {
        let wrong = deviation(folder, reference, which, mutate, after_head);
        println!("{name}: {wrong}");
        assert!(
            !wrong.within(&BOUNDS),
            "the suite lets `{name}` pass: {wrong}"
        );
    }
}

#[test]
fn of_the_tiny_model() {
    suite_fails_for_every_mutant(&isovec_test_support::data("tiny-bert"), &Reference::tiny());
}

#[test]
fn of_minilm() {
    let Some(ModelSource::Folder(folder)) = isovec_test_support::minilm() else {
        return;
    };
    // A mistake that only one text of a hundred shows would be hard to see: a fifth of them has to be enough.
    suite_fails_for_every_mutant(&folder, &Reference::minilm().some(24));
}
