//! Lowers the ONNX graph of a convolutional network to a program of fused operators, and runs it on the processor
//! ([`Executable`], [`Run`]).
//!
//! It takes graphs with one picture as input, `[batch, channels, rows, columns]` of f32 with fixed extents but for the batch.
//! It reads ResNet, MobileNet, EfficientNet, ConvNeXt and others that are made of the same operators.
//!
//! If a graph has what no program can express, lowering fails with [`Refused`], which names the operator, so that another
//! engine can take it.
//!
//! # Design
//!
//! **Channels last.** A graph holds a map as planes, `[channels, rows, columns]`. A program holds it as pixels, `[rows,
//! columns, channels]`, so that a convolution of 1 x 1 is the product of its pixels with a matrix. A larger kernel is a
//! product too, of rows that are gathered block by block into bounded memory. Depthwise convolutions have a kernel of their
//! own. Groups that are no single channels are computed one after another, and dilated kernels are gathered like others:
//! both are right and not fast.
//!
//! **What follows a convolution is part of it** (`builder.rs`). A batch normalisation is folded into its weights; bias,
//! activation, residual and limits are applied to its result while that is in the cache. Transposes, reshapes and casts only
//! give another order to the axes of a value (`lower/layout.rs`), so ConvNeXt's transposes cost nothing.
//!
//! **Shapes are known** (`lower/known.rs`). All extents but the number of pictures are fixed, so the arithmetic of shapes that
//! exporters write is done while the graph is read.
//!
//! **Attention over a row of pixels is one operator** (`lower/attention.rs`). A pixel is a token, and its channels are the heads.
//! What exporters write of cuts, turns, products and a softmax is followed until the last product, and computed by the kernel of
//! encoders.
//!
//! **A picture is computed by itself** (`run/`), with the sums of `isovec-kernels`, which have one order. Its result has the
//! same bits alone and in any batch, on any number of threads. Memory does not grow with the batch but for the outputs, and
//! is known, and what is more than 32 times the picture is taken from the budget of the load, before a weight is read (`memory.rs`).

mod builder;
mod cost;
mod error;
mod executable;
mod load;
mod lower;
mod memory;
mod node;
mod run;
mod value;

pub use error::{CompileError, Refused};
pub use executable::Executable;
pub use lower::knows;
pub use run::Run;
