//! The places of results. A slot is memory for one result at a time; a kernel never reads the slot that it writes.

use std::collections::HashMap;

use isovec_encoder::program::{NodeId, Rows};

use super::Merged;
use crate::kernels::Reads;

/// Memory that results take turns in: for so many bytes of each token, and of each text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) token_bytes: usize,
    pub(crate) text_bytes: usize,
    /// Whether it is read back.
    pub(crate) output: bool,
}

impl Slot {
    /// Bytes for a batch.
    pub(crate) fn bytes(&self, tokens: usize, texts: usize) -> u64 {
        (self.token_bytes * tokens).max(self.text_bytes * texts) as u64
    }
}

/// Where everything is.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) slots: Vec<Slot>,
    /// In the kernels' order.
    pub(crate) of_steps: Vec<usize>,
    pub(crate) of_nodes: HashMap<NodeId, usize>,
}

/// Places what kernels write: each its node, with what it reads.
pub(crate) fn place(merged: &Merged, kernels: &[(NodeId, &[Reads])], outputs: &[NodeId]) -> Placed {
    let mut last: HashMap<NodeId, usize> = HashMap::new();
    for (at, (id, reads)) in kernels.iter().enumerate() {
        last.insert(*id, at);
        for read in *reads {
            if let Reads::Node(node) = read {
                last.insert(*node, at);
            }
        }
    }
    let mut placed = Placed {
        slots: Vec::new(),
        of_steps: Vec::new(),
        of_nodes: HashMap::new(),
    };
    let mut free: Vec<usize> = Vec::new();
    for (at, (id, _)) in kernels.iter().enumerate() {
        let (node, bytes) = (&merged.nodes[id.0], merged.row_bytes(*id));
        let output = outputs.contains(id);
        let wide = |slot: &Slot| match node.rows {
            Rows::Tokens => slot.token_bytes,
            Rows::Texts => slot.text_bytes,
        };
        // The free one whose width is nearest; outputs have their own.
        let best = free
            .iter()
            .enumerate()
            .min_by_key(|&(_, &slot)| wide(&placed.slots[slot]).abs_diff(bytes))
            .map(|(place, _)| place)
            .filter(|_| !output);
        let slot = match best {
            Some(place) => free.swap_remove(place),
            None => {
                placed.slots.push(Slot::default());
                placed.slots.len() - 1
            }
        };
        let own = &mut placed.slots[slot];
        own.output |= output;
        match node.rows {
            Rows::Tokens => own.token_bytes = own.token_bytes.max(bytes),
            Rows::Texts => own.text_bytes = own.text_bytes.max(bytes),
        }
        placed.of_steps.push(slot);
        placed.of_nodes.insert(*id, slot);
        // What this kernel was the last to read is free for the next.
        for (other, _) in &kernels[..=at] {
            let slot = placed.of_nodes[other];
            if last[other] == at && !outputs.contains(other) && !free.contains(&slot) {
                free.push(slot);
            }
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;
    use isovec_encoder::program::{Node, Op};

    #[test]
    fn no_kernel_writes_what_is_still_read() {
        let node = |width| Node {
            op: Op::Position,
            rows: Rows::Tokens,
            width,
        };
        let nodes = [node(4), node(8), node(4), node(8), node(4)];
        let node = |id: usize| Reads::Node(NodeId(id));
        let reads = [
            vec![],
            vec![node(0)],
            vec![node(1)],
            vec![node(2), node(0)],
            vec![node(3)],
        ];
        let kernels = reads.iter().enumerate();
        let kernels: Vec<_> = kernels
            .map(|(id, reads)| (NodeId(id), &reads[..]))
            .collect();
        let merged = Merged {
            nodes: nodes.to_vec(),
            parts: HashMap::new(),
            // As wide as 0, in half of the bytes.
            halves: [NodeId(1)].into(),
        };
        let placed = place(&merged, &kernels, &[NodeId(4)]);
        let slot = |id| placed.of_nodes[&NodeId(id)];
        // 0 is read until 3 is written, 1 until 2 is.
        assert!([1, 2, 3].iter().all(|&other| slot(other) != slot(0)));
        assert_eq!(slot(3), slot(1));
        assert_ne!(slot(2), slot(1));
        assert!((0..4).all(|other| slot(other) != slot(4)));
        assert_eq!(placed.slots.len(), 4);
        assert_eq!(placed.slots[slot(1)].bytes(10, 2), 8 * 10 * 4);
    }
}
