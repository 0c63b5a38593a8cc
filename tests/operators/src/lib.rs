//! Small graphs as programs, against the same written out in f64 here, and graphs that must be
//! refused: a value for each text or token, never a wrong one. [`operators!`] makes tests of them and is told where else
//! they run: on a GPU, or [`nowhere`].

#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use isovec_encoder::{CompileError, Executable, Pause, Run};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::Dim;
use isovec_engine::engine::{Batch, MASK};
use isovec_engine::maybe_send::BoxFuture;
use isovec_engine::onnx::proto::{AttributeProto, GraphProto, ModelProto, OperatorSetIdProto};
use isovec_engine::tensor::{DType, NamedTensor, Tensor};
use isovec_engine::weights::{BytesWeights, WeightInfo, WeightsIdentity};
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::{OneThread, Pool};
use isovec_model::onnx::GraphBuilder;
use isovec_model::onnx::builder::{float, int, ints, string};

/// Where else a graph runs: its name for messages, the model and a batch become the outputs, as rows by text; `None` where
/// it does not run.
pub type Elsewhere = fn(&str, &ModelBundle, Batch) -> Option<Vec<Vec<Vec<f32>>>>;

/// On the processor alone.
pub fn nowhere(_: &str, _: &ModelBundle, _: Batch) -> Option<Vec<Vec<Vec<f32>>>> {
    None
}

thread_local! {
    /// Where else the case that this thread runs is to be run.
    static ELSEWHERE: Cell<Elsewhere> = const { Cell::new(nowhere) };
}

/// Functions with their names.
macro_rules! named {
    ($($case:ident)*) => {
        &[$((stringify!($case), $case)),*]
    };
}

/// The cases by their names.
const CASES: &[(&str, fn())] = named![
    numbers_beside_a_value
    activations_are_what_they_are
    normalisations_of_matrices
    operators_that_are_put_together
    axes_that_are_not_the_last
    every_spelling_of_a_normalisation
    a_product_with_factors_and_a_bias
    outputs_that_share_what_they_are_made_of
    threads_share_the_rows_of_a_result
    scores_are_changed_in_every_known_way
    biases_are_picked_by_offset
    what_is_known_stays_what_it_is
    rows_by_computed_numbers
    a_sum_and_its_normalisation
    what_cannot_be_said_is_refused
    values_for_pairs_are_bounded
    tables_in_8_bits_keep_their_scales
    products_in_8_bits_keep_their_scales
    large_weights_of_other_types_have_no_program
];

/// Runs a case on the processor and elsewhere.
///
/// # Panics
/// Where a graph gives something else than it should, and where there is no case of that name.
pub fn run_case(name: &str, elsewhere: Elsewhere) {
    let mut cases = CASES.iter();
    let (_, case) = cases.find(|(case, _)| *case == name).unwrap();
    ELSEWHERE.set(elsewhere);
    case();
}

/// Whether there are as many cases: a case that no test runs would be none.
pub fn are_all(names: &[&str]) -> bool {
    names.len() == CASES.len()
}

/// A test for each case, all of which run on the processor and where the path of an [`Elsewhere`] says.
#[macro_export]
macro_rules! operators {
    ($elsewhere:path) => {
        $crate::tests! { $elsewhere,
            numbers_beside_a_value
            activations_are_what_they_are
            normalisations_of_matrices
            operators_that_are_put_together
            axes_that_are_not_the_last
            every_spelling_of_a_normalisation
            a_product_with_factors_and_a_bias
            outputs_that_share_what_they_are_made_of
            threads_share_the_rows_of_a_result
            scores_are_changed_in_every_known_way
            biases_are_picked_by_offset
            what_is_known_stays_what_it_is
            rows_by_computed_numbers
            a_sum_and_its_normalisation
            what_cannot_be_said_is_refused
            values_for_pairs_are_bounded
            tables_in_8_bits_keep_their_scales
            products_in_8_bits_keep_their_scales
            large_weights_of_other_types_have_no_program
        }
    };
}

/// What [`operators!`] makes of the names.
#[doc(hidden)]
#[macro_export]
macro_rules! tests {
    ($elsewhere:path, $($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                $crate::run_case(stringify!($name), $elsewhere);
            }
        )*

        #[test]
        fn every_case_is_a_test() {
            assert!($crate::are_all(&[$(stringify!($name)),*]));
        }
    };
}

const ROWS: usize = 40;

struct Never;

impl Pause for Never {
    fn pause(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A graph under construction: inputs `ids` and a mask, and a table of random rows.
struct Sketch {
    graph: GraphProto,
    weights: BytesWeights,
    width: usize,
}

type Rows = Vec<Vec<f64>>;

impl Sketch {
    fn new(width: usize) -> Self {
        let mut graph = GraphProto::default();
        let mut g = GraphBuilder::new(&mut graph, "in.");
        for name in ["ids", MASK] {
            let dims = ["batch", "sequence"].map(|name| Dim::Symbolic(name.into()));
            g.input(name, DType::I64, &dims);
        }
        let values: Vec<f32> = table(width).concat().iter().map(|&v| v as f32).collect();
        let table = g.f32s(&[ROWS as i64, width as i64], &values);
        g.named_node("Gather", &[&table, "ids"], "x", vec![int("axis", 0)]);
        Self {
            graph,
            weights: BytesWeights::new(),
            width,
        }
    }

    fn weight(&mut self, name: &str, dtype: DType, shape: &[usize], bytes: Vec<u8>) {
        let info = WeightInfo {
            name: name.into(),
            dtype,
            shape: shape.to_vec(),
        };
        self.weights.push(info, Bytes::from(bytes)).unwrap();
    }

    /// `y`, a value for each token, becomes two outputs: its sum by text, and the last token's.
    fn per_token(self, build: impl FnOnce(&mut GraphBuilder<'_>) -> String) -> Self {
        self.outputs(|g| {
            let y = build(g);
            let (one, last) = (g.ints(&[1]), g.i64s(&[], &[-1]));
            let sum = g.node("ReduceSum", &[&y, &one], vec![int("keepdims", 0)]);
            let last = g.node("Gather", &[&y, &last], vec![int("axis", 1)]);
            vec![sum, last]
        })
    }

    fn outputs(mut self, build: impl FnOnce(&mut GraphBuilder<'_>) -> Vec<String>) -> Self {
        let mut g = GraphBuilder::new(&mut self.graph, "t.");
        let names = build(&mut g);
        let width = Dim::Fixed(self.width);
        for name in names {
            g.output(
                &name,
                DType::F32,
                &[Dim::Symbolic("batch".into()), width.clone()],
            );
        }
        self
    }

    fn compile(self) -> Result<Arc<Executable>, CompileError> {
        compile(&self.bundle())
    }

    fn bundle(self) -> ModelBundle {
        ModelBundle {
            graph: ModelProto {
                ir_version: 8,
                opset_import: vec![OperatorSetIdProto {
                    domain: String::new(),
                    version: 18,
                }],
                graph: Some(self.graph),
                ..ModelProto::default()
            },
            weights: Arc::new(self.weights),
            identity: WeightsIdentity("test".into()),
            files: BTreeMap::new(),
            model_file: "model.onnx".into(),
            origin: "a model of the tests".into(),
        }
    }
}

fn compile(bundle: &ModelBundle) -> Result<Arc<Executable>, CompileError> {
    let (cancel, mut never) = (Cancel::new(), Never);
    let program = Executable::compile(bundle, Arithmetic::Fast, &cancel, &mut never);
    pollster::block_on(program).map(Arc::new)
}

/// The rows of `x` by id.
fn table(width: usize) -> Rows {
    numbers(ROWS * width, 1.0)
        .chunks(width)
        .map(<[f64]>::to_vec)
        .collect()
}

/// From `-size` to `size`, exact in f32.
fn numbers(count: usize, size: f64) -> Vec<f64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 48) as f64 / f64::from(1 << 15) - 1.0) * size
    };
    (0..count).map(|_| f64::from(next() as f32)).collect()
}

/// Of several lengths, one of them a single token.
fn texts() -> Vec<Vec<i64>> {
    let text = |length: i64| {
        (0..length)
            .map(|at| (7 * at + length) % ROWS as i64)
            .collect()
    };
    [5, 1, 9].map(text).into()
}

