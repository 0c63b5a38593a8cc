//! The kernel for everything that is neither a product nor attention. A group of threads computes each row of a
//! result. The kernel includes all operators on the way to that result whose own results no other kernel reads.
//!
//! Each operator becomes a function of a row and a column. Operators that read a whole row (norms, reductions,
//! pooling) are computed first, by all threads of the group, into shared memory. The others are computed where they
//! are read.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use isovec_encoder::Program;
use isovec_encoder::program::{
    Node, NodeId, Norm, NormKind, Op, Operand, Reduction, Rows, Source, Which,
};

use super::column::column;
use super::fold::Fold;
use super::source::wgsl;
use super::{Grid, Kernel, Made, Reads, functions, prelude};
use crate::batch::Given;
use crate::constants::Constants;
use crate::dispatch::written::{elsewhere, is_stage};
use crate::dispatch::{Merged, TableForm, TableStored, Weights};
use crate::limits::Limits;

/// Buffers that are bound to every kernel: the result, the batch, the constants.
pub(crate) const ALWAYS: usize = 3;

/// What else a kernel asks for that shares by subgroups.
const SUBGROUPS: &str = ", @builtin(subgroup_size) size: u32, @builtin(subgroup_id) own: u32, \
                         @builtin(num_subgroups) all: u32";

/// Evaluations of a value beyond which it is computed once and kept.
const DEAR: usize = 32;

/// Why there is no such kernel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TooLarge {
    /// There is one if this node is written by a kernel of its own.
    Split(NodeId),
    /// The device cannot run it.
    Refused(String),
}

/// What kernels are made of.
pub(crate) struct Writer<'a> {
    pub(crate) program: &'a Program,
    pub(crate) merged: &'a Merged,
    pub(crate) written: &'a HashSet<NodeId>,
    pub(crate) weights: &'a dyn Weights,
    pub(crate) limits: &'a Limits,
    pub(crate) constants: &'a mut Constants,
    pub(crate) inputs: &'a mut Vec<Given>,
    pub(crate) ids: &'a mut Vec<(String, usize)>,
}

impl Writer<'_> {
    /// The kernel that writes a node.
    pub(crate) fn kernel(self, id: NodeId) -> Result<Made, TooLarge> {
        let (limits, node) = (self.limits, &self.merged.nodes[id.0]);
        let (rows, width, out) = (node.rows, node.width, self.merged.items(id));
        let mut text = Text::new(self, id);
        let value = text.own(id);
        let most = text.widest.max(width);
        // A power of two, for the tree of sums.
        let threads = (most.div_ceil(2).next_power_of_two()).clamp(32, 256);
        let threads = threads.min(1 << limits.threads.max(1).ilog2());
        text.check(id, threads)?;
        let name = text.name;
        let count = match rows {
            Rows::Tokens => "tokens()",
            Rows::Texts => "texts()",
        };
        let mut source = prelude(out, 1, &[]);
        let _ = writeln!(source, "const THREADS: u32 = {threads}u;");
        // Only what looks at a row with all threads has them share.
        let (builtins, enter) = match limits.subgroups.is_some() && text.stages.contains("tree_") {
            true => {
                source += wgsl!("subgroups.wgsl");
                source += wgsl!("row_subgroups.wgsl");
                (
                    SUBGROUPS,
                    "enter(size);\nsubgroup = own;\nsubgroups = all;\n",
                )
            }
            false => {
                source += wgsl!("row.wgsl");
                ("", "")
            }
        };
        source += &text.declarations;
        source += &text.functions;
        let _ = write!(
            source,
            "@compute @workgroup_size(THREADS)\n\
             fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, \
             @builtin(local_invocation_index) thread: u32{builtins}) {{\n{enter}\
             let row = group.x + group.y * groups.x;\nif (row >= {count}) {{ return; }}\n{}\
             for (var c = thread; c < {width}u; c += THREADS) {{ out[row * {width}u + c] = kept({value}); }}\n}}\n",
            text.stages,
        );
        Ok(Made {
            name,
            kernels: vec![(
                0,
                Kernel {
                    source,
                    grid: Grid::Row,
                    ..Kernel::default()
                },
            )],
            reads: text.reads,
            inner: 0,
            cost: 8 * width as u64,
        })
    }
}

