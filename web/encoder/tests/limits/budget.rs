//! One budget for all that is made while a graph is read.

use isovec_encoder::{CompileError, Pause, Program};
use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::maybe_send::BoxFuture;
use isovec_engine::onnx::proto::DataType;
use isovec_model::onnx::GraphBuilder;
use isovec_model::onnx::builder::{int, ints, string};

use crate::counting::peak;
use crate::sketch::{WIDTH, graph, none, program, run, tensor};

/// What any model may take, however small it is; none of these has 64 KiB.
const MOST: u64 = 64 << 20;

type Build = fn(&mut GraphBuilder<'_>) -> String;

fn range(g: &mut GraphBuilder<'_>, length: i64) -> String {
    let bounds = [0, length, 1].map(|bound| g.i64s(&[], &[bound]));
    g.node("Range", &[&bounds[0], &bounds[1], &bounds[2]], none())
}

/// `[4096, 1]`
fn column(g: &mut GraphBuilder<'_>) -> (String, String) {
    let row = range(g, 4096);
    let axis = g.ints(&[1]);
    let column = g.node("Unsqueeze", &[&row, &axis], none());
    (row, column)
}

fn floats(g: &mut GraphBuilder<'_>, of: &str) -> String {
    g.node("Cast", &[of], vec![int("to", DataType::Float as i64)])
}

/// A row of many columns, of which each differs.
fn wide(g: &mut GraphBuilder<'_>, columns: i64) -> String {
    let row = range(g, columns);
    let row = floats(g, &row);
    g.node("Sin", &[&row], none())
}

/// `x`, whatever else was made.
fn beside(_: &mut GraphBuilder<'_>) -> String {
    "x".into()
}

fn over_budget(name: &str, bundle: &ModelBundle) {
    let (found, bytes) = peak(|| program(bundle));
    match found {
        Err(CompileError::Engine(error @ EngineError::OverBudget { .. })) => {
            assert_eq!(error.kind(), "OverBudget", "{name}");
        }
        Err(other) => panic!("{name}: {other}"),
        Ok(program) => panic!("{name} has a program of {} nodes", program.nodes.len()),
    }
    assert!(bytes < MOST, "{name} took {bytes} bytes");
}

/// Row 3: each constant was allowed by itself, and all of them were kept.
#[test]
fn constants_are_counted_together() {
    let many_sums = graph(|g| {
        let (row, column) = column(g);
        for _ in 0..200 {
            g.node("Add", &[&column, &row], none());
        }
        beside(g)
    });
    over_budget("sums that nothing reads", &many_sums);
    let kept = graph(|g| {
        let row = wide(g, 1 << 16);
        let sums: Vec<String> = (0..200)
            .map(|_| g.node("Add", &[&row, &row], none()))
            .collect();
        for sum in sums {
            g.node("Neg", &[&sum], none());
        }
        beside(g)
    });
    over_budget("sums that are read at the end", &kept);
}

#[test]
fn whatever_grows_is_counted() {
    let cases: [(&str, Build); 9] = [
        ("repeated", |g| {
            let row = range(g, 1 << 16);
            let shape = g.ints(&[100, 1 << 16]);
            for _ in 0..100 {
                let rows = g.node("Expand", &[&row, &shape], none());
                g.node("Neg", &[&rows], none());
            }
            beside(g)
        }),
        ("put together", |g| {
            let mut row = range(g, 1 << 16);
            for _ in 0..40 {
                row = g.node("Concat", &[&row, &row], vec![int("axis", 0)]);
            }
            beside(g)
        }),
        ("looked up", |g| {
            let (row, column) = column(g);
            let ids = g.node("Mul", &[&column, &row], none());
            let few = g.i64s(&[], &[7]);
            let ids = g.node("Mod", &[&ids, &few], none());
            for _ in 0..100 {
                g.node("Gather", &[&row, &ids], vec![int("axis", 0)]);
            }
            beside(g)
        }),
        ("turned", |g| {
            let (row, column) = column(g);
            let (row, column) = (floats(g, &row), floats(g, &column));
            let mut table = g.node("Add", &[&column, &row], none());
            for _ in 0..40 {
                table = g.node("Transpose", &[&table], vec![ints("perm", &[1, 0])]);
            }
            beside(g)
        }),
        ("sliced", |g| {
            let row = range(g, 1 << 20);
            let (from, to) = (g.ints(&[1; 1000]), g.ints(&[i64::MAX; 1000]));
            let axes = g.ints(&[0; 1000]);
            g.node("Slice", &[&row, &from, &to, &axes], none());
            beside(g)
        }),
        ("multiplied by letters", |g| {
            let (row, column) = column(g);
            let (row, column) = (floats(g, &row), floats(g, &column));
            for _ in 0..4 {
                g.node("Mul", &[&column, &row], none());
            }
            let axis = g.ints(&[0]);
            let column = g.node("Squeeze", &[&column], none());
            g.node(
                "Einsum",
                &[&column, &row],
                vec![string("equation", "a,b->ab")],
            );
            g.node("Unsqueeze", &[&column, &axis], none());
            beside(g)
        }),
        ("added to what is computed", |g| {
            // Constants of the program, each as wide as a row may be.
            let (row, last) = (wide(g, 1 << 19), g.ints(&[2]));
            let (from, to) = (g.ints(&[0]), g.ints(&[1]));
            let first = g.node("Slice", &["x", &from, &to, &last], none());
            let mut x = first.clone();
            for _ in 0..100 {
                x = g.node("Add", &[&x, &row], none());
            }
            let end = g.ints(&[WIDTH as i64]);
            g.node("Slice", &[&x, &from, &end, &last], none())
        }),
        ("tables that a graph makes", |g| {
            let row = wide(g, 1 << 19);
            let shape = g.ints(&[-1, WIDTH as i64]);
            let mut x = "x".to_owned();
            for number in 0..40 {
                let more = g.f32(number as f32);
                let table = g.node("Add", &[&row, &more], none());
                let table = g.node("Reshape", &[&table, &shape], none());
                let looked = g.node("Gather", &[&table, "ids"], vec![int("axis", 0)]);
                x = g.node("Add", &[&x, &looked], none());
            }
            x
        }),
        ("operands of one sum", |g| {
            let (row, last) = (wide(g, 1 << 19), g.ints(&[2]));
            let (from, to) = (g.ints(&[0]), g.ints(&[1]));
            let first = g.node("Slice", &["x", &from, &to, &last], none());
            let mut operands = vec![first.as_str()];
            operands.extend(std::iter::repeat_n(row.as_str(), 1000));
            let sum = g.node("Sum", &operands, none());
            let end = g.ints(&[WIDTH as i64]);
            g.node("Slice", &[&sum, &from, &end, &last], none())
        }),
    ];
    for (name, build) in cases {
        over_budget(name, &graph(build));
    }
}

/// What is read for the last time makes room: twelve lists of 8 MiB one after another.
#[test]
fn values_go_with_their_last_reader() {
    let bundle = graph(|g| {
        let mut row = range(g, 1 << 20);
        let one = g.i64s(&[], &[1]);
        for _ in 0..12 {
            row = g.node("Add", &[&row, &one], none());
        }
        beside(g)
    });
    let (found, bytes) = peak(|| program(&bundle));
    found.unwrap();
    assert!(bytes < 32 << 20, "{bytes}");
}

/// Lists of extents double with every operator; shapes have as many axes as anybody writes down.
#[test]
fn lists_of_extents_and_axes_end_somewhere() {
    let cases: [(&str, &str, Build); 4] = [
        ("extents of extents", "a list of", |g| {
            let mut dims = g.node("Shape", &["x"], none());
            for _ in 0..64 {
                dims = g.node("Concat", &[&dims, &dims], vec![int("axis", 0)]);
            }
            beside(g)
        }),
        ("axes", "33 axes", |g| {
            let shape = g.ints(&[1; 33]);
            let one = g.f32(1.0);
            g.node("Reshape", &[&one, &shape], none());
            beside(g)
        }),
        ("letters", "letters", |g| {
            let equation = "a,".repeat(1 << 15);
            g.node("Einsum", &["x"], vec![string("equation", &equation)])
        }),
        ("an axis that a page does not have", "too many", |g| {
            let shape = g.ints(&[1 << 32, 1]);
            g.node("ConstantOfShape", &[&shape], none());
            beside(g)
        }),
    ];
    for (name, word, build) in cases {
        let (found, bytes) = peak(|| program(&graph(build)));
        let why = found.unwrap_err().to_string();
        assert!(why.contains(word), "{name}: {why}");
        assert!(bytes < MOST, "{name} took {bytes} bytes");
    }
}

/// A hundred thousand operators one after another, and as many readers of one value: no recursion that
/// follows them, no pass over all of them for each.
#[test]
fn long_and_wide_graphs_are_read_in_one_pass() {
    let deep = graph(|g| {
        let mut x = "x".to_owned();
        for _ in 0..100_000 {
            x = g.node("Relu", &[&x], none());
        }
        x
    });
    let (found, bytes) = peak(|| program(&deep));
    assert_eq!(found.unwrap().nodes.len(), 100_003);
    assert!(bytes < 4 * MOST, "{bytes}");
    let wide = graph(|g| {
        let all: Vec<String> = (0..20_000)
            .map(|_| g.node("Tanh", &["x"], none()))
            .collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        g.node("Sum", &all, none())
    });
    assert!(program(&wide).unwrap().nodes.len() > 20_000);
    assert_eq!(run(&wide).unwrap().len(), WIDTH);
}

/// Cancels when it is given its first turn, and counts them.
struct CancelAt(Cancel, usize);

impl Pause for CancelAt {
    fn pause(&mut self) -> BoxFuture<'_, ()> {
        self.1 += 1;
        self.0.cancel();
        Box::pin(std::future::ready(()))
    }
}

