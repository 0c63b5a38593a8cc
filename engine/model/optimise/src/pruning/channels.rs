//! What of a graph has to change when channels between convolutions are taken out.
//!
//! A convolution reads the channels of its input. Where those are made by another convolution, and what stands between both computes each
//! channel by itself, a channel that is taken out is an output less of the kernel before, an input less of the kernel behind, and a value
//! less of every constant between them: of normalisations, of convolutions of one channel each, and of what squeezes all pixels to one
//! and weighs channels by them (squeeze and excite). Channels that a sum carries past a layer stay: too much reads them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use super::graph::Graph;
use super::region::{Cut, Region, Unit};
use crate::operators::{goes_alone, goes_in_pairs, squeezes};

/// Operators that compute each channel by itself, beside those that go value by value.
const BY_CHANNEL: [&str; 5] = [
    "AveragePool",
    "Dropout",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "MaxPool",
];

/// Adds the regions of channels, in the order of the convolutions behind them. None shares a constant with another region: where two
/// would, the one with more bytes is taken.
pub(super) fn channels(graph: &Graph<'_>, found: &mut Vec<Region>) {
    let all = 0..graph.nodes.len();
    let all = all.filter_map(|at| {
        let kernel = reader(graph, at)?;
        let walk = Walk {
            graph,
            channels: kernel[1],
            values: HashSet::new(),
            cuts: BTreeMap::new(),
            groups: Vec::new(),
            makers: 0,
        };
        walk.region(at, kernel)
    });
    let mut all: Vec<Region> = all.collect();
    all.sort_by_key(|region| Reverse(region.units * region.unit_bytes));
    let first = found.len();
    for region in all {
        if !found.iter().any(|other| other.shares(&region)) {
            found.push(region);
        }
    }
    found[first..].sort_by_key(|region| region.product);
}

/// The extents `[outputs, inputs, ..]` of the kernel of a node that reads all channels at once.
fn reader(graph: &Graph<'_>, at: usize) -> Option<Vec<usize>> {
    let node = &graph.nodes[at];
    let fits = match graph.operator(at) {
        "Conv" => node.int("group").unwrap_or(1) == 1,
        "Gemm" => {
            let one = |name: &str| node.float(name).is_none_or(|factor| factor == 1.0);
            let turned =
                node.int("transB").unwrap_or(0) == 1 && node.int("transA").unwrap_or(0) == 0;
            turned && one("alpha") && one("beta")
        }
        _ => false,
    };
    let shape = kernel(graph, at)?;
    (fits && shape.len() >= 2 && shape.iter().all(|&extent| extent > 0)).then_some(shape)
}

/// The extents of the constant that is a node's second input, which nothing else reads.
fn kernel(graph: &Graph<'_>, at: usize) -> Option<Vec<usize>> {
    let name = graph.nodes[at].input.get(1)?;
    let constant = graph.constant(name).filter(|constant| constant.float)?;
    (graph.uses(name) == 1).then_some(constant.shape)
}

/// A walk over all values that have the channels of a region.
struct Walk<'g, 'b> {
    graph: &'g Graph<'b>,
    channels: usize,
    values: HashSet<String>,
    cuts: BTreeMap<(usize, usize), Cut>,
    /// Convolutions of as many groups as there are channels.
    groups: Vec<usize>,
    /// Convolutions that make the channels.
    makers: usize,
}

impl Walk<'_, '_> {
    /// The region before this convolution; `None`: its channels cannot be taken out.
    fn region(mut self, last: usize, kernel: Vec<usize>) -> Option<Region> {
        let graph = self.graph;
        let node = &graph.nodes[last];
        let input = node.input[0].clone();
        let mut open = vec![input.clone()];
        while let Some(value) = open.pop() {
            if !self.values.insert(value.clone()) {
                continue;
            }
            open.extend(self.made(graph.maker(&value)?)?);
            for &at in graph.readers(&value)? {
                if at != last {
                    open.extend(self.read(at, &value)?);
                }
            }
        }
        // Read by what it makes itself, a kernel would lose both.
        let own = !self.cuts.values().any(|cut| cut.name == node.input[1]);
        if self.makers == 0 || !own || self.cuts.values().any(|cut| graph.uses(&cut.name) != 1) {
            return None;
        }
        let values = |name: &str| graph.constant(name).map_or(0, |constant| constant.values());
        let all: usize = self.cuts.values().map(|cut| values(&cut.name)).sum();
        let columns = kernel.iter().product::<usize>() / self.channels;
        Some(Region {
            unit: Unit::Channels,
            units: self.channels,
            size: 1,
            input,
            product: last,
            matrix: node.input[1].clone(),
            columns,
            kernel: Some(kernel),
            groups: self.groups,
            unit_bytes: (all + values(&node.input[1])) / self.channels * size_of::<f32>(),
            cuts: self.cuts.into_values().collect(),
            shapes: Vec::new(),
            skip: None,
        })
    }

