//! isovec-ocr has the pixels, rectangles and boxes of rapidocr 1.4.4 with OpenCV 4.10. `make.py` wrote what those make of pictures
//! and maps from a generator that is here too.

use isovec_image::{Channels, Image};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::boxes::{find, in_reading_order};
use crate::contours::{Point, borders, dilate};
use crate::fill::mean;
use crate::grow::grow;
use crate::rectangle::smallest;
use crate::resize::resize;
use crate::{Alphabet, Page, Quad, line_input, upright_input};

/// As in `make.py`.
struct Noise(u32);

impl Noise {
    fn byte(&mut self) -> u8 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 24) as u8
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    fn below(&mut self, limit: u32) -> u32 {
        let high = u32::from(self.byte());
        (high * 256 + u32::from(self.byte())) % limit
    }

    /// The peer's blue is first; arithmetic treats channels alike.
    fn picture(&mut self, [width, height]: [usize; 2]) -> Image {
        Image::new(width, height, Channels::Rgb, self.bytes(width * height * 3)).unwrap()
    }
}

#[derive(Deserialize)]
struct Peer {
    resized: Vec<Resized>,
    crops: Vec<Crop>,
    contours: Vec<Contours>,
    rectangles: Vec<Around>,
    offsets: Vec<Grown>,
    scores: Vec<Score>,
    maps: Vec<Map>,
    orders: Vec<Order>,
    pages: Vec<PageCase>,
    lines: Vec<LineCase>,
    labels: Vec<Label>,
    detector_values: String,
}

#[derive(Deserialize)]
struct Resized {
    from: [usize; 2],
    to: [usize; 2],
    pixels: String,
}

#[derive(Deserialize)]
struct Crop {
    seed: u32,
    from: [usize; 2],
    corners: Quad,
    to: [usize; 2],
    pixels: String,
}

#[derive(Deserialize)]
struct Contours {
    seed: u32,
    size: [usize; 2],
    dilated: bool,
    mask: String,
    count: usize,
    points: String,
}

#[derive(Deserialize)]
struct Around {
    points: Vec<Point>,
    corners: [f32; 8],
    side: f32,
}

#[derive(Deserialize)]
struct Grown {
    r#box: [f32; 8],
    corners: [f32; 8],
    side: f32,
}

#[derive(Deserialize)]
struct Score {
    seed: u32,
    r#box: [f32; 8],
    inside: bool,
    score: f64,
}

#[derive(Deserialize)]
struct Map {
    seed: u32,
    size: [usize; 2],
    page: (usize, usize),
    map: String,
    boxes: Vec<Quad>,
}

#[derive(Deserialize)]
struct Order {
    corners: Vec<[f32; 2]>,
    ordered: Vec<[f32; 2]>,
}

#[derive(Deserialize)]
struct PageCase {
    size: [usize; 2],
    page: (usize, usize),
    input: (usize, usize),
    corners: Quad,
    origin: [f32; 8],
}

#[derive(Deserialize)]
struct LineCase {
    size: [usize; 2],
    line: [usize; 2],
    values: String,
    turned: String,
}

#[derive(Deserialize)]
struct Label {
    seed: u32,
    steps: usize,
    text: String,
    score: f64,
}

fn peer() -> Peer {
    serde_json::from_str(include_str!("peer.json")).unwrap()
}

fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash_of_floats(values: impl IntoIterator<Item = f32>) -> String {
    let bytes: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
    hash(&bytes)
}

fn quad(values: &[f32; 8]) -> Quad {
    let (corners, _) = values.as_chunks();
    corners.try_into().unwrap()
}

#[test]
fn pictures_are_resized_to_the_same_bytes() {
    for case in peer().resized {
        let [width, height] = case.from;
        let picture = Noise((width * 1000 + height) as u32).picture(case.from);
        let resized = resize(picture.view(), case.to[0], case.to[1]).unwrap();
        assert_eq!(
            hash(resized.data()),
            case.pixels,
            "{:?} to {:?}",
            case.from,
            case.to
        );
    }
}

