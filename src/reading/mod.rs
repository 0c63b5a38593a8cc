//! Text in pictures: three networks in a row, with `isovec-ocr` between them.
//!
//! `network.rs` has one network with its engine, and says what a file of it must be. `reader.rs` takes pictures through all three.
//! `effective.rs` says what became of the configuration. `text.rs` is what comes out, and `hocr.rs` writes it for other programs.

pub(crate) mod asking;
mod effective;
mod hocr;
mod network;
mod reader;
mod sizes;
mod text;

pub use hocr::hocr;
pub use reader::{ReadingOptions, TextReader, TextReaderBuilder};
pub use text::{PictureText, TextLine};
