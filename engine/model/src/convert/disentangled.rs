//! Terms of attention scores by the content of one token of a pair and the distance between both, as DeBERTa has them
//! (<https://arxiv.org/abs/2006.03654>, section 3.1), with distances in logarithmic buckets
//! (<https://arxiv.org/abs/2111.09543>, and `make_log_bucket_position` of
//! <https://github.com/huggingface/transformers/blob/main/src/transformers/models/deberta_v2/modeling_deberta_v2.py>).

use isovec_engine::error::Result;

use super::attention::Heads;
use super::embeddings::INPUT_IDS;
use super::net::Net;
use super::relative::offset_bias;
use super::source::Recipe;
use crate::onnx::builder::{int, ints};

/// The tensor with a vector for each distance, and the norm of its rows.
const VECTORS: &str = "encoder.rel_embeddings.weight";
const NORM: [&str; 2] = ["encoder.LayerNorm.weight", "encoder.LayerNorm.bias"];

/// How distances fall into buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Distances {
    /// On each side; none where each distance has its own.
    pub(super) buckets: Option<usize>,
    /// The distance from which all are alike.
    pub(super) furthest: usize,
    /// The longest sequence.
    pub(super) positions: usize,
}

impl Distances {
    /// Half the number of the checkpoint's vectors.
    fn span(self) -> usize {
        self.buckets.unwrap_or(self.furthest)
    }

    /// The bucket of a distance, which is one of the distances itself: up to half of the buckets are exact, the others grow with the
    /// logarithm.
    fn bucket(self, distance: usize) -> usize {
        let bucket = match self.buckets.map(|buckets| buckets / 2) {
            Some(exact) if distance > exact => {
                // In f32, as the models were trained.
                let logarithm = |number: f32| libm::logf(number);
                let last = (self.furthest - 1) as f64 / exact as f64;
                let place = logarithm(distance as f32 / exact as f32) / logarithm(last as f32)
                    * (exact - 1) as f32;
                exact + libm::ceilf(place) as usize
            }
            _ => distance,
        };
        bucket.min(self.span())
    }

    /// Columns of a table: buckets before, none, buckets after.
    pub(super) fn columns(self) -> usize {
        2 * self.bucket(self.positions - 1) + 1
    }

    /// For each offset of two tokens, the most negative first, the column of its bucket.
    pub(super) fn by_offset(self) -> Vec<i32> {
        let middle = (self.columns() / 2) as i32;
        let offsets = 1 - self.positions as i64..self.positions as i64;
        let column = |offset: i64| {
            let bucket = self.bucket(offset.unsigned_abs() as usize) as i32;
            middle + bucket * offset.signum() as i32
        };
        offsets.map(column).collect()
    }

    /// The checkpoint's row for a column: of the query's position less the key's. `of_keys`: whether the table is for keys, whose
    /// offsets run from key to query.
    pub(super) fn row(self, column: usize, of_keys: bool) -> usize {
        let middle = (self.columns() / 2) as i64;
        let bucket = column as i64 - middle;
        let bucket = if of_keys { bucket } else { -bucket };
        let span = self.span() as i64;
        (bucket + span).clamp(0, 2 * span - 1) as usize
    }
}

/// The terms of one model.
#[derive(Debug)]
pub(super) struct Disentangled {
    distances: Distances,
    heads: Heads,
    /// What is added to the variance of the vectors' norm, if they have one.
    epsilon: Option<f64>,
    /// i32 `[batch, heads, sequence, sequence]`: the column of each pair.
    columns: String,
}

/// How the vectors of distances are projected.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Projection {
    /// Name of the layer.
    pub(super) name: String,
    /// Whether the result meets keys.
    pub(super) of_keys: bool,
    /// What the result is multiplied with.
    pub(super) factor: f32,
}

