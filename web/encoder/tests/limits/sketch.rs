//! Small graphs of one input of ids and one output.

use std::collections::BTreeMap;
use std::sync::Arc;

use isovec_encoder::{CompileError, Executable, NoTurns, Program, Run};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::Dim;
use isovec_engine::engine::Batch;
use isovec_engine::onnx::proto::{
    AttributeProto, DataType, GraphProto, ModelProto, OperatorSetIdProto, TensorProto,
};
use isovec_engine::tensor::{DType, NamedTensor, Tensor};
use isovec_engine::weights::{BytesWeights, WeightsIdentity};
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::OneThread;
use isovec_model::onnx::GraphBuilder;
use isovec_model::onnx::builder::int;

pub(crate) const WIDTH: usize = 4;

pub(crate) fn none() -> Vec<AttributeProto> {
    Vec::new()
}

/// A graph whose output is the last token's row of `y`, which `build` makes of `x`: `[1, n, 4]`, a row for each id.
pub(crate) fn graph(build: impl FnOnce(&mut GraphBuilder<'_>) -> String) -> ModelBundle {
    let mut graph = GraphProto::default();
    let mut g = GraphBuilder::new(&mut graph, "t.");
    let dims = ["batch", "sequence"].map(|name| Dim::Symbolic(name.into()));
    g.input("ids", DType::I64, &dims);
    let rows: Vec<f32> = (0..8 * WIDTH).map(|at| at as f32 / 8.0).collect();
    let table = g.f32s(&[8, WIDTH as i64], &rows);
    g.named_node("Gather", &[&table, "ids"], "x", vec![int("axis", 0)]);
    let y = build(&mut g);
    let last = g.i64s(&[], &[-1]);
    let y = g.node("Gather", &[&y, &last], vec![int("axis", 1)]);
    let dims = [Dim::Symbolic("batch".into()), Dim::Fixed(WIDTH)];
    g.output(&y, DType::F32, &dims);
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
        weights: Arc::new(BytesWeights::new()),
        identity: WeightsIdentity("test".into()),
        files: BTreeMap::new(),
        model_file: "model.onnx".into(),
        origin: "a model of the tests".into(),
    }
}

/// A tensor of any type, by its bytes.
pub(crate) fn tensor(
    g: &mut GraphBuilder<'_>,
    data_type: DataType,
    dims: &[i64],
    bytes: Vec<u8>,
) -> String {
    let name = g.fresh("tensor");
    g.graph().initializer.push(TensorProto {
        name: name.clone(),
        data_type: data_type as i32,
        dims: dims.to_vec(),
        raw_data: bytes.into(),
        ..TensorProto::default()
    });
    name
}

pub(crate) fn program(bundle: &ModelBundle) -> Result<Program, CompileError> {
    pollster::block_on(Program::read(bundle, &Cancel::new(), &mut NoTurns))
}

/// The output for a text of two tokens.
pub(crate) fn run(bundle: &ModelBundle) -> Result<Vec<f32>, CompileError> {
    let cancel = Cancel::new();
    let mut turns = NoTurns;
    let executable = Executable::compile(bundle, Arithmetic::Fast, &cancel, &mut turns);
    let executable = Arc::new(pollster::block_on(executable)?);
    let ids = Tensor::from_slice(&[1, 2], &[3_i64, 5]).unwrap();
    let batch = Batch {
        inputs: vec![NamedTensor::new("ids", ids)],
        row_lengths: vec![2],
        ..Batch::default()
    };
    let mut run = Run::new(executable, &batch)?;
    while run.step(None, &OneThread)?.is_some() {}
    Ok(run.finish().remove(0).2)
}
