//! What of a graph has to change when inputs of a product are taken out.
//!
//! A product `x · W` with a constant matrix reads the columns of `x`. Where `x` is made of other products by operators that compute each
//! column by itself, a column that is taken out of `x` is a row less of `W`, a column less of the matrices that make it, and a value
//! less of every bias between them: the columns of a feed-forward layer. Where `x` is the context of attention, its columns lie in heads,
//! and a head is taken out as a whole, from the matrices of queries, keys and values and from the shapes in between.

use std::collections::{BTreeMap, HashMap, HashSet};

use isovec_engine::onnx::proto::NodeProto;
use serde::Serialize;

use super::graph::Graph;
use crate::operators::{goes_alone, goes_in_pairs};

/// What is taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Unit {
    /// Columns of a layer between two products.
    Columns,
    /// Heads of attention.
    Heads,
    /// Channels between two convolutions.
    Channels,
}

/// What belongs together.
#[derive(Debug, Clone)]
pub(super) struct Region {
    pub(super) unit: Unit,
    /// How many there are, and how many columns each has.
    pub(super) units: usize,
    pub(super) size: usize,
    /// The columns, that the last product reads.
    pub(super) input: String,
    /// The last product, and its matrix `[units · size, columns]`.
    pub(super) product: usize,
    pub(super) matrix: String,
    pub(super) columns: usize,
    /// The extents `[columns.., units, ..]` of a kernel that stands for the matrix: its axes are in another order.
    pub(super) kernel: Option<Vec<usize>>,
    /// Convolutions that have a group for each unit.
    pub(super) groups: Vec<usize>,
    /// Constants that lose values.
    pub(super) cuts: Vec<Cut>,
    /// Constants of extents that are others then.
    pub(super) shapes: Vec<Shape>,
    /// Where the region may be left out as a whole: the value that it makes, and the one that stands for it then.
    pub(super) skip: Option<(String, String)>,
    /// Bytes of the weights of a unit.
    pub(super) unit_bytes: usize,
}

impl Region {
    /// The matrix `[units · size, columns]` of the values of its constant.
    pub(super) fn rows(&self, values: Vec<f32>) -> Vec<f32> {
        match self.kernel.as_deref() {
            Some([outputs, inputs, taps @ ..]) => {
                swapped(&values, *outputs, *inputs, taps.iter().product())
            }
            _ => values,
        }
    }

    /// The values of the constant, and its extents, of a matrix with so many rows.
    pub(super) fn constant_of(&self, matrix: &[f32], rows: usize) -> (Vec<f32>, Vec<usize>) {
        match self.kernel.as_deref() {
            Some([outputs, _, taps @ ..]) => {
                let values = swapped(matrix, rows, *outputs, taps.iter().product());
                (values, [&[*outputs, rows], taps].concat())
            }
            _ => (matrix.to_vec(), vec![rows, self.columns]),
        }
    }

    /// Whether both change the same constant.
    pub(super) fn shares(&self, other: &Self) -> bool {
        let mut own = self.constants();
        own.any(|name| other.constants().any(|other| other == name))
    }

    fn constants(&self) -> impl Iterator<Item = &String> {
        let cuts = self.cuts.iter().map(|cut| &cut.name);
        cuts.chain([&self.matrix])
    }
}

/// `[a, b, taps]` as `[b, a, taps]`.
fn swapped(values: &[f32], a: usize, b: usize, taps: usize) -> Vec<f32> {
    let mut made = Vec::with_capacity(values.len());
    for second in 0..b {
        for first in 0..a {
            made.extend_from_slice(&values[(first * b + second) * taps..][..taps]);
        }
    }
    made
}

/// A constant that loses values along an axis.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cut {
    pub(super) node: usize,
    /// Its place among the inputs of the node.
    pub(super) place: usize,
    pub(super) name: String,
    /// The axis, from the first.
    pub(super) axis: usize,
    /// Values of a unit along the axis.
    pub(super) per: usize,
}

/// A constant of extents of which one counts units.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shape {
    pub(super) node: usize,
    /// Its place among the inputs of the node.
    pub(super) place: usize,
    pub(super) name: String,
    /// The place of the extent.
    pub(super) at: usize,
    /// What a unit counts in it.
    pub(super) per: usize,
}

/// Where a value has its units: the axis, counted from the last, and the values of a unit along it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    back: usize,
    per: usize,
}

/// Operators that compute each value of its own of several that are broadcast, beside those that do so of one or two.
const BY_VALUE: [&str; 5] = ["Dropout", "Max", "Min", "Pow", "Where"];

