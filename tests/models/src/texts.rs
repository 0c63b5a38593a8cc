//! Texts for the seeded models.

use isovec_engine::engine::{Batch, MASK};
use isovec_engine::tensor::{NamedTensor, Tensor};

use crate::models::VOCABULARY;
use crate::rng::Rng;

/// Ids and types of tokens.
pub type Text = (Vec<i64>, Vec<i64>);

/// Texts of these lengths with two types of tokens, as pairs have.
pub fn texts(lengths: &[usize]) -> Vec<Text> {
    let mut rng = Rng::new(99);
    let mut text = |&length: &usize| {
        let id = |_| 2 + rng.below(VOCABULARY as u64 - 2) as i64;
        let ids = (0..length).map(id).collect();
        let types = (0..length).map(|at| i64::from(at > length / 2));
        (ids, types.collect())
    };
    lengths.iter().map(&mut text).collect()
}

/// The texts in a batch, with every input that a family may read.
pub fn batch(texts: &[Text], padding: i64) -> Batch {
    let length = texts.iter().map(|(ids, _)| ids.len()).max().unwrap_or(0);
    let tensor = |name: &str, row: &dyn Fn(&Text) -> Vec<i64>, with: i64| {
        let mut values = Vec::new();
        for text in texts {
            let mut row = row(text);
            row.resize(length, with);
            values.extend(row);
        }
        let tensor = Tensor::from_slice(&[texts.len(), length], &values);
        NamedTensor::new(name, tensor.expect("as many values as the shape says"))
    };
    Batch {
        inputs: vec![
            tensor("input_ids", &|(ids, _)| ids.clone(), padding),
            tensor("token_type_ids", &|(_, types)| types.clone(), 0),
            tensor("adapter_ids", &|(_, adapters)| adapters.clone(), 0),
            tensor(MASK, &|(ids, _)| vec![1; ids.len()], 0),
        ],
        row_lengths: texts.iter().map(|(ids, _)| ids.len()).collect(),
        ..Batch::default()
    }
}
