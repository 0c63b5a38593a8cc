//! A config and its tensors in memory, and how they become safetensors files.

use std::collections::BTreeMap;
use std::sync::Arc;

use half::{bf16, f16};
use isovec_engine::content::Content;
use isovec_model::safetensors::TensorSet;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::Value;

/// A tensor.
#[derive(Clone, Debug)]
pub struct Array {
    /// Its extents.
    pub shape: Vec<usize>,
    /// Its elements in row-major order.
    pub values: Vec<f32>,
}

/// A model as its publisher has it.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// What is in `config.json`.
    pub config: Value,
    /// The tensors by name.
    pub tensors: BTreeMap<String, Array>,
}

/// How elements are stored.
#[derive(Clone, Copy, Debug)]
pub enum Stored {
    /// 64-bit floats.
    F64,
    /// 32-bit floats.
    F32,
    /// 16-bit floats of IEEE 754.
    F16,
    /// The upper halves of 32-bit floats.
    BF16,
}

impl Checkpoint {
    /// The contents of `config.json`.
    pub fn config_json(&self) -> Vec<u8> {
        serde_json::to_vec(&self.config).expect("a config is JSON")
    }

    /// Sets a value of the config.
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.config[key] = value.into();
        self
    }

    /// Puts `prefix` before every tensor's name.
    pub fn prefixed(mut self, prefix: &str) -> Self {
        self.tensors = std::mem::take(&mut self.tensors)
            .into_iter()
            .map(|(name, array)| (format!("{prefix}{name}"), array))
            .collect();
        self
    }

    /// What storing leaves of the values.
    pub fn rounded(mut self, stored: Stored) -> Self {
        for array in self.tensors.values_mut() {
            for value in &mut array.values {
                *value = match stored {
                    Stored::F64 | Stored::F32 => *value,
                    Stored::F16 => f16::from_f32(*value).to_f32(),
                    Stored::BF16 => bf16::from_f32(*value).to_f32(),
                };
            }
        }
        self
    }

    /// One safetensors file.
    pub fn file(&self, stored: Stored) -> Vec<u8> {
        serialise(self.tensors.iter(), stored)
    }

    /// Two files with every other tensor.
    pub fn shards(&self, stored: Stored) -> Vec<(String, Content)> {
        (0..2)
            .map(|shard| {
                let part = self
                    .tensors
                    .iter()
                    .enumerate()
                    .filter(|(index, _)| index % 2 == shard)
                    .map(|(_, entry)| entry);
                (
                    format!("model-{:05}-of-00002.safetensors", shard + 1),
                    serialise(part, stored).into(),
                )
            })
            .collect()
    }

    /// One safetensors file, read back as the conversion takes it.
    pub fn tensor_set(&self, stored: Stored) -> Arc<TensorSet> {
        let file = self.file(stored).into();
        Arc::new(
            TensorSet::from_files("tiny", vec![("model.safetensors".into(), file)])
                .expect("a valid file"),
        )
    }
}

fn serialise<'a>(
    tensors: impl Iterator<Item = (&'a String, &'a Array)>,
    stored: Stored,
) -> Vec<u8> {
    let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
        .map(|(name, array)| {
            let values = array.values.iter();
            let bytes = match stored {
                Stored::F64 => values.flat_map(|&v| f64::from(v).to_le_bytes()).collect(),
                Stored::F32 => values.flat_map(|v| v.to_le_bytes()).collect(),
                Stored::F16 => values
                    .flat_map(|&v| f16::from_f32(v).to_le_bytes())
                    .collect(),
                Stored::BF16 => values
                    .flat_map(|&v| bf16::from_f32(v).to_le_bytes())
                    .collect(),
            };
            (name.clone(), array.shape.clone(), bytes)
        })
        .collect();
    let dtype = match stored {
        Stored::F64 => Dtype::F64,
        Stored::F32 => Dtype::F32,
        Stored::F16 => Dtype::F16,
        Stored::BF16 => Dtype::BF16,
    };
    let views = bytes.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(dtype, shape.clone(), bytes).expect("the length fits");
        (name, view)
    });
    safetensors::serialize(views, None).expect("the tensors can be written")
}
