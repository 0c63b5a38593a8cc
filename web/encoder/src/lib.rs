//! From an ONNX graph of a transformer encoder to a plan of operators ([`Plan`]), and for the
//! processor to a program of fused kernels ([`Program`]).
//!
//! The graph is read once, for one text of `n` tokens without padding (`value.rs`): masks, shapes
//! and positions become known, reshapes and transposes become views, and what is left is a list of
//! operators over matrices with a row for each token (`node.rs`). A batch is the texts' tokens one
//! after another, so padding is never computed, products run over all tokens at once, and
//! attention over each text by itself.
//!
//! A graph with something that cannot be said in these terms has no program; [`Unlowered`] says
//! which operator it was.

mod bias;
mod builder;
mod constant;
mod cost;
mod dim;
mod error;
mod eval;
mod facts;
mod fuse;
mod ledger;
mod load;
mod lower;
mod magnitude;
mod node;
pub mod plan;
mod program;
mod recognise;
mod run;
mod value;

pub use error::Unlowered;
pub use facts::NodeWeights;
pub use load::{Dense, StoredMatrix, StoredTable};
pub use lower::knows;
pub use plan::{NoTurns, Pause, Plan, TakeWeights};
pub use program::{CompileError, Program};
pub use run::{Run, Stepped, Texts};
