//! Models that load, and those that do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bytes::Bytes;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::description::Dim;
use isovec_engine::engine::EngineFactory;
use isovec_engine::error::EngineError;
use isovec_engine::maybe_send::EngineFuture;
use isovec_engine::onnx::proto::OperatorSetIdProto;
use isovec_engine::tensor::{DType, Tensor};
use isovec_engine::weights::{WeightInfo, WeightSource};

use super::models::*;
use super::{available, load, poll};
use crate::OnnxRuntime;

/// Memory that tells when it is let go.
struct Watched {
    bytes: Vec<u8>,
    alive: Arc<AtomicUsize>,
}

impl Watched {
    fn bytes(bytes: &[u8], alive: &Arc<AtomicUsize>) -> Bytes {
        alive.fetch_add(1, Ordering::SeqCst);
        Bytes::from_owner(Self {
            bytes: bytes.to_vec(),
            alive: Arc::clone(alive),
        })
    }
}

impl AsRef<[u8]> for Watched {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn a_weight_is_let_go_when_it_is_repacked_and_the_rest_with_the_engine() {
    if !available() {
        return;
    }
    let (matrix, vector) = affine_values();
    let (matrices, vectors) = (Arc::default(), Arc::default());
    let weights = affine_weights(
        Watched::bytes(&bytes_of(&matrix), &matrices),
        Watched::bytes(&bytes_of(&vector), &vectors),
    );
    // As in an encoder: a product of three-dimensional activations and a matrix, which ONNX
    // Runtime repacks, then a bias, which it does not.
    let bundle = bundle(weights, |graph| {
        graph.input("x", DType::F32, &[rows(), Dim::Fixed(1), Dim::Fixed(IN)]);
        let product = graph.node("MatMul", &["x", "matrix"], vec![]);
        graph.named_node("Add", &[&product, "vector"], "y", vec![]);
        graph.output("y", DType::F32, &[rows(), Dim::Fixed(1), Dim::Fixed(OUT)]);
    });
    let engine = load(&bundle).unwrap();
    drop(bundle);
    assert_eq!(
        matrices.load(Ordering::SeqCst),
        0,
        "the original of a repacked weight is kept"
    );
    assert_eq!(vectors.load(Ordering::SeqCst), 1, "a weight was copied");
    let x = affine_input(2, 1);
    let input = Tensor::from_slice(&[2, 1, IN], &x).unwrap();
    let mut output = engine
        .run_blocking(batch(vec![("x", input)]), &Cancel::new())
        .unwrap();
    assert_eq!(
        output.take("y").unwrap().as_slice::<f32>().unwrap(),
        affine_output(&x)
    );
    drop(engine);
    // The engine's thread lets go of the session after the engine is gone.
    while vectors.load(Ordering::SeqCst) != 0 {
        thread::yield_now();
    }
}

#[test]
fn weights_at_odd_addresses_and_shared_by_two_engines_give_the_same_answer() {
    if !available() {
        return;
    }
    let (matrix, vector) = affine_values();
    let mut file = vec![0u8];
    file.extend_from_slice(&bytes_of(&matrix));
    file.extend_from_slice(&bytes_of(&vector));
    let file = Bytes::from(file);
    let end = 1 + matrix.len() * 4;
    let bundle = affine(affine_weights(file.slice(1..end), file.slice(end..)));
    let engines = [load(&bundle).unwrap(), load(&bundle).unwrap()];
    let x = affine_input(3, 2);
    for engine in engines {
        let mut output = engine
            .run_blocking(affine_batch(&x), &Cancel::new())
            .unwrap();
        assert_eq!(
            output.take("y").unwrap().as_slice::<f32>().unwrap(),
            affine_output(&x)
        );
    }
}

#[test]
fn unknown_operators_are_named() {
    if !available() {
        return;
    }
    for (domain, op) in [("", "Frobnicate"), ("com.example", "Frobnicate")] {
        let mut bundle = bundle(no_weights(), |graph| {
            graph.input("x", DType::F32, &[rows()]);
            graph.named_node(op, &["x"], "y", vec![]);
            graph.output("y", DType::F32, &[rows()]);
            for node in &mut graph.graph().node {
                node.domain = domain.into();
            }
        });
        if !domain.is_empty() {
            let import = OperatorSetIdProto {
                domain: domain.into(),
                version: 1,
            };
            bundle.graph.opset_import.push(import);
        }
        let error = load(&bundle).unwrap_err();
        assert!(
            matches!(&error, EngineError::UnsupportedOperator { operators, .. } if operators == &["Frobnicate"]),
            "{domain}: {error}"
        );
    }
}

#[test]
fn an_operator_without_an_implementation_for_its_type_is_named() {
    if !available() {
        return;
    }
    // The standard has it for every number, the CPU's kernels not for i64.
    let bundle = bundle(no_weights(), |graph| {
        graph.input("x", DType::I64, &[rows()]);
        graph.named_node("Relu", &["x"], "y", vec![]);
        graph.output("y", DType::I64, &[rows()]);
    });
    let error = load(&bundle).unwrap_err();
    assert!(
        matches!(&error, EngineError::UnsupportedOperator { operators, .. } if operators == &["Relu"]),
        "{error:?}"
    );
}

#[test]
fn broken_graphs_are_invalid_models() {
    if !available() {
        return;
    }
    let dangling = bundle(no_weights(), |graph| {
        graph.input("x", DType::F32, &[rows()]);
        graph.named_node("Add", &["x", "nothing"], "y", vec![]);
        graph.output("y", DType::F32, &[rows()]);
    });
    let circular = bundle(no_weights(), |graph| {
        graph.input("x", DType::F32, &[rows()]);
        graph.named_node("Add", &["x", "b"], "a", vec![]);
        graph.named_node("Add", &["x", "a"], "b", vec![]);
        graph.named_node("Identity", &["b"], "y", vec![]);
        graph.output("y", DType::F32, &[rows()]);
    });
    let mistyped = bundle(no_weights(), |graph| {
        graph.input("x", DType::F32, &[rows()]);
        graph.input("i", DType::I64, &[rows()]);
        graph.named_node("Add", &["x", "i"], "y", vec![]);
        graph.output("y", DType::F32, &[rows()]);
    });
    let mut graphless = affine_model();
    graphless.graph.graph = None;
    for (name, bundle) in [
        ("dangling", dangling),
        ("circular", circular),
        ("mistyped", mistyped),
        ("graphless", graphless),
    ] {
        let error = load(&bundle).unwrap_err();
        assert!(
            matches!(&error, EngineError::InvalidModel { origin, .. } if origin == "test model"),
            "{name}: {error:?}"
        );
    }
}

#[test]
fn a_format_from_the_future_says_what_to_do() {
    if !available() {
        return;
    }
    let mut ir = affine_model();
    ir.graph.ir_version = 99;
    let mut opset = affine_model();
    opset.graph.opset_import[0].version = 999;
    for bundle in [ir, opset] {
        let error = load(&bundle).unwrap_err();
        assert!(
            matches!(&error, EngineError::UnsupportedModel { hint, .. } if hint.contains("newer")),
            "{error:?}"
        );
    }
}

/// A source that does something when it is read.
#[derive(Debug)]
struct Source<F> {
    infos: Vec<WeightInfo>,
    read: F,
}

impl<F> WeightSource for Source<F>
where
    F: Fn() -> Result<Bytes, EngineError> + Send + Sync + std::fmt::Debug,
{
    fn weights(&self) -> &[WeightInfo] {
        &self.infos
    }

    fn read<'a>(&'a self, _index: usize) -> EngineFuture<'a, Bytes> {
        let result = (self.read)();
        Box::pin(async move { result })
    }
}

