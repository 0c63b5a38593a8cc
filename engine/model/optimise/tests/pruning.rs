//! Pruning: what can be taken out of which model, and what is left of its weights and shapes.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::Dim;
use isovec_engine::onnx::proto::{GraphProto, ModelProto};
use isovec_engine::tensor::DType;
use isovec_engine::weights::{BytesWeights, WeightInfo};
use isovec_model::convert::Half;
use isovec_model::head::Pooling;
use isovec_model::onnx::GraphBuilder;
use isovec_model::precision::floats;
use isovec_optimize::int4::Moments;
use isovec_optimize::pruning::{Pruned, Pruning, Unit};
use isovec_test_models::bundles::{bundle, half};
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::rng::Rng;
use isovec_test_models::{decoders, gte, models, pictures, t5};
use pollster::block_on;

fn of(model: &Checkpoint) -> ModelBundle {
    bundle(model, Stored::F32, Pooling::Mean)
}

/// How many layers of columns and of heads there are, the extents of the first of each, and how many can be left out as a whole.
fn found(bundle: &ModelBundle) -> String {
    let pruning = Pruning::of(bundle).unwrap();
    let found = pruning.found();
    let of = |unit: Unit| found.iter().filter(move |part| part.unit == unit);
    let first = |unit: Unit| of(unit).next().map_or(0, |part| part.units);
    let mut alone = (0..pruning.parts() / 2).map(|at| block_on(pruning.alone(2 * at + 1)).unwrap());
    let whole = alone.by_ref().flatten().count();
    format!(
        "{} × {} columns, {} × {} heads, {whole} whole",
        of(Unit::Columns).count(),
        first(Unit::Columns),
        of(Unit::Heads).count(),
        first(Unit::Heads),
    )
}

#[test]
fn columns_and_heads_are_found_in_every_family() {
    let text = |name: &str, model: Checkpoint| (name.to_owned(), of(&model));
    let sight = |name: &str, model: Checkpoint| {
        let model = half(&model, Stored::F32, Pooling::Cls, Half::Pictures);
        (name.to_owned(), model)
    };
    let all = [
        text("bert", models::bert()),
        text("distilbert", models::distilbert()),
        text("mpnet", models::mpnet()),
        text("nomic", models::nomicbert()),
        text("modernbert", models::modernbert()),
        text("gte", gte::gte()),
        text("t5", t5::t5()),
        text("t5 gated", t5::t5_gated()),
        text("qwen3", decoders::qwen3()),
        text("eurobert", decoders::eurobert()),
        sight("vit", pictures::vit()),
        sight("dinov2", pictures::dinov2()),
        sight("clip", pictures::clip()),
    ];
    let told = all
        .iter()
        .map(|(name, bundle)| format!("{name}: {}", found(bundle)));
    // Position biases of heads are one table for all layers (MPNet, T5), and heads of keys are shared (Qwen3, EuroBERT). The tiny Nomic
    // and GTE have as many heads as pairs of their rotary tables, so that those cannot be told apart.
    let wanted = [
        "bert: 3 × 64 columns, 3 × 4 heads, 6 whole",
        "distilbert: 2 × 64 columns, 2 × 4 heads, 4 whole",
        "mpnet: 2 × 64 columns, 0 × 0 heads, 2 whole",
        "nomic: 3 × 64 columns, 0 × 0 heads, 3 whole",
        "modernbert: 5 × 64 columns, 5 × 2 heads, 9 whole",
        "gte: 3 × 64 columns, 0 × 0 heads, 3 whole",
        "t5: 3 × 64 columns, 0 × 0 heads, 3 whole",
        "t5 gated: 3 × 64 columns, 0 × 0 heads, 3 whole",
        "qwen3: 3 × 64 columns, 0 × 0 heads, 3 whole",
        "eurobert: 3 × 64 columns, 0 × 0 heads, 3 whole",
        "vit: 3 × 64 columns, 3 × 4 heads, 6 whole",
        "dinov2: 3 × 96 columns, 3 × 4 heads, 6 whole",
        "clip: 3 × 64 columns, 3 × 4 heads, 6 whole",
    ];
    assert_eq!(told.collect::<Vec<_>>(), wanted);
}

/// Moments of inputs that depend on each other, for every input of a sweep.
fn rank(pruning: &mut Pruning<'_>) {
    let mut rng = Rng::new(5);
    for sweep in pruning.sweeps() {
        let moments: Vec<Moments> = sweep
            .inputs()
            .map(|(_, width)| seen(width, &mut rng))
            .collect();
        block_on(pruning.rank(&sweep, &moments, &Cancel::new())).unwrap();
    }
}

fn seen(width: usize, rng: &mut Rng) -> Moments {
    let mut moments = Moments::new(width);
    let rows: Vec<f32> = (0..2 * width * width)
        .map(|_| rng.normal() as f32)
        .collect();
    moments.add(&rows).unwrap();
    moments
}

fn pruned(bundle: &ModelBundle, share: f64) -> isovec_optimize::Result<(ModelBundle, Vec<Pruned>)> {
    let mut pruning = Pruning::of(bundle)?;
    rank(&mut pruning);
    // Layers are dear, so that columns and heads go.
    let changes: Vec<f64> = (0..pruning.parts())
        .map(|part| if part % 2 == 0 { 1e-3 } else { 1e3 })
        .collect();
    pruning.weigh(&changes)?;
    pruning.share(share)?;
    let mut rng = Rng::new(5);
    for sweep in pruning.rest() {
        let moments: Vec<Moments> = sweep
            .inputs()
            .map(|(_, width)| seen(width, &mut rng))
            .collect();
        block_on(pruning.settle(&sweep, &moments))?;
    }
    block_on(pruning.finish())
}

