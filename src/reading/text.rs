//! The text of a picture.

use serde::Serialize;

/// The text of one picture.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PictureText {
    /// The picture's width in pixels, turned as its EXIF asks for.
    pub width: usize,
    /// Its height in pixels.
    pub height: usize,
    /// Its lines of text, in the order in which they are read; none where there is no text.
    pub lines: Vec<TextLine>,
}

/// A line of text, and where it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TextLine {
    /// What it says.
    pub text: String,
    /// The mean probability of its characters, from 0 to 1.
    pub score: f64,
    /// The corners of the box around it, each `[x, y]` in pixels of the picture: upper left, upper right, lower right, lower left.
    pub corners: [[f32; 2]; 4],
}

impl PictureText {
    /// The lines alone, each ended by a line break.
    pub fn plain(&self) -> String {
        self.lines
            .iter()
            .flat_map(|line| [&line.text, "\n"])
            .collect()
    }
}
