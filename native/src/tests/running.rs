//! Results of runs, and refusals of inputs that do not fit.

use std::thread;

use isovec_engine::cancel::Cancel;
use isovec_engine::description::Dim;
use isovec_engine::engine::{Batch, Engine};
use isovec_engine::error::EngineError;
use isovec_engine::onnx::proto::DataType;
use isovec_engine::tensor::{DType, Tensor};
use isovec_model::onnx::builder::int;

use super::models::*;
use super::{available, load};

fn y(engine: &dyn Engine, batch: Batch) -> Result<Vec<f32>, EngineError> {
    let mut output = engine.run_blocking(batch, &Cancel::new())?;
    Ok(output
        .take("y")
        .unwrap()
        .as_slice::<f32>()
        .unwrap()
        .to_vec())
}

#[test]
fn a_model_gives_the_right_answer_both_ways_and_the_inputs_back() {
    if !available() {
        return;
    }
    let engine = load(&affine_model()).unwrap();
    assert_eq!(
        (
            engine.provider().engine.as_str(),
            engine.provider().provider.as_str()
        ),
        ("onnxruntime", "CPU")
    );
    assert!(engine.capabilities().cancels_running);
    for rows in [1, 3, 40] {
        let x = affine_input(rows, rows);
        assert_eq!(y(&*engine, affine_batch(&x)).unwrap(), affine_output(&x));
        let cancel = Cancel::new();
        let mut output = pollster::block_on(engine.run(affine_batch(&x), &cancel)).unwrap();
        assert_eq!(
            output.take("y").unwrap().as_slice::<f32>().unwrap(),
            affine_output(&x)
        );
        assert_eq!(&*output.inputs[0].name, "x");
        assert_eq!(output.inputs[0].tensor.as_slice::<f32>().unwrap(), x);
    }
}

#[test]
fn a_batch_without_rows_gives_an_output_without_rows() {
    if !available() {
        return;
    }
    let engine = load(&affine_model()).unwrap();
    let mut output = engine
        .run_blocking(affine_batch(&[]), &Cancel::new())
        .unwrap();
    assert_eq!(output.take("y").unwrap().shape(), [0, OUT]);
}

#[test]
fn every_type_of_the_contract_goes_in_and_comes_out() {
    if !available() {
        return;
    }
    let types = [
        DType::F32,
        DType::F16,
        DType::I64,
        DType::I32,
        DType::U8,
        DType::I8,
    ];
    let bundle = bundle(no_weights(), |graph| {
        for dtype in types {
            let (input, output) = (format!("in_{dtype}"), format!("out_{dtype}"));
            graph.input(&input, dtype, &[rows()]);
            graph.named_node("Identity", &[&input], &output, vec![]);
            graph.output(&output, dtype, &[rows()]);
        }
    });
    let engine = load(&bundle).unwrap();
    let tensor = |dtype: DType| {
        let bytes: Vec<u8> = (0..3 * dtype.size()).map(|i| i as u8 + 1).collect();
        Tensor::from_bytes(dtype, &[3], &bytes).unwrap()
    };
    let names: Vec<String> = types.iter().map(|dtype| format!("in_{dtype}")).collect();
    let inputs = names
        .iter()
        .zip(types)
        .map(|(name, dtype)| (name.as_str(), tensor(dtype)));
    let mut output = engine
        .run_blocking(batch(inputs.collect()), &Cancel::new())
        .unwrap();
    for dtype in types {
        let out = output.take(&format!("out_{dtype}")).unwrap();
        assert_eq!((out.dtype(), out.bytes()), (dtype, tensor(dtype).bytes()));
    }
}

#[test]
fn an_output_of_a_type_that_is_not_carried_is_named() {
    if !available() {
        return;
    }
    let bundle = bundle(no_weights(), |graph| {
        graph.input("x", DType::F32, &[rows()]);
        graph.named_node(
            "Cast",
            &["x"],
            "y",
            vec![int("to", DataType::Double as i64)],
        );
        graph.output("y", DType::F32, &[rows()]);
        let graph = graph.graph();
        if let Some(isovec_engine::onnx::proto::TypeValue::Tensor(tensor)) = graph.output[0]
            .r#type
            .as_mut()
            .and_then(|t| t.value.as_mut())
        {
            tensor.elem_type = DataType::Double as i32;
        }
    });
    let engine = load(&bundle).unwrap();
    let x = Tensor::from_slice(&[2], &[1.0f32, 2.0]).unwrap();
    let error = engine
        .run_blocking(batch(vec![("x", x)]), &Cancel::new())
        .unwrap_err();
    assert!(
        matches!(&error, EngineError::Runtime { detail, .. } if detail.contains('y')),
        "{error}"
    );
}

