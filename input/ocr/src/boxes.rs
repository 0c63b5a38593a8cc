//! From a map of probabilities to boxes around lines of text: the part behind the network of "Real-time scene text detection with
//! differentiable binarization" (Liao and others, 2020), with the numbers of rapidocr.

use crate::contours::{borders, dilate};
use crate::fill::mean;
use crate::grow::grow;
use crate::rectangle::smallest;

/// Four corners, each an x and a y in pixels: upper left, upper right, lower right, lower left.
pub type Quad = [[f32; 2]; 4];

/// A place above this may be text.
const THRESHOLD: f32 = 0.3;

/// A box whose mean is below this is none.
const BOX_THRESHOLD: f64 = 0.5;

/// Borders that are looked at, at most.
const MOST_BORDERS: usize = 1000;

/// The shortest side of a rectangle around a border, in places of the map.
const SHORTEST: f32 = 3.0;

/// The shortest side of a grown box.
const SHORTEST_GROWN: f32 = 5.0;

/// On a page, boxes with a side of at most this many pixels are left out.
const TOO_SMALL: i32 = 3;

/// Boxes whose upper corners differ by less than this stand in one line.
const ONE_LINE: f32 = 10.0;

/// The boxes in a map `[height, width]` of a page of this size (width, height), whose corners are whole numbers; in the order in
/// which they are read.
pub(crate) fn find(map: &[f32], width: usize, height: usize, page: (usize, usize)) -> Vec<Quad> {
    let mask: Vec<bool> = map.iter().map(|&value| value > THRESHOLD).collect();
    let mask = dilate(&mask, width);
    let mut found = Vec::new();
    for border in borders(&mask, width, height).iter().take(MOST_BORDERS) {
        let Some(around) = smallest(border).filter(|around| around.side >= SHORTEST) else {
            continue;
        };
        if mean(map, width, height, &around.corners) < BOX_THRESHOLD {
            continue;
        }
        let Some(grown) = smallest(&grow(&around.corners)) else {
            continue;
        };
        if grown.side < SHORTEST_GROWN {
            continue;
        }
        let scale = |at: f32, length: usize, to: usize| {
            let at = (at / length as f32 * to as f32).round_ties_even();
            at.clamp(0.0, to as f32)
        };
        let corners = grown
            .corners
            .map(|[x, y]| [scale(x, width, page.0), scale(y, height, page.1)]);
        found.extend(on_page(corners, page));
    }
    in_reading_order(found)
}

/// The box clockwise and within the page, if it is not too small.
fn on_page(mut corners: Quad, page: (usize, usize)) -> Option<Quad> {
    corners.sort_by(|one, other| one[0].total_cmp(&other[0]));
    corners[..2].sort_by(|one, other| one[1].total_cmp(&other[1]));
    corners[2..].sort_by(|one, other| one[1].total_cmp(&other[1]));
    let [upper_left, lower_left, upper_right, lower_right] = corners;
    let inside = |[x, y]: [f32; 2]| {
        [
            x.clamp(0.0, page.0 as f32 - 1.0),
            y.clamp(0.0, page.1 as f32 - 1.0),
        ]
    };
    let corners = [upper_left, upper_right, lower_right, lower_left].map(inside);
    let is_large = |at: usize| distance(corners[0], corners[at]) as i32 > TOO_SMALL;
    (is_large(1) && is_large(3)).then_some(corners)
}

/// From top to bottom; boxes in one line from left to right.
pub(crate) fn in_reading_order(mut boxes: Vec<Quad>) -> Vec<Quad> {
    boxes.sort_by(|one, other| {
        let [[x, y], [other_x, other_y]] = [one[0], other[0]];
        y.total_cmp(&other_y).then(x.total_cmp(&other_x))
    });
    for end in 1..boxes.len() {
        for at in (1..=end).rev() {
            let ([x, y], [before_x, before_y]) = (boxes[at][0], boxes[at - 1][0]);
            if (y - before_y).abs() >= ONE_LINE || x >= before_x {
                break;
            }
            boxes.swap(at, at - 1);
        }
    }
    boxes
}

/// Between two corners, in pixels.
pub(crate) fn distance([x, y]: [f32; 2], [to_x, to_y]: [f32; 2]) -> f32 {
    ((to_x - x) * (to_x - x) + (to_y - y) * (to_y - y)).sqrt()
}
