//! Collects the operators of a program, and joins those that can be computed together.

use isovec_kernels::Activation;
use isovec_kernels::conv::Map;

use crate::node::{Finish, Node, NodeId, Op};

/// The operators so far.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    pub(crate) nodes: Vec<Node>,
    /// How often the graph reads each node's result, under all its names.
    readers: Vec<usize>,
}

impl Builder {
    pub(crate) fn push(&mut self, op: Op, map: Map) -> NodeId {
        self.nodes.push(Node {
            op,
            finish: Finish::default(),
            map,
        });
        self.readers.push(0);
        NodeId(self.nodes.len() - 1)
    }

    pub(crate) fn node(&self, NodeId(node): NodeId) -> &Node {
        &self.nodes[node]
    }

    pub(crate) fn map(&self, node: NodeId) -> Map {
        self.node(node).map
    }

    /// A name of the graph stands for a node, and is read so many times.
    pub(crate) fn named(&mut self, NodeId(node): NodeId, reads: usize) {
        self.readers[node] += reads;
    }

    /// An operator gave a node another name instead of reading it.
    pub(crate) fn renamed(&mut self, NodeId(node): NodeId) {
        self.readers[node] -= 1;
    }

    /// Whether the graph reads a node's result once.
    pub(crate) fn read_once(&self, NodeId(node): NodeId) -> bool {
        self.readers[node] == 1
    }

    /// The node to change, where `reads` are all that the graph reads of its unchanged result.
    fn own(&mut self, NodeId(node): NodeId, reads: usize) -> Option<&mut Node> {
        (self.readers[node] == reads).then(|| &mut self.nodes[node])
    }

    /// A node whose finish may be added to: `x` itself, where nobody reads it as it is and it `takes` that, else a copy of
    /// it.
    fn finishing(&mut self, x: NodeId, reads: usize, takes: impl Fn(&Finish) -> bool) -> NodeId {
        if self.own(x, reads).is_some_and(|node| takes(&node.finish)) {
            self.readers[x.0] = 0;
            return x;
        }
        let map = self.map(x);
        self.push(Op::Same { x }, map)
    }

    /// `activation(x)`, of which the graph reads `x` so many times.
    pub(crate) fn activate(&mut self, x: NodeId, reads: usize, activation: Activation) -> NodeId {
        let node = self.finishing(x, reads, Finish::is_empty);
        self.nodes[node.0].finish.activation = Some(activation);
        node
    }

    /// `x` within limits.
    pub(crate) fn limit(&mut self, x: NodeId, least: f32, most: f32) -> NodeId {
        let node = self.finishing(x, 1, |finish| finish.limits.is_none());
        self.nodes[node.0].finish.limits = Some((least, most));
        node
    }

    /// `a + b`, two maps of the same extents.
    pub(crate) fn add(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let takes = |finish: &Finish| finish.residual.is_none() && finish.limits.is_none();
        // Only what is computed before it can be added to a node's result; the later one of the two has the other.
        let (x, residual) = if a > b { (a, b) } else { (b, a) };
        let reads = if a == b { 2 } else { 1 };
        let node = match x == residual {
            true => {
                let map = self.map(x);
                self.push(Op::Same { x }, map)
            }
            false => self.finishing(x, reads, takes),
        };
        self.nodes[node.0].finish.residual = Some(residual);
        node
    }

    /// `x * scale + shift` by channel, which a convolution and a normalisation take into their weights.
    pub(crate) fn affine(&mut self, x: NodeId, scale: Vec<f64>, shift: Vec<f64>) -> NodeId {
        if let Some(node) = self.own(x, 1)
            && node.finish.is_empty()
            && let Op::Conv(conv) = &mut node.op
        {
            let old = conv.scale.take();
            let bias = conv.bias.take();
            let of = |all: &Option<Vec<f64>>, at: usize, other: f64| {
                all.as_ref().map_or(other, |all| all[at])
            };
            let channels = 0..scale.len();
            let shifts = channels
                .clone()
                .map(|at| of(&bias, at, 0.0) * scale[at] + shift[at]);
            conv.bias = Some(shifts.collect());
            conv.scale = Some(channels.map(|at| of(&old, at, 1.0) * scale[at]).collect());
            self.readers[x.0] = 0;
            return x;
        }
        if let Some(node) = self.own(x, 1)
            && node.finish.is_empty()
            && let Op::Norm { gamma, beta, .. } = &mut node.op
        {
            let mut shifted = shift.iter().map(|&shift| shift as f32);
            *beta = Some(match beta.take() {
                None => shifted.collect(),
                Some(old) => {
                    let old = old.iter().zip(&scale);
                    let old = old.map(|(&old, &by)| (f64::from(old) * by) as f32);
                    old.zip(shifted.by_ref())
                        .map(|(old, shift)| old + shift)
                        .collect()
                }
            });
            for (gamma, scale) in gamma.iter_mut().zip(&scale) {
                *gamma = (f64::from(*gamma) * scale) as f32;
            }
            self.readers[x.0] = 0;
            return x;
        }
        let map = self.map(x);
        self.push(Op::Affine { x, scale, shift }, map)
    }

    /// Drops the nodes that no output needs; tells the new places of the outputs.
    pub(crate) fn finish(self, outputs: &[NodeId]) -> (Vec<Node>, Vec<NodeId>) {
        let mut needed = vec![false; self.nodes.len()];
        for output in outputs {
            needed[output.0] = true;
        }
        for at in (0..self.nodes.len()).rev() {
            if needed[at] {
                for input in self.nodes[at].inputs() {
                    needed[input.0] = true;
                }
            }
        }
        let mut places = Vec::with_capacity(needed.len());
        let mut count = 0;
        for &needed in &needed {
            places.push(NodeId(count));
            count += usize::from(needed);
        }
        let moved = |node: &mut NodeId| *node = places[node.0];
        let nodes = self.nodes.into_iter().zip(&needed);
        let nodes = nodes.filter(|(_, needed)| **needed).map(|(mut node, _)| {
            node.op.each_input(moved);
            node.finish.residual.iter_mut().for_each(moved);
            node
        });
        let nodes = nodes.collect();
        (
            nodes,
            outputs.iter().map(|output| places[output.0]).collect(),
        )
    }
}