    /// What a node does that makes such a value: the values before it that have the channels as well.
    fn made(&mut self, at: usize) -> Option<Vec<String>> {
        let graph = self.graph;
        let node = &graph.nodes[at];
        match graph.operator(at) {
            "Conv" if self.each_alone(at) => {
                self.cut_kernel(at)?;
                Some(vec![node.input[0].clone()])
            }
            "Conv" if node.int("group").unwrap_or(1) == 1 => {
                self.cut_kernel(at)?;
                self.makers += 1;
                Some(Vec::new())
            }
            _ => self.between(at),
        }
    }

    /// What a node does that reads such a value: the values that have the channels as well.
    fn read(&mut self, at: usize, value: &str) -> Option<Vec<String>> {
        let graph = self.graph;
        let node = &graph.nodes[at];
        if node.input[0] == value && graph.operator(at) == "Conv" {
            if self.each_alone(at) {
                self.cut_kernel(at)?;
                return Some(vec![node.output[0].clone()]);
            }
            // Of one pixel, to weigh the channels: nothing makes up for it, and what that costs is measured.
            let squeezed = graph
                .maker(value)
                .is_some_and(|maker| squeezes(graph.operator(maker)));
            let shape = reader(graph, at).filter(|shape| squeezed && shape[1] == self.channels);
            shape?;
            self.cut(at, 1, 1)?;
            return Some(Vec::new());
        }
        self.between(at)
    }

    /// A node that computes each channel by itself: its values, before and behind it.
    fn between(&mut self, at: usize) -> Option<Vec<String>> {
        let graph = self.graph;
        let node = &graph.nodes[at];
        let [output] = node.output.as_slice() else {
            return None;
        };
        let operator = graph.operator(at);
        let mut values = vec![output.clone()];
        match operator {
            "BatchNormalization" => {
                (1..node.input.len()).try_for_each(|place| self.cut(at, place, 0))?;
                values.push(node.input[0].clone());
            }
            // To all pixels of a channel, which stay in their order: one of each only.
            "Flatten" => {
                let before = graph.maker(&node.input[0])?;
                let one = squeezes(graph.operator(before));
                (one && node.int("axis").unwrap_or(1) == 1).then_some(())?;
                values.push(node.input[0].clone());
            }
            "ReduceMean" => {
                let pixels = [
                    node.ints("axes").map(<[i64]>::to_vec),
                    graph.ints(node.input.get(1).map_or("", String::as_str)),
                ];
                let pixels = pixels.into_iter().flatten().next()?;
                let over = pixels == [2, 3] || pixels == [-2, -1] || pixels == [-1, -2];
                (over && node.int("keepdims").unwrap_or(1) == 1).then_some(())?;
                values.push(node.input[0].clone());
            }
            _ if goes_alone(operator) || BY_CHANNEL.contains(&operator) => {
                values.push(node.input[0].clone())
            }
            _ if goes_in_pairs(operator) => {
                for (place, name) in node.input.iter().enumerate() {
                    match graph.constant(name) {
                        None => values.push(name.clone()),
                        Some(constant) if constant.values() == 1 => {}
                        // `[channels, 1, 1]`, perhaps with an axis before.
                        Some(constant) => {
                            let axis = constant.shape.len().checked_sub(3)?;
                            (constant.values() == self.channels).then_some(())?;
                            self.cut(at, place, axis)?;
                        }
                    }
                }
            }
            _ => return None,
        }
        Some(values)
    }

    /// Whether a convolution has a kernel for each channel of its own.
    fn each_alone(&self, at: usize) -> bool {
        let groups = self.graph.nodes[at].int("group").unwrap_or(1);
        let shape = kernel(self.graph, at).unwrap_or_default();
        let one = shape.len() > 2 && shape[..2] == [self.channels, 1];
        one && self.channels > 1 && usize::try_from(groups) == Ok(self.channels)
    }

    /// Takes outputs of a convolution.
    fn cut_kernel(&mut self, at: usize) -> Option<()> {
        if self.each_alone(at) && !self.groups.contains(&at) {
            self.groups.push(at);
        }
        kernel(self.graph, at)?;
        self.cut(at, 1, 0)?;
        match self.graph.nodes[at].input.get(2) {
            Some(bias) if !bias.is_empty() => self.cut(at, 2, 0),
            _ => Some(()),
        }
    }

    /// Takes values of a constant along an axis, on which it has one for each channel.
    fn cut(&mut self, node: usize, place: usize, axis: usize) -> Option<()> {
        let name = self.graph.nodes[node].input.get(place)?;
        let constant = self
            .graph
            .constant(name)
            .filter(|constant| constant.float)?;
        (constant.shape.get(axis) == Some(&self.channels)).then_some(())?;
        let cut = Cut {
            node,
            place,
            name: name.clone(),
            axis,
            per: 1,
        };
        self.cuts.insert((node, place), cut);
        Some(())
    }
}
