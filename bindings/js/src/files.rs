//! A model's files, which stay where JavaScript has them.

use std::io;

use isovec::Dtype;
use isovec::source::{ByteSource, Content};
use isovec_js_error::with_kind;
use js_sys::{Array, Map, Uint8Array};
use wasm_bindgen::prelude::{JsCast, JsValue};

/// An array in JavaScript's memory. A copy of it in the module's memory would enlarge that for good.
#[derive(Debug)]
struct InPage(Uint8Array);

impl ByteSource for InPage {
    fn size(&self) -> usize {
        self.0.length() as usize
    }

    fn read(&self, from: usize, into: &mut [u8]) -> io::Result<()> {
        // An array whose buffer was transferred to somebody else has no bytes any more.
        let there = self.0.length() as usize;
        let Some(to) = from.checked_add(into.len()).filter(|&to| to <= there) else {
            return Err(io::Error::other(format!(
                "its array has {there} bytes now; do not transfer it before the model is loaded"
            )));
        };
        self.0.subarray(from as u32, to as u32).copy_to(into);
        Ok(())
    }
}

/// Takes the files out of a `Map` from path to `Uint8Array`.
pub(crate) fn take(files: &Map) -> Result<Vec<(String, Content)>, JsValue> {
    let mut taken = Vec::new();
    for key in Array::from(&files.keys()) {
        let (Some(name), Ok(content)) = (key.as_string(), files.get(&key).dyn_into::<Uint8Array>())
        else {
            return Err(with_kind(
                "Config",
                "the model's files have to be a map of strings to Uint8Array",
            ));
        };
        taken.push((name, Content::elsewhere(InPage(content))));
    }
    files.clear();
    Ok(taken)
}

/// Grows the module's memory in one step to about what the model takes. Step by step it takes some
/// 10 ms each, and the page's garbage collector runs every time.
///
/// # Errors
/// `InputTooLarge` where there is no memory for as much as the weights alone take.
pub(crate) fn grow_once(files: &[(String, Content)], dtype: Option<Dtype>) -> Result<(), JsValue> {
    /// What else loading takes, and the first run: the tokenizer, the largest matrix as it is
    /// stored and as it is packed, a run's own tensors.
    const BESIDE: usize = 12 << 20;
    let bytes = files.iter().map(|(_, content)| match dtype {
        Some(Dtype::F16) => content.len() / 4 * 3,
        Some(Dtype::Int8 | Dtype::Int8Fast) => content.len() / 2,
        _ => content.len(),
    });
    let weights = bytes.fold(0, usize::saturating_add);
    let fits = |bytes: usize| {
        let mut room = Vec::<u8>::new();
        let reserved = room.try_reserve_exact(bytes);
        std::hint::black_box(&room);
        reserved.is_ok()
    };
    if fits(weights.saturating_add(BESIDE)) || fits(weights) {
        return Ok(());
    }
    Err(with_kind(
        "InputTooLarge",
        &format!(
            "the model takes {} MB of memory, which the browser does not give; take a smaller model, or a smaller form of it (model.dtype: \"int8\")",
            weights >> 20
        ),
    ))
}
