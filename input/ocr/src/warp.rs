//! A quadrilateral of a picture made a rectangle, as OpenCV's `getPerspectiveTransform` and `warpPerspective` do it with
//! `INTER_CUBIC` and `BORDER_REPLICATE`.
//!
//! Places are rounded to 32nds of a pixel. The weights of the 16 pixels around a place have 15 bits; where their sum is not 1, one of
//! the four in the lower right makes up for it.

use std::sync::OnceLock;

use isovec_image::{Image, ImageView};

use crate::{Quad, Result};

/// Places within a pixel, along one axis.
const STEPS: usize = 32;

/// 1 in the fixed point of weights.
const ONE: i32 = 1 << 15;

/// Sides of the blocks in which OpenCV computes places; a place is rounded in the arithmetic of its block.
const BLOCK: usize = 32;

/// Cuts out what lies within four corners, from the upper left clockwise. Nothing where no transform leads there, as from corners
/// on one line.
///
/// # Errors
/// [`ImageError::Size`](isovec_image::ImageError::Size) where a side is 0.
pub(crate) fn cut(
    from: ImageView<'_>,
    corners: &Quad,
    width: usize,
    height: usize,
) -> Result<Option<Image>> {
    let Some(matrix) = transform(corners, width as f64, height as f64).and_then(inverse) else {
        return Ok(None);
    };
    let count = from.channels().count();
    let rows: Vec<&[u8]> = from.rows().collect();
    let mut data = vec![0; width * height * count];
    let rows_of_block = (BLOCK / 2).min(height).max(1);
    let block = (BLOCK * BLOCK / rows_of_block).min(width).max(1);
    let (last_x, last_y) = (from.width() as i32 - 1, from.height() as i32 - 1);
    for (y, line) in data.chunks_exact_mut((width * count).max(1)).enumerate() {
        for (x, pixel) in line.chunks_exact_mut(count).enumerate() {
            let [at_x, at_y] = place(&matrix, x, y, block);
            let table = weights(at_x, at_y);
            let left = (at_x >> 5) - 1;
            let top = (at_y >> 5) - 1;
            let columns =
                [0, 1, 2, 3].map(|by| left.saturating_add(by).clamp(0, last_x) as usize * count);
            let lines =
                [0, 1, 2, 3].map(|by| rows[top.saturating_add(by).clamp(0, last_y) as usize]);
            for (channel, byte) in pixel.iter_mut().enumerate() {
                let mut sum = ONE / 2;
                for (row, weights) in lines.iter().zip(table.as_chunks::<4>().0) {
                    for (column, &weight) in columns.iter().zip(weights) {
                        sum += i32::from(row[column + channel]) * i32::from(weight);
                    }
                }
                *byte = (sum >> 15).clamp(0, 255) as u8;
            }
        }
    }
    Ok(Some(Image::new(width, height, from.channels(), data)?))
}

/// Where a pixel of the result comes from, in 32nds of a pixel.
fn place(matrix: &[f64; 9], x: usize, y: usize, block: usize) -> [i32; 2] {
    let (start, within) = ((x / block * block) as f64, (x % block) as f64);
    let y = y as f64;
    let row =
        |at: usize| matrix[at] * start + matrix[at + 1] * y + matrix[at + 2] + matrix[at] * within;
    let depth = row(6);
    let scale = match depth {
        0.0 => 0.0,
        depth => STEPS as f64 / depth,
    };
    // The casts saturate, as OpenCV's do.
    [row(0), row(3)].map(|value| (value * scale).round_ties_even() as i32)
}

/// The weights of 16 pixels, row by row, for a place in 32nds.
fn weights(x: i32, y: i32) -> &'static [i16; 16] {
    static TABLE: OnceLock<Vec<[i16; 16]>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let places = (0..STEPS).flat_map(|y| (0..STEPS).map(move |x| (x, y)));
        places.map(|(x, y)| square(&cubic(x), &cubic(y))).collect()
    });
    let within = |at: i32| at as usize % STEPS;
    &table[within(y) * STEPS + within(x)]
}

