//! Reading PyTorch's state dicts of float tensors: what `torch.save(layer.state_dict(), path)` writes of a small layer.
//!
//! Format (<https://github.com/pytorch/pytorch>, `torch/serialization.py` and `caffe2/serialize/inline_container.cc`): a zip archive
//! whose entries are stored as they are, all in one folder: `data.pkl`, a pickle of protocol 2 that describes the tensors, and
//! `data/KEY`, the elements of a storage. `byteorder`, where it is there, says `little`.
//!
//! A pickle is a program. This reader is no interpreter of it: it knows the few operations that such a file has, calls nothing, and
//! refuses every other by its name. It is for files of a few megabytes that have to be read because nothing else is published.

mod pickle;
mod zip;

use std::collections::HashMap;

use half::{bf16, f16};
use isovec_engine::error::{EngineError, Result};

use self::pickle::{Element, Stored};

/// The longest pickle: a layer's is shorter than a kilobyte.
const MAX_PICKLE: usize = 1 << 20;

/// What is wrong with a file.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// It does not follow the format.
    Damaged(String),
    /// It follows the format, and has something that is not read here.
    Unsupported(String),
}

fn damaged<T>(detail: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Damaged(detail.into()))
}

fn unsupported<T>(reason: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Unsupported(reason.into()))
}

/// A tensor of floats.
#[derive(Debug, Clone, PartialEq)]
pub struct FloatTensor {
    /// The extents, outermost first.
    pub shape: Vec<usize>,
    /// The elements, row-major, widened to f32.
    pub values: Vec<f32>,
}

/// Reads a file's tensors by their names. `origin` names the file in messages. All tensors together are not larger than the file.
///
/// # Errors
/// [`EngineError::InvalidModel`] for a file that is cut short or damaged; [`EngineError::UnsupportedModel`], naming what it holds,
/// for a file with anything else than contiguous tensors of `FloatStorage`, `HalfStorage` and `BFloat16Storage`.
pub fn read_state_dict(origin: &str, file: &[u8]) -> Result<HashMap<String, FloatTensor>> {
    read(file).map_err(|fault| match fault {
        Fault::Damaged(detail) => EngineError::invalid_model(origin, detail),
        Fault::Unsupported(reason) => EngineError::UnsupportedModel {
            origin: origin.to_owned(),
            reason,
            hint: "isovec reads what torch.save writes of a layer's state_dict() since PyTorch 1.6, with tensors of f32, f16 or bf16"
                .into(),
        },
    })
}

fn read(file: &[u8]) -> Result<HashMap<String, FloatTensor>, Fault> {
    let entries = zip::entries(file)?;
    let mut pickles = entries
        .iter()
        .filter_map(|(name, content)| Some((name.strip_suffix("data.pkl")?, *content)))
        .filter(|(folder, _)| folder.ends_with('/'));
    let (Some((folder, pickle)), None) = (pickles.next(), pickles.next()) else {
        return damaged("the archive does not have exactly one data.pkl in a folder");
    };
    if pickle.len() > MAX_PICKLE {
        return unsupported(format!(
            "its data.pkl has {} bytes, past the limit of {MAX_PICKLE}",
            pickle.len()
        ));
    }
    let order = entries.get(format!("{folder}byteorder").as_str());
    if let Some(other) = order.filter(|order| **order != b"little") {
        let other = String::from_utf8_lossy(other);
        return unsupported(format!("its byteorder is {other:?}"));
    }
    let mut total = 0usize;
    let mut tensors = HashMap::new();
    for (name, stored) in pickle::tensors(pickle)? {
        let key = format!("{folder}data/{}", stored.key);
        let Some(content) = entries.get(key.as_str()) else {
            return damaged(format!("the archive has no {key}, which {name} is in"));
        };
        let (tensor, bytes) = tensor(&name, &stored, content)?;
        total = total.saturating_add(bytes);
        if total > file.len() {
            return damaged("its tensors share elements, and are larger than the file together");
        }
        if tensors.insert(name.to_string(), tensor).is_some() {
            return damaged(format!("the tensor {name} occurs twice"));
        }
    }
    Ok(tensors)
}

/// A tensor's elements, and how many bytes of the file they are.
fn tensor(name: &str, stored: &Stored, content: &[u8]) -> Result<(FloatTensor, usize), Fault> {
    let size = stored.element.size();
    if stored.len.checked_mul(size) != Some(content.len()) {
        return damaged(format!(
            "the storage of {name} has {} bytes, and {} elements of {size}",
            content.len(),
            stored.len
        ));
    }
    let mut step = 1usize;
    for (&extent, &stride) in stored.shape.iter().zip(&stored.strides).rev() {
        // The stride of a single row or column says nothing.
        if stride != step && extent > 1 {
            return unsupported(format!(
                "the tensor {name} is not contiguous: shape {:?}, strides {:?}",
                stored.shape, stored.strides
            ));
        }
        match step.checked_mul(extent) {
            Some(next) => step = next,
            None => {
                return damaged(format!(
                    "the tensor {name} has the shape {:?}",
                    stored.shape
                ));
            }
        }
    }
    let end = stored.offset.checked_add(step);
    let Some(end) = end.filter(|&end| end <= stored.len) else {
        return damaged(format!(
            "the tensor {name} of shape {:?} at {} does not fit into its storage of {}",
            stored.shape, stored.offset, stored.len
        ));
    };
    // No product is past the storage's, which is the content's length.
    let own = &content[stored.offset * size..end * size];
    let values = match stored.element {
        Element::F32 => own
            .as_chunks()
            .0
            .iter()
            .copied()
            .map(f32::from_le_bytes)
            .collect(),
        Element::F16 => {
            let pairs = own.as_chunks().0.iter().copied();
            pairs
                .map(|pair| f16::from_le_bytes(pair).to_f32())
                .collect()
        }
        Element::BF16 => {
            let pairs = own.as_chunks().0.iter().copied();
            pairs
                .map(|pair| bf16::from_le_bytes(pair).to_f32())
                .collect()
        }
    };
    let shape = stored.shape.clone();
    Ok((FloatTensor { shape, values }, own.len()))
}
