//! rten behind plain exports: `benches/wasm/page/rten.mjs` writes a model and token ids into the
//! module's memory and reads vectors from it. One thread, one model.

use std::cell::RefCell;

use rten::{Model, ModelOptions, NodeId, Value};
use rten_tensor::Tensor;
use rten_tensor::prelude::*;

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

#[derive(Default)]
struct State {
    /// Where the page writes the model's bytes, then token ids (i32, the attention mask after them).
    model_bytes: Vec<u8>,
    input: Vec<i32>,
    model: Option<Model>,
    output: Vec<f32>,
    failure: String,
}

/// Makes room for the bytes of an ONNX model.
#[unsafe(no_mangle)]
pub extern "C" fn model_room(bytes: usize) -> *mut u8 {
    STATE.with_borrow_mut(|state| {
        state.model_bytes = vec![0; bytes];
        state.model_bytes.as_mut_ptr()
    })
}

/// Loads the model whose bytes stand there; whether that went well.
#[unsafe(no_mangle)]
pub extern "C" fn load() -> bool {
    STATE.with_borrow_mut(|state| {
        let bytes = std::mem::take(&mut state.model_bytes);
        match ModelOptions::with_all_ops()
            .prepack_weights(true)
            .load(bytes)
        {
            Ok(model) => state.model = Some(model),
            Err(error) => state.failure = error.to_string(),
        }
        state.model.is_some()
    })
}

/// Makes room for the ids of `count` tokens and for as many marks of attention after them.
#[unsafe(no_mangle)]
pub extern "C" fn input_room(count: usize) -> *mut i32 {
    STATE.with_borrow_mut(|state| {
        state.input = vec![0; 2 * count];
        state.input.as_mut_ptr()
    })
}

/// Embeds `rows` texts of `columns` tokens each; gives the number of components in all, 0 where it
/// failed.
#[unsafe(no_mangle)]
pub extern "C" fn embed(rows: usize, columns: usize) -> usize {
    STATE.with_borrow_mut(|state| {
        state.output = vectors(state, rows, columns).unwrap_or_else(|failure| {
            state.failure = failure;
            Vec::new()
        });
        state.output.len()
    })
}

/// Where the vectors stand, row after row.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const f32 {
    STATE.with_borrow(|state| state.output.as_ptr())
}

/// What failed last, as UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn failure() -> *const u8 {
    STATE.with_borrow(|state| state.failure.as_ptr())
}

/// Its length in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn failure_len() -> usize {
    STATE.with_borrow(|state| state.failure.len())
}

fn vectors(state: &State, rows: usize, columns: usize) -> Result<Vec<f32>, String> {
    let model = state.model.as_ref().ok_or("no model is loaded")?;
    if state.input.len() != 2 * rows * columns {
        return Err(format!("the input is not {rows} rows of {columns} tokens"));
    }
    let (ids, mask) = state.input.split_at(rows * columns);
    let node = |name| model.node_id(name).map_err(|error| error.to_string());
    let tensor = |data: &[i32]| Tensor::from_data(&[rows, columns], data.to_vec());
    let inputs: Vec<(NodeId, _)> = vec![
        (node("input_ids")?, tensor(ids).into()),
        (node("attention_mask")?, tensor(mask).into()),
        (
            node("token_type_ids")?,
            tensor(&vec![0; rows * columns]).into(),
        ),
    ];
    let [vectors] = model
        .run_n(inputs, [node("sentence_embedding")?], None)
        .map_err(|error| error.to_string())?;
    let vectors: Tensor<f32> = Value::try_into(vectors).map_err(|_| "the vectors are not f32")?;
    Ok(vectors.to_vec())
}