fn batch(texts: &[Vec<i64>]) -> Batch {
    let length = texts.iter().map(Vec::len).max().unwrap();
    let tensor = |name: &str, value: &dyn Fn(i64) -> i64| {
        let row = |text: &Vec<i64>| {
            let mut row: Vec<i64> = text.iter().map(|&id| value(id)).collect();
            row.resize(length, 0);
            row
        };
        let values: Vec<i64> = texts.iter().flat_map(row).collect();
        NamedTensor::new(
            name,
            Tensor::from_slice(&[texts.len(), length], &values).unwrap(),
        )
    };
    Batch {
        inputs: vec![tensor("ids", &|id| id), tensor(MASK, &|_| 1)],
        row_lengths: texts.iter().map(Vec::len).collect(),
        ..Batch::default()
    }
}

/// The outputs, as rows by text.
fn run(program: &Arc<Executable>, batch: &Batch, pool: &dyn Pool) -> Vec<Vec<Vec<f32>>> {
    let mut run = Run::new(Arc::clone(program), batch).unwrap();
    let texts = run.texts();
    while run.step(None, pool).unwrap().is_some() {}
    let outputs = run.finish().into_iter();
    outputs
        .map(|(_, _, values)| {
            let width = values.len() / texts;
            values.chunks(width).map(<[f32]>::to_vec).collect()
        })
        .collect()
}

fn near(name: &str, found: &[f32], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len(), "{name}");
    for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        let difference = (f64::from(*found) - wanted).abs();
        let bound = 2e-5 * wanted.abs().max(1.0);
        assert!(
            difference <= bound,
            "{name}, column {at}: {found} for {wanted}"
        );
    }
}

/// Compares a graph's value for each token with what `wanted` makes of the rows of `x`.
fn check(
    name: &str,
    width: usize,
    build: impl FnOnce(&mut GraphBuilder<'_>) -> String,
    wanted: impl Fn(&[Vec<f64>]) -> Rows,
) -> Arc<Executable> {
    check_sketch(name, Sketch::new(width).per_token(build), wanted)
}

fn check_sketch(
    name: &str,
    sketch: Sketch,
    wanted: impl Fn(&[Vec<f64>]) -> Rows,
) -> Arc<Executable> {
    let table = table(sketch.width);
    let bundle = sketch.bundle();
    let program = compile(&bundle).unwrap_or_else(|why| panic!("{name}: {why}"));
    let texts = texts();
    let here = run(&program, &batch(&texts), &OneThread);
    for found in [Some(here), ELSEWHERE.get()(name, &bundle, batch(&texts))] {
        let Some(found) = found else { continue };
        for (at, text) in texts.iter().enumerate() {
            let x: Rows = text.iter().map(|&id| table[id as usize].clone()).collect();
            let wanted = wanted(&x);
            let sum = (0..wanted[0].len()).map(|c| wanted.iter().map(|row| row[c]).sum());
            near(name, &found[0][at], &sum.collect::<Vec<f64>>());
            near(name, &found[1][at], &wanted[wanted.len() - 1]);
        }
    }
    program
}

/// Each number by itself.
fn each(f: impl Fn(f64) -> f64) -> impl Fn(&[Vec<f64>]) -> Rows {
    move |x| {
        let row = |row: &Vec<f64>| row.iter().map(|&x| f(x)).collect();
        x.iter().map(row).collect()
    }
}

/// Each row by itself.
fn each_row(f: impl Fn(&[f64]) -> Vec<f64>) -> impl Fn(&[Vec<f64>]) -> Rows {
    move |x| x.iter().map(|row| f(row)).collect()
}

fn refused_sketch(name: &str, sketch: Sketch, word: &str) {
    match sketch.compile() {
        Err(CompileError::Unlowered(why)) => {
            let why = why.to_string();
            assert!(why.contains(word), "{name}: {why}");
        }
        Err(other) => panic!("{name} is an error: {other}"),
        Ok(program) => panic!("{name} has a program: {:?}", program.operators()),
    }
}

fn refused(name: &str, word: &str, build: impl FnOnce(&mut GraphBuilder<'_>) -> String) {
    refused_sketch(name, Sketch::new(8).per_token(build), word);
}

fn erf(x: f64) -> f64 {
    // By its series, which converges for the small numbers of the tests.
    let mut term = x;
    let mut sum = x;
    for n in 1..60 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn none() -> Vec<AttributeProto> {
    Vec::new()
}

fn numbers_beside_a_value() {
    check(
        "1 - x",
        8,
        |g| {
            let one = g.f32(1.0);
            g.node("Sub", &[&one, "x"], none())
        },
        each(|x| 1.0 - x),
    );
    check(
        "x - 1",
        8,
        |g| {
            let one = g.f32(1.0);
            g.node("Sub", &["x", &one], none())
        },
        each(|x| x - 1.0),
    );
    for (fmod, f) in [
        (0, (|x: f64| x - 0.3 * (x / 0.3).floor()) as fn(f64) -> f64),
        (1, |x| x % 0.3),
    ] {
        check(
            "the remainder",
            8,
            |g| {
                let number = g.f32(0.3);
                g.node("Mod", &["x", &number], vec![int("fmod", fmod)])
            },
            each(f),
        );
    }
    // Of a number below 0, and of a divisor below 0.
    for (divisor, fmod) in [(-3_i64, 0), (-3, 1), (3, 0), (3, 1)] {
        check(
            "the remainder of whole numbers",
            8,
            |g| {
                let axis = g.ints(&[2]);
                let (divisor, five) = (g.i64s(&[], &[divisor]), g.i64s(&[], &[5]));
                let less = g.node("Sub", &["ids", &five], none());
                let rest = g.node("Mod", &[&less, &divisor], vec![int("fmod", fmod)]);
                let rest = g.node("Cast", &[&rest], vec![int("to", 1)]);
                let rest = g.node("Unsqueeze", &[&rest, &axis], none());
                let zero = g.f32(0.0);
                let zeros = g.node("Mul", &["x", &zero], none());
                g.node("Add", &[&zeros, &rest], none())
            },
            |x| {
                let table = table(8);
                let id = |row: &Vec<f64>| table.iter().position(|own| own == row).unwrap() as i64;
                let rest = |row| match (id(row) - 5, fmod) {
                    (number, 1) => number % divisor,
                    (number, _) => ((number % divisor) + divisor) % divisor,
                };
                x.iter().map(|row| vec![rest(row) as f64; 8]).collect()
            },
        );
    }
}

fn activations_are_what_they_are() {
    let (half, slope) = (0.5_f32, std::f32::consts::FRAC_1_SQRT_2);
    let gelu_like = |factor: f32, slope: f32| {
        move |g: &mut GraphBuilder<'_>| {
            let (one, factor, slope) = (g.f32(1.0), g.f32(factor), g.f32(slope));
            let inner = g.node("Mul", &["x", &slope], none());
            let inner = g.node("Erf", &[&inner], none());
            let inner = g.node("Add", &[&inner, &one], none());
            let outer = g.node("Mul", &["x", &factor], none());
            g.node("Mul", &[&outer, &inner], none())
        }
    };
    for (factor, slope) in [(half, slope), (0.7, slope), (half, 0.71), (half, 1.3)] {
        let (f, s) = (f64::from(factor), f64::from(slope));
        check(
            &format!("{factor} x (1 + erf({slope} x))"),
            8,
            gelu_like(factor, slope),
            each(|x| f * x * (1.0 + erf(s * x))),
        );
    }
    check(
        "(3x) sigmoid(x)",
        8,
        |g| {
            let three = g.f32(3.0);
            let gate = g.node("Sigmoid", &["x"], none());
            let outer = g.node("Mul", &["x", &three], none());
            g.node("Mul", &[&outer, &gate], none())
        },
        each(|x| 3.0 * x * sigmoid(x)),
    );
    // A cube that is not of x, where a row stands for a matrix.
    check(
        "tanh of a part",
        8,
        |g| {
            let (weight, inner, half, one) =
                (g.f32(0.044_715), g.f32(0.797_884_6), g.f32(0.5), g.f32(1.0));
            let (from, to, axes) = (g.ints(&[0]), g.ints(&[1]), g.ints(&[2]));
            let first = g.node("Slice", &["x", &from, &to, &axes], none());
            let square = g.node("Mul", &["x", "x"], none());
            let cube = g.node("Mul", &[&square, &first], none());
            let cube = g.node("Mul", &[&cube, &weight], none());
            let sum = g.node("Add", &["x", &cube], none());
            let sum = g.node("Mul", &[&sum, &inner], none());
            let tanh = g.node("Tanh", &[&sum], none());
            let tanh = g.node("Add", &[&tanh, &one], none());
            let outer = g.node("Mul", &["x", &half], none());
            g.node("Mul", &[&outer, &tanh], none())
        },
        each_row(|row| {
            let f =
                |x: f64| 0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * row[0])).tanh());
            row.iter().map(|&x| f(x)).collect()
        }),
    );
}

