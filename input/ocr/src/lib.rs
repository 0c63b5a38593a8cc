//! Text in pictures, for isovec: everything around the three networks of PP-OCR, which run elsewhere.
//!
//! 1. [`Page`] brings a picture to a size that the detector reads, and has the detector's input.
//! 2. [`Page::boxes`] finds the lines of text in the detector's map of probabilities, in the order in which they are read.
//! 3. [`Page::crop`] cuts a line out and makes it level. [`upright_input`] is what the network reads that knows lines which stand
//!    on their head, [`is_upside_down`] reads its answer, and [`turned`] puts such a line upright.
//! 4. [`line_input`] is what the recogniser reads, and [`Alphabet::decode`] makes text of its answer.
//!
//! The reference is the Python package rapidocr-onnxruntime 1.4.4 with OpenCV 4.10: `tests/` holds pixels, contours,
//! rectangles and boxes to it. OpenCV 5 has another arithmetic of perspective, so its crops differ from those of 4.10.
//!
//! # Design
//!
//! **Pixels are OpenCV's, not Pillow's** (`resize.rs`, `warp.rs`). These networks were trained behind OpenCV, whose bilinear
//! filter reads four pixels however small the result is.
//!
//! **A contour is a set of points.** Only its convex hull is used, so borders are followed (`contours.rs`) and not simplified.
//! The hull is exact, in whole numbers.
//!
//! **The grown box is exact** (`grow.rs`). A rectangle that grows has round corners, which Clipper makes of points in whole
//! numbers. The smallest rectangle around them is turned and moved a little by their rounding, so the same points are made.
//!
//! **A line does not depend on its neighbours.** rapidocr pads six lines to the width of the widest, and the recogniser sees the
//! padding. Here each line is padded by itself, as rapidocr does it with `rec_batch_num` 1.
#![forbid(unsafe_code)]

mod alphabet;
mod boxes;
mod contours;
mod error;
mod fill;
mod grow;
mod line;
mod page;
mod rectangle;
mod resize;
mod warp;

#[cfg(test)]
mod tests;

pub use alphabet::{Alphabet, Line};
pub use boxes::Quad;
pub use error::{OcrError, Result};
pub use line::{is_upside_down, line_input, turned, upright_input};
pub use page::Page;