/// A kernel being written.
struct Text<'a> {
    from: Writer<'a>,
    root: NodeId,
    declarations: String,
    functions: String,
    stages: String,
    reads: Vec<Reads>,
    /// A number for each value that has a function: kernels of the same operators are the same text,
    /// wherever in the model they stand, and are compiled once.
    defined: HashMap<NodeId, usize>,
    /// How often a value is evaluated for one column of the result.
    uses: HashMap<NodeId, usize>,
    /// What is read in other rows than the group's.
    crossed: HashSet<NodeId>,
    /// Floats of shared memory.
    shared: usize,
    /// Columns of the widest value that the group computes together.
    widest: usize,
    name: &'static str,
}

impl<'a> Text<'a> {
    fn new(from: Writer<'a>, root: NodeId) -> Self {
        let mut uses = HashMap::from([(root, 1)]);
        let mut crossed = HashSet::new();
        for at in (0..=root.0).rev() {
            let id = NodeId(at);
            let node = &from.merged.nodes[at];
            let Some(&own) = uses.get(&id) else { continue };
            if id != root && from.written.contains(&id) {
                continue;
            }
            // What is kept is evaluated once.
            let own = if is_stage(&node.op) { 1 } else { own };
            for input in node.op.inputs() {
                *uses.entry(input).or_default() += own;
            }
            crossed.extend(elsewhere(&from.merged.nodes, node));
            if crossed.contains(&id) {
                crossed.extend(node.op.inputs());
            }
        }
        let name = from.merged.nodes[root.0].op.name();
        Self {
            from,
            root,
            declarations: String::new(),
            functions: String::new(),
            stages: String::new(),
            reads: Vec::new(),
            defined: HashMap::new(),
            uses,
            crossed,
            shared: 0,
            widest: 1,
            name,
        }
    }

