//! Small graphs of encoders, read and run by isovec's own programs, against ONNX Runtime and tract.
//!
//! A text alone in ONNX Runtime is what the text among others has to be here, within the rounding of f32: an answer
//! that differs by more is held against tract's, and against what ONNX Runtime itself makes of a table that differs in
//! the last bits. What isovec refuses by name is fine, as is what the others refuse. Where ONNX Runtime is not
//! there, tract is asked alone; without the feature `peers` nothing is compared.

mod graph;
#[cfg(feature = "peers")]
mod peers;

use std::collections::BTreeMap;
use std::sync::Arc;

use arbitrary::Unstructured;
use bytes::Bytes;
use isovec_encoder::{CompileError, Executable, NoTurns, Run};
use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::Batch;
use isovec_engine::tensor::{NamedTensor, Tensor};
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::OneThread;
use isovec_model::bundle::{self, BundleOptions};
use prost::Message;

use crate::bounds::ours;
use graph::{IDS, MASK};

/// A row for each text.
type Rows = Vec<Vec<f32>>;

/// Tries one input: a graph and a few texts.
pub fn run(data: &[u8]) {
    let Ok(made) = graph::make(&mut Unstructured::new(data)) else {
        return;
    };
    let file = Bytes::from(made.model.encode_to_vec());
    let found = ours(file.len(), || answers(&file, &made.texts));
    let Some(found) = found else { return };
    #[cfg(feature = "peers")]
    peers::agree(&made.model, &made.texts, &found);
    #[cfg(not(feature = "peers"))]
    assert_eq!(found.len(), made.texts.len());
}

fn bundle(file: &Bytes) -> isovec_engine::Result<ModelBundle> {
    let files = BTreeMap::from([("model.onnx".to_owned(), file.clone())]);
    bundle::from_bytes("made up", files, &BundleOptions::default())
}

/// The texts, padded to the longest.
fn batch(texts: &[Vec<i64>]) -> isovec_engine::Result<Batch> {
    let length = texts.iter().map(Vec::len).max().unwrap_or(0);
    let padded = |value: &dyn Fn(i64) -> i64| {
        let rows = texts.iter().flat_map(|text| {
            let padding = std::iter::repeat_n(0, length - text.len());
            text.iter()
                .map(|&id| value(id))
                .chain(padding)
                .collect::<Vec<_>>()
        });
        Tensor::from_slice(&[texts.len(), length], &rows.collect::<Vec<i64>>())
    };
    Ok(Batch {
        inputs: vec![
            NamedTensor::new(IDS, padded(&|id| id)?),
            NamedTensor::new(MASK, padded(&|_| 1)?),
        ],
        row_lengths: texts.iter().map(Vec::len).collect(),
        ..Batch::default()
    })
}

/// What isovec's own programs make of the texts; `None` for what is refused by name.
///
/// # Panics
/// For any other error: the graph is a valid one.
fn answers(file: &Bytes, texts: &[Vec<i64>]) -> Option<Rows> {
    let bundle = bundle(file).unwrap_or_else(|error| panic!("the file is not read: {error}"));
    let (cancel, mut turns) = (Cancel::new(), NoTurns);
    let executable = Executable::compile(&bundle, Arithmetic::Fast, &cancel, &mut turns);
    let executable = match pollster::block_on(executable) {
        Ok(executable) => Arc::new(executable),
        Err(CompileError::Unlowered(_)) => return None,
        Err(CompileError::Engine(EngineError::OverBudget { .. })) => return None,
        Err(error) => panic!("no program: {error}"),
    };
    let run = batch(texts).and_then(|batch| {
        let mut run = Run::new(executable, &batch)?;
        while run.step(None, &OneThread)?.is_some() {}
        Ok(run.finish())
    });
    match run {
        Ok(outputs) => {
            let (_, extents, values) = &outputs[0];
            let width = extents.iter().product::<usize>();
            assert_eq!(values.len(), width * texts.len(), "extents {extents:?}");
            Some(values.chunks(width).map(<[f32]>::to_vec).collect())
        }
        // An id that a table does not have is the caller's affair.
        Err(EngineError::InvalidInput { .. }) => None,
        Err(error) => panic!("no run: {error}"),
    }
}
