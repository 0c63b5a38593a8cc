//! The number of rows that tract runs together if no operator may block the event loop.

use isovec_engine::description::{Dim, ModelDescription, ValueDescription};

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

/// Multiply-adds that one operator may take: some 5 ms at the 10 to 13 billion a second that
/// one thread of wasm SIMD reaches.
const OPERATOR_BUDGET: u64 = 60_000_000;

/// How many rows to run together when the heaviest operator takes `row_cost` multiply-adds for
/// one; at least one, whatever it takes.
pub(crate) fn per_group(row_cost: u64) -> usize {
    usize::try_from(OPERATOR_BUDGET / row_cost.max(1))
        .unwrap_or(usize::MAX)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isovec_engine::tensor::DType;

    #[test]
    fn a_group_is_as_large_as_its_heaviest_operator_allows() {
        // A feed-forward layer of 384 by 1536, over 16 and over 512 positions.
        assert_eq!(per_group(16 * 384 * 1536), 6);
        assert_eq!(per_group(512 * 384 * 1536), 1);
        assert_eq!(per_group(0), OPERATOR_BUDGET as usize);
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
