//! A box that grows by its area through its perimeter, with round corners, as pyclipper makes it of points in whole numbers.
//!
//! Angus Johnson's Clipper 6.4 gives each corner an arc of steps, at most a quarter of a pixel inside the circle, and rounds every
//! point. The union that it makes of them afterwards leaves their convex hull as it is, and nothing else of them is used here.

use std::f64::consts::PI;

use crate::Quad;
use crate::contours::Point;

/// How much a box grows: its area times this, through its perimeter.
const RATIO: f64 = 1.6;

/// How far an arc's steps may be inside its circle, in pixels.
const TOLERANCE: f64 = 0.25;

/// The places around a grown box, of which the convex hull is meant; none for a box without an area.
pub(crate) fn grow(corners: &Quad) -> Vec<Point> {
    let by = distance(corners);
    // Clipper reads whole numbers.
    let mut path: Vec<[f64; 2]> = corners
        .iter()
        .map(|corner| corner.map(|at| f64::from(at.trunc())))
        .collect();
    path.dedup();
    while path.len() > 1 && path.first() == path.last() {
        path.pop();
    }
    if path.len() < 3 || by.is_nan() || by < 1e-20 {
        return Vec::new();
    }
    if doubled_area(&path) < 0.0 {
        path.reverse();
    }
    let steps = (PI / libm::acos(1.0 - TOLERANCE.min(by * 0.25) / by)).min(by * PI);
    let (sin, cos) = (libm::sin(2.0 * PI / steps), libm::cos(2.0 * PI / steps));
    let normals: Vec<[f64; 2]> = (0..path.len())
        .map(|at| normal(path[at], path[(at + 1) % path.len()]))
        .collect();
    let mut grown = Vec::new();
    for (at, &[x, y]) in path.iter().enumerate() {
        let mut put =
            |[right, down]: [f64; 2]| grown.push([round(x + right * by), round(y + down * by)]);
        let before = normals[(at + path.len() - 1) % path.len()];
        let after = normals[at];
        let turn = before[0] * after[1] - after[0] * before[1];
        let facing = before[0] * after[0] + before[1] * after[1];
        if (turn * by).abs() < 1.0 && facing > 0.0 {
            put(before);
        } else if turn < 0.0 {
            // A corner that points inwards.
            put(before);
            put([0.0, 0.0]);
            put(after);
        } else {
            let angle = libm::atan2(turn.clamp(-1.0, 1.0), facing);
            let count = round(steps / (2.0 * PI) * angle.abs()).max(1);
            let mut at = before;
            for _ in 0..count {
                put(at);
                at = [at[0] * cos - sin * at[1], at[0] * sin + at[1] * cos];
            }
            put(after);
        }
    }
    grown
}

/// Area through perimeter, times [`RATIO`].
fn distance(corners: &Quad) -> f64 {
    let corners = corners.map(|corner| corner.map(f64::from));
    let length = |at: usize| {
        let ([x, y], [to_x, to_y]) = (corners[at], corners[(at + 1) % 4]);
        libm::sqrt((to_x - x) * (to_x - x) + (to_y - y) * (to_y - y))
    };
    let perimeter: f64 = (0..4).map(length).sum();
    doubled_area(&corners).abs() / 2.0 * RATIO / perimeter
}

/// Twice the area, positive where each turn has a positive cross product.
fn doubled_area(path: &[[f64; 2]]) -> f64 {
    // From the first corner, so that far away places lose no digits.
    let [x, y] = path[0];
    let pairs = path.windows(2);
    pairs
        .map(|pair| (pair[0][0] - x) * (pair[1][1] - y) - (pair[1][0] - x) * (pair[0][1] - y))
        .sum()
}

/// The direction outwards of an edge.
fn normal([x, y]: [f64; 2], [to_x, to_y]: [f64; 2]) -> [f64; 2] {
    let (right, down) = (to_x - x, to_y - y);
    let scale = 1.0 / libm::sqrt(right * right + down * down);
    [down * scale, -(right * scale)]
}

/// To the nearest whole number, halves away from 0.
fn round(value: f64) -> i32 {
    (value + 0.5_f64.copysign(value)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_square_grows_to_all_sides_and_what_has_no_area_does_not() {
        let square = [[10.0, 10.0], [50.0, 10.0], [50.0, 50.0], [10.0, 50.0]];
        // 40 * 40 * 1.6 / 160 = 16.
        let grown = grow(&square);
        for axis in 0..2 {
            let ends = |grown: &[Point]| {
                let axis = grown.iter().map(move |point| point[axis]);
                (axis.clone().min().unwrap(), axis.max().unwrap())
            };
            assert_eq!(ends(&grown), (-6, 66));
        }
        assert!(grow(&[[1.0, 1.0], [9.0, 1.0], [9.0, 1.0], [1.0, 1.0]]).is_empty());
        assert!(grow(&[[3.0, 3.0]; 4]).is_empty());
        assert!(grow(&[[f32::NAN; 2]; 4]).is_empty());
    }

    #[test]
    fn the_direction_of_the_corners_does_not_matter() {
        let mut corners = [[3.0, 4.0], [80.0, 9.0], [79.0, 30.0], [2.0, 25.0]];
        let sorted = |mut grown: Vec<Point>| {
            grown.sort_unstable();
            grown.dedup();
            grown
        };
        let one = sorted(grow(&corners));
        corners.reverse();
        let other = sorted(grow(&corners));
        let ends = |points: &[Point]| (points[0], points[points.len() - 1]);
        assert_eq!(ends(&one), ends(&other));
    }
}