    fn node(&self, id: NodeId) -> &'a Node {
        &self.from.merged.nodes[id.0]
    }

    /// A value of the group's own row, at column `c`.
    fn own(&mut self, id: NodeId) -> String {
        self.value(id, "row", "c")
    }

    /// A value at a row and a column, both in WGSL.
    fn value(&mut self, id: NodeId, row: &str, column: &str) -> String {
        let at = self.define(id);
        format!("v{at}({row}, {column})")
    }

    fn function(&mut self, id: NodeId, body: &str) {
        let at = self.number(id);
        let _ = writeln!(
            self.functions,
            "fn v{at}(row: u32, c: u32) -> f32 {{ {body} }}"
        );
    }

    /// The number of a value that has a function.
    fn number(&self, id: NodeId) -> usize {
        self.defined.get(&id).copied().unwrap_or_default()
    }

    /// Makes sure that a value has a function, and gives its number.
    fn define(&mut self, id: NodeId) -> usize {
        if let Some(&at) = self.defined.get(&id) {
            return at;
        }
        let at = self.defined.len();
        self.defined.insert(id, at);
        self.write_function(id);
        at
    }

    fn write_function(&mut self, id: NodeId) {
        let node = self.node(id);
        if id != self.root && self.from.written.contains(&id) {
            let buffer = self.buffer(Reads::Node(id), "f32");
            let width = node.width;
            return self.function(id, &format!("return {buffer}[row * {width}u + c];"));
        }
        match &node.op {
            Op::Norm(norm) => self.norm(id, norm),
            Op::Reduce { x, f, size } => self.reduce(id, *x, *f, *size),
            Op::Softmax { x, size } => self.softmax(id, *x, *size),
            Op::Pool { .. } | Op::WeightedSum { .. } | Op::CumSum { .. } => {
                let body = self.over_tokens(id);
                self.keep(id, &body);
            }
            _ => {
                let body = self.expression(id);
                let dear = self.uses.get(&id).is_some_and(|&uses| uses > DEAR);
                let room = self.shared + node.width <= self.from.limits.shared_floats / 2;
                if dear && room && !self.crossed.contains(&id) && !is_leaf(&node.op) {
                    self.keep(id, &format!("return {body};"));
                } else {
                    self.function(id, &format!("return {body};"));
                }
            }
        }
    }

    /// Memory that the group shares.
    fn memory(&mut self, name: &str, floats: usize) {
        self.shared += floats;
        let _ = writeln!(
            self.declarations,
            "var<workgroup> {name}: array<f32, {floats}>;"
        );
    }

    /// Has the group compute a function into memory that it shares, and reads that from there on.
    fn keep(&mut self, id: NodeId, body: &str) {
        let (at, width) = (self.number(id), self.node(id).width);
        self.widest = self.widest.max(width);
        self.memory(&format!("kept{at}"), width);
        let _ = writeln!(
            self.functions,
            "fn f{at}(row: u32, c: u32) -> f32 {{ {body} }}"
        );
        let _ = writeln!(
            self.stages,
            "for (var c = thread; c < {width}u; c += THREADS) {{ kept{at}[c] = f{at}(row, c); }}\n\
             workgroupBarrier();"
        );
        self.function(id, &format!("return kept{at}[c];"));
    }

    /// Has the group compute `term(c)` for all columns into `x{id}`.
    fn gather_row(&mut self, id: NodeId, term: &str, width: usize) {
        let at = self.number(id);
        self.widest = self.widest.max(width);
        self.memory(&format!("x{at}"), width);
        let _ = writeln!(
            self.stages,
            "for (var c = thread; c < {width}u; c += THREADS) {{ x{at}[c] = {term}; }}\n\
             workgroupBarrier();"
        );
    }

    /// Has the group reduce each `size` columns of something to one number, in `name`.
    fn reduction(&mut self, name: &str, groups: usize, size: usize, how: &Fold) {
        let Fold {
            start,
            step,
            tree,
            end,
        } = how;
        self.memory(name, groups);
        // Few and wide: all threads on each; many and narrow: a thread each.
        if size >= 64 && groups <= 8 {
            let _ = writeln!(
                self.stages,
                "for (var g = 0u; g < {groups}u; g++) {{\n\
                 var sum = {start};\n\
                 for (var i = thread; i < {size}u; i += THREADS) {{ let c = g * {size}u + i; sum = {step}; }}\n\
                 sum = {tree}(sum, thread);\n\
                 if (thread == 0u) {{ {name}[g] = {end}; }}\n\
                 }}\nworkgroupBarrier();"
            );
        } else {
            let _ = writeln!(
                self.stages,
                "for (var g = thread; g < {groups}u; g += THREADS) {{\n\
                 var sum = {start};\n\
                 for (var i = 0u; i < {size}u; i++) {{ let c = g * {size}u + i; sum = {step}; }}\n\
                 {name}[g] = {end};\n\
                 }}\nworkgroupBarrier();"
            );
        }
    }

    fn norm(&mut self, id: NodeId, norm: &Norm) {
        let (at, width, size) = (self.number(id), self.node(id).width, norm.size);
        let mut x = self.own(norm.x);
        if let Some(residual) = norm.residual {
            let _ = write!(x, " + {}", self.own(residual));
        }
        self.gather_row(id, &x, width);
        let groups = width / size;
        let mean = match norm.kind {
            NormKind::Layer => {
                let fold = Fold::sum(format!("x{at}[c]"), format!("sum / {size}.0f"));
                self.reduction(&format!("mean{at}"), groups, size, &fold);
                format!("mean{at}[c / {size}u]")
            }
            NormKind::RootMeanSquare => "0.0f".into(),
        };
        let epsilon = functions::number(norm.epsilon, self.from.constants);
        let fold = Fold::sum(
            format!("square(x{at}[c] - {mean})"),
            format!("1.0f / sqrt(sum / {size}.0f + {epsilon})"),
        );
        self.reduction(&format!("scale{at}"), groups, size, &fold);
        let mut body = format!("(x{at}[c] - {mean}) * scale{at}[c / {size}u]");
        for (values, by) in [(&norm.gamma, '*'), (&norm.beta, '+')] {
            if let Some(values) = values {
                let first = self.from.constants.add(values);
                let _ = write!(body, " {by} constants[{first}u + c % {size}u]");
            }
        }
        self.function(id, &format!("return {body};"));
    }

    fn reduce(&mut self, id: NodeId, x: NodeId, f: Reduction, size: usize) {
        let at = self.number(id);
        let groups = self.node(id).width;
        let term = self.own(x);
        let whole = self.node(x).width;
        self.widest = self.widest.max(whole);
        let fold = Fold::of(f, &term, &format!("{size}.0f"));
        self.reduction(&format!("kept{at}"), groups, size, &fold);
        self.function(id, &format!("return kept{at}[c];"));
    }

    fn softmax(&mut self, id: NodeId, x: NodeId, size: usize) {
        let (at, width) = (self.number(id), self.node(id).width);
        let term = self.own(x);
        self.gather_row(id, &term, width);
        let groups = width / size;
        let most = Fold::of(Reduction::Max, &format!("x{at}[c]"), "");
        self.reduction(&format!("most{at}"), groups, size, &most);
        let weight = format!("exp(x{at}[c] - most{at}[c / {size}u])");
        let sum = Fold::sum(weight.clone(), "sum".into());
        self.reduction(&format!("sum{at}"), groups, size, &sum);
        self.function(id, &format!("return {weight} / sum{at}[c / {size}u];"));
    }

    /// The body of a function that looks at a text's tokens, one column at a time.
    fn over_tokens(&mut self, id: NodeId) -> String {
        let node = self.node(id);
        match &node.op {
            Op::Pool { x, f } => {
                let term = self.value(*x, "t", "c");
                let Fold {
                    start, step, end, ..
                } = Fold::of(*f, &term, "f32(length_of(row))");
                format!(
                    "var sum = {start}; for (var t = first_token(row); t < first_token(row + 1u); t++) \
                     {{ sum = {step}; }} return {end};"
                )
            }
            Op::WeightedSum { x, weights } => {
                let (x, weight) = (self.value(*x, "t", "c"), self.value(*weights, "t", "0u"));
                format!(
                    "var sum = 0.0f; for (var t = first_token(row); t < first_token(row + 1u); t++) \
                     {{ sum += {weight} * {x}; }} return sum;"
                )
            }
            Op::CumSum {
                x,
                reverse,
                exclusive,
            } => {
                let term = self.value(*x, "t", "c");
                let (from, to) = match (reverse, exclusive) {
                    (false, false) => ("first_token(text)", "row + 1u"),
                    (false, true) => ("first_token(text)", "row"),
                    (true, false) => ("row", "first_token(text + 1u)"),
                    (true, true) => ("row + 1u", "first_token(text + 1u)"),
                };
                format!(
                    "let text = text_of(row); var sum = 0.0f; \
                     for (var t = {from}; t < {to}; t++) {{ sum += {term}; }} return sum;"
                )
            }
            _ => "return not_a_number();".into(),
        }
    }

    /// What a single thread computes of a row and a column.
    fn expression(&mut self, id: NodeId) -> String {
        let node = self.node(id);
        match &node.op {
            Op::Input(name) => {
                let before = self.columns_before(Given::Number(name.clone()));
                format!("given({before}u, 1u, row, 0u)")
            }
            Op::Values(name) => {
                let width = node.width;
                let before = self.columns_before(Given::Values(name.clone(), width));
                format!("given({before}u, {width}u, row, c)")
            }
            Op::Position => "f32(position(row))".into(),
            Op::Length => "f32(length_of(row))".into(),
            Op::Gather { ids, .. } => self.lookup(id, *ids),
            Op::Map { x, f } => {
                let x = self.own(*x);
                functions::unary(*f, &x, self.from.constants)
            }
            Op::Zip { f, a, b, extents } => {
                let [a, b] = [a, b].map(|operand| self.operand(operand, node.rows, extents));
                functions::binary(*f, &a, &b)
            }
            Op::Select { c, a, b, extents } => {
                let [c, a, b] = [c, a, b].map(|operand| self.operand(operand, node.rows, extents));
                format!("select({b}, {a}, {c} != 0.0f)")
            }
            Op::Copy { a, extents } => self.operand(a, node.rows, extents),
            Op::Concat { outer, parts } => {
                let group = node.width / outer;
                let mut chosen = "not_a_number()".to_owned();
                let mut first = 0;
                for &(part, size) in parts {
                    // Evaluated for every column, also those that are not the part's: no buffer is
                    // read past its end, and what comes of it is not chosen.
                    let column = format!("c / {group}u * {size}u + c % {group}u - {first}u");
                    let value = self.value(part, "row", &column);
                    chosen = format!("select({chosen}, {value}, c % {group}u >= {first}u)");
                    first += size;
                }
                chosen
            }
            Op::Take { x, which } => {
                let token = match which {
                    Which::FromFirst(at) => format!("first_token(row) + {at}u"),
                    Which::FromLast(at) => format!("first_token(row + 1u) - {}u", at + 1),
                };
                let value = self.value(*x, "t", "c");
                let function = format!(
                    "fn t{at}(row: u32, c: u32) -> f32 {{ let t = {token}; \
                     if (t < first_token(row) || t >= first_token(row + 1u)) {{ return not_a_number(); }} \
                     return {value}; }}",
                    at = self.number(id)
                );
                let _ = writeln!(self.functions, "{function}");
                format!("t{}(row, c)", self.number(id))
            }
            _ => "not_a_number()".into(),
        }
    }

    /// An operand, for column `c` of a result with these extents.
    fn operand(&mut self, operand: &Operand, rows: Rows, extents: &[usize]) -> String {
        let column = column(operand, extents);
        match &operand.source {
            Source::Constant(values) => {
                let first = self.from.constants.add(values);
                format!("constants[{first}u + {column}]")
            }
            Source::Node(id) => {
                let row = match (self.node(*id).rows, rows) {
                    (Rows::Texts, Rows::Tokens) => "text_of(row)",
                    _ => "row",
                };
                self.value(*id, row, &column)
            }
        }
    }

    /// A row of a table. An id that is in none of its parts gives what is no number.
    fn lookup(&mut self, id: NodeId, ids: NodeId) -> String {
        let Some(place) = self.from.program.places[id.0] else {
            return "not_a_number()".into();
        };
        let form = self.from.weights.table(place).clone();
        if let Op::Input(name) = &self.node(ids).op {
            self.from.ids.push((name.clone(), form.rows));
        }
        let id_of = self.value(ids, "row", "0u");
        let at = self.number(id);
        let mut body = format!("let id = u32(max({id_of}, 0.0f)); ");
        let _ = write!(
            body,
            "if ({id_of} < 0.0f || id >= {}u) {{ return not_a_number(); }} ",
            form.rows
        );
        let word = match form.stored {
            TableStored::F32 => "f32",
            TableStored::F16 | TableStored::I8 => "u32",
        };
        for part in 0..form.parts() {
            let buffer = self.buffer(Reads::Table { place, part }, word);
            let first = part * form.part_rows;
            let last = form.rows.min(first + form.part_rows);
            let read = entry(&form, &buffer, first, last);
            let _ = write!(body, "if (id < {last}u) {{ {read} }} ");
        }
        let _ = writeln!(
            self.functions,
            "fn g{at}(row: u32, c: u32) -> f32 {{ {body}return not_a_number(); }}"
        );
        format!("g{at}(row, c)")
    }

    /// Columns of the caller's tensors that stand before those of this one.
    fn columns_before(&mut self, given: Given) -> usize {
        let all = &mut self.from.inputs;
        let at = all.iter().position(|known| *known == given);
        let at = at.unwrap_or_else(|| {
            all.push(given);
            all.len() - 1
        });
        all[..at].iter().map(Given::width).sum()
    }

    /// The name of a buffer that is read.
    fn buffer(&mut self, read: Reads, of: &str) -> String {
        let known = self.reads.iter().position(|own| *own == read);
        let at = known.unwrap_or_else(|| {
            self.reads.push(read);
            let at = self.reads.len() - 1;
            let _ = writeln!(
                self.declarations,
                "@group(0) @binding({}) var<storage, read> read{at}: array<{of}>;",
                ALWAYS + at
            );
            at
        });
        format!("read{at}")
    }

    /// Whether the device can run it; else what to take out of it.
    fn check(&self, root: NodeId, threads: usize) -> Result<(), TooLarge> {
        let floats = self.shared + threads;
        let buffers = ALWAYS + self.reads.len();
        if floats <= self.from.limits.shared_floats && buffers <= self.from.limits.storage_buffers {
            return Ok(());
        }
        // The last operator before the result that is more than a buffer by itself.
        let inner = self.defined.keys().copied().filter(|&id| {
            id != root && !self.from.written.contains(&id) && !is_leaf(&self.node(id).op)
        });
        match inner.max() {
            Some(inner) => Err(TooLarge::Split(inner)),
            None => Err(TooLarge::Refused(format!(
                "the operator {} takes {buffers} buffers and {floats} floats of shared memory; the \
                 device has {} and {}",
                self.name, self.from.limits.storage_buffers, self.from.limits.shared_floats
            ))),
        }
    }
}

/// What is there without being computed.
fn is_leaf(op: &Op) -> bool {
    matches!(op, Op::Input(_) | Op::Position | Op::Length)
}

/// Reads a number of a table's part, whose first row is `first`.
fn entry(form: &TableForm, buffer: &str, first: usize, last: usize) -> String {
    let width = form.width;
    let at = format!("let at = (id - {first}u) * {width}u + c;");
    match form.stored {
        TableStored::F32 => format!("{at} return {buffer}[at];"),
        TableStored::F16 => {
            format!("{at} let pair = unpack2x16float({buffer}[at / 2u]); return pair[at % 2u];")
        }
        TableStored::I8 => {
            let scales = ((last - first) * width).div_ceil(4);
            format!(
                "{at} let four = bitcast<i32>({buffer}[at / 4u]); \
                 return f32(extractBits(four, 8u * (at % 4u), 8u)) * bitcast<f32>({buffer}[{scales}u + id - {first}u]);"
            )
        }
    }
}
