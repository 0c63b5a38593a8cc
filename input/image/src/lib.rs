//! Pictures for isovec: bytes of a file in, `pixel_values` of a model out, with the bytes that Pillow has.
//!
//! - [`decode`] reads PNG, JPEG, WebP and the first frame of a GIF, never through a canvas: a canvas multiplies by alpha
//!   and may add noise, so its pixels are not those that a model was trained on.
//! - [`resize`] has the six filters of `preprocessor_config.json`, with Pillow's weights of 22 bits or torchvision's of 16.
//! - [`ops`] has single operations, with a choice of instructions and threads.
//! - [`Processor`] does what a `preprocessor_config.json` asks for, and refuses by name what it does not know. [`Reader`] is the
//!   way from a file to a model's input.
//!
//! The reference is Pillow 12 with transformers 5: `tests/pillow.rs` holds every byte to it, natively and in wasm. Pillow 13
//! resizes the height first where the height shrinks more than the width, and so differs from all Pillows before it and
//! from torchvision.
//!
//! Nothing here depends on the target, and nothing is `unsafe`: `isovec-pixels` has what is.
#![forbid(unsafe_code)]

mod decode;
mod error;
mod image;
pub mod ops;
mod orientation;
mod process;
mod reader;
mod resize;

pub use decode::{DecodeOptions, Format, decode};
pub use error::{ImageError, Result};
pub use image::{Alpha, Channels, Image, ImageView};
pub use orientation::Orientation;
pub use process::{PixelValues, Processor, Reference};
pub use reader::{ReadOptions, Reader};
pub use resize::{Filter, Weights, Window, resize, resize_window};
