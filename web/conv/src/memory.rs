//! Which results share memory: a result has its place until its last reader has run.

use crate::lower::Output;
use crate::node::{Node, NodeId};

/// Where the results of a program are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// By node.
    pub(crate) of: Vec<usize>,
    /// Values of each place.
    pub(crate) sizes: Vec<usize>,
}

impl Places {
    /// Finds places for all nodes. An operator that works in place has that of its operand, where nothing reads it later.
    pub(crate) fn find(nodes: &[Node], outputs: &[Output]) -> Self {
        let mut last: Vec<usize> = (0..nodes.len()).collect();
        for (at, node) in nodes.iter().enumerate() {
            for input in node.inputs() {
                last[input.0] = at;
            }
        }
        for output in outputs {
            last[output.node.0] = usize::MAX;
        }
        let mut places = Self {
            of: Vec::with_capacity(nodes.len()),
            sizes: Vec::new(),
        };
        let mut free: Vec<usize> = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            let inputs = node.inputs();
            let alone = |x: &NodeId| {
                let reads = inputs.iter().filter(|input| *input == x).count();
                last[x.0] == at && reads == 1 && nodes[x.0].map.len() == node.map.len()
            };
            let place = match node.op.in_place().filter(alone) {
                Some(x) => places.of[x.0],
                None => places.take(&mut free, node.map.len()),
            };
            places.of.push(place);
            let mut ended: Vec<usize> = inputs
                .iter()
                .filter(|input| last[input.0] == at)
                .map(|input| places.of[input.0])
                .filter(|&other| other != place)
                .collect();
            ended.sort_unstable();
            ended.dedup();
            free.extend(ended);
        }
        places
    }

    /// The smallest free place that is large enough, else the largest, which grows, else a new one.
    fn take(&mut self, free: &mut Vec<usize>, len: usize) -> usize {
        let best = (0..free.len()).min_by_key(|&at| {
            let size = self.sizes[free[at]];
            (size < len, size.abs_diff(len))
        });
        let place = best.map(|at| free.swap_remove(at)).unwrap_or_else(|| {
            self.sizes.push(0);
            self.sizes.len() - 1
        });
        self.sizes[place] = self.sizes[place].max(len);
        place
    }

    /// Values of all places together.
    pub(crate) fn len(&self) -> usize {
        self.sizes
            .iter()
            .fold(0, |all, size| all.saturating_add(*size))
    }
}
