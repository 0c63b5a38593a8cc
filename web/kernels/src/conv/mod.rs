//! Convolutions and pools over pictures, channels last: a map is `[height, width, channels]`, a row for each pixel.
//!
//! A convolution with a kernel of 1 x 1 is a product of the pixels with the weights ([`gemm`](crate::gemm::gemm)). One with a
//! larger kernel is a product too, of rows that [`Windows::gather`] makes. In a depthwise convolution every channel is
//! computed from itself alone ([`Depthwise`]).

mod depthwise;
mod pixels;
mod pool;
mod windows;

pub use depthwise::{Depthwise, depthwise};
pub use pixels::{
    add, limit, mean_of_pixels, scale_and_shift, scale_channels, to_pixels, to_planes,
};
pub use pool::{Average, average_pool, max_pool};
pub use windows::{Map, Window, Windows};