/// Over two axes at once, with parameters that are repeated, and the statistics that go with it.
fn normalisations_of_matrices() {
    let gamma = [1.0, 2.0, 3.0, 4.0];
    for statistics in [0, 1, 2] {
        check(
            &format!("statistics {statistics}"),
            8,
            |g| {
                let apart = g.ints(&[0, 0, 2, 4]);
                let x = g.node("Reshape", &["x", &apart], none());
                let gamma = g.f32s(&[1, 1, 1, 4], &gamma.map(|gamma| gamma as f32));
                let attributes = vec![int("axis", 2), float("epsilon", 0.1)];
                let norm = g.node("LayerNormalization", &[&x, &gamma], attributes);
                let all = [norm, "mean".to_owned(), "deviation".to_owned()];
                let node = g.graph().node.last_mut().unwrap();
                node.output.truncate(1);
                node.output.extend(all[1..=statistics].iter().cloned());
                let (whole, together) = (g.ints(&[1, 1, 2, 4]), g.ints(&[0, 0, 8]));
                let y = g.node("Expand", &[&all[statistics], &whole], none());
                g.node("Reshape", &[&y, &together], none())
            },
            each_row(|row| {
                let mean = row.iter().sum::<f64>() / 8.0;
                let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 8.0;
                let scale = 1.0 / (variance + f64::from(0.1_f32)).sqrt();
                let at = |at: usize| match statistics {
                    0 => (row[at] - mean) * scale * gamma[at % 4],
                    1 => mean,
                    _ => scale,
                };
                (0..8).map(at).collect()
            }),
        );
    }
    refused("another parameter", "for [8]", |g| {
        let gamma = g.f32s(&[4], &[1.0; 4]);
        g.node("LayerNormalization", &["x", &gamma], none())
    });
}

/// What ONNX defines by other operators, or could.
fn operators_that_are_put_together() {
    fn elu(x: f64, alpha: f64) -> f64 {
        if x < 0.0 { alpha * x.exp_m1() } else { x }
    }
    let soft = |x: f64| x.exp().ln_1p();
    type Row<'a> = (&'a str, Option<(&'a str, f32)>, &'a dyn Fn(f64) -> f64);
    let formulas: [Row<'_>; 24] = [
        ("Acos", None, &f64::acos),
        ("Acosh", None, &f64::acosh),
        ("Asin", None, &f64::asin),
        ("Asinh", None, &f64::asinh),
        ("Atan", None, &f64::atan),
        ("Atanh", None, &f64::atanh),
        ("Celu", Some(("alpha", 0.5)), &|x| elu(2.0 * x, 1.0) / 2.0),
        ("Cosh", None, &f64::cosh),
        ("Elu", Some(("alpha", 0.5)), &|x| elu(x, 0.5)),
        ("HardSigmoid", Some(("alpha", 0.7)), &|x| {
            (0.7 * x + 0.5).clamp(0.0, 1.0)
        }),
        ("HardSwish", None, &|x| x * (x / 6.0 + 0.5)),
        ("LeakyRelu", Some(("alpha", 0.5)), &|x| {
            if x < 0.0 { 0.5 * x } else { x }
        }),
        ("Mean", None, &|x| x),
        ("Mish", None, &|x| x * soft(x).tanh()),
        ("Round", None, &f64::round_ties_even),
        ("Selu", None, &|x| 1.050_701 * elu(x, 1.673_263_2)),
        ("Shrink", Some(("bias", 0.25)), &|x| match x {
            x if x < -0.5 => x + 0.25,
            x if x > 0.5 => x - 0.25,
            _ => 0.0,
        }),
        ("Sinh", None, &f64::sinh),
        ("Softplus", None, &soft),
        ("Softsign", None, &|x| x / (1.0 + x.abs())),
        ("Swish", Some(("alpha", 2.0)), &|x| x * sigmoid(2.0 * x)),
        ("Tan", None, &f64::tan),
        ("ThresholdedRelu", Some(("alpha", 0.5)), &|x| {
            if x > 0.5 { x } else { 0.0 }
        }),
        ("Identity", None, &|x| x),
    ];
    for (operator, attribute, f) in formulas {
        check(
            operator,
            8,
            |g| {
                // Where it is defined: acosh from 1 on.
                let two = g.f32(2.0);
                let x = match operator {
                    "Acosh" => g.node("Add", &["x", &two], none()),
                    _ => "x".to_owned(),
                };
                let attributes = attribute.map(|(name, value)| float(name, value));
                g.node(operator, &[&x], attributes.into_iter().collect())
            },
            each(|x| match operator {
                "Acosh" => f(x + 2.0),
                _ => f(x),
            }),
        );
    }
}

/// Columns as a matrix of 2 by 4: whatever is done along the first of its axes, and products and copies
/// that no kernel is there for.
fn axes_that_are_not_the_last() {
    let by = |row: &[f64], f: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
        (0..8).map(|at| f(row[at % 4], row[at % 4 + 4])).collect()
    };
    type Made<'a> = &'a dyn Fn(&mut GraphBuilder<'_>, &str) -> String;
    type Wanted<'a> = &'a dyn Fn(&[f64]) -> Vec<f64>;
    let reduced = |operator: &'static str| {
        move |g: &mut GraphBuilder<'_>, x: &str| {
            let (axis, shape) = (g.ints(&[2]), g.ints(&[1, 1, 2, 4]));
            let reduced = g.node(operator, &[x, &axis], none());
            g.node("Expand", &[&reduced, &shape], none())
        }
    };
    let along = |operator: &'static str| {
        move |g: &mut GraphBuilder<'_>, x: &str| g.node(operator, &[x], vec![int("axis", 2)])
    };
    let each_of_two = |row: &[f64], f: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
        (0..8).map(|at| f(row[at], row[(at + 4) % 8])).collect()
    };
    let share = |own: f64, other: f64| own.exp() / (own.exp() + other.exp());
    let product = |g: &mut GraphBuilder<'_>, x: &str| {
        let matrix = g.f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        g.node("MatMul", &[&matrix, x], none())
    };
    let backwards = |g: &mut GraphBuilder<'_>, x: &str| {
        let [from, to, axis, step] = [-1, -9, 3, -1].map(|number| g.ints(&[number]));
        g.node("Slice", &[x, &from, &to, &axis, &step], none())
    };
    let picked = |g: &mut GraphBuilder<'_>, x: &str| {
        let places = g.ints(&[2, -1, 0, 0]);
        g.node("Gather", &[x, &places], vec![int("axis", 3)])
    };
    let padded = |g: &mut GraphBuilder<'_>, x: &str| {
        let (pads, number) = (g.ints(&[0, 0, 0, 2, 0, 0, 0, -2]), g.f32(7.0));
        g.node("Pad", &[x, &pads, &number], none())
    };
    let beside = |g: &mut GraphBuilder<'_>, x: &str| {
        let (from, to, axis) = (g.ints(&[1]), g.ints(&[4]), g.ints(&[3]));
        let part = g.node("Slice", &[x, &from, &to, &axis], none());
        let constant = g.f32s(&[1, 1, 2, 1], &[5.0, 6.0]);
        // A constant has no tokens: it is repeated for each.
        let zero = g.f32(0.0);
        let first = g.node("Slice", &[x, &axis, &to, &axis], none());
        let first = g.node("Mul", &[&first, &zero], none());
        let first = g.node("Add", &[&first, &constant], none());
        g.node("Concat", &[&part, &first], vec![int("axis", 3)])
    };
    let regrouped = |g: &mut GraphBuilder<'_>, x: &str| {
        let (turned, back) = (g.ints(&[0, 0, 4, 2]), g.ints(&[0, 0, 2, 4]));
        let x = g.node("Reshape", &[x, &turned], none());
        g.node("Reshape", &[&x, &back], none())
    };
    let einsum = |g: &mut GraphBuilder<'_>, x: &str| {
        let matrix = g.f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let equation = string("equation", "ki,abic->abkc");
        g.node("Einsum", &[&matrix, x], vec![equation])
    };
    let two_by_two = |row: &[f64]| -> Vec<f64> {
        let at = |at: usize| {
            let (a, b) = if at < 4 { (1.0, 2.0) } else { (3.0, 4.0) };
            a * row[at % 4] + b * row[at % 4 + 4]
        };
        (0..8).map(at).collect()
    };
    let order = |row: &[f64], order: [usize; 4]| -> Vec<f64> {
        let order = order.map(|at| [row[at], row[at + 4]]);
        (0..8).map(|at| order[at % 4][at / 4]).collect()
    };
    let all: [(&str, Made<'_>, Wanted<'_>); 15] = [
        ("sum", &reduced("ReduceSum"), &|row| by(row, &|a, b| a + b)),
        ("mean", &reduced("ReduceMean"), &|row| {
            by(row, &|a, b| (a + b) / 2.0)
        }),
        ("max", &reduced("ReduceMax"), &|row| by(row, &f64::max)),
        ("product", &reduced("ReduceProd"), &|row| {
            by(row, &|a, b| a * b)
        }),
        ("L1", &reduced("ReduceL1"), &|row| {
            by(row, &|a, b| a.abs() + b.abs())
        }),
        ("log of exp", &reduced("ReduceLogSumExp"), &|row| {
            by(row, &|a, b| (a.exp() + b.exp()).ln())
        }),
        ("softmax", &along("Softmax"), &|row| {
            each_of_two(row, &share)
        }),
        ("log softmax", &along("LogSoftmax"), &|row| {
            each_of_two(row, &|own, other| share(own, other).ln())
        }),
        ("a product from the left", &product, &two_by_two),
        ("the same as an equation", &einsum, &two_by_two),
        ("backwards", &backwards, &|row| order(row, [3, 2, 1, 0])),
        ("some entries", &picked, &|row| order(row, [2, 3, 0, 0])),
        ("padded", &padded, &|row| {
            let at = |at: usize| if at % 4 < 2 { 7.0 } else { row[at - 2] };
            (0..8).map(at).collect()
        }),
        ("beside a constant", &beside, &|row| {
            let at = |at: usize| {
                if at % 4 < 3 {
                    row[at + 1]
                } else {
                    5.0 + (at / 4) as f64
                }
            };
            (0..8).map(at).collect()
        }),
        ("regrouped", &regrouped, &|row| row.to_vec()),
    ];
    for (name, made, wanted) in all {
        check(
            name,
            8,
            |g| {
                let (apart, together) = (g.ints(&[0, 0, 2, 4]), g.ints(&[0, 0, 8]));
                let x = g.node("Reshape", &["x", &apart], none());
                let y = made(g, &x);
                g.node("Reshape", &[&y, &together], none())
            },
            each_row(wanted),
        );
    }
}