#[test]
fn who_gives_up_ends_it_at_the_next_operator() {
    let bundle = graph(|g| {
        let mut x = "x".to_owned();
        for _ in 0..10_000 {
            x = g.node("Relu", &[&x], none());
        }
        // Which is reached by nobody who looks at the token.
        g.node("NoSuchOperator", &[&x], none())
    });
    let cancel = Cancel::new();
    let mut turns = CancelAt(cancel.clone(), 0);
    let found = pollster::block_on(Program::read(&bundle, &cancel, &mut turns));
    assert!(matches!(
        found,
        Err(CompileError::Engine(EngineError::Cancelled))
    ));
    assert_eq!(turns.1, 1, "turns after it was cancelled");
    // Before the first operator, which is none.
    let bundle = graph(|g| g.node("NoSuchOperator", &["x"], none()));
    let found = pollster::block_on(Program::read(&bundle, &cancel, &mut turns));
    assert!(matches!(
        found,
        Err(CompileError::Engine(EngineError::Cancelled))
    ));
}

/// Shapes of nothing may be of any size beside that.
#[test]
fn tensors_without_elements_have_any_extents() {
    let bundle = graph(|g| {
        let empty = tensor(g, DataType::Float, &[0, 1 << 40, 1 << 40], Vec::new());
        g.node("Neg", &[&empty], none());
        beside(g)
    });
    let why = program(&bundle).unwrap_err().to_string();
    assert!(why.contains("too many"), "{why}");
    let bundle = graph(|g| {
        let empty = tensor(g, DataType::Float, &[0, 1 << 20, 1 << 20], Vec::new());
        let turned = g.node("Transpose", &[&empty], none());
        g.node("Concat", &[&turned, &turned], vec![int("axis", 1)]);
        beside(g)
    });
    assert_eq!(run(&bundle).unwrap().len(), WIDTH);
}
