//! Texts for the seeded models.

use super::models;
use super::rng::Rng;

/// Ids and types of tokens.
pub type Text = (Vec<i64>, Vec<i64>);

/// Texts of these lengths with two types of tokens, as pairs have.
pub fn texts(lengths: &[usize]) -> Vec<Text> {
    let mut rng = Rng::new(99);
    let mut text = |&length: &usize| {
        let id = |_| 2 + rng.below(models::VOCABULARY as u64 - 2) as i64;
        let ids = (0..length).map(id).collect();
        let types = (0..length).map(|at| i64::from(at > length / 2));
        (ids, types.collect())
    };
    lengths.iter().map(&mut text).collect()
}