/// `x / sqrt(mean of squares + 0.1) · gamma (+ beta)` as exporters spell it.
fn every_spelling_of_a_normalisation() {
    const WIDTH: usize = 8;
    let gamma: Vec<f32> = (0..WIDTH).map(|at| 0.5 + at as f32 / 8.0).collect();
    for layer in [false, true] {
        for spelling in 0..4 {
            let program = check(
                &format!("layer {layer}, spelling {spelling}"),
                WIDTH,
                |g| {
                    let axes = g.ints(&[-1]);
                    let (epsilon, two, one) = (g.f32(0.1), g.f32(2.0), g.f32(1.0));
                    let gamma = g.f32s(&[WIDTH as i64], &gamma);
                    let x = match layer {
                        true => {
                            let mean = g.node("ReduceMean", &["x", &axes], none());
                            g.node("Sub", &["x", &mean], none())
                        }
                        false => "x".to_owned(),
                    };
                    let square = match spelling % 2 {
                        0 => g.node("Pow", &[&x, &two], none()),
                        _ => g.node("Mul", &[&x, &x], none()),
                    };
                    let mean = g.node("ReduceMean", &[&square, &axes], none());
                    let mean = g.node("Add", &[&mean, &epsilon], none());
                    let root = g.node("Sqrt", &[&mean], none());
                    let normed = match spelling {
                        0 => g.node("Div", &[&x, &root], none()),
                        1 => {
                            let over = g.node("Reciprocal", &[&root], none());
                            g.node("Mul", &[&x, &over], none())
                        }
                        2 => {
                            let over = g.node("Div", &[&one, &root], none());
                            g.node("Mul", &[&over, &x], none())
                        }
                        _ => {
                            let over = g.node("Reciprocal", &[&root], none());
                            g.node("Mul", &[&over, &x], none())
                        }
                    };
                    g.node("Mul", &[&gamma, &normed], none())
                },
                each_row(|row| {
                    let mean = if layer {
                        row.iter().sum::<f64>() / row.len() as f64
                    } else {
                        0.0
                    };
                    let row: Vec<f64> = row.iter().map(|x| x - mean).collect();
                    let square = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
                    let root = (square + 0.1).sqrt();
                    let all = row.iter().zip(&gamma);
                    all.map(|(x, gamma)| x / root * f64::from(*gamma)).collect()
                }),
            );
            let operators = program.operators();
            assert!(operators.contains(&"norm"), "{spelling}: {operators:?}");
        }
    }
    // Heads as wide as there are of them: the roots of another head's are no normalisation.
    check(
        "roots of other groups",
        16,
        |g| {
            let (axes, epsilon) = (g.ints(&[-1]), g.f32(0.1));
            let (four, whole, turned) = (
                g.ints(&[0, 0, 4, 4]),
                g.ints(&[0, 0, 16]),
                g.ints(&[0, 0, 1, 4]),
            );
            let x = g.node("Reshape", &["x", &four], none());
            let square = g.node("Mul", &[&x, &x], none());
            let mean = g.node("ReduceMean", &[&square, &axes], none());
            let mean = g.node("Add", &[&mean, &epsilon], none());
            let root = g.node("Sqrt", &[&mean], none());
            let root = g.node("Reshape", &[&root, &turned], none());
            let normed = g.node("Div", &[&x, &root], none());
            g.node("Reshape", &[&normed, &whole], none())
        },
        each_row(|row| {
            let root = |head: &[f64]| (head.iter().map(|x| x * x).sum::<f64>() / 4.0 + 0.1).sqrt();
            let roots: Vec<f64> = row.chunks(4).map(root).collect();
            row.iter()
                .enumerate()
                .map(|(at, x)| x / roots[at % 4])
                .collect()
        }),
    );
}

fn a_product_with_factors_and_a_bias() {
    let (matrix, bias) = (numbers(64, 0.5), numbers(8, 1.0));
    let f32s = |values: &[f64]| values.iter().map(|&v| v as f32).collect::<Vec<f32>>();
    let sketch = Sketch::new(8).outputs(|g| {
        let (one, last) = (g.ints(&[1]), g.i64s(&[], &[-1]));
        let (b, c) = (g.f32s(&[8, 8], &f32s(&matrix)), g.f32s(&[8], &f32s(&bias)));
        let sum = g.node("ReduceSum", &["x", &one], vec![int("keepdims", 0)]);
        let last = g.node("Gather", &["x", &last], vec![int("axis", 1)]);
        let attributes = || vec![float("alpha", 2.0), float("beta", 0.5), int("transB", 1)];
        [sum, last]
            .map(|x| g.node("Gemm", &[&x, &b, &c], attributes()))
            .into()
    });
    let program = sketch.compile().unwrap();
    let texts = texts();
    let found = run(&program, &batch(&texts), &OneThread);
    let table = table(8);
    for (at, text) in texts.iter().enumerate() {
        let rows: Vec<&Vec<f64>> = text.iter().map(|&id| &table[id as usize]).collect();
        let sum: Vec<f64> = (0..8)
            .map(|c| rows.iter().map(|row| row[c]).sum())
            .collect();
        for (found, x) in [(&found[0][at], &sum), (&found[1][at], rows[rows.len() - 1])] {
            let wanted = matrix.chunks(8).zip(&bias).map(|(row, bias)| {
                2.0 * row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>() + 0.5 * bias
            });
            near("Gemm", found, &wanted.collect::<Vec<f64>>());
        }
    }
}