/// Keys' cubic convolution with a = -0.75.
fn cubic(step: usize) -> [f32; 4] {
    const A: f32 = -0.75;
    let x = step as f32 * (1.0 / STEPS as f32);
    let outer = x + 1.0;
    let far = ((A * outer - 5.0 * A) * outer + 8.0 * A) * outer - 4.0 * A;
    let near = |x: f32| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let (first, second) = (near(x), near(1.0 - x));
    [far, first, second, 1.0 - far - first - second]
}

fn square(x: &[f32; 4], y: &[f32; 4]) -> [i16; 16] {
    let mut table = [0_i16; 16];
    for (at, weight) in table.iter_mut().enumerate() {
        // The cast saturates: 1 becomes 32,767.
        *weight = (y[at / 4] * x[at % 4] * ONE as f32).round_ties_even() as i16;
    }
    let excess = table.iter().map(|&weight| i32::from(weight)).sum::<i32>() - ONE;
    // The largest weight of the lower right takes what is missing, and the smallest gives what is too much; of equals the first.
    let (mut small, mut large) = (10, 10);
    for at in [10, 11, 14, 15] {
        if table[at] < table[small] {
            small = at;
        } else if table[at] > table[large] {
            large = at;
        }
    }
    let at = if excess < 0 { large } else { small };
    table[at] = (i32::from(table[at]) - excess) as i16;
    table
}

/// The matrix that takes the corners to those of a rectangle of this size, row by row.
fn transform(corners: &Quad, width: f64, height: f64) -> Option<[f64; 9]> {
    let targets = [[0.0, 0.0], [width, 0.0], [width, height], [0.0, height]];
    let mut rows = [[0.0_f64; 9]; 8];
    for (at, (&[x, y], [u, v])) in corners.iter().zip(targets).enumerate() {
        let (x, y) = (f64::from(x), f64::from(y));
        rows[at] = [x, y, 1.0, 0.0, 0.0, 0.0, -x * u, -y * u, u];
        rows[at + 4] = [0.0, 0.0, 0.0, x, y, 1.0, -x * v, -y * v, v];
    }
    for at in 0..8 {
        let pivot = (at..8).fold(at, |best, row| {
            if rows[row][at].abs() > rows[best][at].abs() {
                row
            } else {
                best
            }
        });
        // As OpenCV: 100 times the smallest step above 1.
        if rows[pivot][at].abs() < f64::EPSILON * 100.0 {
            return None;
        }
        rows.swap(at, pivot);
        let scale = -1.0 / rows[at][at];
        let (done, rest) = rows.split_at_mut(at + 1);
        for row in rest {
            let factor = row[at] * scale;
            for (value, &from) in row.iter_mut().zip(&done[at]).skip(at + 1) {
                *value += factor * from;
            }
        }
    }
    let mut matrix = [1.0; 9];
    for at in (0..8).rev() {
        let mut value = rows[at][8];
        for (factor, known) in rows[at].iter().zip(&matrix).take(8).skip(at + 1) {
            value -= factor * known;
        }
        matrix[at] = value / rows[at][at];
    }
    Some(matrix)
}

/// The inverse by cofactors.
fn inverse(m: [f64; 9]) -> Option<[f64; 9]> {
    let minor = |a: usize, b: usize, c: usize, d: usize| m[a] * m[b] - m[c] * m[d];
    let determinant =
        m[0] * minor(4, 8, 5, 7) - m[1] * minor(3, 8, 5, 6) + m[2] * minor(3, 7, 4, 6);
    if determinant == 0.0 || !determinant.is_finite() {
        return None;
    }
    let cofactors = [
        minor(4, 8, 5, 7),
        minor(2, 7, 1, 8),
        minor(1, 5, 2, 4),
        minor(5, 6, 3, 8),
        minor(0, 8, 2, 6),
        minor(2, 3, 0, 5),
        minor(3, 7, 4, 6),
        minor(1, 6, 0, 7),
        minor(0, 4, 1, 3),
    ];
    let scale = 1.0 / determinant;
    Some(cofactors.map(|cofactor| cofactor * scale))
}
