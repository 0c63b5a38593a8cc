//! A batch in groups of rows, so that no operator keeps the event loop waiting.
//!
//! An operator cannot be interrupted, and one over a large batch takes far longer than the time
//! slice of a [`Worker`](crate::executor::Worker). Rows do not depend on one another, so the batch
//! is run a few rows at a time, as many as the operators' measured times allow.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use isovec_engine::Result;
use isovec_engine::description::{Dim, ModelDescription, ValueDescription};
use isovec_engine::engine::{Batch, RunOutput};
use isovec_engine::tensor::{NamedTensor, Tensor};

/// Whether every input and output has its rows along axis 0, under one name.
pub(crate) fn independent(model: &ModelDescription) -> bool {
    fn rows(value: &ValueDescription) -> Option<&str> {
        match value.dims.as_deref()?.first()? {
            Dim::Symbolic(name) => Some(name),
            Dim::Fixed(_) => None,
        }
    }
    let Some(name) = model.inputs.first().and_then(rows) else {
        return false;
    };
    let mut values = model.inputs.iter().chain(&model.outputs);
    values.all(|value| rows(value) == Some(name))
}

/// The group's size, learned from how long the slowest operator took.
#[derive(Debug)]
pub(crate) struct GroupSize {
    /// Values of the first input (tokens, pixels) that a group may have.
    values: AtomicUsize,
}

/// Enough to fill the kernels' tiles, little enough for the slowest machine.
const FIRST_GUESS: usize = 64;
/// Larger groups bring nothing.
const MOST: usize = 1 << 14;

impl Default for GroupSize {
    fn default() -> Self {
        Self {
            values: AtomicUsize::new(FIRST_GUESS),
        }
    }
}

impl GroupSize {
    /// How many rows of `row_values` values to run next; at least one.
    pub(crate) fn rows(&self, row_values: usize) -> usize {
        (self.values.load(Ordering::Relaxed) / row_values.max(1)).max(1)
    }

    /// Learns from a group of `values` values whose slowest operator took `slowest`.
    pub(crate) fn learn(&self, values: usize, slowest: Duration, slice: Duration) {
        let known = self.values.load(Ordering::Relaxed);
        let next = if slowest > slice {
            let share = slice.as_secs_f64() / slowest.as_secs_f64();
            (values as f64 * share) as usize
        } else if slowest * 2 < slice && values * 2 > known {
            known * 2
        } else {
            known
        };
        self.values.store(next.clamp(1, MOST), Ordering::Relaxed);
    }
}

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
    })
}

/// Puts the groups' outputs back together, and gives the caller's tensors back.
///
/// # Errors
/// [`isovec_engine::EngineError::InputTooLarge`] when the whole does not fit into memory.
pub(crate) fn join(groups: Vec<RunOutput>, inputs: Vec<NamedTensor>) -> Result<RunOutput> {
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
    Ok(RunOutput { outputs, inputs })
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

    const SLICE: Duration = Duration::from_millis(5);

    #[test]
    fn groups_shrink_with_slow_operators_and_grow_with_fast_ones() {
        let size = GroupSize::default();
        assert_eq!((size.rows(16), size.rows(1000)), (4, 1));
        size.learn(64, SLICE * 4, SLICE);
        assert_eq!(size.rows(16), 1);
        for _ in 0..4 {
            size.learn(size.rows(1), SLICE / 10, SLICE);
        }
        assert_eq!(size.rows(16), 16);
        let before = size.rows(1);
        size.learn(1, SLICE / 10, SLICE);
        assert_eq!(size.rows(1), before, "a small group says little about large ones");
    }

    #[test]
    fn rows_go_apart_and_together() {
        let values: Vec<f32> = (0..12).map(|v| v as f32).collect();
        let whole = Tensor::from_slice(&[4, 3], &values).unwrap();
        let batch = Batch {
            inputs: vec![NamedTensor::new("x", whole)],
            row_lengths: vec![1, 2, 3, 3],
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
                inputs: Vec::new(),
            })
            .collect();
        let joined = join(groups, batch.inputs).unwrap();
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
            inputs: Vec::new(),
        };
        for shapes in [[[1, 3], [1, 2]], [[1, 2], [1, 3]]] {
            let groups = shapes.iter().map(|shape| group(shape)).collect();
            assert!(join(groups, Vec::new()).is_err());
        }
    }

    #[test]
    fn a_model_without_rows_is_left_whole() {
        let value = |name: &str, dims: Option<Vec<Dim>>| ValueDescription {
            name: name.into(),
            dtype: Some(DType::F32),
            dims,
        };
        let open = || Some(vec![Dim::Symbolic("batch".into()), Dim::Fixed(3)]);
        let model = |output: Option<Vec<Dim>>| ModelDescription {
            inputs: vec![value("x", open())],
            outputs: vec![value("y", output)],
            ..ModelDescription::default()
        };
        assert!(independent(&model(open())));
        assert!(!independent(&model(None)));
        assert!(!independent(&model(Some(vec![Dim::Fixed(1)]))));
        assert!(!independent(&model(Some(vec![Dim::Symbolic("n".into())]))));
    }
}
