//! Small encoders out of bytes: whatever the bytes are, a graph that means something.
//!
//! A value is known by its extents, `[batch, tokens, columns..]` or `[batch, columns..]`, so that nearly every
//! operator fits what it is given. Numbers stay small and far from where a function jumps, unless they are exact:
//! then a last bit that differs cannot become another result.

use arbitrary::{Result, Unstructured};
use isovec_engine::description::Dim;
use isovec_engine::onnx::proto::{
    AttributeProto, DataType, GraphProto, ModelProto, OperatorSetIdProto, TensorProto,
};
use isovec_engine::tensor::DType;
use isovec_model::onnx::GraphBuilder;
use isovec_model::onnx::builder::{float, int, ints};

/// The inputs.
pub(super) const IDS: &str = "input_ids";
pub(super) const MASK: &str = "attention_mask";
/// Rows of the table that ids are looked up in.
pub(super) const ROWS: i64 = 11;
/// The tables' numbers are so many halves of halves of one: exact in every sum and product of a few.
const PARTS: f32 = 8.0;

/// A value that is computed: `[batch, tokens?, columns..]`.
#[derive(Debug, Clone)]
struct Held {
    name: String,
    tokens: bool,
    columns: Vec<i64>,
    /// Whether every engine has the same bits.
    exact: bool,
}

/// A graph under construction.
struct Maker<'g, 'u, 'd> {
    g: GraphBuilder<'g>,
    u: &'u mut Unstructured<'d>,
    opset: i64,
    held: Vec<Held>,
}

/// A model, and its texts.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) model: ModelProto,
    pub(super) texts: Vec<Vec<i64>>,
}

/// Makes a model of an input.
pub(super) fn make(u: &mut Unstructured<'_>) -> Result<Made> {
    let opset = u.int_in_range(11..=21)?;
    let texts = (0..u.int_in_range(1..=3)?)
        .map(|_| {
            let length = u.int_in_range(1..=6)?;
            (0..length).map(|_| u.int_in_range(0..=ROWS - 1)).collect()
        })
        .collect::<Result<_>>()?;
    let mut graph = GraphProto {
        name: "made up".into(),
        ..GraphProto::default()
    };
    let mut g = GraphBuilder::new(&mut graph, "v.");
    let dims = ["batch", "sequence"].map(|name| Dim::Symbolic(name.into()));
    g.input(IDS, DType::I64, &dims);
    g.input(MASK, DType::I64, &dims);
    let mut maker = Maker {
        g,
        u,
        opset,
        held: Vec::new(),
    };
    maker.embedding()?;
    for _ in 0..maker.u.int_in_range(0..=14)? {
        maker.step()?;
    }
    maker.output()?;
    Ok(Made {
        model: ModelProto {
            ir_version: 8,
            opset_import: vec![OperatorSetIdProto {
                domain: String::new(),
                version: opset,
            }],
            graph: Some(graph),
            ..ModelProto::default()
        },
        texts,
    })
}

fn none() -> Vec<AttributeProto> {
    Vec::new()
}

impl Held {
    fn rank(&self) -> usize {
        1 + usize::from(self.tokens) + self.columns.len()
    }

    /// The axis of the first of the columns.
    fn first(&self) -> usize {
        1 + usize::from(self.tokens)
    }

    fn width(&self) -> i64 {
        self.columns.iter().product()
    }
}

