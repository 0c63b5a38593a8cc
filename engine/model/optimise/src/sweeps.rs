//! Runs over the texts, each for as many inputs of products as fit into memory.

use isovec_engine::bundle::ModelBundle;

use crate::int4::Moments;
use crate::int8::probe;

/// Bytes of the moments of a sweep, unless one input takes more.
const BYTES: usize = 128 << 20;

/// An input of products.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub(crate) name: String,
    /// Values of its rows.
    pub(crate) width: usize,
    /// What it is the input of, by the places in the list of whoever made the sweep.
    pub(crate) matrices: Vec<usize>,
}

/// Some inputs of products, whose moments fit into memory at the same time.
#[derive(Debug)]
pub struct Sweep {
    pub(crate) inputs: Vec<Input>,
}

impl Sweep {
    /// A model that gives these inputs.
    #[must_use]
    pub fn probe(&self, bundle: &ModelBundle) -> ModelBundle {
        probe(
            bundle,
            self.inputs.iter().map(|input| &input.name).collect(),
        )
    }

    /// The inputs: the name of each, and the values of its rows.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, usize)> {
        let inputs = self.inputs.iter();
        inputs.map(|input| (input.name.as_str(), input.width))
    }

    /// Bytes of what the probe gives for a token.
    pub fn bytes_per_token(&self) -> usize {
        let widths = self.inputs.iter().map(|input| input.width);
        widths.sum::<usize>() * size_of::<f32>()
    }
}

/// Inputs in sweeps whose moments take at most 128 MB, or which have one input.
pub(crate) fn in_sweeps(inputs: &[Input]) -> Vec<Sweep> {
    within(inputs, BYTES)
}

fn within(inputs: &[Input], most: usize) -> Vec<Sweep> {
    let mut sweeps: Vec<Sweep> = Vec::new();
    let mut taken = 0;
    for input in inputs {
        let bytes = Moments::entries(input.width) * size_of::<f64>();
        match sweeps.last_mut().filter(|_| taken + bytes <= most) {
            Some(sweep) => {
                taken += bytes;
                sweep.inputs.push(input.clone());
            }
            None => {
                taken = bytes;
                sweeps.push(Sweep {
                    inputs: vec![input.clone()],
                });
            }
        }
    }
    sweeps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_has_as_many_inputs_as_memory_allows_and_at_least_one() {
        let inputs = [3, 3, 10, 3, 3, 3].map(|width| Input {
            name: String::new(),
            width,
            matrices: Vec::new(),
        });
        // 3 wide takes 6 numbers, and 10 wide 55.
        let told = |most: usize| -> Vec<Vec<usize>> {
            let sweeps = within(&inputs, most);
            let widths = sweeps
                .iter()
                .map(|sweep| sweep.inputs().map(|(_, width)| width).collect());
            widths.collect()
        };
        assert_eq!(told(12 * 8), [vec![3, 3], vec![10], vec![3, 3], vec![3]]);
        assert_eq!(told(61 * 8), [vec![3, 3], vec![10, 3], vec![3, 3]]);
        assert_eq!(told(usize::MAX / 2), [vec![3, 3, 10, 3, 3, 3]]);
        assert!(within(&[], 1).is_empty());
    }
}
