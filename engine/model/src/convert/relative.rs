//! Attention bias by relative position in logarithmic buckets, as T5 has it
//! (<https://arxiv.org/abs/1910.10683>, section 2.1) and MPNet uses it.

use isovec_engine::error::Result;

use super::attention::Heads;
use super::mask::HIDDEN;
use super::net::Net;
use super::source::Recipe;

/// How offsets fall into buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Buckets {
    /// Of both sides together.
    pub(super) count: usize,
    /// The distance from which all are alike.
    pub(super) furthest: usize,
}

/// Those that MPNet's code assumes whatever its config says.
pub(super) const OF_MPNET: Buckets = Buckets {
    count: 32,
    furthest: 128,
};

/// The bias `[heads, sequence, sequence]` from the checkpoint's table `[buckets, heads]`.
///
/// The bias depends on the offset alone, so the weight is one row of biases per head, a value for
/// each offset, and the graph picks from it. `length` is a tensor of one i64.
pub(super) fn relative_bias(
    net: &mut Net<'_>,
    heads: Heads,
    table: &str,
    (buckets, positions): (Buckets, usize),
    length: &str,
) -> Result<String> {
    let tensor = net.checked(table, &[buckets.count, heads.count])?;
    let by_offset = net.recipe(
        format!("{table}.by_offset"),
        vec![heads.count, 2 * positions - 1],
        Recipe::OffsetBias {
            tensor,
            buckets,
            positions,
        },
    );
    Ok(offset_bias(net, &by_offset, positions, length))
}

/// The bias `[heads, sequence, sequence]` that hides every key after its query.
pub(super) fn causal_bias(
    net: &mut Net<'_>,
    heads: Heads,
    positions: usize,
    length: &str,
) -> String {
    let by_offset = net.recipe(
        "causal.by_offset".into(),
        vec![heads.count, 2 * positions - 1],
        Recipe::CausalBias {
            heads: heads.count,
            positions,
        },
    );
    offset_bias(net, &by_offset, positions, length)
}

/// The bias `[heads, sequence, sequence]` of each pair of positions from a table `[heads, 2 * positions - 1]`, by the offset of the key
/// from the query.
pub(super) fn offset_bias(
    net: &mut Net<'_>,
    by_offset: &str,
    positions: usize,
    length: &str,
) -> String {
    let counting = net.recipe(
        "positions".into(),
        vec![positions],
        Recipe::CountI32(positions),
    );
    let counting = net.rows(&counting, length);
    let column = net.builder().ints(&[1]);
    let row = net.builder().ints(&[0]);
    let middle = net.builder().i32(positions as i32 - 1);
    let from = net.node("Unsqueeze", &[&counting, &column], vec![]);
    let to = net.node("Unsqueeze", &[&counting, &row], vec![]);
    let offset = net.node("Sub", &[&to, &from], vec![]);
    let index = net.node("Add", &[&offset, &middle], vec![]);
    net.gather(by_offset, &index, 1)
}

/// `[heads, 2 * positions - 1]`: 0 for offsets of keys that stand before their query, and [`HIDDEN`] for those behind it.
pub(super) fn causal_table(heads: usize, positions: usize) -> Vec<f32> {
    let offsets = 1 - positions as i64..positions as i64;
    let row = offsets.map(|offset| if offset > 0 { HIDDEN } else { 0.0 });
    let row: Vec<f32> = row.collect();
    row.repeat(heads)
}

/// `[buckets, heads]` → `[heads, 2 * positions - 1]`: the bias for each offset (key position minus
/// query position), the most negative first.
pub(super) fn offset_table(
    table: &[f32],
    buckets: Buckets,
    heads: usize,
    positions: usize,
) -> Vec<f32> {
    let offsets = 1 - positions as i64..positions as i64;
    let buckets: Vec<usize> = offsets.map(|offset| buckets.bucket(offset)).collect();
    (0..heads)
        .flat_map(|head| {
            buckets
                .iter()
                .map(move |bucket| table[bucket * heads + head])
        })
        .collect()
}

impl Buckets {
    /// Whether there are exact ones, and others that reach further.
    pub(super) fn are_usable(self) -> bool {
        self.count >= 4 && self.furthest > self.count / 4
    }

    /// The bucket of an offset: the upper half of the buckets is for keys after the query; within a
    /// half, the first half is exact and the rest grows with the logarithm of the distance.
    fn bucket(self, offset: i64) -> usize {
        let all = self.count / 2;
        let near = all / 2;
        let side = if offset > 0 { all } else { 0 };
        let distance = offset.unsigned_abs() as usize;
        if distance < near {
            return side + distance;
        }
        // In f32, since the models were trained with the buckets that f32 gives.
        let exact = near as f32;
        let place = (libm::logf(distance as f32 / exact) / libm::logf(self.furthest as f32 / exact)
            * (all - near) as f32) as usize;
        side + (near + place).min(all - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `8 log(n / 8) / log(16) >= k` says `n^2 >= 64 * 2^k`, which needs no logarithm.
    fn exact_bucket(offset: i64) -> usize {
        let side = if offset > 0 { 16 } else { 0 };
        let n = offset.unsigned_abs() as usize;
        let place = if n < 8 {
            n
        } else {
            8 + (1..8).filter(|k| n * n >= 64 << k).count()
        };
        side + place
    }

    #[test]
    fn buckets_agree_with_integer_arithmetic() {
        for offset in -2000..=2000 {
            assert_eq!(OF_MPNET.bucket(offset), exact_bucket(offset), "{offset}");
        }
    }

    #[test]
    fn the_table_runs_over_all_offsets() {
        let table: Vec<f32> = (0..OF_MPNET.count * 2).map(|n| n as f32).collect();
        let by_offset = offset_table(&table, OF_MPNET, 2, 3);
        // Offsets -2, -1, 0, 1, 2 are in buckets 2, 1, 0, 17, 18.
        assert_eq!(by_offset[..5], [4.0, 2.0, 0.0, 34.0, 36.0]);
        assert_eq!(by_offset[5..], [5.0, 3.0, 1.0, 35.0, 37.0]);
    }
}