/// Two outputs of one node, and one output made of the other.
fn outputs_that_share_what_they_are_made_of() {
    let program = Sketch::new(8).outputs(|g| {
        let (axis, two) = (g.ints(&[1]), g.f32(2.0));
        let sum = g.node("ReduceSum", &["x", &axis], vec![int("keepdims", 0)]);
        let same = g.node("Identity", &[&sum], none());
        let tanh = g.node("Tanh", &[&sum], none());
        let double = g.node("Mul", &[&tanh, &two], none());
        vec![sum, same, tanh, double]
    });
    let program = program.compile().unwrap();
    let texts = texts();
    let found = run(&program, &batch(&texts), &OneThread);
    assert_eq!(found[0], found[1]);
    for (at, text) in texts.iter().enumerate() {
        let table = table(8);
        let sum = |c| text.iter().map(|&id| table[id as usize][c]).sum();
        let sum: Vec<f64> = (0..8).map(sum).collect();
        near("the sum", &found[0][at], &sum);
        let tanh: Vec<f64> = sum.iter().map(|x| x.tanh()).collect();
        near("its tanh", &found[2][at], &tanh);
        let double: Vec<f64> = tanh.iter().map(|x| 2.0 * x).collect();
        near("twice that", &found[3][at], &double);
    }
}

struct Three;

impl Pool for Three {
    fn threads(&self) -> usize {
        3
    }

    fn run(&self, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for number in 0..jobs {
                scope.spawn(move || job(number));
            }
        });
    }
}

fn threads_share_the_rows_of_a_result() {
    let sketch = Sketch::new(384).per_token(|g| {
        let axis = g.ints(&[-1]);
        let mean = g.node("ReduceMean", &["x", &axis], none());
        let less = g.node("Sub", &["x", &mean], none());
        g.node("Sigmoid", &[&less], none())
    });
    let program = sketch.compile().unwrap();
    let text = |length: i64| {
        (0..length)
            .map(|at| (3 * at + length) % ROWS as i64)
            .collect()
    };
    let batch = batch(&[120, 1, 79].map(text));
    let alone = run(&program, &batch, &OneThread);
    assert_eq!(run(&program, &batch, &Three), alone);
    assert!(alone[0][0].iter().any(|x| *x != 0.0));
}

/// `softmax((q k^T + bias) · scale) v` of each head.
fn attention(
    q: &[Vec<f64>],
    k: &[Vec<f64>],
    v: &[Vec<f64>],
    score: &dyn Fn(f64, i64) -> f64,
) -> Rows {
    let row = |(at, q): (usize, &Vec<f64>)| {
        let scores = k.iter().enumerate().map(|(to, k)| {
            let product = q.iter().zip(k).map(|(a, b)| a * b).sum();
            score(product, to as i64 - at as i64).exp()
        });
        let scores: Vec<f64> = scores.collect();
        let all: f64 = scores.iter().sum();
        let column = |c: usize| scores.iter().zip(v).map(|(s, v)| s / all * v[c]).sum();
        (0..v[0].len()).map(column).collect()
    };
    q.iter().enumerate().map(row).collect()
}

fn columns(x: &[Vec<f64>], from: usize, size: usize) -> Rows {
    x.iter()
        .map(|row| row[from..from + size].to_vec())
        .collect()
}

/// Columns of several matrices beside each other.
fn beside(parts: &[Rows]) -> Rows {
    let row = |at: usize| parts.iter().flat_map(|part| part[at].clone()).collect();
    (0..parts[0].len()).map(row).collect()
}

/// `key - query` for each pair of tokens.
fn distances(g: &mut GraphBuilder<'_>) -> String {
    let (one, zero, step) = (g.i64s(&[], &[1]), g.i64s(&[], &[0]), g.i64s(&[], &[1]));
    let (rows, columns) = (g.ints(&[1]), g.ints(&[0]));
    let shape = g.node("Shape", &["ids"], none());
    let length = g.node("Gather", &[&shape, &one], vec![int("axis", 0)]);
    let places = g.node("Range", &[&zero, &length, &step], none());
    let queries = g.node("Unsqueeze", &[&places, &rows], none());
    let keys = g.node("Unsqueeze", &[&places, &columns], none());
    g.node("Sub", &[&keys, &queries], none())
}

/// `softmax(scores) x` of one head, the scores being those of `x` with itself.
fn with_scores(
    g: &mut GraphBuilder<'_>,
    change: impl FnOnce(&mut GraphBuilder<'_>, &str) -> String,
) -> String {
    let keys = g.node("Transpose", &["x"], vec![ints("perm", &[0, 2, 1])]);
    let scores = g.node("MatMul", &["x", &keys], none());
    let scores = change(g, &scores);
    let shares = g.node("Softmax", &[&scores], vec![int("axis", -1)]);
    g.node("MatMul", &[&shares, "x"], none())
}

fn scores_are_changed_in_every_known_way() {
    check(
        "(q k + bias) / 8",
        8,
        |g| {
            with_scores(g, |g, scores| {
                let distance = distances(g);
                let distance = g.node("Cast", &[&distance], vec![int("to", 1)]);
                let (slope, eight) = (g.f32(0.7), g.f32(8.0));
                let bias = g.node("Mul", &[&distance, &slope], none());
                let sum = g.node("Add", &[scores, &bias], none());
                g.node("Div", &[&sum, &eight], none())
            })
        },
        |x| {
            attention(x, x, x, &|product, distance| {
                (product + 0.7 * distance as f64) / 8.0
            })
        },
    );
    // Hidden where the distance is 2 or more, in each order of the two.
    for hidden_first in [true, false] {
        check(
            "a window by Where",
            8,
            |g| {
                with_scores(g, |g, scores| {
                    let distance = distances(g);
                    let (limit, low) = (g.i64s(&[], &[2]), g.f32(-65504.0));
                    let distance = g.node("Abs", &[&distance], none());
                    let inside = g.node("Less", &[&distance, &limit], none());
                    match hidden_first {
                        false => g.node("Where", &[&inside, scores, &low], none()),
                        true => {
                            let outside = g.node("Not", &[&inside], none());
                            g.node("Where", &[&outside, &low, scores], none())
                        }
                    }
                })
            },
            |x| {
                attention(x, x, x, &|product, distance| match distance.abs() < 2 {
                    true => product,
                    false => f64::NEG_INFINITY,
                })
            },
        );
    }
    // A table of the token itself and five to either side: longer texts are refused.
    let table: Vec<f32> = (0..11).map(|at| at as f32 / 5.0).collect();
    let program = Sketch::new(8).per_token(|g| {
        with_scores(g, |g, scores| {
            let (distance, middle) = (distances(g), g.i64s(&[], &[5]));
            let place = g.node("Add", &[&distance, &middle], none());
            let table = g.f32s(&[1, 11], &table);
            let bias = g.node("Gather", &[&table, &place], vec![int("axis", 1)]);
            g.node("Add", &[scores, &bias], none())
        })
    });
    let program = program.compile().unwrap();
    assert_eq!(program.max_tokens(), Some(6));
    // Those that no token may see at all would all be seen.
    refused("a window without the token itself", "hide", |g| {
        with_scores(g, |g, scores| {
            let distance = distances(g);
            let (limit, low) = (g.i64s(&[], &[0]), g.f32(-65504.0));
            let after = g.node("Greater", &[&distance, &limit], none());
            g.node("Where", &[&after, scores, &low], none())
        })
    });
    // Queries, keys and values of one product, head by head, and the queries' factor.
    check(
        "interleaved queries, keys and values",
        24,
        |g| {
            let (heads, factor, whole) = (g.ints(&[0, 0, 2, 12]), g.f32(0.3), g.ints(&[0, 0, 8]));
            let x = g.node("Reshape", &["x", &heads], none());
            let x = g.node("Transpose", &[&x], vec![ints("perm", &[0, 2, 1, 3])]);
            let axis = g.ints(&[3]);
            let mut part = |at: i64| {
                let (from, to) = (g.ints(&[4 * at]), g.ints(&[4 * at + 4]));
                g.node("Slice", &[&x, &from, &to, &axis], none())
            };
            let (q, k, v) = (part(0), part(1), part(2));
            let q = g.node("Mul", &[&q, &factor], none());
            let k = g.node("Transpose", &[&k], vec![ints("perm", &[0, 1, 3, 2])]);
            let scores = g.node("MatMul", &[&q, &k], none());
            let shares = g.node("Softmax", &[&scores], vec![int("axis", -1)]);
            let seen = g.node("MatMul", &[&shares, &v], none());
            let seen = g.node("Transpose", &[&seen], vec![ints("perm", &[0, 2, 1, 3])]);
            let seen = g.node("Reshape", &[&seen, &whole], none());
            // As wide as the outputs say.
            g.node("Concat", &[&seen, &seen, &seen], vec![int("axis", 2)])
        },
        |x| {
            let head = |at: usize| {
                let part = |part: usize| columns(x, 12 * at + 4 * part, 4);
                attention(&part(0), &part(1), &part(2), &|product, _| 0.3 * product)
            };
            let seen = beside(&[head(0), head(1)]);
            beside(&[seen.clone(), seen.clone(), seen])
        },
    );
    // Two heads of keys and values for four of queries.
    check(
        "repeated heads of keys and values",
        32,
        |g| {
            let axis = g.ints(&[2]);
            let mut part = |from: i64, to: i64| {
                let (from, to) = (g.ints(&[from]), g.ints(&[to]));
                g.node("Slice", &["x", &from, &to, &axis], none())
            };
            let (q, k, v) = (part(0, 16), part(16, 24), part(24, 32));
            let (four, two, repeated, merged, whole) = (
                g.ints(&[0, 0, 4, 4]),
                g.ints(&[0, 0, 2, 1, 4]),
                g.ints(&[1, 1, 2, 2, 4]),
                g.ints(&[0, 0, 4, 4]),
                g.ints(&[0, 0, 16]),
            );
            let q = g.node("Reshape", &[&q, &four], none());
            let q = g.node("Transpose", &[&q], vec![ints("perm", &[0, 2, 1, 3])]);
            let mut repeat = |x: &str, perm: &[i64]| {
                let x = g.node("Reshape", &[x, &two], none());
                let x = g.node("Expand", &[&x, &repeated], none());
                let x = g.node("Reshape", &[&x, &merged], none());
                g.node("Transpose", &[&x], vec![ints("perm", perm)])
            };
            let (k, v) = (repeat(&k, &[0, 2, 3, 1]), repeat(&v, &[0, 2, 1, 3]));
            let scores = g.node("MatMul", &[&q, &k], none());
            let shares = g.node("Softmax", &[&scores], vec![int("axis", -1)]);
            let seen = g.node("MatMul", &[&shares, &v], none());
            let seen = g.node("Transpose", &[&seen], vec![ints("perm", &[0, 2, 1, 3])]);
            let seen = g.node("Reshape", &[&seen, &whole], none());
            g.node("Concat", &[&seen, &seen], vec![int("axis", 2)])
        },
        |x| {
            let head = |at: usize| {
                let (k, v) = (
                    columns(x, 16 + at / 2 * 4, 4),
                    columns(x, 24 + at / 2 * 4, 4),
                );
                attention(&columns(x, 4 * at, 4), &k, &v, &|product, _| product)
            };
            let seen = beside(&[head(0), head(1), head(2), head(3)]);
            beside(&[seen.clone(), seen])
        },
    );
}

/// A table for each of two heads, before and after the token another one.
fn biases_are_picked_by_offset() {
    let tables: [Vec<f64>; 2] = [numbers(38, 1.0), numbers(76, 2.0).split_off(38)];
    let program = |g: &mut GraphBuilder<'_>| {
        let (distance, middle, zero) = (distances(g), g.i64s(&[], &[9]), g.i64s(&[], &[0]));
        let place = g.node("Add", &[&distance, &middle], none());
        let after = g.node("Greater", &[&distance, &zero], none());
        let biases = tables.each_ref().map(|table| {
            let values: Vec<f32> = table.iter().map(|&v| v as f32).collect();
            let table = g.f32s(&[2, 19], &values);
            g.node("Gather", &[&table, &place], vec![int("axis", 1)])
        });
        let bias = g.node("Where", &[&after, &biases[0], &biases[1]], none());
        let (heads, whole) = (g.ints(&[0, 0, 2, 4]), g.ints(&[0, 0, 8]));
        let x = g.node("Reshape", &["x", &heads], none());
        let k = g.node("Transpose", &[&x], vec![ints("perm", &[0, 2, 3, 1])]);
        let x = g.node("Transpose", &[&x], vec![ints("perm", &[0, 2, 1, 3])]);
        let scores = g.node("MatMul", &[&x, &k], none());
        let scores = g.node("Add", &[&scores, &bias], none());
        let shares = g.node("Softmax", &[&scores], vec![int("axis", -1)]);
        let seen = g.node("MatMul", &[&shares, &x], none());
        let seen = g.node("Transpose", &[&seen], vec![ints("perm", &[0, 2, 1, 3])]);
        g.node("Reshape", &[&seen, &whole], none())
    };
    check("two tables", 8, program, |x| {
        let head = |head: usize| {
            let x = columns(x, 4 * head, 4);
            attention(&x, &x, &x, &|product, distance| {
                let table = &tables[usize::from(distance <= 0)];
                product + table[19 * head + (distance + 9) as usize]
            })
        };
        beside(&[head(0), head(1)])
    });
}

