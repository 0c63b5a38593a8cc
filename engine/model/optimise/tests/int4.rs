//! Matrices in 4 bits: what is written is read as the values that the blocks stand for.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::Dim;
use isovec_engine::onnx::proto::{GraphProto, ModelProto, OperatorSetIdProto};
use isovec_engine::tensor::DType;
use isovec_engine::weights::{BytesWeights, WeightInfo, WeightsIdentity};
use isovec_model::onnx::{GraphBuilder, write_model};
use isovec_model::precision::{dequantize_blocks, floats, quantize_blocks, widened};
use isovec_optimize::int4::{FewBits, Moments, in_four_bits, quantize_for};
use isovec_test_models::rng::Rng;

const WIDTH: usize = 64;

const ROWS: usize = 500;

/// Rows of a table, which products with two matrices follow; one matrix has rows that make no whole blocks.
fn bundle(scale: f32) -> ModelBundle {
    of_rows(ROWS, scale)
}

fn of_rows(rows_of_table: usize, scale: f32) -> ModelBundle {
    let mut graph = GraphProto::default();
    let mut build = GraphBuilder::new(&mut graph, "t/");
    let rows = Dim::Symbolic("rows".into());
    build.input("ids", DType::I64, std::slice::from_ref(&rows));
    build.named_node("Gather", &["table", "ids"], "x", Vec::new());
    build.named_node("MatMul", &["x", "a"], "y", Vec::new());
    build.named_node("MatMul", &["y", "b"], "z", Vec::new());
    build.output("z", DType::F32, &[rows, Dim::Fixed(WIDTH)]);
    let mut weights = BytesWeights::new();
    let mut rng = Rng::new(4);
    for (name, shape) in [
        ("table", vec![rows_of_table, WIDTH]),
        ("a", vec![WIDTH, 72]),
        ("b", vec![72, WIDTH]),
    ] {
        let count = shape.iter().product::<usize>();
        let values = (0..count).flat_map(|_| (rng.normal() as f32 * scale).to_le_bytes());
        let info = WeightInfo {
            name: name.into(),
            dtype: DType::F32,
            shape,
        };
        weights.push(info, values.collect::<Vec<u8>>()).unwrap();
    }
    ModelBundle {
        graph: ModelProto {
            ir_version: 8,
            opset_import: vec![OperatorSetIdProto {
                domain: String::new(),
                version: 17,
            }],
            graph: Some(graph),
            ..ModelProto::default()
        },
        weights: Arc::new(weights),
        identity: WeightsIdentity("original".into()),
        files: [].into(),
        model_file: "model.onnx".into(),
        origin: "a model".into(),
    }
}

fn values(bundle: &ModelBundle, name: &str) -> Vec<f32> {
    let mut infos = bundle.weights.weights().iter();
    let at = infos.position(|info| info.name == name).unwrap();
    pollster::block_on(floats(&bundle.weights, at)).unwrap()
}

