//! The mean of a map within a box, as OpenCV's `fillPoly` and `mean` have it: with all places that the box's edges touch.

use crate::Quad;

/// The mean of `map`, rows of `width`, within a box; 0 where the box touches no place. What lies beyond the map is left out.
pub(crate) fn mean(map: &[f32], width: usize, height: usize, corners: &Quad) -> f64 {
    let span = |axis: usize, length: usize| {
        let ends = corners.map(|corner| corner[axis]);
        let last = length as f32 - 1.0;
        let low = ends
            .iter()
            .copied()
            .fold(f32::INFINITY, f32::min)
            .floor()
            .clamp(0.0, last);
        let high = ends
            .iter()
            .copied()
            .fold(f32::NEG_INFINITY, f32::max)
            .ceil()
            .clamp(0.0, last);
        (low as usize, high as usize)
    };
    if map.is_empty() || corners.as_flattened().iter().any(|at| !at.is_finite()) {
        return 0.0;
    }
    let ((left, right), (top, bottom)) = (span(0, width), span(1, height));
    // Within the window that holds the box; the casts cut fractions off.
    let corners = corners.map(|[x, y]| [(x - left as f32) as i64, (y - top as f32) as i64]);
    let (wide, high) = (right - left + 1, bottom - top + 1);
    let mask = polygon(&corners, wide, high);
    let (mut sum, mut count) = (0.0, 0_u64);
    for (y, row) in mask.chunks_exact(wide).enumerate() {
        let values = &map[(top + y) * width + left..][..wide];
        for (&value, _) in values.iter().zip(row).filter(|&(_, &is_in)| is_in) {
            sum += f64::from(value);
            count += 1;
        }
    }
    match count {
        0 => 0.0,
        _ => sum / count as f64,
    }
}

/// The places of a polygon, with its edges.
fn polygon(corners: &[[i64; 2]; 4], width: usize, height: usize) -> Vec<bool> {
    let mut mask = vec![false; width * height];
    let mut put = |x: i64, y: i64| {
        if (0..width as i64).contains(&x) && (0..height as i64).contains(&y) {
            mask[y as usize * width + x as usize] = true;
        }
    };
    let edges = [0, 1, 2, 3].map(|at| (corners[at], corners[(at + 1) % 4]));
    for (from, to) in edges {
        line(from, to, &mut put);
    }
    for y in 0..height as i64 {
        // Where this row crosses edges, in 65,536ths.
        let mut crossed: Vec<i64> = Vec::new();
        for (mut from, mut to) in edges {
            if from[1] > to[1] {
                (from, to) = (to, from);
            }
            if (from[1]..to[1]).contains(&y) {
                let slope = ((to[0] - from[0]) << 16) / (to[1] - from[1]);
                crossed.push((from[0] << 16) + (1 << 15) + slope * (y - from[1]));
            }
        }
        crossed.sort_unstable();
        for pair in crossed.as_chunks::<2>().0 {
            for x in pair[0] >> 16..=pair[1] >> 16 {
                put(x, y);
            }
        }
    }
    mask
}

/// Bresenham's line of eight directions.
fn line(from: [i64; 2], to: [i64; 2], put: &mut impl FnMut(i64, i64)) {
    // OpenCV draws to the right.
    let (from, to) = if from[0] > to[0] {
        (to, from)
    } else {
        (from, to)
    };
    let (right, down) = (to[0] - from[0], (to[1] - from[1]).abs());
    let step = (to[1] - from[1]).signum();
    let (long, short) = (right.max(down), right.min(down));
    let mut error = long - 2 * short;
    let [mut x, mut y] = from;
    for _ in 0..=long {
        put(x, y);
        let both = error < 0;
        error += if both {
            2 * long - 2 * short
        } else {
            -2 * short
        };
        if right >= down || both {
            x += 1;
        }
        if right < down || both {
            y += step;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_box_has_the_mean_of_its_places() {
        let map: Vec<f32> = (0..20).map(|at| at as f32).collect();
        let level =
            |left, top, right, bottom| [[left, top], [right, top], [right, bottom], [left, bottom]];
        // Columns 1 to 2, rows 1 to 2 of 5 by 4.
        assert_eq!(mean(&map, 5, 4, &level(1.0, 1.0, 2.9, 2.9)), 9.0);
        assert_eq!(mean(&map, 5, 4, &level(0.0, 0.0, 4.0, 3.0)), 9.5);
        assert_eq!(mean(&map, 5, 4, &level(-9.0, -9.0, 40.0, 40.0)), 9.5);
        assert_eq!(mean(&map, 5, 4, &[[f32::NAN; 2]; 4]), 0.0);
        assert_eq!(mean(&[], 0, 0, &level(0.0, 0.0, 1.0, 1.0)), 0.0);
    }
}