fn what_is_known_stays_what_it_is() {
    check(
        "a range of floats",
        4,
        |g| {
            let (from, to, step) = (g.f32(0.5), g.f32(3.0), g.f32(0.75));
            let range = g.node("Range", &[&from, &to, &step], none());
            g.node("Add", &["x", &range], none())
        },
        each_row(|row| (0..4).map(|at| row[at] + 0.5 + 0.75 * at as f64).collect()),
    );
    check(
        "entries of a list of floats",
        4,
        |g| {
            let (list, at) = (g.f32s(&[4], &[0.5, 1.5, 2.5, 3.5]), g.ints(&[3, 1, 0, -2]));
            let taken = g.node("Gather", &[&list, &at], none());
            g.node("Add", &["x", &taken], none())
        },
        each_row(|row| {
            let taken = [3.5, 1.5, 0.5, 2.5];
            row.iter().zip(taken).map(|(x, y)| x + y).collect()
        }),
    );
    refused("a filled list and another", "different kinds", |g| {
        let shape = g.ints(&[4]);
        let filled = g.node("ConstantOfShape", &[&shape], none());
        let list = g.f32s(&[4], &[0.5, 1.5, 2.5, 3.5]);
        let both = g.node("Concat", &[&filled, &list], vec![int("axis", 0)]);
        g.node("Add", &["x", &both], none())
    });
    let program = check(
        "the root of an extent",
        8,
        |g| {
            let last = g.i64s(&[], &[-1]);
            let shape = g.node("Shape", &["x"], none());
            let width = g.node("Gather", &[&shape, &last], none());
            let width = g.node("Cast", &[&width], vec![int("to", 1)]);
            let root = g.node("Sqrt", &[&width], none());
            g.node("Div", &["x", &root], none())
        },
        each(|x| x / 8.0_f64.sqrt()),
    );
    assert!(
        !program.operators().contains(&"zip"),
        "{:?}",
        program.operators()
    );
    // Whether a text is of one token is not known before there is one.
    check(
        "n - 1 = 0",
        8,
        |g| {
            let one = g.i64s(&[], &[1]);
            let shape = g.node("Shape", &["ids"], none());
            let length = g.node("Gather", &[&shape, &one], none());
            let less = g.node("Sub", &[&length, &one], none());
            let zero = g.i64s(&[], &[0]);
            let alone = g.node("Equal", &[&less, &zero], none());
            let alone = g.node("Cast", &[&alone], vec![int("to", 1)]);
            g.node("Mul", &["x", &alone], none())
        },
        |x| match x.len() {
            1 => x.to_vec(),
            _ => vec![vec![0.0; 8]; x.len()],
        },
    );
}

fn rows_by_computed_numbers() {
    let table_of = |rows: usize| numbers(8 * rows, 3.0);
    let f32s = |values: &[f64]| values.iter().map(|&v| v as f32).collect::<Vec<f32>>();
    // As RoBERTa counts its tokens, those of padding left out.
    let places = table_of(12);
    check(
        "positions of what is no padding",
        8,
        |g| {
            let (pad, axis) = (g.i64s(&[], &[1]), g.i64s(&[], &[1]));
            let padding = g.node("Equal", &["ids", &pad], none());
            let real = g.node("Not", &[&padding], none());
            let real = g.node("Cast", &[&real], vec![int("to", 7)]);
            let count = g.node("CumSum", &[&real, &axis], none());
            let count = g.node("Mul", &[&count, &real], none());
            let place = g.node("Add", &[&count, &pad], none());
            let table = g.f32s(&[12, 8], &f32s(&places));
            let row = g.node("Gather", &[&table, &place], none());
            g.node("Add", &["x", &row], none())
        },
        |x| {
            let padding = &table(8)[1];
            let mut count = 0;
            let row = |row: &Vec<f64>| {
                let real = usize::from(row != padding);
                count += real;
                let place = &places[8 * (count * real + 1)..];
                row.iter().zip(place).map(|(x, y)| x + y).collect()
            };
            x.iter().map(row).collect()
        },
    );
    // The same row for each token is a row for each token.
    let types = table_of(2);
    check(
        "a row for each token",
        8,
        |g| {
            let zeros = g.node("Sub", &[MASK, MASK], none());
            let table = g.f32s(&[2, 8], &f32s(&types));
            g.node("Gather", &[&table, &zeros], none())
        },
        each_row(|_| types[..8].to_vec()),
    );
    refused("a row that is not there", "row 2", |g| {
        let two = g.node("Add", &[MASK, MASK], none());
        let table = g.f32s(&[2, 8], &f32s(&types));
        g.node("Gather", &[&table, &two], none())
    });
    refused("a product of ids", "2^24", |g| {
        let product = g.node("Mul", &["ids", "ids"], none());
        g.node("Gather", &["x", &product], none())
    });
    refused("a thousand times an id", "2^24", |g| {
        let thousand = g.i64s(&[], &[1000]);
        let product = g.node("Mul", &["ids", &thousand], none());
        g.node("Gather", &["x", &product], none())
    });
}