#[test]
fn blocks_are_written_as_nodes_and_widened_to_what_they_stand_for() {
    let original = bundle(1.0);
    let (made, told) = pollster::block_on(in_four_bits(&original, &Cancel::new())).unwrap();
    let of = |name: &str| told.iter().find(|matrix| matrix.name == name).unwrap();
    for (name, bits) in [("table", 3), ("a", 6)] {
        assert_eq!(of(name).bits(), Some(f64::from(bits)), "{told:?}");
        // Some 6 dB a bit.
        assert!(
            of(name).sqnr.unwrap() > 6.0 * f64::from(bits) - 5.0,
            "{told:?}"
        );
    }
    assert!(
        of("b").parts.is_empty() && of("b").sqnr.is_none(),
        "{told:?}"
    );
    assert_ne!(made.identity, original.identity);
    let bytes = pollster::block_on(write_model(&made)).unwrap();
    let again = pollster::block_on(in_four_bits(&original, &Cancel::new())).unwrap();
    assert_eq!(bytes, pollster::block_on(write_model(&again.0)).unwrap());

    let wide = widened(&made);
    let operators = |bundle: &ModelBundle| -> Vec<String> {
        let graph = bundle.graph.graph.as_ref().unwrap();
        graph.node.iter().map(|node| node.op_type.clone()).collect()
    };
    assert_eq!(operators(&wide), ["Gather", "MatMul", "MatMul"]);
    // 4 for each plane, 2 more for a second one, and 4 for the whole.
    assert_eq!(operators(&made).len(), 3 + 2 * (4 + 4 + 2 + 4));
    assert_eq!(values(&wide, "b"), values(&original, "b"));
    for (name, shape, axis, bits) in [("table", [ROWS, WIDTH], 1, 3), ("a", [WIDTH, 72], 0, 6)] {
        let tensor = quantize_blocks(&values(&original, name), &shape, axis, bits).unwrap();
        assert_eq!(
            values(&wide, name),
            dequantize_blocks(&tensor).unwrap(),
            "{name}"
        );
    }
    // A graph that only looks so is left alone: with any constant in the place of another.
    let graph = made.graph.graph.as_ref().unwrap();
    let constants = graph.initializer.iter().map(|tensor| tensor.name.clone());
    let constants: Vec<String> = constants.collect();
    let mut tried = 0;
    for (at, node) in graph.node.iter().enumerate() {
        let own = node.input.get(1).filter(|name| constants.contains(name));
        for name in constants
            .iter()
            .filter(|name| own.is_some_and(|own| own != *name))
        {
            let mut other = made.clone();
            let nodes = &mut other.graph.graph.as_mut().unwrap().node;
            nodes[at].input[1] = name.clone();
            let kept = operators(&widened(&other));
            assert!(kept.iter().any(|op| op == "BitShift"), "{node:?} {name}");
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried}");
    let error = pollster::block_on(in_four_bits(&made, &Cancel::new())).unwrap_err();
    assert!(error.to_string().contains("quantised already"), "{error}");
}

#[test]
fn what_was_seen_of_inputs_rounds_the_matrices_that_they_are_multiplied_with() {
    let original = bundle(1.0);
    let cancel = Cancel::new();
    let mut bits = pollster::block_on(FewBits::of(&original, 4.0, &cancel)).unwrap();
    let [sweep] = <[_; 1]>::try_from(bits.sweeps()).unwrap();
    assert_eq!(sweep.inputs().collect::<Vec<_>>(), [("x", WIDTH)]);
    assert_eq!(sweep.bytes_per_token(), 4 * WIDTH);
    let probe = sweep.probe(&original);
    let graph = probe.graph.graph.unwrap();
    let outputs: Vec<&str> = graph
        .output
        .iter()
        .map(|output| output.name.as_str())
        .collect();
    assert_eq!((outputs, graph.node.len()), (vec!["x"], 1));
    // Each row is much like the one before.
    let mut rng = Rng::new(6);
    let mut level = 0f32;
    let rows: Vec<f32> = (0..100 * WIDTH)
        .map(|_| {
            level = 0.9 * level + rng.normal() as f32;
            level
        })
        .collect();
    let mut moments = Moments::new(WIDTH);
    moments.add(&rows).unwrap();
    pollster::block_on(bits.settle(sweep, vec![moments.clone()], &cancel)).unwrap();
    let (made, told) = pollster::block_on(bits.finish(&cancel)).unwrap();
    let seen: Vec<(&str, bool)> = told
        .iter()
        .map(|matrix| (matrix.name.as_str(), matrix.for_texts))
        .collect();
    assert_eq!(seen, [("table", false), ("a", true), ("b", false)]);
    let wanted = quantize_for(&values(&original, "a"), 72, &moments, 6).unwrap();
    let found = values(&widened(&made), "a");
    assert_eq!(found, dequantize_blocks(&wanted).unwrap());
    let plain = quantize_blocks(&values(&original, "a"), &[WIDTH, 72], 0, 6).unwrap();
    assert_ne!(found, dequantize_blocks(&plain).unwrap());
}

#[test]
fn the_rows_of_a_large_table_are_in_three_parts() {
    let original = of_rows(5000, 1.0);
    let (made, told) = pollster::block_on(in_four_bits(&original, &Cancel::new())).unwrap();
    let parts: Vec<(usize, u8)> = told[0]
        .parts
        .iter()
        .map(|part| (part.rows, part.bits))
        .collect();
    // A bit for the last part no longer fits after the first bits of the others, which take all that is left.
    assert_eq!(parts, [(625, 6), (625, 6), (3750, 3)]);
    let wide = widened(&made);
    let all = values(&original, "table");
    let (mut wanted, mut first) = (Vec::new(), 0);
    for (rows, bits) in parts {
        let own = &all[first * WIDTH..][..rows * WIDTH];
        let tensor = quantize_blocks(own, &[rows, WIDTH], 1, bits).unwrap();
        wanted.extend(dequantize_blocks(&tensor).unwrap());
        first += rows;
    }
    assert_eq!(values(&wide, "table"), wanted);
    let graph = wide.graph.graph.as_ref().unwrap();
    assert_eq!(graph.node.len(), 3);
    // Nothing is left of the parts.
    assert_eq!(wide.weights.weights().len(), 3);
}

#[test]
fn a_part_is_alone_in_four_bits_and_what_it_changes_says_its_bits() {
    const SPLIT: usize = 4096;
    let original = of_rows(SPLIT, 1.0);
    let cancel = Cancel::new();
    let few = |average| pollster::block_on(FewBits::of(&original, average, &cancel));
    let bits = few(4.0).unwrap();
    // Three parts of the table, and `a`; `b` has no whole blocks.
    assert_eq!(bits.parts(), 4);
    let alone = |part| pollster::block_on(bits.alone(part));
    let (table, a) = (values(&original, "table"), values(&original, "a"));
    let second = alone(1).unwrap();
    assert_ne!(second.identity, original.identity);
    let found = values(&second, "table");
    let (start, end) = (SPLIT / 8 * WIDTH, SPLIT / 4 * WIDTH);
    let own = quantize_blocks(&table[start..end], &[SPLIT / 8, WIDTH], 1, 4).unwrap();
    assert_eq!(found[start..end], dequantize_blocks(&own).unwrap());
    assert_eq!(found[..start], table[..start]);
    assert_eq!(found[end..], table[end..]);
    assert_eq!(values(&second, "a"), a);
    let last = alone(3).unwrap();
    let own = quantize_blocks(&a, &[WIDTH, 72], 0, 4).unwrap();
    assert_eq!(values(&last, "a"), dequantize_blocks(&own).unwrap());
    assert_eq!(values(&last, "table"), table);
    assert!(alone(4).unwrap_err().to_string().contains("below 4"));

    let given = |average, changes: &[f64]| {
        let mut bits = few(average).unwrap();
        bits.weigh(changes).unwrap();
        let (_, told) = pollster::block_on(bits.finish(&Cancel::new())).unwrap();
        let parts = told.iter().flat_map(|matrix| &matrix.parts);
        parts.map(|part| part.bits).collect::<Vec<u8>>()
    };
    // 0.2 bits of all values are enough for one of the two first parts, which have as many, and for `a`; 1 bit is enough for the third.
    assert_eq!(given(3.2, &[1e-3, 1e-6, 1e-6, 1e-9]), [4, 3, 3, 6]);
    assert_eq!(given(3.2, &[1e-6, 1e-3, 1e-6, 1e-9]), [3, 4, 3, 6]);
    assert_eq!(given(4.0, &[1e-9, 1e-9, 1e-2, 1e-9])[2], 4);
    // Texts that no part matters for say nothing: the noise does.
    let (_, told) = pollster::block_on(in_four_bits(&original, &Cancel::new())).unwrap();
    let usual = told.iter().flat_map(|matrix| &matrix.parts);
    let usual: Vec<u8> = usual.map(|part| part.bits).collect();
    assert_eq!(given(4.0, &[0.0; 4]), usual);

    let mut bits = few(4.0).unwrap();
    let refused = bits.weigh(&[1.0; 3]).unwrap_err().to_string();
    assert!(refused.contains('4'), "{refused}");
    let refused = bits.weigh(&[1.0, f64::NAN, 1.0, 1.0]).unwrap_err();
    assert!(refused.to_string().contains("in 4 bits"), "{refused}");
}

#[test]
fn what_cannot_be_stored_so_is_refused() {
    let refused = |bundle: &ModelBundle| {
        let found = pollster::block_on(in_four_bits(bundle, &Cancel::new()));
        found.unwrap_err().to_string()
    };
    // Past what a scale in 16 bits reaches.
    assert!(refused(&bundle(1e9)).contains("16 bits"));
    let mut plain = bundle(1.0);
    let graph = plain.graph.graph.as_mut().unwrap();
    graph
        .node
        .iter_mut()
        .for_each(|node| node.domain = "other".into());
    assert!(refused(&plain).contains("none of its matrices"));
    for average in [2.9, 6.1, f64::NAN] {
        let plain = bundle(1.0);
        let made = pollster::block_on(FewBits::of(&plain, average, &Cancel::new()));
        assert!(
            made.unwrap_err().to_string().contains("3 to 6"),
            "{average}"
        );
    }
    let stopped = Cancel::new();
    stopped.cancel();
    assert!(pollster::block_on(in_four_bits(&bundle(1.0), &stopped)).is_err());
}
