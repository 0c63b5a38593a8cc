//! The smallest rectangle around points, turned as it may be: OpenCV's `minAreaRect` and `boxPoints`.
//!
//! Rotating calipers (Toussaint, "Solving geometric problems with the rotating calipers", 1983) in single precision, in the order of
//! OpenCV 4.10: of rectangles of one area the last one stays.

use crate::Quad;
use crate::contours::Point;

/// A rectangle around points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rectangle {
    /// Its corners: upper left, upper right, lower right, lower left, as far as it is level.
    pub(crate) corners: Quad,
    /// Its shorter side.
    pub(crate) side: f32,
}

/// The smallest rectangle around points; nothing around none.
pub(crate) fn smallest(points: &[Point]) -> Option<Rectangle> {
    let hull: Vec<[f32; 2]> = hull(points)
        .iter()
        .map(|point| point.map(|at| at as f32))
        .collect();
    let (center, along, across) = match hull[..] {
        [] => return None,
        [point] => (point, [0.0, 0.0], 0.0),
        // From the right to the left, as OpenCV's hull has them.
        [other, one] => {
            let center = [(one[0] + other[0]) * 0.5, (one[1] + other[1]) * 0.5];
            (center, [other[0] - one[0], other[1] - one[1]], 0.0)
        }
        _ => calipers(&hull),
    };
    let length = |x: f32, y: f32| {
        libm::sqrt(f64::from(x) * f64::from(x) + f64::from(y) * f64::from(y)) as f32
    };
    let width = length(along[0], along[1]);
    // In degrees and back, each time in single precision, as OpenCV keeps angles.
    let angle = libm::atan2(f64::from(along[1]), f64::from(along[0])) as f32;
    let degrees = (f64::from(angle * 180.0) / std::f64::consts::PI) as f32;
    let radians = f64::from(degrees) * std::f64::consts::PI / 180.0;
    let (cos, sin) = (
        libm::cos(radians) as f32 * 0.5,
        libm::sin(radians) as f32 * 0.5,
    );
    let [x, y] = center;
    let first = [
        x - sin * across - cos * width,
        y + cos * across - sin * width,
    ];
    let second = [
        x + sin * across - cos * width,
        y - cos * across - sin * width,
    ];
    let opposite = |[at_x, at_y]: [f32; 2]| [2.0 * x - at_x, 2.0 * y - at_y];
    Some(Rectangle {
        corners: ordered([first, second, opposite(first), opposite(second)]),
        side: width.min(across),
    })
}

/// The corners from the upper left clockwise: of the two on the left the upper one, and so on.
fn ordered(mut corners: Quad) -> Quad {
    corners.sort_by(|one, other| one[0].total_cmp(&other[0]));
    let [one, two, three, four] = corners;
    let (upper_left, lower_left) = if two[1] > one[1] {
        (one, two)
    } else {
        (two, one)
    };
    let (upper_right, lower_right) = if four[1] > three[1] {
        (three, four)
    } else {
        (four, three)
    };
    [upper_left, upper_right, lower_right, lower_left]
}

/// The corners of the convex hull of points, none of them between two others, so that each turn has a positive cross product.
fn hull(points: &[Point]) -> Vec<Point> {
    let mut points = points.to_vec();
    points.sort_unstable();
    points.dedup();
    if points.len() < 3 {
        return points;
    }
    let mut chain: Vec<Point> = Vec::new();
    let turns = |chain: &[Point], next: Point| match chain {
        [.., one, two] => {
            let by = |at: usize, from: &Point, to: &Point| i64::from(to[at]) - i64::from(from[at]);
            by(0, one, two) * by(1, one, &next) - by(1, one, two) * by(0, one, &next) > 0
        }
        _ => true,
    };
    let there = points.iter();
    let back = points.iter().rev().skip(1);
    let mut floor = 1;
    for (at, &next) in there.chain(back).enumerate() {
        if at == points.len() {
            floor = chain.len();
        }
        while chain.len() > floor && !turns(&chain, next) {
            chain.pop();
        }
        chain.push(next);
    }
    // The last one is the first again.
    chain.pop();
    chain
}

