//! The same for `benches/wasm`, in node or in a page: plain exports, no bindings.

mod measure;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;

use bytes::Bytes;
use isovec_kernels::Arithmetic;
use isovec_model::bundle::{self, BundleOptions};
use measure::{Model, Result};

#[link(wasm_import_module = "clock")]
unsafe extern "C" {
    /// Milliseconds.
    safe fn now() -> f64;
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

#[derive(Default)]
struct State {
    /// Where the caller writes the next file.
    room: Vec<u8>,
    files: BTreeMap<String, Bytes>,
    model: Option<Model>,
    /// What was asked for, or what went wrong.
    text: String,
}

/// Makes room for a file of so many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    STATE.with_borrow_mut(|state| {
        state.room = vec![0; bytes];
        state.room.as_mut_ptr()
    })
}

/// Takes what was written as the model's `config.json` or its weights.
#[unsafe(no_mangle)]
pub extern "C" fn take(weights: bool) {
    let name = match weights {
        true => "model.safetensors",
        false => "config.json",
    };
    STATE.with_borrow_mut(|state| {
        let file = std::mem::take(&mut state.room).into();
        state.files.insert(name.into(), file);
    });
}

/// Compiles the model of those files; whether that went well.
#[unsafe(no_mangle)]
pub extern "C" fn compile(deterministic: bool) -> bool {
    STATE.with_borrow_mut(|state| {
        let files = std::mem::take(&mut state.files);
        let arithmetic = match deterministic {
            true => Arithmetic::Deterministic,
            false => Arithmetic::Fast,
        };
        let model = bundle::from_bytes("profile", files, &BundleOptions::default())
            .map_err(Into::into)
            .and_then(|bundle| Model::compile(bundle, arithmetic));
        state.model = said(model, &mut state.text);
        state.model.is_some()
    })
}

/// The steps of the fastest of so many runs, as lines of operator, columns of its input, columns
/// of its result, count, multiply-adds, bytes, milliseconds; the first line is the whole run's
/// milliseconds. Whether that went well.
#[unsafe(no_mangle)]
pub extern "C" fn profile(texts: usize, tokens: usize, rounds: usize) -> bool {
    STATE.with_borrow_mut(|state| {
        let lines = lines(state.model.as_ref(), texts, tokens, rounds);
        said(lines, &mut state.text)
            .map(|lines| state.text = lines)
            .is_some()
    })
}

fn lines(model: Option<&Model>, texts: usize, tokens: usize, rounds: usize) -> Result<String> {
    let model = model.ok_or("no model is compiled")?;
    let batch = model.batch(texts, tokens)?;
    let (took, totals) = model.fastest(&batch, rounds, || now())?;
    let mut lines = took.to_string();
    for ((operator, inner, width), total) in totals {
        write!(
            lines,
            "\n{operator} {inner} {width} {} {} {} {}",
            total.count, total.multiply_adds, total.bytes, total.milliseconds
        )?;
    }
    Ok(lines)
}

/// Where the text is that the last call left.
#[unsafe(no_mangle)]
pub extern "C" fn text() -> *const u8 {
    STATE.with_borrow(|state| state.text.as_ptr())
}

/// Its bytes.
#[unsafe(no_mangle)]
pub extern "C" fn text_length() -> usize {
    STATE.with_borrow(|state| state.text.len())
}

fn said<T>(result: Result<T>, text: &mut String) -> Option<T> {
    result.map_err(|error| *text = error.to_string()).ok()
}