/// The regions of a graph, in the order of their last products.
pub(super) fn regions(graph: &Graph<'_>) -> Vec<Region> {
    let mut found: Vec<Region> = Vec::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        if graph.operator(at) != "MatMul" {
            continue;
        }
        let ([input, matrix], [_]) = (node.input.as_slice(), node.output.as_slice()) else {
            continue;
        };
        let Some(width) = matrix_of(graph, matrix).map(|shape| shape[0]) else {
            continue;
        };
        if graph.uses(matrix) != 1 || graph.constant(input).is_some() {
            continue;
        }
        let columns = [(Unit::Columns, width, 1)];
        let heads = heads_in(graph, width);
        let heads = heads
            .into_iter()
            .map(|(units, size)| (Unit::Heads, units, size));
        let mut tried = columns.into_iter().chain(heads);
        let region = tried.find_map(|(unit, units, size)| {
            let walk = Walk {
                graph,
                units,
                marks: HashMap::new(),
                cuts: BTreeMap::new(),
                shapes: BTreeMap::new(),
                lasts: Vec::new(),
                firsts: Vec::new(),
            };
            walk.region(unit, size, at)
        });
        // A matrix between two regions loses rows or columns, and not both.
        let apart = |region: &Region| !found.iter().any(|other| other.shares(region));
        found.extend(region.filter(apart));
    }
    found
}

/// The extents of a matrix of f32s.
fn matrix_of(graph: &Graph<'_>, name: &str) -> Option<[usize; 2]> {
    let constant = graph.constant(name).filter(|constant| constant.float)?;
    constant.shape.try_into().ok()
}

/// Numbers of heads that make columns of this width, and the width of each, by the extents that the graph reshapes to.
fn heads_in(graph: &Graph<'_>, width: usize) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let reshapes = (0..graph.nodes.len()).filter(|&at| graph.operator(at) == "Reshape");
    for at in reshapes {
        let extents = extents(graph, &graph.nodes[at]).unwrap_or_default();
        for pair in extents.windows(2) {
            let [Some(units), size] = [pair[0].known(), pair[1].known()] else {
                continue;
            };
            if units < 2 || !width.is_multiple_of(units) {
                continue;
            }
            let each = width / units;
            let fits = size.is_none_or(|size| size == each);
            if fits && each > 1 && !found.contains(&(units, each)) {
                found.push((units, each));
            }
        }
    }
    found
}

/// An extent that a graph reshapes to.
#[derive(Debug, Clone)]
struct Extent {
    /// Its value; -1 and 0 as the operator has them, and `None` where a run says it.
    value: Option<i64>,
    /// The node whose input has it, the place among its inputs, the constant and the place in it.
    at: Option<(usize, usize, String, usize)>,
}

impl Extent {
    fn known(&self) -> Option<usize> {
        self.value
            .and_then(|value| usize::try_from(value).ok())
            .filter(|&value| value > 0)
    }

    /// Whether the extent follows from the others.
    fn follows(&self) -> bool {
        self.value == Some(-1)
    }
}

/// The extents that a `Reshape` asks for: those of a constant, or of constants and single extents that a run gives.
fn extents(graph: &Graph<'_>, node: &NodeProto) -> Option<Vec<Extent>> {
    let reader = graph.maker(node.output.first()?)?;
    let shape = node.input.get(1)?;
    let whole = |reader: usize, place: usize, name: &String| -> Option<Vec<Extent>> {
        let values = graph.ints(name)?;
        let each = values.into_iter().enumerate();
        Some(
            each.map(|(at, value)| Extent {
                value: Some(value),
                at: Some((reader, place, name.clone(), at)),
            })
            .collect(),
        )
    };
    if let Some(extents) = whole(reader, 1, shape) {
        return Some(extents);
    }
    let concat = graph
        .maker(shape)
        .filter(|&at| graph.operator(at) == "Concat")?;
    // Others would get its extents as well.
    if graph.uses(shape) != 1 {
        return None;
    }
    let mut found = Vec::new();
    for (place, part) in graph.nodes[concat].input.iter().enumerate() {
        match whole(concat, place, part) {
            Some(extents) => found.extend(extents),
            None => {
                let single = graph
                    .maker(part)
                    .is_some_and(|at| graph.operator(at) == "Unsqueeze");
                if !single {
                    return None;
                }
                found.push(Extent {
                    value: None,
                    at: None,
                });
            }
        }
    }
    Some(found)
}