#[test]
fn lines_are_cut_out_to_the_same_bytes() {
    for case in peer().crops {
        let mut noise = Noise(case.seed);
        // Of which `make.py` took the size.
        for _ in 0..4 {
            noise.byte();
        }
        let page = Page::whole(noise.picture(case.from));
        let crop = page.crop(&case.corners).unwrap().unwrap();
        assert_eq!([crop.width(), crop.height()], case.to, "{}", case.seed);
        assert_eq!(hash(crop.data()), case.pixels, "{}", case.seed);
    }
}

#[test]
fn borders_have_the_same_points_in_the_same_order() {
    for case in peer().contours {
        let mut noise = Noise(case.seed);
        for _ in 0..4 {
            noise.byte();
        }
        let [width, height] = case.size;
        let bytes = noise.bytes(width * height);
        let mut mask: Vec<bool> = bytes
            .iter()
            .map(|&byte| u32::from(byte) < 100 + 10 * case.seed)
            .collect();
        if case.dilated {
            mask = dilate(&mask, width);
        }
        let bits: Vec<u8> = mask.iter().copied().map(u8::from).collect();
        assert_eq!(hash(&bits), case.mask, "{}", case.seed);
        let mut found = borders(&mask, width, height);
        assert_eq!(found.len(), case.count, "{}", case.seed);
        for border in &mut found {
            border.sort_unstable();
            border.dedup();
        }
        let points = found.concat();
        let bytes: Vec<u8> = points
            .as_flattened()
            .iter()
            .flat_map(|at| at.to_le_bytes())
            .collect();
        assert_eq!(hash(&bytes), case.points, "{}", case.seed);
    }
}

#[test]
fn rectangles_around_points_are_the_same() {
    for case in peer().rectangles {
        let found = smallest(&case.points).unwrap();
        assert_eq!(found.corners, quad(&case.corners), "{:?}", case.points);
        assert_eq!(found.side, case.side, "{:?}", case.points);
    }
}