/// In the domain of ONNX Runtime's own operators, with outputs of these names.
fn foreign(g: &mut GraphBuilder<'_>, op: &str, inputs: &[&str], outputs: &[&str]) {
    g.named_node(op, inputs, outputs[0], none());
    let node = g.graph().node.last_mut().unwrap();
    node.domain = "com.microsoft".into();
    node.output = outputs.iter().map(|&name| name.into()).collect();
}

fn a_sum_and_its_normalisation() {
    // So small that a larger epsilon would show.
    let small = |g: &mut GraphBuilder<'_>| {
        let factor = g.f32(1e-3);
        g.node("Mul", &["x", &factor], none())
    };
    check(
        "SkipLayerNormalization",
        8,
        |g| {
            let (x, ones) = (small(g), g.f32s(&[8], &[1.0; 8]));
            let outputs = ["normed", "", "", "sum"];
            foreign(g, "SkipLayerNormalization", &[&x, &x, &ones], &outputs);
            g.node("Add", &["normed", "sum"], none())
        },
        each_row(|row| {
            let row: Vec<f64> = row.iter().map(|x| x * 2e-3).collect();
            let mean = row.iter().sum::<f64>() / 8.0;
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 8.0;
            let root = (variance + 1e-12).sqrt();
            row.iter().map(|x| (x - mean) / root + x).collect()
        }),
    );
    refused("its mean", "its mean or deviation", |g| {
        let (x, ones) = (small(g), g.f32s(&[8], &[1.0; 8]));
        foreign(
            g,
            "SkipLayerNormalization",
            &[&x, &x, &ones],
            &["normed", "mean"],
        );
        g.node("Add", &["normed", "mean"], none())
    });
}

fn what_cannot_be_said_is_refused() {
    refused("nothing to reduce", "reduce nothing", |g| {
        g.node("ReduceL2", &["x"], vec![int("noop_with_empty_axes", 1)])
    });
    for operator in ["ReduceSum", "ReduceLogSumExp"] {
        refused("a sum of texts", "texts of a batch", |g| {
            let texts = g.ints(&[0]);
            g.node(operator, &["x", &texts], none())
        });
    }
    refused("shares of texts", "texts of a batch", |g| {
        g.node("Softmax", &["x"], vec![int("axis", 0)])
    });
    refused("numbers left to chance", "at random", |g| {
        let (ratio, one) = (g.f32(0.5), g.i32(1));
        let training = g.node("Cast", &[&one], vec![int("to", 9)]);
        g.node("Dropout", &["x", &ratio, &training], none())
    });
    refused("extents as a column", "cannot be computed", |g| {
        let (shape, axis) = (g.node("Shape", &["ids"], none()), g.ints(&[1]));
        g.node("Unsqueeze", &[&shape, &axis], none())
    });
    refused("a filled row for each token", "repeats", |g| {
        let (from, to, axis, shape) =
            (g.ints(&[0]), g.ints(&[1]), g.ints(&[2]), g.ints(&[1, 1, 8]));
        let first = g.node("Slice", &["x", &from, &to, &axis], none());
        let zero = g.f32(0.0);
        let positive = g.node("Greater", &[&first, &zero], none());
        let filled = g.node("ConstantOfShape", &[&shape], none());
        g.node("Where", &[&positive, &filled, &first], none())
    });
    refused("a sum along another axis", "not the tokens'", |g| {
        let axis = g.i64s(&[], &[0]);
        g.node("CumSum", &[MASK, &axis], none())
    });
    refused("scores as flags", "cast", |g| {
        with_scores(g, |g, scores| g.node("Cast", &[scores], vec![int("to", 9)]))
    });
    refused(
        "a mask that ends before it begins",
        "before it begins",
        |g| {
            let (from, to, axis) = (g.ints(&[-1]), g.ints(&[1]), g.ints(&[1]));
            g.node("Slice", &[MASK, &from, &to, &axis], none())
        },
    );
    refused("heads in another place", "before the tokens", |g| {
        let (heads, axis) = (g.ints(&[0, 0, 2, 4]), g.ints(&[2]));
        let x = g.node("Reshape", &["x", &heads], none());
        let x = g.node("Transpose", &[&x], vec![ints("perm", &[0, 2, 1, 3])]);
        let q = g.node("Unsqueeze", &[&x, &axis], none());
        let k = g.node("Transpose", &[&q], vec![ints("perm", &[0, 1, 2, 4, 3])]);
        g.node("MatMul", &[&q, &k], none())
    });
    refused("pairs before heads", "after the pairs", |g| {
        with_scores(g, |g, scores| {
            let (distance, table) = (distances(g), g.f32s(&[3, 1], &[1.0, 2.0, 3.0]));
            let bias = g.node("Gather", &[&table, &distance], vec![int("axis", 0)]);
            g.node("Add", &[scores, &bias], none())
        })
    });
    refused("no parts", "0 parts", |g| {
        let output = g.node("Split", &["x"], vec![int("axis", 2)]);
        g.graph().node.last_mut().unwrap().output.clear();
        output
    });
    refused("a table without rows", "without rows", |g| {
        let table = g.f32s(&[0, 8], &[]);
        g.node("Gather", &[&table, "ids"], none())
    });
    refused("rows without columns", "columns", |g| {
        let table = g.f32s(&[8, 0], &[]);
        g.node("Gather", &[&table, "ids"], none())
    });
    refused("a huge constant", "too many", |g| {
        let (shape, list) = (g.ints(&[1 << 40, 2]), g.f32s(&[2], &[1.0, 2.0]));
        g.node("Expand", &[&list, &shape], none())
    });
    refused("a huge row", "too many", |g| {
        let (axis, shape) = (g.ints(&[3]), g.ints(&[1, 1, 1, 1 << 60]));
        let x = g.node("Unsqueeze", &["x", &axis], none());
        g.node("Expand", &[&x, &shape], none())
    });
    refused("an extent below nothing", "-2", |g| {
        let shape = g.ints(&[1, 1, -2]);
        g.node("Expand", &[MASK, &shape], none())
    });
    refused("a shape below nothing", "-2", |g| {
        let shape = g.ints(&[0, 0, -2]);
        g.node("Reshape", &["x", &shape], none())
    });
    refused("a range of everything", "too long", |g| {
        let bounds = [i64::MIN, i64::MAX, 1].map(|bound| g.i64s(&[], &[bound]));
        g.node("Range", &[&bounds[0], &bounds[1], &bounds[2]], none())
    });
    refused("parts beyond everything", "do not fit", |g| {
        let sizes = g.ints(&[4, i64::MAX]);
        g.node("Split", &["x", &sizes], vec![int("axis", 2)])
    });
    refused("places beyond all axes", "more axes", |g| {
        let places = g.i64s(&[1, 1], &[0]);
        g.node(
            "GatherND",
            &[MASK, &places],
            vec![int("batch_dims", i64::MAX)],
        )
    });
    refused("more scales than entries", "3 scales", |g| {
        let (x, scale) = (g.i64s(&[2], &[1, 2]), g.f32s(&[3], &[1.0, 2.0, 3.0]));
        g.node("DequantizeLinear", &[&x, &scale], vec![int("axis", 0)])
    });
}