impl Disentangled {
    /// `length` is a tensor of one i64.
    pub(super) fn new(
        net: &mut Net<'_>,
        distances: Distances,
        heads: Heads,
        epsilon: Option<f64>,
        length: &str,
    ) -> Result<Self> {
        net.checked(VECTORS, &[2 * distances.span(), heads.width()])?;
        let by_offset = net.recipe(
            "distances.by_offset".into(),
            vec![1, 2 * distances.positions - 1],
            Recipe::ColumnsByOffset(distances),
        );
        let columns = offset_bias(net, &by_offset, distances.positions, length);
        // GatherElements repeats nothing by itself.
        let batch = net.node("Shape", &[INPUT_IDS], vec![int("start", 0), int("end", 1)]);
        let count = net.builder().ints(&[heads.count as i64]);
        let shape = [&*batch, &count, length, length];
        let shape = net.node("Concat", &shape, vec![int("axis", 0)]);
        let columns = net.node("Expand", &[&columns, &shape], vec![]);
        Ok(Self {
            distances,
            heads,
            epsilon,
            columns,
        })
    }

    /// The term of each pair, `[batch, heads, sequence, sequence]`, of queries or keys `[batch, heads, sequence, size]`.
    pub(super) fn term(&self, net: &mut Net<'_>, x: &str, by: Projection) -> Result<String> {
        let hidden = self.heads.width();
        let weight = net.checked(&format!("{}.weight", by.name), &[hidden, hidden])?;
        let bias = net.checked(&format!("{}.bias", by.name), &[hidden])?;
        let norm = match self.epsilon {
            Some(epsilon) => {
                let [scale, shift] = NORM.map(|name| net.checked(name, &[hidden]));
                Some((scale?, shift?, epsilon as f32))
            }
            None => None,
        };
        let (of_keys, columns) = (by.of_keys, self.distances.columns());
        let table = net.recipe(
            format!("{}.distances", by.name),
            vec![self.heads.count, self.heads.size, columns],
            Recipe::DistanceTable(Box::new(Table {
                vectors: net.checked(VECTORS, &[2 * self.distances.span(), hidden])?,
                norm,
                weight,
                bias,
                distances: self.distances,
                of_keys,
                factor: by.factor,
            })),
        );
        let products = net.node("MatMul", &[x, &table], vec![]);
        let last = vec![int("axis", 3)];
        let term = net.node("GatherElements", &[&products, &self.columns], last);
        Ok(match of_keys {
            true => net.node("Transpose", &[&term], vec![ints("perm", &[0, 1, 3, 2])]),
            false => term,
        })
    }
}

/// A layer's projected vectors of distances.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    /// Name in the checkpoint of a vector for each distance, `[2 * span, hidden]`.
    pub(super) vectors: String,
    /// Names of scale and shift of the norm of each vector, and what is added to its variance.
    pub(super) norm: Option<(String, String, f32)>,
    /// Name of the projection, `[hidden, hidden]`.
    pub(super) weight: String,
    /// Name of its bias, `[hidden]`.
    pub(super) bias: String,
    /// Which vector is for which column.
    pub(super) distances: Distances,
    /// Whether it meets keys.
    pub(super) of_keys: bool,
    /// What the result is multiplied with.
    pub(super) factor: f32,
}

impl Table {
    /// `[hidden, columns]`, of the tensors by their names.
    ///
    /// # Errors
    /// Those of `floats`.
    pub(super) fn make(&self, floats: impl Fn(&str) -> Result<Vec<f32>>) -> Result<Vec<f32>> {
        let (weight, bias) = (floats(&self.weight)?, floats(&self.bias)?);
        let mut vectors = floats(&self.vectors)?;
        let hidden = bias.len().max(1);
        if let Some((scale, shift, epsilon)) = &self.norm {
            let (scale, shift) = (floats(scale)?, floats(shift)?);
            for row in vectors.chunks_exact_mut(hidden) {
                normalise(row, &scale, &shift, *epsilon);
            }
        }
        let columns = self.distances.columns();
        let column = |at: usize| {
            let row = self.distances.row(at, self.of_keys);
            &vectors[row * hidden..][..hidden]
        };
        let mut out = vec![0.0; hidden * columns];
        let mut panel = vec![[0.0; LANES]; hidden];
        for first in (0..columns).step_by(LANES) {
            let taken = LANES.min(columns - first);
            for lane in 0..taken {
                for (to, from) in panel.iter_mut().zip(column(first + lane)) {
                    to[lane] = *from;
                }
            }
            for start in (0..hidden).step_by(ROWS) {
                let sums = products(&weight, &panel, start, hidden);
                for (row, sums) in (start..hidden).zip(&sums) {
                    let to = &mut out[row * columns + first..][..taken];
                    for (to, sum) in to.iter_mut().zip(sums) {
                        *to = (sum + bias[row]) * self.factor;
                    }
                }
            }
        }
        Ok(out)
    }
}

