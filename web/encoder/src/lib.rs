//! Lowers the ONNX graph of a transformer encoder to a program ([`Program`]), which is a list of operators. For the
//! processor it compiles a program to fused kernels ([`Executable`]).
//!
//! A graph is read once, for one text of `n` tokens without padding (`value.rs`). A program is a list of operators over
//! matrices with a row for each token (`node.rs`). `isovec-gpu` runs the same programs on a GPU.
//!
//! If a graph has an operator that no program can express, lowering fails with [`Unlowered`], which names the operator.
//!
//! # Design
//!
//! **A graph is read as if for one text** (`lower/`). The graph is walked once, for one text of `n` tokens without
//! padding. A value that depends only on the mask, on shapes or on positions is then known and needs no operator. Masks
//! vanish, position tables become lookups by position, and relative biases and windows become a table by offset.
//! Reshapes, transposes, splits and slices become views of a matrix with a row for each token. Exporters spread some
//! functions over many operators; `recognise.rs` recognises such a group when it reads the last operator. Products
//! absorb bias, activation and residual (`fuse.rs`). There is no list of architectures: the same few rules read the
//! graphs of isovec's converters and those of exporters. tract runs models that cannot be lowered, if the feature
//! `tract` of `isovec-web` is on.
//!
//! **Nothing is computed for padding** (`run/`). A batch is the tokens of its texts, one after another. Products, norms
//! and activations run over all tokens at once. Attention and pooling run text by text. A token that the mask hides and
//! `row_lengths` counts is computed, and is nobody's key. A sum over rows of a table reads them where they are (`bag.rs`),
//! so a model of static embeddings writes nothing for a token. A product whose row is multiplied with 0 is not computed for that
//! row (`gate.rs`), so a token costs the experts that were chosen for it.
//!
//! **Costs are counted in one place** (`cost.rs`). Profiles and the view of a graph use the same rule. `facts.rs`
//! describes the nodes of a program without running it.

mod bag;
mod bias;
mod builder;
mod constant;
mod cost;
mod dim;
mod error;
mod eval;
mod executable;
mod facts;
mod fuse;
mod gate;
mod ledger;
mod lent;
mod load;
mod lower;
mod magnitude;
mod node;
pub mod program;
mod recognise;
mod run;
mod value;

pub use error::Unlowered;
pub use executable::{CompileError, Executable};
pub use facts::NodeWeights;
pub use isovec_engine::pause::{NoTurns, Pause};
pub use load::{Dense, StoredMatrix, StoredTable};
pub use lower::knows;
pub use program::{Program, TakeWeights};
pub use run::{Run, Texts};
