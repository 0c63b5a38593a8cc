//! The borders of a mask, followed as Suzuki and Abe do it ("Topological structural analysis of digitized binary images by border
//! following", 1985, algorithm 1), outer borders and those of holes.

/// A place in a map: column and row.
pub(crate) type Point = [i32; 2];

/// The eight neighbours of a place, counterclockwise on a screen, from the right.
const AROUND: [Point; 8] = [
    [1, 0],
    [1, -1],
    [0, -1],
    [-1, -1],
    [-1, 0],
    [-1, 1],
    [0, 1],
    [1, 1],
];

const UNSEEN: i8 = 1;
const SEEN: i8 = 2;
/// Seen on a border that has nothing to its right here.
const SEEN_RIGHT: i8 = -2;

/// A mask within a frame of nothing.
struct Framed {
    width: usize,
    marks: Vec<i8>,
}

impl Framed {
    fn at(&self, [x, y]: Point) -> usize {
        // The frame is around all places that are asked for.
        (y + 1) as usize * self.width + (x + 1) as usize
    }
}

/// Every border of the areas in a mask, the lowest first: each place of it once or more often. Places are connected to all eight
/// neighbours.
pub(crate) fn borders(mask: &[bool], width: usize, height: usize) -> Vec<Vec<Point>> {
    let mut framed = Framed {
        width: width + 2,
        marks: vec![0; (width + 2) * (height + 2)],
    };
    for (y, row) in mask.chunks_exact(width.max(1)).enumerate() {
        for (x, &is_set) in row.iter().enumerate() {
            framed.marks[(y + 1) * (width + 2) + x + 1] = i8::from(is_set);
        }
    }
    let mut found = Vec::new();
    for y in 0..height as i32 {
        for x in 0..width as i32 {
            let at = framed.at([x, y]);
            let mark = framed.marks[at];
            if mark == UNSEEN && framed.marks[at - 1] == 0 {
                found.push(follow(&mut framed, [x, y], 4));
            } else if mark >= UNSEEN && framed.marks[at + 1] == 0 {
                found.push(follow(&mut framed, [x, y], 0));
            }
        }
    }
    found.reverse();
    found
}

/// Follows a border from a place whose neighbour in direction `outside` is not set.
fn follow(framed: &mut Framed, start: Point, outside: usize) -> Vec<Point> {
    let step = |[x, y]: Point, direction: usize| {
        let [right, down] = AROUND[direction % 8];
        [x + right, y + down]
    };
    let is_set = |framed: &Framed, place: Point| framed.marks[framed.at(place)] != 0;
    // Clockwise from the outside, for the border's last place.
    let turns = (1..8).map(|by| (outside + 8 - by) % 8);
    let Some(last) = turns
        .into_iter()
        .find(|&direction| is_set(framed, step(start, direction)))
    else {
        let at = framed.at(start);
        framed.marks[at] = SEEN_RIGHT;
        return vec![start];
    };
    let before_start = step(start, last);
    let (mut place, mut back) = (start, last);
    let mut border = Vec::new();
    loop {
        // Counterclockwise from where it came, for the next place.
        let mut is_right_open = false;
        let mut direction = back + 1;
        while !is_set(framed, step(place, direction)) {
            is_right_open |= direction % 8 == 0;
            direction += 1;
        }
        let at = framed.at(place);
        if is_right_open {
            framed.marks[at] = SEEN_RIGHT;
        } else if framed.marks[at] == UNSEEN {
            framed.marks[at] = SEEN;
        }
        border.push(place);
        let next = step(place, direction);
        if next == start && place == before_start {
            return border;
        }
        back = (direction + 4) % 8;
        place = next;
    }
}

/// A mask in which every set place has spread one to the right and one down: OpenCV's dilation by a square of 2 by 2.
pub(crate) fn dilate(mask: &[bool], width: usize) -> Vec<bool> {
    let mut dilated = mask.to_vec();
    for (at, _) in mask.iter().enumerate().filter(|&(_, &is_set)| is_set) {
        let is_last = at % width == width - 1;
        for (by, fits) in [(1, !is_last), (width, true), (width + 1, !is_last)] {
            if let Some(place) = dilated.get_mut(at + by).filter(|_| fits) {
                *place = true;
            }
        }
    }
    dilated
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(rows: &[&str]) -> (Vec<bool>, usize, usize) {
        let bits = rows.concat().bytes().map(|byte| byte == b'#').collect();
        (bits, rows[0].len(), rows.len())
    }

    #[test]
    fn a_ring_has_a_border_outside_and_one_inside() {
        let (bits, width, height) = mask(&["####.", "#..#.", "####.", "....#"]);
        let found = borders(&bits, width, height);
        // The hole is found after the ring, and what touches a corner belongs to it.
        let sorted = |mut border: Vec<Point>| {
            border.sort_unstable();
            border.dedup();
            border
        };
        let [inner, outer] = [0, 1].map(|at| sorted(found[at].clone()));
        assert_eq!(found.len(), 2);
        assert_eq!(inner, [[0, 1], [1, 0], [1, 2], [2, 0], [2, 2], [3, 1]]);
        assert_eq!(outer.len(), 11);
    }

    #[test]
    fn what_is_small_or_empty_ends() {
        assert!(borders(&[], 0, 0).is_empty());
        assert!(borders(&[false; 6], 3, 2).is_empty());
        assert_eq!(borders(&[true], 1, 1), [[[0, 0]]]);
        let (bits, width, height) = mask(&["#.#", ".#.", "#.#"]);
        let found = borders(&bits, width, height);
        assert_eq!(found.len(), 1);
        assert_eq!(dilate(&bits, width).iter().filter(|&&bit| bit).count(), 9);
        assert_eq!(dilate(&[true, false, false, false], 2), [true; 4]);
        assert_eq!(
            dilate(&[false, true, false, false], 2),
            [false, true, false, true]
        );
    }
}