impl Maker<'_, '_, '_> {
    fn eighths(&mut self, count: i64, from: i32, to: i32) -> Result<Vec<f32>> {
        (0..count)
            .map(|_| Ok(self.u.int_in_range(from..=to)? as f32 / PARTS))
            .collect()
    }

    /// Rows that look different whatever the input is: its bytes are for the graph.
    fn table(&mut self, rows: i64, width: i64) -> Result<String> {
        let seed = i64::from(self.u.arbitrary::<u8>()?);
        let values =
            (0..rows * width).map(|at| ((at * 37 + seed * 11 + at / 7) % 31 - 15) as f32 / PARTS);
        Ok(self.g.f32s(&[rows, width], &values.collect::<Vec<_>>()))
    }

    fn hold(&mut self, name: String, like: &Held, columns: Vec<i64>, exact: bool) {
        self.held.push(Held {
            name,
            tokens: like.tokens,
            columns,
            exact,
        });
    }

    /// A value that is there: the last one most of the time.
    fn some(&mut self) -> Result<Held> {
        let back = match self.u.ratio(2, 3)? {
            true => 0,
            false => self.u.choose_index(self.held.len())?,
        };
        Ok(self.held[self.held.len() - 1 - back].clone())
    }

    fn embedding(&mut self) -> Result<()> {
        let width = *self.u.choose(&[4, 1, 2, 6, 8, 12])?;
        let table = self.table(ROWS, width)?;
        let name = self.g.node("Gather", &[&table, IDS], vec![int("axis", 0)]);
        self.held.push(Held {
            name,
            tokens: true,
            columns: vec![width],
            exact: true,
        });
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        let x = self.some()?;
        match self.u.int_in_range(0..=19)? {
            0 | 1 => self.unary(&x),
            2 | 3 => self.with_constant(&x),
            4 => self.with_other(&x),
            5 => self.reshape(&x),
            6 => self.transpose(&x),
            7 => self.slice(&x),
            8 => self.split(&x),
            9 => self.gather(&x),
            10 => self.concat(&x),
            11 => self.reduce(&x),
            12 => self.softmax(&x),
            13 => self.norm(&x),
            14 | 15 => self.product(&x),
            16 => self.attention(&x),
            17 => self.numbers(&x),
            18 => self.constants(&x),
            _ => self.choose(&x),
        }
    }

    fn unary(&mut self, x: &Held) -> Result<()> {
        const SMOOTH: [(&str, i64); 20] = [
            ("Tanh", 6),
            ("Sigmoid", 6),
            ("Erf", 9),
            ("Sin", 7),
            ("Cos", 7),
            ("Atan", 7),
            ("Softplus", 1),
            ("Softsign", 1),
            ("Elu", 6),
            ("Selu", 6),
            ("LeakyRelu", 6),
            ("HardSigmoid", 6),
            ("HardSwish", 14),
            ("Celu", 12),
            ("Mish", 18),
            ("Gelu", 20),
            ("Asinh", 9),
            ("Exp", 6),
            ("Sqrt", 6),
            ("Reciprocal", 6),
        ];
        const EXACT: [(&str, i64); 7] = [
            ("Relu", 6),
            ("Neg", 6),
            ("Abs", 6),
            ("Identity", 1),
            ("Floor", 6),
            ("Ceil", 6),
            ("Round", 11),
        ];
        // Functions that jump, of numbers that are exact.
        let few = if x.exact { 7 } else { 4 };
        let exact = self.u.arbitrary()?;
        let (op, since) = match exact {
            true => EXACT[self.u.choose_index(few)?],
            false => *self.u.choose(&SMOOTH)?,
        };
        if self.opset < since {
            return Ok(());
        }
        let mut name = x.name.clone();
        if matches!(op, "Exp") {
            name = self.g.node("Tanh", &[&name], none());
        }
        if matches!(op, "Sqrt" | "Reciprocal") {
            name = self.g.node("Abs", &[&name], none());
            let one = self.g.f32(1.0);
            name = self.g.node("Add", &[&name, &one], none());
        }
        let name = self.g.node(op, &[&name], none());
        self.hold(name, x, x.columns.clone(), x.exact && exact);
        Ok(())
    }

    /// A constant that broadcasts to a value without changing its extents.
    fn constant(&mut self, x: &Held, from: i32, to: i32) -> Result<String> {
        let lead = self.u.int_in_range(0..=x.columns.len())?;
        let mut dims: Vec<i64> = x.columns[lead..].to_vec();
        for dim in &mut dims {
            if self.u.ratio(1, 4)? {
                *dim = 1;
            }
        }
        if lead == 0 && self.u.ratio(1, 3)? {
            dims.splice(0..0, vec![1; x.first()]);
        }
        let values = self.eighths(dims.iter().product(), from, to)?;
        Ok(self.g.f32s(&dims, &values))
    }

    fn with_constant(&mut self, x: &Held) -> Result<()> {
        let op = *self.u.choose(&[
            "Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "PRelu", "Clip",
        ])?;
        let (mut exact, swapped) = (x.exact, self.u.arbitrary()?);
        let name = match op {
            "Div" => {
                exact = false;
                let constant = self.constant(x, 4, 16)?;
                self.g.node(op, &[&x.name, &constant], none())
            }
            "Pow" => {
                exact = false;
                let exponent = *self.u.choose(&[2.0, 3.0, 1.0])?;
                let exponent = self.g.f32(exponent);
                let small = self.g.node("Tanh", &[&x.name], none());
                self.g.node(op, &[&small, &exponent], none())
            }
            "PRelu" => {
                let constant = self.constant(x, -8, 8)?;
                self.g.node(op, &[&x.name, &constant], none())
            }
            "Clip" => {
                let bounds = [-1.0, 1.5].map(|bound| self.g.f32(bound));
                let inputs = match self.u.int_in_range(0..=2)? {
                    0 => vec![&*x.name, &bounds[0]],
                    1 => vec![&*x.name, "", &bounds[1]],
                    _ => vec![&*x.name, &bounds[0], &bounds[1]],
                };
                self.g.node(op, &inputs, none())
            }
            _ => {
                let constant = self.constant(x, -12, 12)?;
                match swapped {
                    true => self.g.node(op, &[&constant, &x.name], none()),
                    false => self.g.node(op, &[&x.name, &constant], none()),
                }
            }
        };
        self.hold(name, x, x.columns.clone(), exact && op != "Mul");
        Ok(())
    }

    fn with_other(&mut self, x: &Held) -> Result<()> {
        let others: Vec<Held> = (self.held.iter())
            .filter(|other| other.columns == x.columns && other.tokens == x.tokens)
            .cloned()
            .collect();
        let other = self.u.choose(&others)?.clone();
        let op = *self
            .u
            .choose(&["Add", "Sub", "Mul", "Max", "Min", "Div", "Sum", "Mean"])?;
        let name = match op {
            "Div" => {
                let below = self.g.node("Abs", &[&other.name], none());
                let one = self.g.f32(1.0);
                let below = self.g.node("Add", &[&below, &one], none());
                self.g.node(op, &[&x.name, &below], none())
            }
            "Sum" | "Mean" => self.g.node(op, &[&x.name, &other.name, &x.name], none()),
            _ => self.g.node(op, &[&x.name, &other.name], none()),
        };
        let exact = x.exact && other.exact && matches!(op, "Max" | "Min" | "Sub");
        self.hold(name, x, x.columns.clone(), exact);
        Ok(())
    }

    /// Extents as a reshape has them: what is kept is 0, one of the others may be -1.
    fn reshape(&mut self, x: &Held) -> Result<()> {
        let width = x.width();
        let mut columns = Vec::new();
        let mut rest = width;
        for part in [2, 3, 2] {
            if rest % part == 0 && self.u.arbitrary()? {
                columns.push(part);
                rest /= part;
            }
        }
        columns.push(rest);
        if self.u.ratio(1, 4)? {
            columns.insert(0, 1);
        }
        let mut target = vec![0; x.first()];
        target.extend(&columns);
        if self.u.arbitrary()? {
            let open = self.u.choose_index(target.len())?;
            target[open] = -1;
        }
        let shape = self.g.ints(&target);
        let name = self.g.node("Reshape", &[&x.name, &shape], none());
        self.hold(name, x, columns, x.exact);
        Ok(())
    }

    /// Of columns among themselves; with the tokens there and back, when something is between.
    fn transpose(&mut self, x: &Held) -> Result<()> {
        if x.columns.len() < 2 {
            return Ok(());
        }
        let first = x.first();
        let at = self.u.choose_index(x.columns.len() - 1)?;
        let mut perm: Vec<i64> = (0..x.rank() as i64).collect();
        perm.swap(first + at, first + at + 1);
        let name = self
            .g
            .node("Transpose", &[&x.name], vec![ints("perm", &perm)]);
        let mut columns = x.columns.clone();
        columns.swap(at, at + 1);
        if x.tokens && self.u.arbitrary()? {
            let mut perm: Vec<i64> = (0..x.rank() as i64).collect();
            perm.swap(1, 2);
            let turned = self
                .g
                .node("Transpose", &[&name], vec![ints("perm", &perm)]);
            let turned = self.g.node("Tanh", &[&turned], none());
            let back = self
                .g
                .node("Transpose", &[&turned], vec![ints("perm", &perm)]);
            self.hold(back, x, columns, false);
            return Ok(());
        }
        self.hold(name, x, columns, x.exact);
        Ok(())
    }

    /// An axis of the columns, as it may be written.
    fn axis(&mut self, x: &Held) -> Result<(usize, i64)> {
        let at = self.u.choose_index(x.columns.len())?;
        let axis = (x.first() + at) as i64;
        let counted = if self.u.arbitrary()? {
            axis - x.rank() as i64
        } else {
            axis
        };
        Ok((at, counted))
    }

    fn slice(&mut self, x: &Held) -> Result<()> {
        if x.columns.is_empty() {
            return Ok(());
        }
        let (at, axis) = self.axis(x)?;
        let extent = x.columns[at];
        let step = *self.u.choose(&[1, 2, -1, 3])?;
        let from = self.u.int_in_range(0..=extent - 1)?;
        let end = match step > 0 {
            true => *self
                .u
                .choose(&[i64::MAX, extent, extent - 1, i64::from(i32::MAX), -1])?,
            false => *self.u.choose(&[i64::MIN, -extent - 1, 0])?,
        };
        let to = if end < 0 {
            end.saturating_add(extent)
        } else {
            end
        };
        let mut place = from;
        let mut many = 0;
        while (0..extent).contains(&place)
            && if step > 0 {
                place < to
            } else {
                place > to.max(-1)
            }
        {
            (place, many) = (place + step, many + 1);
        }
        if many == 0 {
            return Ok(());
        }
        let from = if self.u.arbitrary()? {
            from - extent
        } else {
            from
        };
        let lists = [from, end, axis, step].map(|number| self.g.ints(&[number]));
        let inputs: Vec<&str> = [&*x.name]
            .into_iter()
            .chain(lists.iter().map(|s| &**s))
            .collect();
        let name = self.g.node("Slice", &inputs, none());
        let mut columns = x.columns.clone();
        columns[at] = many;
        self.hold(name, x, columns, x.exact);
        Ok(())
    }

    fn split(&mut self, x: &Held) -> Result<()> {
        if x.columns.is_empty() {
            return Ok(());
        }
        let (at, axis) = self.axis(x)?;
        let extent = x.columns[at];
        if extent < 2 {
            return Ok(());
        }
        let first = self.u.int_in_range(1..=extent - 1)?;
        let sizes = [first, extent - first];
        let names = [self.g.fresh("left"), self.g.fresh("right")];
        let mut attributes = vec![int("axis", axis)];
        if self.opset < 13 {
            attributes.push(ints("split", &sizes));
            self.g
                .named_node("Split", &[&x.name], &names[0], attributes);
        } else {
            let sizes = self.g.ints(&sizes);
            self.g
                .named_node("Split", &[&x.name, &sizes], &names[0], attributes);
        }
        if let Some(node) = self.g.graph().node.last_mut() {
            node.output.push(names[1].clone());
        }
        for (name, size) in names.into_iter().zip(sizes) {
            let mut columns = x.columns.clone();
            columns[at] = size;
            self.hold(name, x, columns, x.exact);
        }
        Ok(())
    }

    /// Entries of an axis: one, which takes the axis away, or some.
    fn gather(&mut self, x: &Held) -> Result<()> {
        if x.columns.is_empty() {
            return Ok(());
        }
        let (at, axis) = self.axis(x)?;
        let extent = x.columns[at];
        let mut columns = x.columns.clone();
        let ids = match self.u.arbitrary()? {
            true => {
                columns.remove(at);
                let id = self.u.int_in_range(-extent..=extent - 1)?;
                self.g.i64s(&[], &[id])
            }
            false => {
                let many = self.u.int_in_range(1..=5)?;
                columns[at] = many;
                let ids = (0..many).map(|_| self.u.int_in_range(-extent..=extent - 1));
                let ids = ids.collect::<Result<Vec<i64>>>()?;
                self.g.ints(&ids)
            }
        };
        let name = self
            .g
            .node("Gather", &[&x.name, &ids], vec![int("axis", axis)]);
        self.hold(name, x, columns, x.exact);
        Ok(())
    }

    fn concat(&mut self, x: &Held) -> Result<()> {
        if x.columns.is_empty() || x.width() > 64 {
            return Ok(());
        }
        let (at, axis) = self.axis(x)?;
        let alike = |other: &&Held| {
            let mut own = other.columns.clone();
            if own.len() == x.columns.len() {
                own[at] = x.columns[at];
            }
            other.tokens == x.tokens && own == x.columns
        };
        let others: Vec<Held> = self.held.iter().filter(alike).cloned().collect();
        let other = self.u.choose(&others)?.clone();
        let name = self
            .g
            .node("Concat", &[&x.name, &other.name], vec![int("axis", axis)]);
        let mut columns = x.columns.clone();
        columns[at] += other.columns[at];
        self.hold(name, x, columns, x.exact && other.exact);
        Ok(())
    }

    /// Over an axis of the columns, or over the tokens.
    fn reduce(&mut self, x: &Held) -> Result<()> {
        let op = *self.u.choose(&[
            "ReduceMean",
            "ReduceSum",
            "ReduceMax",
            "ReduceMin",
            "ReduceL2",
            "ReduceSumSquare",
            "ReduceL1",
            "ReduceLogSumExp",
        ])?;
        let keep = self.u.arbitrary::<bool>()?;
        let over_tokens = x.columns.is_empty() || x.tokens && self.u.ratio(1, 4)?;
        if over_tokens && !x.tokens {
            return Ok(());
        }
        let (mut columns, mut tokens) = (x.columns.clone(), x.tokens);
        let axis = match over_tokens {
            true => {
                if keep {
                    columns.insert(0, 1);
                }
                tokens = false;
                1
            }
            false => {
                let (at, axis) = self.axis(x)?;
                match keep {
                    true => columns[at] = 1,
                    false => _ = columns.remove(at),
                }
                axis
            }
        };
        let name = self.over(op, &x.name, axis, keep);
        self.held.push(Held {
            name,
            tokens,
            columns,
            exact: x.exact && matches!(op, "ReduceMax" | "ReduceMin"),
        });
        Ok(())
    }

    /// A reduction along one axis, in the form of the operator set.
    fn over(&mut self, op: &str, x: &str, axis: i64, keep: bool) -> String {
        let mut attributes = vec![int("keepdims", i64::from(keep))];
        let as_input = if op == "ReduceSum" { 13 } else { 18 };
        if self.opset < as_input {
            attributes.push(ints("axes", &[axis]));
            return self.g.node(op, &[x], attributes);
        }
        let axes = self.g.ints(&[axis]);
        self.g.node(op, &[x, &axes], attributes)
    }

    fn softmax(&mut self, x: &Held) -> Result<()> {
        if x.columns.is_empty() {
            return Ok(());
        }
        let (at, mut axis) = self.axis(x)?;
        // Before, everything from the axis on is one.
        if self.opset < 13 && at + 1 != x.columns.len() {
            axis = -1;
        }
        let op = *self.u.choose(&["Softmax", "LogSoftmax"])?;
        let name = self.g.node(op, &[&x.name], vec![int("axis", axis)]);
        self.hold(name, x, x.columns.clone(), false);
        Ok(())
    }

    /// As one operator, or as exporters wrote it before there was one.
    fn norm(&mut self, x: &Held) -> Result<()> {
        let Some(&last) = x.columns.last() else {
            return Ok(());
        };
        let gamma = self.eighths(last, 4, 12)?;
        let beta = self.eighths(last, -8, 8)?;
        let (gamma, beta) = (self.g.f32s(&[last], &gamma), self.g.f32s(&[last], &beta));
        let epsilon = *self.u.choose(&[0.5_f32, 0.125])?;
        if self.opset >= 17 && self.u.arbitrary()? {
            let attributes = vec![int("axis", -1), float("epsilon", epsilon)];
            let inputs = [&*x.name, &gamma, &beta];
            let few = self.u.int_in_range(2..=3)?;
            let name = self
                .g
                .node("LayerNormalization", &inputs[..few], attributes);
            self.hold(name, x, x.columns.clone(), false);
            return Ok(());
        }
        let mut centred = x.name.clone();
        if self.u.arbitrary()? {
            let mean = self.over("ReduceMean", &x.name, -1, true);
            centred = self.g.node("Sub", &[&x.name, &mean], none());
        }
        let square = match self.u.arbitrary()? {
            true => self.g.node("Mul", &[&centred, &centred], none()),
            false => {
                let two = self.g.f32(2.0);
                self.g.node("Pow", &[&centred, &two], none())
            }
        };
        let variance = self.over("ReduceMean", &square, -1, true);
        let epsilon = self.g.f32(epsilon);
        let variance = self.g.node("Add", &[&variance, &epsilon], none());
        let root = self.g.node("Sqrt", &[&variance], none());
        let y = match self.u.arbitrary()? {
            true => self.g.node("Div", &[&centred, &root], none()),
            false => {
                let root = self.g.node("Reciprocal", &[&root], none());
                self.g.node("Mul", &[&centred, &root], none())
            }
        };
        let y = self.g.node("Mul", &[&y, &gamma], none());
        let y = self.g.node("Add", &[&y, &beta], none());
        self.hold(y, x, x.columns.clone(), false);
        Ok(())
    }

    /// `x` times a matrix of the graph, with what often follows.
    fn times(&mut self, x: &str, from: i64, to: i64) -> Result<String> {
        let matrix = self.table(from, to)?;
        let mut y = self.g.node("MatMul", &[x, &matrix], none());
        if self.u.arbitrary()? {
            let bias = self.eighths(to, -8, 8)?;
            let bias = self.g.f32s(&[to], &bias);
            y = self.g.node("Add", &[&y, &bias], none());
        }
        Ok(y)
    }

    fn product(&mut self, x: &Held) -> Result<()> {
        let Some(&last) = x.columns.last() else {
            return Ok(());
        };
        let to = *self.u.choose(&[4, 1, 3, 6, 8])?;
        let mut y = self.times(&x.name, last, to)?;
        let gate = self.u.int_in_range(0..=3)?;
        if gate == 1 {
            // GELU as it was exported before it was an operator.
            let slope = self.g.f32(std::f32::consts::FRAC_1_SQRT_2);
            let (one, half) = (self.g.f32(1.0), self.g.f32(0.5));
            let inner = self.g.node("Mul", &[&y, &slope], none());
            let inner = self.g.node("Erf", &[&inner], none());
            let inner = self.g.node("Add", &[&inner, &one], none());
            let outer = self.g.node("Mul", &[&y, &half], none());
            y = self.g.node("Mul", &[&outer, &inner], none());
        }
        if gate == 2 {
            let own = self.g.node("Sigmoid", &[&y], none());
            y = self.g.node("Mul", &[&own, &y], none());
        }
        let mut columns = x.columns.clone();
        if let Some(own) = columns.last_mut() {
            *own = to;
        }
        if columns == x.columns && self.u.arbitrary()? {
            y = self.g.node("Add", &[&y, &x.name], none());
        }
        self.hold(y, x, columns, false);
        Ok(())
    }

    /// Heads that see the whole text, with the mask as exporters add it.
    fn attention(&mut self, x: &Held) -> Result<()> {
        if !x.tokens || x.columns.is_empty() {
            return Ok(());
        }
        let width = x.width();
        let flat = self.g.ints(&[0, 0, width]);
        let flat = self.g.node("Reshape", &[&x.name, &flat], none());
        let (heads, size) = *self.u.choose(&[(1, 4), (2, 2), (2, 3), (3, 4)])?;
        let all = heads * size;
        let mut parts = Vec::new();
        for turned in [false, true, false] {
            let own = self.times(&flat, width, all)?;
            let shape = self.g.ints(&[0, 0, heads, size]);
            let own = self.g.node("Reshape", &[&own, &shape], none());
            let perm = if turned { [0, 2, 3, 1] } else { [0, 2, 1, 3] };
            parts.push(self.g.node("Transpose", &[&own], vec![ints("perm", &perm)]));
        }
        let mut scores = self.g.node("MatMul", &[&parts[0], &parts[1]], none());
        // So that shares are not all or nothing, where a last bit decides.
        let scale = self.g.f32(0.0625);
        scores = match self.u.arbitrary()? {
            true => self.g.node("Mul", &[&scores, &scale], none()),
            false => {
                let back = self.g.f32(16.0);
                self.g.node("Div", &[&scores, &back], none())
            }
        };
        if self.u.arbitrary()? {
            let mask = self.unsqueezed(MASK, &[1, 2]);
            let mask = self.cast(&mask, DataType::Float);
            let (one, low) = (self.g.f32(1.0), self.g.f32(-10_000.0));
            let hidden = self.g.node("Sub", &[&one, &mask], none());
            let hidden = self.g.node("Mul", &[&hidden, &low], none());
            scores = self.g.node("Add", &[&scores, &hidden], none());
        }
        if self.u.ratio(1, 3)? {
            let bias = self.distances()?;
            scores = self.g.node("Add", &[&scores, &bias], none());
        }
        let axis = if self.opset < 13 { 3 } else { -1 };
        let shares = self.g.node("Softmax", &[&scores], vec![int("axis", axis)]);
        let y = self.g.node("MatMul", &[&shares, &parts[2]], none());
        let y = self
            .g
            .node("Transpose", &[&y], vec![ints("perm", &[0, 2, 1, 3])]);
        let shape = self.g.ints(&[0, 0, all]);
        let y = self.g.node("Reshape", &[&y, &shape], none());
        self.hold(y, x, vec![all], false);
        Ok(())
    }

    /// `[n, n]` by how far tokens are apart.
    fn distances(&mut self) -> Result<String> {
        let places = self.positions();
        let (row, column) = (
            self.unsqueezed(&places, &[0]),
            self.unsqueezed(&places, &[1]),
        );
        let apart = self.g.node("Sub", &[&row, &column], none());
        let apart = match self.u.int_in_range(0..=2)? {
            0 => self.g.node("Abs", &[&apart], none()),
            1 => {
                let near = self.g.i64s(&[], &[2]);
                self.g.node("Less", &[&apart, &near], none())
            }
            _ => apart,
        };
        let apart = self.cast(&apart, DataType::Float);
        let slope = self.u.int_in_range(-4..=4)? as f32 / 16.0;
        let slope = self.g.f32(slope);
        Ok(self.g.node("Mul", &[&apart, &slope], none()))
    }

    /// `[n]`: 0, 1, 2, ...
    fn positions(&mut self) -> String {
        let shape = self.g.node("Shape", &[IDS], none());
        let (one, zero) = (self.g.i64s(&[], &[1]), self.g.i64s(&[], &[0]));
        let length = self.g.node("Gather", &[&shape, &one], vec![int("axis", 0)]);
        self.g.node("Range", &[&zero, &length, &one], none())
    }

    fn unsqueezed(&mut self, x: &str, axes: &[i64]) -> String {
        if self.opset < 13 {
            return self.g.node("Unsqueeze", &[x], vec![ints("axes", axes)]);
        }
        let axes = self.g.ints(axes);
        self.g.node("Unsqueeze", &[x, &axes], none())
    }

    fn cast(&mut self, x: &str, to: DataType) -> String {
        self.g.node("Cast", &[x], vec![int("to", to as i64)])
    }

    /// Whole numbers for each token: of ids, places and the mask; looked up, or added as they are.
    fn numbers(&mut self, x: &Held) -> Result<()> {
        let mut n = match self.u.int_in_range(0..=3)? {
            0 => IDS.to_owned(),
            1 => {
                let places = self.positions();
                self.unsqueezed(&places, &[0])
            }
            2 => {
                let axis = self.g.i64s(&[], &[1]);
                self.g.node("CumSum", &[MASK, &axis], none())
            }
            _ => MASK.to_owned(),
        };
        for _ in 0..self.u.int_in_range(0..=3)? {
            let number = self.u.int_in_range(1..=7)?;
            let constant = self.g.i64s(&[], &[number]);
            let op = *self.u.choose(&[
                "Add", "Mul", "Mod", "Div", "Sub", "Max", "Min", "Where", "Cast",
            ])?;
            if matches!(op, "Max" | "Min") && self.opset < 12 {
                continue;
            }
            n = match op {
                "Where" => {
                    let large = self.g.node("Less", &[&n, &constant], none());
                    self.g.node(op, &[&large, &n, &constant], none())
                }
                "Cast" => {
                    let narrow =
                        *self
                            .u
                            .choose(&[DataType::Int32, DataType::Uint8, DataType::Int8])?;
                    let narrow = self.cast(&n, narrow);
                    self.cast(&narrow, DataType::Int64)
                }
                _ => self.g.node(op, &[&n, &constant], none()),
            };
        }
        if self.u.arbitrary()? {
            // Into the table whatever it is: the remainder has the sign of the divisor.
            let rows = self.g.i64s(&[], &[5]);
            let ids = self.g.node("Mod", &[&n, &rows], none());
            let width = *self.u.choose(&[4, 2, 6])?;
            let table = self.table(5, width)?;
            let name = self.g.node("Gather", &[&table, &ids], vec![int("axis", 0)]);
            self.held.push(Held {
                name,
                tokens: true,
                columns: vec![width],
                exact: true,
            });
            return Ok(());
        }
        let n = self.cast(&n, DataType::Float);
        let eighth = self.g.f32(1.0 / PARTS);
        let n = self.g.node("Mul", &[&n, &eighth], none());
        if !x.tokens {
            return Ok(());
        }
        let axes: Vec<i64> = (2..x.rank() as i64).collect();
        let n = if axes.is_empty() {
            n
        } else {
            self.unsqueezed(&n, &axes)
        };
        let name = self.g.node("Add", &[&x.name, &n], none());
        self.hold(name, x, x.columns.clone(), x.exact);
        Ok(())
    }

    /// What is known before there is a text: whole numbers of many types and sizes.
    fn constants(&mut self, x: &Held) -> Result<()> {
        let Some(&last) = x.columns.last() else {
            return Ok(());
        };
        let of = *self.u.choose(&[DataType::Int64, DataType::Int32])?;
        let mut n = self.whole(of, last)?;
        for _ in 0..self.u.int_in_range(0..=3)? {
            let op = *self.u.choose(&[
                "Add", "Sub", "Mul", "Neg", "Abs", "Div", "Mod", "Cast", "Equal",
            ])?;
            n = match op {
                "Neg" | "Abs" => self.g.node(op, &[&n], none()),
                "Div" | "Mod" => {
                    // By nothing is undefined, and ends ONNX Runtime.
                    let number = self.u.int_in_range(2..=9)?;
                    let number = self.typed(of, &[], &[number]);
                    self.g.node(op, &[&n, &number], none())
                }
                "Cast" => {
                    let types = [
                        DataType::Int8,
                        DataType::Uint8,
                        DataType::Int16,
                        DataType::Float,
                        DataType::Bool,
                    ];
                    let to = *self.u.choose(&types)?;
                    let narrow = self.cast(&n, to);
                    self.cast(&narrow, of)
                }
                "Equal" => {
                    let other = self.whole(of, last)?;
                    let equal = self.g.node(op, &[&n, &other], none());
                    self.cast(&equal, of)
                }
                _ => {
                    let other = self.whole(of, 1)?;
                    self.g.node(op, &[&n, &other], none())
                }
            };
        }
        let n = self.cast(&n, DataType::Float);
        // As small as what it is added to.
        let n = self.g.node("Atan", &[&n], none());
        let name = self.g.node("Add", &[&x.name, &n], none());
        self.hold(name, x, x.columns.clone(), false);
        Ok(())
    }

    fn whole(&mut self, of: DataType, count: i64) -> Result<String> {
        let numbers = (0..count).map(|_| {
            Ok(match self.u.int_in_range(0..=5)? {
                0 => i64::from(i32::MAX),
                1 => i64::from(i32::MIN + 1),
                2 => i64::from(self.u.arbitrary::<i32>()?),
                3 => 300,
                _ => self.u.int_in_range(-9..=9)?,
            })
        });
        let numbers = numbers.collect::<Result<Vec<_>>>()?;
        Ok(self.typed(of, &[count], &numbers))
    }

    fn typed(&mut self, of: DataType, dims: &[i64], numbers: &[i64]) -> String {
        let bytes: Vec<u8> = match of {
            DataType::Int32 => numbers
                .iter()
                .flat_map(|&n| (n as i32).to_le_bytes())
                .collect(),
            _ => numbers.iter().flat_map(|n| n.to_le_bytes()).collect(),
        };
        let name = self.g.fresh("whole");
        self.g.graph().initializer.push(TensorProto {
            name: name.clone(),
            data_type: of as i32,
            dims: dims.to_vec(),
            raw_data: bytes.into(),
            ..TensorProto::default()
        });
        name
    }

    /// One of two, by a comparison of what is exact.
    fn choose(&mut self, x: &Held) -> Result<()> {
        if !x.exact {
            return Ok(());
        }
        let op = *self
            .u
            .choose(&["Less", "Greater", "Equal", "LessOrEqual"])?;
        if op == "LessOrEqual" && self.opset < 12 {
            return Ok(());
        }
        let edge = self.constant(x, -12, 12)?;
        let condition = self.g.node(op, &[&x.name, &edge], none());
        let other = self.constant(x, -12, 12)?;
        let inputs = match self.u.arbitrary()? {
            true => [&*condition, &x.name, &other],
            false => [&*condition, &other, &x.name],
        };
        let name = self.g.node("Where", &inputs, none());
        self.hold(name, x, x.columns.clone(), true);
        Ok(())
    }

    /// A row for each text, of the last value that there is.
    fn output(&mut self) -> Result<()> {
        let y = self.held[self.held.len() - 1].clone();
        let mut name = y.name.clone();
        if y.tokens {
            name = match self.u.int_in_range(0..=3)? {
                0 => self.over("ReduceMean", &name, 1, false),
                1 => self.over("ReduceMax", &name, 1, false),
                place => {
                    let place = self.g.i64s(&[], &[if place == 2 { 0 } else { -1 }]);
                    self.g
                        .node("Gather", &[&name, &place], vec![int("axis", 1)])
                }
            };
        }
        let shape = self.g.ints(&[0, -1]);
        let shape = match y.columns.is_empty() {
            true => self.g.ints(&[-1, 1]),
            false => shape,
        };
        let name = self.g.node("Reshape", &[&name, &shape], none());
        let dims = [
            Dim::Symbolic("batch".into()),
            Dim::Fixed(y.width() as usize),
        ];
        self.g.output(&name, DType::F32, &dims);
        Ok(())
    }
}