fn bytes(bundle: &ModelBundle) -> usize {
    bundle
        .weights
        .weights()
        .iter()
        .map(|info| info.byte_len())
        .sum()
}

#[test]
fn a_share_of_the_bytes_goes_and_all_extents_follow() {
    let model = models::bert_of(11, 300, 64, 2);
    let original = of(&model);
    for share in [0.02, 0.1, 0.2] {
        let (made, told) = pruned(&original, share).unwrap();
        let gone = bytes(&original) - bytes(&made);
        let told_bytes: usize = told.iter().map(|part| part.bytes).sum();
        println!("{share}: {gone} of {}, {told:?}", bytes(&original));
        assert!(
            gone as f64 >= share * bytes(&original) as f64,
            "{share}: {gone}"
        );
        // Small biases are no weights of the bundle.
        assert!(gone.abs_diff(told_bytes) * 20 < gone, "{gone} {told_bytes}");
        assert_ne!(made.identity, original.identity);
        let again = pruned(&original, share).unwrap().0;
        assert_eq!(made.identity, again.identity);
        let read = |bundle: &ModelBundle| -> Vec<Vec<f32>> {
            let all = 0..bundle.weights.weights().len();
            all.map(|at| block_on(floats(&bundle.weights, at)).unwrap())
                .collect()
        };
        assert_eq!(read(&made), read(&again));
        for (info, values) in made.weights.weights().iter().zip(read(&made)) {
            assert_eq!(info.elements(), values.len(), "{}", info.name);
        }
    }
}

#[test]
fn a_matrix_between_two_regions_belongs_to_the_first() {
    let mut graph = GraphProto::default();
    let mut build = GraphBuilder::new(&mut graph, "t/");
    let rows = Dim::Symbolic("rows".into());
    build.input("x", DType::F32, &[rows.clone(), Dim::Fixed(16)]);
    let mut weights = BytesWeights::new();
    let mut value = "x".to_owned();
    for (at, shape) in [[16, 80], [80, 96], [96, 16]].into_iter().enumerate() {
        let (matrix, product, made) = (format!("m{at}"), format!("p{at}"), format!("r{at}"));
        let info = WeightInfo {
            name: matrix.clone(),
            dtype: DType::F32,
            shape: shape.to_vec(),
        };
        let values = (0..shape[0] * shape[1]).flat_map(|at| (at as f32).sin().to_le_bytes());
        weights.push(info, values.collect::<Vec<u8>>()).unwrap();
        build.named_node("MatMul", &[&value, &matrix], &product, Vec::new());
        build.named_node("Relu", &[&product], &made, Vec::new());
        value = made;
    }
    build.output(&value, DType::F32, &[rows, Dim::Fixed(16)]);
    let original = ModelBundle {
        graph: ModelProto {
            graph: Some(graph),
            ..of(&models::bert()).graph
        },
        weights: Arc::new(weights),
        ..of(&models::bert())
    };
    let found = Pruning::of(&original).unwrap().found();
    let matrices: Vec<&str> = found.iter().map(|part| part.matrix.as_str()).collect();
    assert_eq!(matrices, ["m1"]);
    let (made, told) = pruned(&original, 0.1).unwrap();
    let kept = told[0].kept;
    assert!(kept < 80);
    let shapes = made.weights.weights().iter().map(|info| info.shape.clone());
    let mut shapes: Vec<Vec<usize>> = shapes.collect();
    shapes.sort();
    let mut wanted = vec![vec![16, kept], vec![kept, 96], vec![96, 16]];
    wanted.sort();
    assert_eq!(shapes, wanted);
}

#[test]
fn what_cannot_be_asked_for_is_refused() {
    let original = of(&models::bert_of(11, 300, 64, 2));
    for share in [0.0, 1.0, -0.1, f64::NAN] {
        assert!(
            pruned(&original, share)
                .unwrap_err()
                .to_string()
                .contains("between 0 and 1")
        );
    }
    let much = pruned(&original, 0.999).unwrap_err().to_string();
    assert!(
        much.contains("can be taken out, and 99.9 % were asked for"),
        "{much}"
    );
    let mut pruning = Pruning::of(&original).unwrap();
    let sweep = pruning.sweeps().remove(0);
    let none: Vec<Moments> = sweep
        .inputs()
        .map(|(_, width)| Moments::new(width))
        .collect();
    let unseen = block_on(pruning.rank(&sweep, &none, &Cancel::new())).unwrap_err();
    assert!(unseen.to_string().contains("no text"), "{unseen}");
    assert!(pruning.weigh(&[1.0]).is_err());
    let changes = vec![f64::NAN; pruning.parts()];
    assert!(
        pruning
            .weigh(&changes)
            .unwrap_err()
            .to_string()
            .contains("not finite")
    );
    assert!(block_on(pruning.alone(pruning.parts())).is_err());
    // A table alone has nothing between two products.
    let mut table = original.clone();
    let graph = table.graph.graph.as_mut().unwrap();
    let first = graph.node.iter().position(|node| node.op_type == "MatMul");
    graph.node.truncate(first.unwrap());
    let nothing = Pruning::of(&table).unwrap_err().to_string();
    assert!(nothing.contains("between two products"), "{nothing}");
}