#[test]
fn inputs_that_do_not_fit_are_named() {
    if !available() {
        return;
    }
    let engine = load(&affine_model()).unwrap();
    let cases = [
        (batch(vec![]), "missing"),
        (
            batch(vec![("z", Tensor::zeros(DType::F32, &[1, IN]).unwrap())]),
            "missing",
        ),
        (
            batch(vec![(
                "x",
                Tensor::zeros(DType::F32, &[1, IN + 1]).unwrap(),
            )]),
            "shape",
        ),
        (
            batch(vec![("x", Tensor::zeros(DType::F32, &[IN]).unwrap())]),
            "shape",
        ),
        (
            batch(vec![("x", Tensor::zeros(DType::I64, &[1, IN]).unwrap())]),
            "i64",
        ),
    ];
    for (batch, word) in cases {
        let cancel = Cancel::new();
        let again = Batch {
            inputs: batch.inputs.clone(),
            row_lengths: Vec::new(),
            ..Batch::default()
        };
        for error in [
            engine.run_blocking(batch, &cancel).unwrap_err(),
            pollster::block_on(engine.run(again, &cancel)).unwrap_err(),
        ] {
            assert!(
                matches!(&error, EngineError::InvalidInput { name, detail } if name == "x" && detail.contains(word)),
                "{error}"
            );
        }
    }
}

#[test]
fn a_run_that_fails_inside_the_library_is_an_error_and_the_engine_goes_on() {
    if !available() {
        return;
    }
    let bundle = bundle(no_weights(), |graph| {
        graph.input("index", DType::I64, &[rows()]);
        let table = graph.f32s(&[2], &[10.0, 20.0]);
        graph.named_node("Gather", &[&table, "index"], "y", vec![]);
        graph.output("y", DType::F32, &[rows()]);
    });
    let engine = load(&bundle).unwrap();
    let index = |value: i64| batch(vec![("index", Tensor::from_slice(&[1], &[value]).unwrap())]);
    let error = y(&*engine, index(5)).unwrap_err();
    assert!(
        matches!(&error, EngineError::Runtime { engine: "onnxruntime", detail, .. } if detail.contains("out of data bounds")),
        "{error}"
    );
    assert_eq!(y(&*engine, index(1)).unwrap(), [20.0]);
}

#[test]
fn callers_at_the_same_time_each_get_their_own_answer() {
    if !available() {
        return;
    }
    let engine = load(&affine_model()).unwrap();
    thread::scope(|scope| {
        for caller in 0..8 {
            let engine = &engine;
            scope.spawn(move || {
                for round in 0..50 {
                    let x = affine_input(1 + (caller + round) % 5, caller * 1000 + round);
                    let batch = affine_batch(&x);
                    let got = if caller % 2 == 0 {
                        y(&**engine, batch).unwrap()
                    } else {
                        let cancel = Cancel::new();
                        let mut output = pollster::block_on(engine.run(batch, &cancel)).unwrap();
                        output
                            .take("y")
                            .unwrap()
                            .as_slice::<f32>()
                            .unwrap()
                            .to_vec()
                    };
                    assert_eq!(got, affine_output(&x), "caller {caller}, round {round}");
                }
            });
        }
    });
}

#[test]
fn runs_do_not_depend_on_the_order_of_the_batch_and_extra_tensors_are_ignored() {
    if !available() {
        return;
    }
    let bundle = bundle(no_weights(), |graph| {
        graph.input("a", DType::F32, &[rows(), Dim::Fixed(2)]);
        graph.input("b", DType::F32, &[rows(), Dim::Fixed(2)]);
        graph.named_node("Sub", &["a", "b"], "y", vec![]);
        graph.output("y", DType::F32, &[rows(), Dim::Fixed(2)]);
    });
    let engine = load(&bundle).unwrap();
    let tensor = |value: f32| Tensor::from_slice(&[1, 2], &[value, value]).unwrap();
    let inputs = vec![
        ("b", tensor(1.0)),
        ("other", tensor(7.0)),
        ("a", tensor(5.0)),
    ];
    assert_eq!(y(&*engine, batch(inputs)).unwrap(), [4.0, 4.0]);
}