/// A walk over all values that have the units of a region.
struct Walk<'g, 'b> {
    graph: &'g Graph<'b>,
    units: usize,
    marks: HashMap<String, Mark>,
    cuts: BTreeMap<(usize, usize), Cut>,
    shapes: BTreeMap<(usize, usize, usize), Shape>,
    /// Products that read the units, and products that make them.
    lasts: Vec<usize>,
    firsts: Vec<usize>,
}

impl Walk<'_, '_> {
    /// The region before this product; `None`: its inputs cannot be taken out so.
    fn region(mut self, unit: Unit, size: usize, product: usize) -> Option<Region> {
        let graph = self.graph;
        let node = &graph.nodes[product];
        let input = node.input[0].clone();
        let mark = Mark { back: 0, per: size };
        let mut open = vec![input.clone()];
        self.marks.insert(input.clone(), mark);
        while let Some(value) = open.pop() {
            let mut around = graph.readers(&value)?.to_vec();
            around.push(graph.maker(&value)?);
            for at in around {
                open.extend(self.visit(at)?);
            }
        }
        self.firsts.sort_unstable();
        if self.lasts != [product] || self.firsts.is_empty() {
            return None;
        }
        let names: Vec<&str> = self.cuts.values().map(|cut| cut.name.as_str()).collect();
        // A constant that is read twice would be cut for both.
        if names.iter().any(|name| graph.uses(name) != 1) {
            return None;
        }
        let [_, columns] = matrix_of(graph, &node.input[1])?;
        let bytes = |cut: &Cut| {
            graph
                .constant(&cut.name)
                .map_or(0, |constant| constant.values())
        };
        let values: usize = self.cuts.values().map(bytes).sum();
        let skip = self.skip(product);
        Some(Region {
            unit,
            units: self.units,
            size,
            input,
            product,
            matrix: node.input[1].clone(),
            columns,
            kernel: None,
            groups: Vec::new(),
            cuts: self
                .cuts
                .into_values()
                .filter(|cut| cut.node != product)
                .collect(),
            shapes: self.shapes.into_values().collect(),
            skip,
            unit_bytes: values / self.units * size_of::<f32>(),
        })
    }

    /// Marks what a node has to do with the units: the values that are new.
    fn visit(&mut self, at: usize) -> Option<Vec<String>> {
        let graph = self.graph;
        let node = &graph.nodes[at];
        let output = node.output.first()?;
        match graph.operator(at) {
            "MatMul" => {
                let [first, second] = node.input.as_slice() else {
                    return None;
                };
                match graph.constant(second) {
                    Some(_) => self.matrix(at),
                    None => {
                        let mark = self.known([first, second, output])?;
                        (mark.back > 1).then_some(())?;
                        self.all([first, second, output], mark)
                    }
                }
            }
            "Transpose" => {
                let order: Vec<usize> = node
                    .ints("perm")?
                    .iter()
                    .map(|&axis| axis as usize)
                    .collect();
                let rank = order.len();
                let input = node.input.first()?;
                let (from, to) = match (self.marks.get(input), self.marks.get(output)) {
                    (Some(&from), _) => {
                        let axis = rank.checked_sub(from.back + 1)?;
                        let place = order.iter().position(|&old| old == axis)?;
                        let back = rank - 1 - place;
                        (from, Mark { back, ..from })
                    }
                    (None, Some(&to)) => {
                        let place = rank.checked_sub(to.back + 1)?;
                        let back = rank - 1 - *order.get(place)?;
                        (Mark { back, ..to }, to)
                    }
                    _ => return None,
                };
                self.both(input, from, output, to)
            }
            "Reshape" => self.reshape(at),
            "Softmax" => {
                let values = [node.input.first()?, output];
                let mark = self.known(values)?;
                let axis = self.back(node.int("axis").unwrap_or(-1), mark)?;
                (axis != mark.back).then_some(())?;
                self.all(values, mark)
            }
            "Concat" | "Split" => {
                let values: Vec<&String> = match graph.operator(at) {
                    "Concat" => node.input.iter().chain([output]).collect(),
                    _ => node.output.iter().chain(node.input.first()).collect(),
                };
                let mark = self.known(values.iter().copied())?;
                let axis = self.back(node.int("axis")?, mark)?;
                (axis != mark.back).then_some(())?;
                self.all(values, mark)
            }
            "Slice" => {
                let values = [node.input.first()?, output];
                let mark = self.known(values)?;
                for axis in graph.ints(node.input.get(3)?)? {
                    (self.back(axis, mark)? != mark.back).then_some(())?;
                }
                self.all(values, mark)
            }
            operator
                if goes_alone(operator)
                    || goes_in_pairs(operator)
                    || BY_VALUE.contains(&operator) =>
            {
                self.by_value(at)
            }
            _ => None,
        }
    }

