//! Computes the sizes of a model's outputs from its inputs before it runs.

use isovec_engine::description::{Dim, ModelDescription};
use isovec_engine::engine::Batch;
use isovec_engine::tensor::DType;
use smallvec::SmallVec;

/// The size of every output, as far as it can be told.
#[derive(Debug)]
pub(crate) struct OutputSizes(Vec<Option<OutputSize>>);

/// One output's.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OutputSize {
    dtype: DType,
    extents: Vec<Extent>,
}

#[derive(Debug, PartialEq, Eq)]
enum Extent {
    Fixed(usize),
    /// As long as this axis of that input.
    Input {
        input: usize,
        axis: usize,
    },
}

impl OutputSizes {
    /// Looks for every symbol of an output among the inputs' symbols.
    pub(crate) fn new(description: &ModelDescription) -> Self {
        let extent = |dim: &Dim| match dim {
            Dim::Fixed(extent) => Some(Extent::Fixed(*extent)),
            Dim::Symbolic(symbol) => {
                description
                    .inputs
                    .iter()
                    .enumerate()
                    .find_map(|(input, value)| {
                        let dims = value.dims.as_ref()?;
                        let axis = dims.iter().position(
                            |dim| matches!(dim, Dim::Symbolic(other) if other == symbol),
                        )?;
                        Some(Extent::Input { input, axis })
                    })
            }
        };
        let outputs = description.outputs.iter().map(|output| {
            let dims = output.dims.as_ref()?;
            Some(OutputSize {
                dtype: output.dtype?,
                extents: dims.iter().map(extent).collect::<Option<_>>()?,
            })
        });
        Self(outputs.collect())
    }

    /// Why outputs cannot be made ahead of a run, if one of them cannot.
    pub(crate) fn unknown(&self, description: &ModelDescription) -> Option<String> {
        let at = self.0.iter().position(Option::is_none)?;
        let name = &description.outputs.get(at)?.name;
        Some(format!(
            "the model does not state the size of its output {name}"
        ))
    }

    /// The type and shape of every output for a batch; `None` in place of one that cannot be told.
    pub(crate) fn of<'s>(
        &'s self,
        batch: &'s Batch,
    ) -> impl Iterator<Item = Option<(DType, SmallVec<[usize; 4]>)>> + 's {
        self.0.iter().map(|size| {
            let size = size.as_ref()?;
            let shape = size.extents.iter().map(|extent| match *extent {
                Extent::Fixed(extent) => Some(extent),
                Extent::Input { input, axis } => {
                    batch.inputs.get(input)?.tensor.shape().get(axis).copied()
                }
            });
            Some((size.dtype, shape.collect::<Option<_>>()?))
        })
    }

    /// The bytes of an output of `rows` rows, all outputs together.
    pub(crate) fn bytes(&self, rows: usize) -> usize {
        let outputs = self.0.iter().flatten().map(|size| {
            let extents = size.extents.iter().map(|extent| match *extent {
                Extent::Fixed(extent) => extent,
                Extent::Input { axis: 0, .. } => rows,
                Extent::Input { .. } => 1,
            });
            extents.fold(size.dtype.size(), usize::saturating_mul)
        });
        outputs.fold(0, usize::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use isovec_engine::description::ValueDescription;
    use isovec_engine::tensor::{NamedTensor, Tensor};

    use super::*;

    fn value(name: &str, dims: &[Dim]) -> ValueDescription {
        ValueDescription {
            name: name.into(),
            dtype: Some(DType::F32),
            dims: Some(dims.to_vec()),
        }
    }

    fn symbol(name: &str) -> Dim {
        Dim::Symbolic(name.into())
    }

    #[test]
    fn symbols_of_outputs_are_found_among_the_inputs() {
        let description = ModelDescription {
            inputs: vec![value("x", &[symbol("batch"), symbol("length")])],
            outputs: vec![
                value("pooled", &[symbol("batch"), Dim::Fixed(384)]),
                value("count", &[symbol("found")]),
            ],
            ..ModelDescription::default()
        };
        let sizes = OutputSizes::new(&description);
        let mut batch = Batch::default();
        let x = Tensor::zeros(DType::F32, &[3, 16]).unwrap();
        batch.inputs.push(NamedTensor::new("x", x));
        let shapes: Vec<_> = sizes.of(&batch).collect();
        assert_eq!(
            shapes,
            [Some((DType::F32, SmallVec::from_slice(&[3, 384]))), None]
        );
        assert!(sizes.unknown(&description).unwrap().contains("count"));
        assert_eq!(sizes.bytes(2), 2 * 384 * 4);
    }
}
