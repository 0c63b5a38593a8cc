//! Products of some of their rows (`gate.rs`): those are brought together, multiplied, and put where they belong.

use std::ops::Range;

use isovec_kernels::gemm::{Activations, Rows};

use super::Run;
use crate::executable::Step;
use crate::gate::Gate;

/// The rows of a product that are computed, and memory for them.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// Their numbers, from the first row of the range.
    pub(super) rows: Vec<usize>,
    /// The operand's, one after another.
    pub(super) x: Vec<f32>,
    /// Their results.
    pub(super) out: Vec<f32>,
    /// The operand's as whole numbers.
    pub(super) quantised: Activations,
}

impl Chosen {
    /// Brings the operand's rows together, of `width` columns each.
    pub(super) fn gather(&mut self, x: Rows<'_>, width: usize) {
        self.x.clear();
        for &row in &self.rows {
            let from = row * x.stride;
            self.x.extend_from_slice(&x.values[from..from + width]);
        }
    }

    /// Puts the results in their places among all rows, of `width` columns each.
    pub(super) fn scatter(&self, width: usize, gate: Gate, out: &mut [f32]) {
        if gate.zeroes {
            out.fill(0.0);
        }
        for (&row, values) in self.rows.iter().zip(self.out.chunks_exact(width)) {
            out[row * width..(row + 1) * width].copy_from_slice(values);
        }
    }
}

impl Run {
    /// Finds the rows of a range that a step has to compute, and says how many they are.
    pub(super) fn choose(&mut self, step: &Step, range: &Range<usize>) -> usize {
        let mut rows = std::mem::take(&mut self.chosen.rows);
        rows.clear();
        if let Some(gate) = step.gate {
            let width = self.width(gate.node);
            let all = self.value(gate.node);
            let is_open = |row: &usize| all[(range.start + row) * width + gate.column] != 0.0;
            rows.extend((0..range.len()).filter(is_open));
        }
        self.chosen.rows = rows;
        match step.gate {
            Some(_) => self.chosen.rows.len(),
            None => range.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::NodeId;

    #[test]
    fn chosen_rows_come_from_their_places_and_go_back_to_them() {
        let values: Vec<f32> = (0..12).map(|value| value as f32).collect();
        let mut chosen = Chosen {
            rows: vec![0, 2],
            ..Chosen::default()
        };
        let x = Rows {
            values: &values,
            stride: 4,
        };
        chosen.gather(x, 3);
        assert_eq!(chosen.x, [0.0, 1.0, 2.0, 8.0, 9.0, 10.0]);
        chosen.out = vec![5.0, 6.0];
        let gate = |zeroes| Gate {
            node: NodeId(0),
            column: 0,
            zeroes,
        };
        // What was in the memory may be no number.
        let mut out = [f32::NAN; 3];
        chosen.scatter(1, gate(true), &mut out);
        assert_eq!(out, [5.0, 0.0, 6.0]);
        let mut out = [1.0; 3];
        chosen.scatter(1, gate(false), &mut out);
        assert_eq!(out, [5.0, 1.0, 6.0]);
    }
}
