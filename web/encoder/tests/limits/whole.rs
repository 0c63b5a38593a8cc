//! Whole numbers are what their type holds, or there is no program.

use isovec_encoder::CompileError;
use isovec_engine::onnx::proto::DataType;
use isovec_model::onnx::GraphBuilder;
use isovec_model::onnx::builder::int;

use crate::sketch::{WIDTH, graph, none, run, tensor};

const WHOLE: [(DataType, i128, i128); 8] = [
    (DataType::Int8, i8::MIN as i128, i8::MAX as i128),
    (DataType::Uint8, 0, u8::MAX as i128),
    (DataType::Int16, i16::MIN as i128, i16::MAX as i128),
    (DataType::Uint16, 0, u16::MAX as i128),
    (DataType::Int32, i32::MIN as i128, i32::MAX as i128),
    (DataType::Uint32, 0, u32::MAX as i128),
    (DataType::Int64, i64::MIN as i128, i64::MAX as i128),
    (DataType::Uint64, 0, u64::MAX as i128),
];

fn cast(g: &mut GraphBuilder<'_>, of: &str, to: DataType) -> String {
    g.node("Cast", &[of], vec![int("to", to as i64)])
}

/// `0 · x + y`, for numbers that f32 holds.
fn shown(g: &mut GraphBuilder<'_>, y: &str) -> String {
    let zero = g.f32(0.0);
    let zeros = g.node("Mul", &["x", &zero], none());
    let y = cast(g, y, DataType::Float);
    g.node("Add", &[&zeros, &y], none())
}

/// What a graph says of a number: the number, or why there is none.
fn value(build: impl FnOnce(&mut GraphBuilder<'_>) -> String) -> Result<f32, String> {
    let bundle = graph(|g| {
        let y = build(g);
        shown(g, &y)
    });
    match run(&bundle) {
        Ok(row) => {
            assert_eq!(row, vec![row[0]; WIDTH]);
            Ok(row[0])
        }
        Err(CompileError::Unlowered(why)) => Err(why.to_string()),
        Err(other) => panic!("{other}"),
    }
}

/// Row 13.
#[test]
fn casts_keep_what_fits_and_refuse_the_rest() {
    for (to, least, most) in WHOLE {
        for number in [
            -129_i64,
            -1,
            0,
            44,
            127,
            128,
            255,
            256,
            300,
            65_536,
            1 << 31,
            1 << 33,
        ] {
            let found = value(|g| {
                let number = g.i64s(&[1], &[number]);
                cast(g, &number, to)
            });
            let fits = (least..=most).contains(&i128::from(number));
            match found {
                Ok(found) => assert!(
                    fits && found == number as f32,
                    "{number} to {to:?}: {found}"
                ),
                Err(why) => assert!(!fits && why.contains("Cast"), "{number} to {to:?}: {why}"),
            }
        }
    }
}

#[test]
fn floats_that_are_no_whole_number_of_the_type_are_refused() {
    let infinite = f32::INFINITY;
    for number in [
        f32::NAN,
        infinite,
        -infinite,
        -1.0,
        -0.5,
        3.9,
        300.5,
        3e9,
        1e19,
        9.3e18,
    ] {
        for (to, least, most) in WHOLE {
            let found = value(|g| {
                let number = g.f32s(&[1], &[number]);
                cast(g, &number, to)
            });
            let (cut, most) = (f64::from(number).trunc(), most as f64);
            let fits = cut >= least as f64 && (cut < most || cut == most && most < 1e15);
            match found {
                Ok(found) => assert!(fits && found == cut as f32, "{number} to {to:?}: {found}"),
                Err(why) => assert!(!fits && why.contains("Cast"), "{number} to {to:?}: {why}"),
            }
        }
        let flag = value(|g| {
            let number = g.f32s(&[1], &[number]);
            cast(g, &number, DataType::Bool)
        });
        assert_eq!(flag, Ok(1.0), "{number} as a flag");
    }
}

/// What is computed, masks and extents.
#[test]
fn what_is_not_known_fits_by_its_bounds() {
    let ids = |to: DataType| {
        move |g: &mut GraphBuilder<'_>| {
            let axis = g.ints(&[2]);
            let ids = g.node("Unsqueeze", &["ids", &axis], none());
            cast(g, &ids, to)
        }
    };
    for to in [DataType::Int32, DataType::Int64] {
        assert_eq!(value(ids(to)), Ok(5.0), "{to:?}");
    }
    for (to, ..) in WHOLE
        .into_iter()
        .filter(|(to, ..)| !matches!(to, DataType::Int32 | DataType::Int64))
    {
        value(ids(to)).expect_err("any id may come");
    }
    for (to, ..) in WHOLE {
        let found = value(|g| {
            let (axis, four) = (g.ints(&[2]), g.i64s(&[], &[4]));
            let ids = g.node("Unsqueeze", &["ids", &axis], none());
            let large = g.node("Greater", &[&ids, &four], none());
            cast(g, &large, to)
        });
        assert_eq!(found, Ok(1.0), "a flag as {to:?}");
    }
    let length = |to: DataType| {
        move |g: &mut GraphBuilder<'_>| {
            let (shape, one) = (g.node("Shape", &["ids"], none()), g.ints(&[1]));
            let length = g.node("Gather", &[&shape, &one], none());
            cast(g, &length, to)
        }
    };
    assert_eq!(value(length(DataType::Int32)), Ok(2.0));
    value(length(DataType::Uint8)).expect_err("texts have more tokens than 255");
}

