//! Whatever the bytes are: an answer or an error, never a panic.

use std::collections::BTreeMap;

use bytes::Bytes;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::describe;
use isovec_engine::onnx::proto::{AttributeProto, AttributeType, GraphProto};
use isovec_model::onnx::write_model;
use isovec_model::safetensors::TensorSet;
use proptest::prelude::*;
use safetensors::tensor::{Dtype, TensorView};

use crate::support::{encode, floats, graph, linear, load, node, weights};

/// A small model with something in every part that the reader looks at.
fn varied() -> Bytes {
    let mut model = linear();
    let mut constant = node("Constant", &[], "c");
    constant.attribute.push(AttributeProto {
        name: "value".into(),
        r#type: AttributeType::Tensor as i32,
        t: Some(floats("", &[3])),
        ..AttributeProto::default()
    });
    let mut branch = node("If", &["c"], "branched");
    branch.attribute.push(AttributeProto {
        name: "then_branch".into(),
        r#type: AttributeType::Graph as i32,
        g: Some(GraphProto {
            node: vec![node("Identity", &["c"], "inner")],
            initializer: vec![floats("k", &[2])],
            ..GraphProto::default()
        }),
        ..AttributeProto::default()
    });
    graph(&mut model).node.splice(0..0, [constant, branch]);
    graph(&mut model).initializer[0] = floats("weight", &[16, 32]);
    encode(&model)
}

/// What was accepted must hold together: it can be described, read and written.
fn use_it(bundle: &ModelBundle) {
    describe(bundle);
    for (dtype, shape, bytes) in weights(bundle).values() {
        assert_eq!(bytes.len(), dtype.size() * shape.iter().product::<usize>());
    }
    let file = pollster::block_on(write_model(bundle)).unwrap();
    assert_eq!(load(file).unwrap().identity, bundle.identity);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn flipped_bytes(flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut file = varied().to_vec();
        for (at, to) in flips {
            let at = at.index(file.len());
            file[at] = to;
        }
        if let Ok(bundle) = load(file) {
            use_it(&bundle);
        }
    }

    #[test]
    fn bytes_left_out_or_put_in(
        from in any::<prop::sample::Index>(),
        gone in 0usize..40,
        put in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut file = varied().to_vec();
        let from = from.index(file.len());
        let to = (from + gone).min(file.len());
        file.splice(from..to, put);
        if let Ok(bundle) = load(file) {
            use_it(&bundle);
        }
    }

    #[test]
    fn any_bytes(file in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = load(file.clone());
        let _ = TensorSet::from_files("test", vec![("any".into(), file.into())]);
    }

    #[test]
    fn flipped_bytes_of_safetensors(flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let data = [7u8; 24];
        let tensors = BTreeMap::from([
            ("a", TensorView::new(Dtype::F32, vec![2, 3], &data).unwrap()),
            ("b", TensorView::new(Dtype::F16, vec![12], &data).unwrap()),
        ]);
        let mut file = safetensors::serialize(tensors, None).unwrap();
        for (at, to) in flips {
            let at = at.index(file.len());
            file[at] = to;
        }
        if let Ok(set) = TensorSet::from_files("test", vec![("flipped".into(), file.into())]) {
            for name in set.names() {
                let tensor = set.get(name).unwrap();
                prop_assert_eq!(tensor.data.len(), tensor.dtype.size() * tensor.shape.iter().product::<usize>());
            }
            set.identity().unwrap();
        }
    }
}
