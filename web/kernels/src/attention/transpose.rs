//! Rows that become columns.

/// Rows of a matrix, `stride` elements from one to the next.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) values: &'a [f32],
    pub(super) stride: usize,
    pub(super) count: usize,
    pub(super) width: usize,
}

impl Rows<'_> {
    /// Whether the values are there.
    fn fit(&self) -> bool {
        let last = self.count.saturating_sub(1);
        self.count == 0 || last * self.stride + self.width <= self.values.len()
    }

    /// Writes row `i`, times a factor, as column `i` of `to`, rows of `length` elements of which those past the last column are 0.
    #[inline(always)]
    pub(super) fn transpose(&self, factor: f32, length: usize, to: &mut [f32]) {
        assert!(self.fit() && self.count <= length, "rows that are there");
        let to = &mut to[..self.width * length];
        for column in 0..length {
            let lines = to.chunks_exact_mut(length);
            if column < self.count {
                let row = &self.values[column * self.stride..][..self.width];
                for (line, from) in lines.zip(row) {
                    line[column] = *from * factor;
                }
            } else {
                for line in lines {
                    line[column] = 0.0;
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use core::arch::x86_64::{
        __m256, __m256i, _mm256_castpd_ps, _mm256_castps_pd, _mm256_cmpgt_epi32,
        _mm256_maskload_ps, _mm256_mul_ps, _mm256_permute2f128_ps, _mm256_set1_epi32,
        _mm256_set1_ps, _mm256_setr_epi32, _mm256_setzero_ps, _mm256_storeu_ps, _mm256_unpackhi_pd,
        _mm256_unpackhi_ps, _mm256_unpacklo_pd, _mm256_unpacklo_ps,
    };

    use super::Rows;

    /// As [`Rows::transpose`], blocks of 8 × 8 in registers.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in super::super) fn transpose(rows: &Rows<'_>, factor: f32, length: usize, to: &mut [f32]) {
        assert!(rows.fit() && rows.count <= length, "rows that are there");
        let to = &mut to[..rows.width * length];
        let factor = _mm256_set1_ps(factor);
        for first in (0..length).step_by(8) {
            for column in (0..rows.width).step_by(8) {
                let read = first_lanes(rows.width - column);
                let block = std::array::from_fn(|line| {
                    let row = first + line;
                    if row >= rows.count {
                        return _mm256_setzero_ps();
                    }
                    // SAFETY: `fit` saw that the row's lanes that are read are there.
                    let values = unsafe {
                        let from = rows.values.as_ptr().add(row * rows.stride + column);
                        _mm256_maskload_ps(from, read)
                    };
                    _mm256_mul_ps(values, factor)
                });
                let lines = turned(block);
                for (line, values) in lines.into_iter().enumerate() {
                    if column + line >= rows.width {
                        break;
                    }
                    let to = &mut to[(column + line) * length..][first..length];
                    if let Some(to) = to.first_chunk_mut::<8>() {
                        // SAFETY: there are 8 elements.
                        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), values) };
                    } else {
                        // A masked store takes many times as long on some processors.
                        let mut lanes = [0.0; 8];
                        // SAFETY: there are 8 elements.
                        unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), values) };
                        to.copy_from_slice(&lanes[..to.len()]);
                    }
                }
            }
        }
    }

    /// A mask of the first lanes, of which there may be more than a register has.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn first_lanes(count: usize) -> __m256i {
        let count = _mm256_set1_epi32(count.min(8) as i32);
        _mm256_cmpgt_epi32(count, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
    }

    /// Lines as columns.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn turned(block: [__m256; 8]) -> [__m256; 8] {
        let [a, b, c, d, e, f, g, h] = block;
        // Pairs of lines, pairs of pairs, and the halves of registers.
        let fours = |[a, b, c, d]: [__m256; 4]| {
            let low = [_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d)];
            let high = [_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d)];
            let [low, high] = [low, high].map(|pairs| pairs.map(|pair| _mm256_castps_pd(pair)));
            [
                _mm256_unpacklo_pd(low[0], low[1]),
                _mm256_unpackhi_pd(low[0], low[1]),
                _mm256_unpacklo_pd(high[0], high[1]),
                _mm256_unpackhi_pd(high[0], high[1]),
            ]
            .map(|four| _mm256_castpd_ps(four))
        };
        let (upper, lower) = (fours([a, b, c, d]), fours([e, f, g, h]));
        let half = |at: usize| _mm256_permute2f128_ps::<0x20>(upper[at], lower[at]);
        let other = |at: usize| _mm256_permute2f128_ps::<0x31>(upper[at], lower[at]);
        [
            half(0),
            half(1),
            half(2),
            half(3),
            other(0),
            other(1),
            other(2),
            other(3),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns_and_the_rest_is_zero() {
        for (count, width, length) in [(1, 1, 4), (3, 5, 8), (14, 32, 16), (32, 14, 32), (0, 3, 4)]
        {
            let stride = width + 3;
            let values: Vec<f32> = (0..count * stride).map(|at| at as f32 + 1.0).collect();
            let rows = Rows {
                values: &values,
                stride,
                count,
                width,
            };
            let expected: Vec<f32> = (0..width * length)
                .map(|at| (at % length, at / length))
                .map(|(row, column)| {
                    if row < count {
                        2.0 * values[row * stride + column]
                    } else {
                        0.0
                    }
                })
                .collect();
            // What lies behind is not touched.
            let mut to = vec![f32::NAN; width * length + 1];
            rows.transpose(2.0, length, &mut to);
            assert_eq!(to[..width * length], expected);
            assert!(to[width * length].is_nan());
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                to.fill(f32::NAN);
                // SAFETY: the processor has the features.
                unsafe { x86::transpose(&rows, 2.0, length, &mut to) };
                assert_eq!(to[..width * length], expected);
                assert!(to[width * length].is_nan());
            }
        }
    }
}