#[test]
fn boxes_grow_to_the_same_rectangles() {
    for case in peer().offsets {
        let found = smallest(&grow(&quad(&case.r#box))).unwrap();
        assert_eq!(found.corners, quad(&case.corners), "{:?}", case.r#box);
        assert_eq!(found.side, case.side, "{:?}", case.r#box);
    }
}

#[test]
fn the_mean_in_a_box_is_the_same() {
    let cases = peer().scores;
    assert!(cases.iter().filter(|case| case.inside).count() > 20);
    for case in cases {
        let (width, height) = (120, 90);
        let map: Vec<f32> = Noise(case.seed)
            .bytes(width * height)
            .iter()
            .map(|&byte| f32::from(byte) / 255.0)
            .collect();
        let found = mean(&map, width, height, &quad(&case.r#box));
        // OpenCV clips lines that leave the map before it draws them.
        let near = if case.inside { 1e-9 } else { 0.01 };
        assert!(
            (found - case.score).abs() < near,
            "{:?}: {found} for {}",
            case.r#box,
            case.score
        );
    }
}

#[test]
fn maps_have_the_same_boxes_in_the_same_order() {
    for case in peer().maps {
        let [width, height] = case.size;
        let bytes = probabilities(case.seed, width, height);
        assert_eq!(hash(&bytes), case.map, "{}", case.seed);
        let map: Vec<f32> = bytes.iter().map(|&byte| f32::from(byte) / 255.0).collect();
        assert_eq!(
            find(&map, width, height, case.page),
            case.boxes,
            "{}",
            case.seed
        );
    }
}

/// As in `make.py`.
fn probabilities(seed: u32, width: usize, height: usize) -> Vec<u8> {
    let mut noise = Noise(seed);
    let mut values = vec![0_i64; width * height];
    for _ in 0..4 + noise.below(6) {
        let mut take = |limit: u32| i64::from(noise.below(limit));
        let (left, top) = (take(width as u32), take(height as u32));
        let (run, rise) = (20 + take(60), take(17) - 8);
        let half = (3 + take(6)) * run;
        let value = 150 + take(90);
        let has_hole = take(3) == 0;
        let length = run * run + rise * rise;
        for (at, to) in values.iter_mut().enumerate() {
            let (x, y) = ((at % width) as i64 - left, (at / width) as i64 - top);
            let (along, across) = (x * run + y * rise, (y * run - x * rise).abs());
            if (0..=length).contains(&along) && across <= half {
                let is_hole = along * 2 >= length && along * 4 <= length * 3 && across * 2 <= half;
                *to = if has_hole && is_hole { 20 } else { value };
            }
        }
    }
    let noise = noise.bytes(width * height);
    let pairs = values.iter().zip(noise);
    pairs
        .map(|(&value, byte)| (value + i64::from(byte % 48)).clamp(0, 255) as u8)
        .collect()
}

#[test]
fn boxes_are_read_in_the_same_order() {
    for case in peer().orders {
        let boxes = case
            .corners
            .iter()
            .map(|&[x, y]| [[x, y], [x + 5.0, y], [x + 5.0, y + 5.0], [x, y + 5.0]]);
        let ordered: Vec<[f32; 2]> = in_reading_order(boxes.collect())
            .iter()
            .map(|corners| corners[0])
            .collect();
        assert_eq!(ordered, case.ordered);
    }
}

#[test]
fn pages_have_the_same_sizes_and_ways_back() {
    for case in peer().pages {
        let [width, height] = case.size;
        let picture = Image::new(width, height, Channels::Gray, vec![0; width * height]).unwrap();
        let page = Page::new(picture).unwrap();
        assert_eq!(page.size(), case.page, "{:?}", case.size);
        let input = page.detector_input().unwrap();
        assert_eq!((input.width, input.height), case.input, "{:?}", case.size);
        assert_eq!(
            page.on_picture(&case.corners),
            quad(&case.origin),
            "{:?}",
            case.size
        );
    }
}

#[test]
fn networks_read_the_same_values() {
    let peer = peer();
    let every: Vec<u8> = (0..=255).flat_map(|byte| [byte; 3]).collect();
    // A page whose detector reads it as it is.
    let mut picture = every.repeat(3 * 736);
    picture.truncate(736 * 736 * 3);
    let page = Page::whole(Image::new(736, 736, Channels::Rgb, picture).unwrap());
    let input = page.detector_input().unwrap();
    assert_eq!(
        hash_of_floats(input.data[..256].iter().copied()),
        peer.detector_values
    );
    for case in peer.lines {
        let [width, height] = case.size;
        let mut bytes = Noise((width + height) as u32).bytes(width * height * 3);
        // The peer's are blue, green and red.
        bytes
            .as_chunks_mut::<3>()
            .0
            .iter_mut()
            .for_each(|pixel| pixel.reverse());
        let line = Image::new(width, height, Channels::Rgb, bytes).unwrap();
        let values = line_input(&line).unwrap();
        assert_eq!([values.width, values.height], case.line, "{:?}", case.size);
        assert_eq!(hash_of_floats(values.data), case.values, "{:?}", case.size);
        let values = upright_input(&line).unwrap();
        assert_eq!(hash_of_floats(values.data), case.turned, "{:?}", case.size);
    }
}

#[test]
fn probabilities_have_the_same_text() {
    let alphabet = Alphabet::new("a\nb\né\n字");
    for case in peer().labels {
        let mut noise = Noise(case.seed);
        noise.byte();
        noise.byte();
        let bytes = noise.bytes(case.steps * alphabet.classes());
        let values: Vec<f32> = bytes
            .iter()
            .map(|&byte| f32::from(byte % 5) / 8.0)
            .collect();
        let line = alphabet.decode(&values).unwrap();
        assert_eq!(line.text, case.text);
        assert!((line.score - case.score).abs() < 1e-12);
    }
}
