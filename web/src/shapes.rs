//! Checks that the shapes within a batch agree.

use std::collections::HashMap;

use isovec_engine::description::{Dim, ModelDescription};
use isovec_engine::engine::Batch;
use isovec_engine::{EngineError, Result};

/// Checks that extents of one name are equal across the inputs, and that none is zero, for which
/// there is nothing to compute.
///
/// # Errors
/// [`EngineError::InvalidInput`], naming the input.
pub(crate) fn check(batch: &Batch, model: &ModelDescription) -> Result<()> {
    let mut known: HashMap<&str, (usize, &str)> = HashMap::new();
    for input in &model.inputs {
        let Some(tensor) = batch.input(&input.name) else {
            continue;
        };
        let fail = |detail: String| {
            Err(EngineError::InvalidInput {
                name: input.name.clone(),
                detail,
            })
        };
        if tensor.is_empty() {
            return fail(format!("has shape {:?}, which is empty", tensor.shape()));
        }
        for (dim, &extent) in input.dims.iter().flatten().zip(tensor.shape()) {
            let Dim::Symbolic(name) = dim else { continue };
            if name.is_empty() || name == "?" {
                continue;
            }
            let (first, of) = *known.entry(name).or_insert((extent, &input.name));
            if first != extent {
                return fail(format!(
                    "has {extent} for `{name}`, but {of} has {first}; they must be equal"
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use isovec_engine::description::ValueDescription;
    use isovec_engine::tensor::{DType, NamedTensor, Tensor};

    fn batch(shapes: &[(&str, [usize; 2])]) -> Batch {
        Batch {
            inputs: shapes
                .iter()
                .map(|(name, shape)| {
                    NamedTensor::new(*name, Tensor::zeros(DType::I64, shape).unwrap())
                })
                .collect(),
            row_lengths: Vec::new(),
            ..Batch::default()
        }
    }

    fn model() -> ModelDescription {
        let value = |name: &str| ValueDescription {
            name: name.into(),
            dtype: Some(DType::I64),
            dims: Some(vec![
                Dim::Symbolic("batch".into()),
                Dim::Symbolic("sequence".into()),
            ]),
        };
        ModelDescription {
            inputs: vec![value("ids"), value("mask")],
            ..ModelDescription::default()
        }
    }

    #[test]
    fn equal_names_ask_for_equal_extents() {
        assert!(check(&batch(&[("ids", [2, 8]), ("mask", [2, 8])]), &model()).is_ok());
        let error = check(&batch(&[("ids", [2, 8]), ("mask", [2, 7])]), &model()).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("mask") && text.contains("7 for `sequence`") && text.contains("ids"),
            "{text}"
        );
    }

    #[test]
    fn nothing_to_compute_is_refused() {
        let error = check(&batch(&[("ids", [2, 0]), ("mask", [2, 0])]), &model()).unwrap_err();
        assert!(error.to_string().contains("empty"), "{error}");
    }
}