/// Centre, a side as a vector, and the length of the other one.
fn calipers(hull: &[[f32; 2]]) -> ([f32; 2], [f32; 2], f32) {
    let next = |at: usize| if at + 1 == hull.len() { 0 } else { at + 1 };
    let edge = |at: usize| {
        let ([x, y], [to_x, to_y]) = (hull[at], hull[next(at)]);
        [to_x - x, to_y - y]
    };
    // OpenCV has the hull of a border from the end of its upper edge on, and takes the first of two.
    let most = |axis: usize, sign: f32| {
        let reach = |at: usize| sign * hull[at][axis];
        let best = (1..hull.len()).fold(
            0,
            |best, at| if reach(at) > reach(best) { at } else { best },
        );
        let (before, behind) = (
            if best == 0 { hull.len() - 1 } else { best - 1 },
            next(best),
        );
        match (axis, sign > 0.0) {
            (1, false) if reach(behind) == reach(best) => behind,
            (1, false) => best,
            _ if reach(before) == reach(best) => before,
            _ => best,
        }
    };
    // Where the four sides touch: the least y, the greatest x, the greatest y, the least x.
    let mut touch = [most(1, -1.0), most(0, 1.0), most(1, 1.0), most(0, -1.0)];
    // The edge behind each, turned as if it were at the first side.
    let level = |side: usize, [x, y]: [f32; 2]| match side {
        0 => [x, y],
        1 => [y, -x],
        2 => [-x, -y],
        _ => [-y, x],
    };
    let mut least = f32::MAX;
    let mut best = ([0.0; 2], [0.0; 2], 0.0);
    for _ in 0..hull.len() {
        let mut side = 0;
        let mut lead = edge(touch[0]);
        for (other, &at) in touch.iter().enumerate().skip(1) {
            let [x, y] = level(other, edge(at));
            // It is to the right of the one so far: the calipers reach it first.
            if y * lead[0] - x * lead[1] < 0.0 {
                (side, lead) = (other, [x, y]);
            }
        }
        let ahead = edge(touch[side]);
        let squares =
            f64::from(ahead[0]) * f64::from(ahead[0]) + f64::from(ahead[1]) * f64::from(ahead[1]);
        let scale = (1.0 / libm::sqrt(squares)) as f32;
        let [a, b] = level(side, [ahead[0] * scale, ahead[1] * scale]);
        touch[side] = next(touch[side]);
        let [low, right, high, left] = touch.map(|at| hull[at]);
        let width = (right[0] - left[0]) * a + (right[1] - left[1]) * b;
        let height = -(high[0] - low[0]) * b + (high[1] - low[1]) * a;
        if width * height <= least {
            least = width * height;
            // Where the lines through the left place and the low place cross.
            let (one, other) = (a * left[0] + left[1] * b, -b * low[0] + low[1] * a);
            let scale = 1.0 / (a * a + b * b);
            let (x, y) = ((one * a - other * b) * scale, (a * other + b * one) * scale);
            let (along, across) = ([a * width, b * width], [-b * height, a * height]);
            let center = [
                x + (along[0] + across[0]) * 0.5,
                y + (along[1] + across[1]) * 0.5,
            ];
            let [x, y] = across.map(f64::from);
            best = (center, along, libm::sqrt(x * x + y * y) as f32);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hull_has_no_place_between_others() {
        let square = [
            [0, 0],
            [1, 0],
            [2, 0],
            [2, 2],
            [1, 1],
            [0, 2],
            [0, 1],
            [0, 0],
        ];
        assert_eq!(hull(&square), [[0, 0], [2, 0], [2, 2], [0, 2]]);
        assert_eq!(hull(&[[0, 0], [1, 1], [3, 3], [2, 2]]), [[0, 0], [3, 3]]);
        assert_eq!(hull(&[[5, 5], [5, 5]]), [[5, 5]]);
        assert_eq!(smallest(&[]), None);
    }

    #[test]
    fn points_on_a_line_have_a_rectangle_without_a_width() {
        let found = smallest(&[[0, 0], [4, 4], [2, 2]]).unwrap();
        assert_eq!(found.side, 0.0);
        let point = smallest(&[[3, 7]]).unwrap();
        assert_eq!((point.corners, point.side), ([[3.0, 7.0]; 4], 0.0));
    }
}