/// Tables for pairs of tokens end somewhere, however long the graph says that a text is.
fn values_for_pairs_are_bounded() {
    /// Longer than any text, and a number where there are 32 bits.
    const BEYOND: usize = 1 << 30;
    let sketch = |length: usize| {
        let mut sketch = Sketch::new(8);
        let graph = &mut sketch.graph;
        let dims = [Dim::Symbolic("batch".into()), Dim::Fixed(length)];
        graph.input[0] = isovec_model::onnx::builder::value_info("ids", DType::I64, &dims);
        sketch.per_token(|g| {
            with_scores(g, |g, scores| {
                let distance = distances(g);
                let distance = g.node("Cast", &[&distance], vec![int("to", 1)]);
                g.node("Add", &[scores, &distance], none())
            })
        })
    };
    let program = sketch(BEYOND).compile().unwrap();
    assert_eq!(program.max_tokens(), Some(1 << 16));
    // Nor is a table made for more heads than any model has.
    let mut sketch = Sketch::new(256);
    let dims = [Dim::Symbolic("batch".into()), Dim::Fixed(BEYOND)];
    sketch.graph.input[0] = isovec_model::onnx::builder::value_info("ids", DType::I64, &dims);
    let sketch = sketch.per_token(|g| {
        let heads = g.ints(&[0, 0, 256, 1]);
        let x = g.node("Reshape", &["x", &heads], none());
        let k = g.node("Transpose", &[&x], vec![ints("perm", &[0, 2, 3, 1])]);
        let x = g.node("Transpose", &[&x], vec![ints("perm", &[0, 2, 1, 3])]);
        let scores = g.node("MatMul", &[&x, &k], none());
        let distance = distances(g);
        let distance = g.node("Cast", &[&distance], vec![int("to", 1)]);
        let scores = g.node("Add", &[&scores, &distance], none());
        let shares = g.node("Softmax", &[&scores], vec![int("axis", -1)]);
        g.node("MatMul", &[&shares, &x], none())
    });
    refused_sketch("a bias for each of many heads", sketch, "too many");
}

/// A large weight in 8 bits, `[512, 192]`, and its scales.
fn quantised(sketch: &mut Sketch) -> (Vec<i8>, Vec<f32>, Vec<f32>) {
    let values: Vec<i8> = (0..512 * 192)
        .map(|at| ((at * 37 + at / 192) % 251 - 125) as i8)
        .collect();
    let bytes = values.iter().map(|&v| v as u8).collect();
    sketch.weight("q", DType::I8, &[512, 192], bytes);
    let scales = |count: usize| (0..count).map(|at| 0.001 * (1 + at % 5) as f32).collect();
    (values, scales(512), scales(192))
}

fn tables_in_8_bits_keep_their_scales() {
    for (by_row, split) in [(true, true), (true, false), (false, true)] {
        let mut sketch = Sketch::new(192);
        let (values, rows, columns) = quantised(&mut sketch);
        let scale = if by_row { &rows } else { &columns };
        let first = if split { 101 } else { 0 };
        let sketch = sketch.per_token(|g| {
            let scale = g.f32s(&[scale.len() as i64], scale);
            let axis = int("axis", i64::from(!by_row));
            let table = g.node("DequantizeLinear", &["q", &scale], vec![axis]);
            let (from, to, axis) = (g.ints(&[first]), g.ints(&[512]), g.ints(&[0]));
            let table = g.node("Slice", &[&table, &from, &to, &axis], none());
            let row = g.node("Gather", &[&table, "ids"], none());
            g.node("Add", &["x", &row], none())
        });
        let own = table(192);
        check_sketch(&format!("by row {by_row}, split {split}"), sketch, |x| {
            let row = |row: &Vec<f64>| {
                let id = own.iter().position(|own| own == row).unwrap() + first as usize;
                let entry = |c: usize| {
                    let scale = if by_row { rows[id] } else { columns[c] };
                    f64::from(values[192 * id + c]) * f64::from(scale)
                };
                (0..192).map(|c| row[c] + entry(c)).collect()
            };
            x.iter().map(row).collect()
        });
    }
}

/// Products in 8 bits are near those in many, each of their columns with its own scale.
fn products_in_8_bits_keep_their_scales() {
    // How the scale is given, the first row that is taken, and whether rows are outputs.
    for (spelling, first, turned) in [
        ("by row", 0, true),
        ("by row", 192, true),
        ("by column", 0, false),
        ("one", 0, true),
        ("one", 0, false),
    ] {
        let width = if turned { 192 } else { 512 };
        let mut sketch = Sketch::new(width);
        let (values, rows, columns) = quantised(&mut sketch);
        let name = format!("{spelling}, from {first}, turned {turned}");
        let sketch = sketch.per_token(|g| {
            let mut matrix = "q".to_owned();
            match spelling {
                "one" => {
                    // A number without axes, for a matrix that is turned already.
                    let scale = g.f32(0.002);
                    if turned {
                        matrix = g.node("Transpose", &[&matrix], vec![ints("perm", &[1, 0])]);
                    }
                    let cast = g.node("Cast", &[&matrix], vec![int("to", 1)]);
                    matrix = g.node("Mul", &[&cast, &scale], none());
                }
                _ => {
                    let by_row = spelling == "by row";
                    let scale = if by_row { &rows } else { &columns };
                    let scale = g.f32s(&[scale.len() as i64], scale);
                    let axis = int("axis", i64::from(!by_row));
                    matrix = g.node("DequantizeLinear", &[&matrix, &scale], vec![axis]);
                    if first > 0 {
                        let (from, to, axis) = (g.ints(&[first]), g.ints(&[512]), g.ints(&[0]));
                        matrix = g.node("Slice", &[&matrix, &from, &to, &axis], none());
                    }
                    if turned {
                        matrix = g.node("Transpose", &[&matrix], vec![ints("perm", &[1, 0])]);
                    }
                }
            }
            g.node("MatMul", &["x", &matrix], none())
        });
        let table = table(width);
        let program = sketch
            .compile()
            .unwrap_or_else(|why| panic!("{name}: {why}"));
        let texts = texts();
        let found = run(&program, &batch(&texts), &OneThread);
        for (text, found) in texts.iter().zip(&found[1]) {
            let x = &table[text[text.len() - 1] as usize];
            let entry = |row: usize, column: usize| {
                let scale = match spelling {
                    "one" => 0.002,
                    "by row" => rows[row],
                    _ => columns[column],
                };
                f64::from(values[192 * row + column]) * f64::from(scale)
            };
            let outputs = if turned { 512 - first as usize } else { 192 };
            assert_eq!(found.len(), outputs, "{name}");
            for (output, found) in found.iter().enumerate() {
                let term = |(input, x): (usize, &f64)| match turned {
                    true => x * entry(output + first as usize, input),
                    false => x * entry(input, output),
                };
                let (mut wanted, mut size) = (0.0, 0.0);
                for term in x.iter().enumerate().map(term) {
                    wanted += term;
                    size += term * term;
                }
                // Half a step of 127 in each of the terms, which are at most 1 times their entry.
                let bound = 0.02 * size.sqrt() + 1e-4;
                let difference = (f64::from(*found) - wanted).abs();
                assert!(difference < bound, "{name}, {output}: {found} for {wanted}");
            }
        }
    }
    for (name, word, count, axis, first) in [
        ("a scale for each input", "each of its inputs", 192, 1, 0),
        ("too many scales", "193 scales", 193, 1, 0),
        ("a scale for each of some rows", "some rows", 311, 0, 201),
    ] {
        let mut sketch = Sketch::new(192);
        quantised(&mut sketch);
        let sketch = sketch.per_token(|g| {
            let scale = g.f32s(&[count], &vec![0.5; count as usize]);
            let (from, to, rows) = (g.ints(&[first]), g.ints(&[512]), g.ints(&[0]));
            let part = g.node("Slice", &["q", &from, &to, &rows], none());
            let part = g.node(
                "DequantizeLinear",
                &[&part, &scale],
                vec![int("axis", axis)],
            );
            let part = g.node("Transpose", &[&part], vec![ints("perm", &[1, 0])]);
            g.node("MatMul", &["x", &part], none())
        });
        refused_sketch(name, sketch, word);
    }
}

/// Of a type that nothing reads: no program, and no error either.
fn large_weights_of_other_types_have_no_program() {
    for is_table in [true, false] {
        let mut sketch = Sketch::new(64);
        sketch.weight("w", DType::I64, &[64, 256], vec![0; 8 * 64 * 256]);
        let sketch = sketch.per_token(|g| match is_table {
            true => {
                let rows = g.node("Gather", &["w", "ids"], none());
                g.node("Cast", &[&rows], vec![int("to", 1)])
            }
            false => {
                let w = g.node("Cast", &["w"], vec![int("to", 1)]);
                g.node("MatMul", &["x", &w], none())
            }
        });
        refused_sketch("a large weight of I64", sketch, "\"w\"");
    }
}
