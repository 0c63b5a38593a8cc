//! Running a converted graph: its weights put back into it, and tract.

use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use isovec_engine::onnx::proto::{DataType, ModelProto, TensorProto};
use isovec_engine::weights::WeightSource;
use isovec_model::convert::Converted;
use prost::Message;
use tract_onnx::prelude::*;

/// Reads a weight whose future is ready at once, as converted ones are.
pub(crate) fn read(weights: &dyn WeightSource, index: usize) -> isovec_engine::Result<Bytes> {
    let mut future = weights.read(index);
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(read) => read,
        Poll::Pending => panic!("a converted weight is ready at once"),
    }
}

/// The graph with all weights in it.
pub(crate) fn inlined(converted: &Converted) -> ModelProto {
    let mut model = converted.graph.clone();
    let graph = model.graph.as_mut().expect("a graph");
    for (index, info) in converted.weights.weights().iter().enumerate() {
        let data = read(&*converted.weights, index).expect("readable");
        assert_eq!(data.len(), info.byte_len(), "{}", info.name);
        graph.initializer.push(TensorProto {
            name: info.name.clone(),
            data_type: DataType::from(info.dtype) as i32,
            dims: info.shape.iter().map(|&extent| extent as i64).collect(),
            raw_data: data,
            ..TensorProto::default()
        });
    }
    model
}

/// A padded batch.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) ids: Vec<Vec<i64>>,
    pub(crate) types: Vec<Vec<i64>>,
    pub(crate) mask: Vec<Vec<i64>>,
}

impl Batch {
    /// Pads texts on the right with `padding`.
    pub(crate) fn padded(texts: &[Vec<i64>], types: &[Vec<i64>], padding: i64) -> Self {
        let length = texts.iter().map(Vec::len).max().expect("a text");
        let pad = |row: &[i64], with| {
            let mut row = row.to_vec();
            row.resize(length, with);
            row
        };
        Self {
            ids: texts.iter().map(|row| pad(row, padding)).collect(),
            types: types.iter().map(|row| pad(row, 0)).collect(),
            mask: texts
                .iter()
                .map(|row| pad(&vec![1; row.len()], 0))
                .collect(),
        }
    }
}

/// A graph ready to run.
pub(crate) struct Runner {
    inputs: Vec<String>,
    plan: Arc<TypedRunnableModel>,
}

impl Runner {
    pub(crate) fn new(model: &ModelProto) -> TractResult<Self> {
        let graph = model.graph.as_ref().expect("a graph");
        let plan = tract_onnx::onnx()
            .model_for_read(&mut &model.encode_to_vec()[..])?
            .into_optimized()?
            .into_runnable()?;
        Ok(Self {
            inputs: graph.input.iter().map(|input| input.name.clone()).collect(),
            plan,
        })
    }

    /// The output `[batch][sequence][hidden]`.
    pub(crate) fn run(&self, batch: &Batch) -> TractResult<Vec<Vec<Vec<f32>>>> {
        let inputs = self.inputs.iter().map(|name| {
            let rows = match name.as_str() {
                "input_ids" => &batch.ids,
                "attention_mask" => &batch.mask,
                "token_type_ids" | "adapter_ids" => &batch.types,
                other => panic!("input {other}"),
            };
            let flat: Vec<i64> = rows.concat();
            let tensor = Tensor::from_shape(&[rows.len(), rows[0].len()], &flat)?;
            Ok(tensor.into_tvalue())
        });
        let outputs = self.plan.run(inputs.collect::<TractResult<TVec<_>>>()?)?;
        let view = outputs[0].to_plain_array_view::<f32>()?;
        Ok(view
            .outer_iter()
            .map(|text| {
                text.outer_iter()
                    .map(|row| row.iter().copied().collect())
                    .collect()
            })
            .collect())
    }
}
