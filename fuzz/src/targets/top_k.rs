//! The best of many scores, against sorting all of them.

use arbitrary::Unstructured;
use isovec::similarity::top_k;

use crate::bounds::ours;

/// Tries one input: any scores, infinities and NaN among them.
pub fn run(data: &[u8]) {
    let _ = tried(&mut Unstructured::new(data), data.len());
}

fn tried(input: &mut Unstructured<'_>, length: usize) -> arbitrary::Result<()> {
    let k = usize::from(input.arbitrary::<u16>()?);
    // Few values, so that many are equal.
    let levels = input.int_in_range(1..=255u8)?;
    let mut scores = Vec::new();
    while !input.is_empty() {
        scores.push(match input.arbitrary::<u8>()? {
            0 => f32::NAN,
            1 => f32::NEG_INFINITY,
            2 => f32::INFINITY,
            3 => -0.0,
            4 => f32::from_bits(input.arbitrary()?),
            level => f32::from(level % levels) - f32::from(levels / 2),
        });
    }
    let found = ours(length, || top_k(scores.iter().copied(), k));

    // The largest first, equal ones in their order, and what is no number last.
    let mut all: Vec<usize> = (0..scores.len()).collect();
    all.sort_by(|&a, &b| {
        let numbers = scores[b].partial_cmp(&scores[a]);
        numbers.unwrap_or_else(|| scores[a].is_nan().cmp(&scores[b].is_nan()))
    });
    all.truncate(k);
    let places: Vec<usize> = found.iter().map(|hit| hit.index).collect();
    assert_eq!(places, all, "{k} of {scores:?}");
    for hit in found {
        assert_eq!(hit.score.to_bits(), scores[hit.index].to_bits());
    }
    Ok(())
}
