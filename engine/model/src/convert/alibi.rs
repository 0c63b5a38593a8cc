//! Attention bias that falls with the distance of query and key (ALiBi, <https://arxiv.org/abs/2108.12409>), on both sides of a token
//! alike, as JinaBERT has it (<https://arxiv.org/abs/2310.19923>).

use super::attention::Heads;
use super::net::Net;
use super::relative::offset_bias;
use super::source::Recipe;

/// The bias `[heads, sequence, sequence]`: a head's slope times the distance, below 0. `length` is a tensor of one i64.
pub(super) fn alibi_bias(
    net: &mut Net<'_>,
    heads: Heads,
    positions: usize,
    length: &str,
) -> String {
    let by_offset = net.recipe(
        "alibi.by_offset".into(),
        vec![heads.count, 2 * positions - 1],
        Recipe::Alibi {
            heads: heads.count,
            positions,
        },
    );
    offset_bias(net, &by_offset, positions, length)
}

/// `[heads, 2 * positions - 1]`: the bias for each offset, the most negative first.
pub(super) fn alibi_table(heads: usize, positions: usize) -> Vec<f32> {
    let offsets = 1 - positions as i64..positions as i64;
    let of_head = |slope: f64| {
        let offsets = offsets.clone();
        offsets.map(move |offset| (-slope * offset.unsigned_abs() as f64) as f32)
    };
    slopes(heads).into_iter().flat_map(of_head).collect()
}

/// The slopes of `heads`: for a power of two a geometric series that ends in 2^-8. Otherwise those of the largest power of two below,
/// and then every other one of twice that power, as the paper's authors have it
/// (<https://github.com/ofirpress/attention_with_linear_biases>).
fn slopes(heads: usize) -> Vec<f64> {
    let series =
        |count: usize| (1..=count).map(move |head| libm::exp2(-8.0 * head as f64 / count as f64));
    let power = 1 << heads.max(1).ilog2();
    let more = series(2 * power).step_by(2);
    series(power).chain(more).take(heads).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_those_of_the_paper() {
        let halves: Vec<f64> = (1..=8).map(|head| 0.5f64.powi(head)).collect();
        assert_eq!(slopes(8), halves);
        assert_eq!(slopes(1), [0.5f64.powi(8)]);
        let twelve = slopes(12);
        assert_eq!(twelve[..8], halves);
        for (head, found) in twelve[8..].iter().enumerate() {
            let wanted = 0.5f64.powf(0.5 + head as f64);
            assert!((found - wanted).abs() < 1e-15, "{found} and {wanted}");
        }
    }

    #[test]
    fn the_table_falls_on_both_sides() {
        let table = alibi_table(2, 3);
        // Of two heads the slopes are 2^-4 and 2^-8.
        let (one, two) = (-0.0625, -0.003_906_25);
        assert_eq!(table[..5], [2.0 * one, one, 0.0, one, 2.0 * one]);
        assert_eq!(table[5..], [2.0 * two, two, 0.0, two, 2.0 * two]);
    }
}