    /// A product with a constant matrix: the units are its rows or its columns.
    fn matrix(&mut self, at: usize) -> Option<Vec<String>> {
        let node = &self.graph.nodes[at];
        let [rows, columns] = matrix_of(self.graph, &node.input[1])?;
        let (read, made) = (
            self.marks.get(&node.input[0]),
            self.marks.get(&node.output[0]),
        );
        let (mark, axis, extent, list) = match (read, made) {
            (Some(mark), None) => (mark, 0, rows, &mut self.lasts),
            (None, Some(mark)) => (mark, 1, columns, &mut self.firsts),
            _ => return None,
        };
        (mark.back == 0 && extent == self.units * mark.per).then_some(())?;
        if !list.contains(&at) {
            list.push(at);
        }
        let per = mark.per;
        self.cut(at, 1, axis, per);
        Some(Vec::new())
    }

    fn cut(&mut self, node: usize, place: usize, axis: usize, per: usize) {
        let name = self.graph.nodes[node].input[place].clone();
        let cut = Cut {
            node,
            place,
            name,
            axis,
            per,
        };
        self.cuts.insert((node, place), cut);
    }

    /// An operator that computes each value by itself.
    fn by_value(&mut self, at: usize) -> Option<Vec<String>> {
        let graph = self.graph;
        let node = &graph.nodes[at];
        let mark = self.known(node.input.iter().chain(&node.output))?;
        let (mut same, mut own) = (vec![&node.output[0]], Vec::new());
        for (place, input) in node
            .input
            .iter()
            .enumerate()
            .filter(|(_, input)| !input.is_empty())
        {
            match graph.constant(input) {
                Some(constant) => {
                    let axis = constant.shape.len().checked_sub(mark.back + 1);
                    match axis.map(|axis| (axis, constant.shape[axis])) {
                        None | Some((_, 1)) => {}
                        Some((axis, extent)) => {
                            let fits = extent == self.units * mark.per && constant.float;
                            fits.then_some(())?;
                            own.push((place, axis));
                        }
                    }
                }
                None if self.marks.contains_key(input) || self.has_product(input) => {
                    same.push(input)
                }
                // It is broadcast over the units, unless it has as many of its own.
                None => self.is_the_same_for_all(input).then_some(())?,
            }
        }
        for (place, axis) in own {
            self.cut(at, place, axis, mark.per);
        }
        self.all(same, mark)
    }

    fn reshape(&mut self, at: usize) -> Option<Vec<String>> {
        let graph = self.graph;
        let node = &graph.nodes[at];
        let extents = extents(graph, node)?;
        let rank = extents.len();
        // Heads get an axis of their own, or lose it.
        let (input, output) = (node.input.first()?, node.output.first()?);
        let at_back = |back: usize| rank.checked_sub(back + 1).map(|place| &extents[place]);
        let (from, to) = match (self.marks.get(input), self.marks.get(output)) {
            (Some(&from), _) if from.per > 1 => (
                from,
                Mark {
                    back: from.back + 1,
                    per: 1,
                },
            ),
            (Some(&from), _) => {
                let extent = at_back(from.back.checked_sub(1)?)?;
                let per = extent.known().map(|extent| extent / self.units);
                // An extent that follows is that of the head that the walk began with.
                let per = per.or(extent.follows().then(|| self.size()))?;
                (
                    from,
                    Mark {
                        back: from.back - 1,
                        per,
                    },
                )
            }
            (None, Some(&to)) if to.per > 1 => (
                Mark {
                    back: to.back + 1,
                    per: 1,
                },
                to,
            ),
            (None, Some(&to)) => {
                let size = at_back(to.back.checked_sub(1)?)?;
                let per = size.known().or(size.follows().then(|| self.size()))?;
                (
                    Mark {
                        back: to.back - 1,
                        per,
                    },
                    to,
                )
            }
            _ => return None,
        };
        // The extents that a split into units or a merge of them asks for.
        let counts = at_back(to.back)?;
        let fits = counts.follows() || counts.known() == Some(self.units * to.per);
        let split = to.per == 1 && from.per > 1 && to.back == from.back + 1;
        let merge = to.per > 1 && from.per == 1 && from.back == to.back + 1;
        (fits && ((split && rank == 4) || (merge && rank == 3))).then_some(())?;
        if split {
            let size = at_back(from.back)?;
            (size.follows() || size.known() == Some(from.per)).then_some(())?;
            // Two that follow are none.
            (!(size.follows() && counts.follows())).then_some(())?;
        }
        if !counts.follows() {
            let (node, place, name, at) = counts.at.clone()?;
            let shape = Shape {
                node,
                place,
                name,
                at,
                per: to.per,
            };
            self.shapes.insert((node, place, at), shape);
        }
        self.both(input, from, output, to)
    }