/// Columns and rows that are computed at once, in the registers of any processor.
const LANES: usize = 8;
const ROWS: usize = 4;

/// Rows `start..start + ROWS` of `weight · panel`; those past the last are the last again.
fn products(
    weight: &[f32],
    panel: &[[f32; LANES]],
    start: usize,
    hidden: usize,
) -> [[f32; LANES]; ROWS] {
    let rows: [&[f32]; ROWS] = std::array::from_fn(|at| {
        let row = (start + at).min(hidden - 1);
        &weight[row * hidden..][..hidden]
    });
    let mut sums = [[0.0; LANES]; ROWS];
    for (at, values) in panel.iter().enumerate() {
        for (sums, row) in sums.iter_mut().zip(rows) {
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += row[at] * value;
            }
        }
    }
    sums
}

/// A layer normalisation of one row, in f64.
fn normalise(row: &mut [f32], scale: &[f32], shift: &[f32], epsilon: f32) {
    let count = row.len() as f64;
    let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
    let squares = row.iter().map(|&x| (f64::from(x) - mean).powi(2));
    let deviation = (squares.sum::<f64>() / count + f64::from(epsilon)).sqrt();
    for ((x, scale), shift) in row.iter_mut().zip(scale).zip(shift) {
        let normal = (f64::from(*x) - mean) / deviation;
        *x = (normal * f64::from(*scale) + f64::from(*shift)) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 256 buckets for distances of up to 512, as the published models have them: 127 ln(n / 128) / ln(511 / 128) > k - 1 says that
    /// n is in bucket 128 + k.
    #[test]
    fn near_distances_are_exact_and_far_ones_grow_with_the_logarithm() {
        let distances = Distances {
            buckets: Some(256),
            furthest: 512,
            positions: 512,
        };
        for distance in 0..=128 {
            assert_eq!(distances.bucket(distance), distance);
        }
        let step = (511f64 / 128.0).ln() / 127.0;
        for distance in 129..=511 {
            let bucket = distances.bucket(distance);
            let from = 128.0 * (step * (bucket as f64 - 129.0)).exp();
            let to = 128.0 * (step * (bucket as f64 - 128.0)).exp();
            let distance = distance as f64;
            assert!(
                from * (1.0 - 1e-6) <= distance && distance <= to * (1.0 + 1e-6),
                "{distance} in {bucket}"
            );
        }
        assert_eq!(distances.bucket(511), 255);
        assert_eq!(distances.columns(), 511);
        // Further than any token is from another.
        assert_eq!(distances.bucket(10_000), 256);
    }

    #[test]
    fn rows_of_keys_run_the_other_way_and_stay_in_the_table() {
        let distances = Distances {
            buckets: None,
            furthest: 3,
            positions: 9,
        };
        assert_eq!(distances.columns(), 7);
        assert_eq!(distances.by_offset()[..6], [0, 0, 0, 0, 0, 0]);
        assert_eq!(distances.by_offset()[6..11], [1, 2, 3, 4, 5]);
        let rows = |of_keys| (0..7).map(move |column| distances.row(column, of_keys));
        assert_eq!(rows(true).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 5]);
        assert_eq!(rows(false).collect::<Vec<_>>(), [5, 5, 4, 3, 2, 1, 0]);
    }
}
