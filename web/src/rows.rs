//! A batch in groups of rows, so that no operator keeps the event loop waiting.
//!
//! An operator cannot be interrupted, and one over a large batch takes far longer than the time
//! slice of a [`Worker`](crate::executor::Worker). Rows do not depend on one another, so the batch
//! is run a few rows at a time. How many follows from the model and the shape alone, not from
//! measured times: the same call gives the same bits every time.

use std::ops::Range;

use isovec_engine::Result;
use isovec_engine::engine::{Batch, RunOutput};
use isovec_engine::tensor::{NamedTensor, Tensor};

/// A copy of some rows of a batch.
///
/// # Errors
/// None for a range within the batch.
pub(crate) fn take(batch: &Batch, rows: Range<usize>) -> Result<Batch> {
    let inputs = batch.inputs.iter().map(|input| {
        let mut shape = input.tensor.shape().to_vec();
        let row_bytes = input.tensor.byte_len() / shape[0].max(1);
        shape[0] = rows.len();
        let bytes = &input.tensor.bytes()[rows.start * row_bytes..rows.end * row_bytes];
        let tensor = Tensor::from_bytes(input.tensor.dtype(), &shape, bytes)?;
        Ok(NamedTensor::new(input.name.clone(), tensor))
    });
    Ok(Batch {
        inputs: inputs.collect::<Result<_>>()?,
        row_lengths: batch.row_lengths.get(rows).unwrap_or_default().to_vec(),
        outputs: Vec::new(),
        scope: batch.scope.clone(),
    })
}

/// Puts the groups' outputs back together, and gives the caller's tensors back.
///
/// # Errors
/// [`isovec_engine::EngineError::InputTooLarge`] when the whole does not fit into memory.
pub(crate) fn join(groups: Vec<RunOutput>, batch: Batch) -> Result<RunOutput> {
    let count = groups.first().map_or(0, |first| first.outputs.len());
    let mut outputs = Vec::with_capacity(count);
    for at in 0..count {
        let parts: Vec<&NamedTensor> = groups.iter().filter_map(|g| g.outputs.get(at)).collect();
        let mut shape = parts[0].tensor.shape().to_vec();
        shape[0] = parts.iter().map(|part| part.tensor.shape()[0]).sum();
        let mut whole = Tensor::zeros(parts[0].tensor.dtype(), &shape)?;
        let mut rest = whole.bytes_mut();
        for part in &parts {
            // Groups may differ in another axis only if the model's output does; the contract has
            // no tensor for that, and the lengths tell.
            let (head, tail) = rest
                .split_at_mut_checked(part.tensor.byte_len())
                .ok_or_else(|| ragged(&part.name))?;
            head.copy_from_slice(part.tensor.bytes());
            rest = tail;
        }
        if !rest.is_empty() {
            return Err(ragged(&parts[0].name));
        }
        outputs.push(NamedTensor::new(parts[0].name.clone(), whole));
    }
    Ok(RunOutput {
        outputs,
        inputs: batch.inputs,
        row_lengths: batch.row_lengths,
    })
}

fn ragged(name: &str) -> isovec_engine::EngineError {
    isovec_engine::EngineError::Runtime {
        engine: crate::ENGINE,
        doing: "joining groups of rows",
        detail: format!("output {name} has rows of different shapes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isovec_engine::tensor::DType;

    #[test]
    fn rows_go_apart_and_together() {
        let values: Vec<f32> = (0..12).map(|v| v as f32).collect();
        let whole = Tensor::from_slice(&[4, 3], &values).unwrap();
        let batch = Batch {
            inputs: vec![NamedTensor::new("x", whole)],
            row_lengths: vec![1, 2, 3, 3],
            ..Batch::default()
        };
        let parts: Vec<Batch> = [0..1, 1..3, 3..4]
            .into_iter()
            .map(|rows| take(&batch, rows).unwrap())
            .collect();
        assert_eq!(parts[1].row_lengths, [2, 3]);
        assert_eq!(parts[1].inputs[0].tensor.shape(), [2, 3]);
        let groups = parts
            .into_iter()
            .map(|part| RunOutput {
                outputs: part.inputs,
                ..RunOutput::default()
            })
            .collect();
        let joined = join(groups, batch).unwrap();
        assert_eq!(joined.outputs[0].tensor.shape(), [4, 3]);
        assert_eq!(joined.outputs[0].tensor.as_slice::<f32>().unwrap(), values);
        assert_eq!(joined.inputs.len(), 1);
    }

    #[test]
    fn rows_of_different_shapes_are_not_glued() {
        let group = |shape: &[usize]| RunOutput {
            outputs: vec![NamedTensor::new(
                "y",
                Tensor::zeros(DType::F32, shape).unwrap(),
            )],
            ..RunOutput::default()
        };
        for shapes in [[[1, 3], [1, 2]], [[1, 2], [1, 3]]] {
            let groups = shapes.iter().map(|shape| group(shape)).collect();
            assert!(join(groups, Batch::default()).is_err());
        }
    }
}