    /// An axis counted from the last. One that is counted from the first is known where heads have an axis of their own: there values
    /// have 4.
    fn back(&self, axis: i64, mark: Mark) -> Option<usize> {
        let back = match axis {
            ..0 => -axis - 1,
            _ if mark.per == 1 && self.size() > 1 => 3 - axis,
            _ => return None,
        };
        usize::try_from(back).ok()
    }

    /// Columns of a unit.
    fn size(&self) -> usize {
        self.marks.values().map(|mark| mark.per).max().unwrap_or(1)
    }

    /// The mark that the first of these values has that has one.
    fn known<'v>(&self, values: impl IntoIterator<Item = &'v String>) -> Option<Mark> {
        values
            .into_iter()
            .find_map(|value| self.marks.get(value).copied())
    }

    /// Marks values alike; `None` where one has another mark.
    fn all<'v>(
        &mut self,
        values: impl IntoIterator<Item = &'v String>,
        mark: Mark,
    ) -> Option<Vec<String>> {
        let mut new = Vec::new();
        for value in values {
            match self.marks.get(value) {
                Some(&known) if known == mark => {}
                Some(_) => return None,
                None => {
                    self.marks.insert(value.clone(), mark);
                    new.push(value.clone());
                }
            }
        }
        Some(new)
    }

    fn both(
        &mut self,
        input: &String,
        from: Mark,
        output: &String,
        to: Mark,
    ) -> Option<Vec<String>> {
        let mut new = self.all([input], from)?;
        new.extend(self.all([output], to)?);
        Some(new)
    }

    /// All values that a value is made of, and itself.
    fn ancestors(&self, value: &str) -> HashSet<String> {
        let (mut seen, mut open) = (HashSet::new(), vec![value.to_owned()]);
        while let Some(value) = open.pop() {
            let maker = self.graph.maker(&value).filter(|_| !seen.contains(&value));
            if let Some(at) = maker {
                open.extend(self.graph.nodes[at].input.iter().cloned());
            }
            seen.insert(value);
        }
        seen
    }

    /// Whether a value is made of a product with a matrix.
    fn has_product(&self, value: &str) -> bool {
        let made = self.ancestors(value);
        let mut makers = made.iter().filter_map(|value| self.graph.maker(value));
        makers.any(|at| self.graph.operator(at) == "MatMul")
    }

    /// Whether nothing that a value is made of has an extent by which units could have values of their own.
    fn is_the_same_for_all(&self, value: &str) -> bool {
        let made = self.ancestors(value);
        let mut constants = made.iter().filter_map(|value| self.graph.constant(value));
        let sizes = self.marks.values().map(|mark| mark.per * self.units);
        let sizes: HashSet<usize> = sizes.collect();
        !constants.any(|constant| {
            constant.float && constant.shape.iter().any(|extent| sizes.contains(extent))
        })
    }

    /// Where a sum takes the region's result to the value that it read: what is left without the region.
    ///
    /// A layer norm may follow the sum (post-norm: `norm(x + f(x))`), and is left out with it; or it is a part of the region (pre-norm:
    /// `x + f(norm(x))`).
    fn skip(&self, product: usize) -> Option<(String, String)> {
        let graph = self.graph;
        let mut value = &graph.nodes[product].output[0];
        loop {
            let &[sum] = graph.readers(value)? else {
                return None;
            };
            let node = &graph.nodes[sum];
            let [first, second] = node.input.as_slice() else {
                return None;
            };
            let stream = if first == value { second } else { first };
            if graph.operator(sum) != "Add" || stream == value {
                return None;
            }
            let sum = &node.output[0];
            if graph.constant(stream).is_some() {
                // A bias.
                value = sum;
                continue;
            }
            let reads = |at: &usize| graph.nodes[*at].input.first() == Some(stream);
            if !self.firsts.iter().all(reads) {
                let read = graph.nodes[self.firsts[0]].input.first()?;
                let is_source = self.ancestors(read).contains(stream);
                return is_source.then(|| (sum.clone(), stream.clone()));
            }
            let &[norm] = graph.readers(sum)? else {
                return None;
            };
            let is_norm =
                graph.operator(norm) == "LayerNormalization" && graph.nodes[norm].output.len() == 1;
            return is_norm.then(|| (graph.nodes[norm].output[0].clone(), stream.clone()));
        }
    }
}