fn infos() -> Vec<WeightInfo> {
    affine_model().weights.weights().to_vec()
}

#[test]
fn a_weight_of_the_wrong_size_is_named() {
    if !available() {
        return;
    }
    let read = short as fn() -> Result<Bytes, EngineError>;
    fn short() -> Result<Bytes, EngineError> {
        Ok(Bytes::from_static(&[0; 12]))
    }
    let error = load(&affine(Arc::new(Source {
        infos: infos(),
        read,
    })))
    .unwrap_err();
    assert!(
        matches!(&error, EngineError::Weight { name, detail } if name == "matrix" && detail.contains("12")),
        "{error}"
    );
}

#[test]
fn a_source_that_fails_fails_the_load_with_its_own_error() {
    if !available() {
        return;
    }
    let read = fail as fn() -> Result<Bytes, EngineError>;
    fn fail() -> Result<Bytes, EngineError> {
        Err(EngineError::Config(vec!["marker".into()]))
    }
    let error = load(&affine(Arc::new(Source {
        infos: infos(),
        read,
    })))
    .unwrap_err();
    assert!(
        matches!(&error, EngineError::Config(faults) if faults == &["marker"]),
        "{error}"
    );
}

#[test]
fn a_load_is_cancelled_before_and_between_weights() {
    if !available() {
        return;
    }
    let (factory, config) = (OnnxRuntime::default(), EngineConfig::default());
    let cancelled = Cancel::new();
    cancelled.cancel();
    let result = pollster::block_on(factory.load(&affine_model(), &config, &cancelled));
    assert!(matches!(result, Err(EngineError::Cancelled)), "{result:?}");

    let cancel = Cancel::new();
    let reads = Arc::new(AtomicUsize::new(0));
    let bundle = affine(Arc::new(Cancels {
        infos: infos(),
        cancel: cancel.clone(),
        reads: Arc::clone(&reads),
    }));
    let result = pollster::block_on(factory.load(&bundle, &config, &cancel));
    assert!(matches!(result, Err(EngineError::Cancelled)), "{result:?}");
    assert_eq!(
        reads.load(Ordering::SeqCst),
        1,
        "weights were read after the cancel"
    );

    // A dropped load stops as well; its thread lets go of the bundle.
    let bundle = affine_model();
    let cancel = Cancel::new();
    let mut loading = factory.load(&bundle, &config, &cancel);
    assert!(poll(&mut loading).is_pending());
    drop(loading);
    while Arc::strong_count(&bundle.weights) != 1 {
        thread::yield_now();
    }
}

/// A source whose first read cancels the load.
#[derive(Debug)]
struct Cancels {
    infos: Vec<WeightInfo>,
    cancel: Cancel,
    reads: Arc<AtomicUsize>,
}

impl WeightSource for Cancels {
    fn weights(&self) -> &[WeightInfo] {
        &self.infos
    }

    fn read<'a>(&'a self, index: usize) -> EngineFuture<'a, Bytes> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.cancel.cancel();
        let bytes = vec![0u8; self.infos[index].byte_len()];
        Box::pin(async move { Ok(bytes.into()) })
    }
}