/// Sums, products and quotients of constants as their type has them, or not at all.
#[test]
fn arithmetic_stays_within_the_type() {
    let numbers = |g: &mut GraphBuilder<'_>, of: DataType, values: [i64; 2]| {
        values.map(|value| {
            let bytes = match of {
                DataType::Uint8 => vec![value as u8],
                DataType::Int32 => (value as i32).to_le_bytes().to_vec(),
                _ => value.to_le_bytes().to_vec(),
            };
            tensor(g, of, &[1], bytes)
        })
    };
    let (int32, int64) = (DataType::Int32, DataType::Int64);
    let cases = [
        ("Add", int32, [i64::from(i32::MAX), 1], None),
        (
            "Add",
            int64,
            [i64::from(i32::MAX), 1],
            Some(2_147_483_648.0),
        ),
        ("Sub", int32, [i64::from(i32::MIN), 1], None),
        ("Mul", int32, [65_536, 65_536], None),
        ("Mul", int64, [65_536, 65_536], Some(4_294_967_296.0)),
        ("Add", int64, [i64::MAX, 1], None),
        ("Sub", int64, [i64::MIN, 1], None),
        ("Mul", int64, [1 << 40, 1 << 40], None),
        ("Add", DataType::Uint8, [255, 1], None),
        ("Sub", DataType::Uint8, [0, 1], None),
        ("Div", int64, [7, -2], Some(-3.0)),
        ("Div", int64, [-7, 2], Some(-3.0)),
        ("Div", int64, [7, 0], None),
        ("Div", int32, [i64::from(i32::MIN), -1], None),
        ("Mod", int64, [7, 0], None),
        ("Mod", int64, [-7, 3], Some(2.0)),
        ("Max", int64, [i64::MIN, 4], None),
        ("Add", int64, [1 << 53, 1], None),
    ];
    for (operator, of, values, wanted) in cases {
        let found = value(|g| {
            let [a, b] = numbers(g, of, values);
            g.node(operator, &[&a, &b], none())
        });
        assert_eq!(
            found.clone().ok(),
            wanted,
            "{operator} of {values:?}: {found:?}"
        );
    }
    // Extents are whole numbers as well.
    for (operator, number, wanted) in [("Mod", 0, None), ("Div", 0, None), ("Mod", 3, Some(1.0))] {
        let found = value(|g| {
            let (shape, two) = (g.node("Shape", &["x"], none()), g.ints(&[2]));
            let width = g.node("Gather", &[&shape, &two], none());
            let number = g.ints(&[number]);
            g.node(operator, &[&width, &number], none())
        });
        assert_eq!(
            found.clone().ok(),
            wanted,
            "{operator} by {number}: {found:?}"
        );
    }
}

#[test]
fn ranges_at_the_ends_of_everything() {
    for bounds in [
        [i64::MAX - 3, i64::MAX, 1],
        [i64::MIN, i64::MIN + 3, 1],
        [i64::MAX, i64::MIN, 1],
        [0, 3, i64::MIN],
    ] {
        value(|g| {
            let [from, to, step] = bounds.map(|bound| g.i64s(&[], &[bound]));
            let range = g.node("Range", &[&from, &to, &step], none());
            let first = g.i64s(&[], &[0]);
            g.node("Gather", &[&range, &first], none())
        })
        .expect_err("it is not exact, or runs backwards");
    }
    // As exporters write the end of everything.
    for [from, to] in [[1, i64::MAX], [i64::MIN, 2], [-2, i64::from(i32::MAX)]] {
        let found = value(|g| {
            let list = g.i64s(&[3], &[4, 4, 4]);
            let bounds = [from, to].map(|bound| g.ints(&[bound]));
            let part = g.node("Slice", &[&list, &bounds[0], &bounds[1]], none());
            let first = g.i64s(&[], &[0]);
            g.node("Gather", &[&part, &first], none())
        });
        assert_eq!(found, Ok(4.0), "from {from} to {to}");
    }
}
