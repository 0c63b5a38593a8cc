//! Weights apart from the graph: a name, a type, a shape, and bytes on request.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use crate::content::Content;
use crate::error::{EngineError, Result};
use crate::maybe_send::{EngineFuture, MaybeSend, MaybeSync};
use crate::tensor::DType;

/// The facts about a weight that are known without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightInfo {
    /// The initializer's name in the graph.
    pub name: String,
    /// The element type that [`WeightSource::read`] gives.
    pub dtype: DType,
    /// The extents, outermost first.
    pub shape: Vec<usize>,
}

impl WeightInfo {
    /// Size in bytes; `usize::MAX` for a shape that no memory could hold.
    pub fn byte_len(&self) -> usize {
        self.elements().saturating_mul(self.dtype.size())
    }

    /// Number of elements; `usize::MAX` for a shape that no memory could hold.
    pub fn elements(&self) -> usize {
        self.shape
            .iter()
            .fold(1, |count: usize, &extent| count.saturating_mul(extent))
    }
}

/// Where weights come from: a mapped file, a file in memory, a conversion of either.
///
/// Engines read the tensors one at a time, in order, and drop each before the next, so that no engine needs the whole
/// model in memory beside its own copy. Reading is async for sources that fetch; local sources return a ready future.
pub trait WeightSource: MaybeSend + MaybeSync + std::fmt::Debug {
    /// All weights, in a fixed order.
    fn weights(&self) -> &[WeightInfo];

    /// Little-endian bytes of the weight at `index` in [`weights`](Self::weights), exactly
    /// `byte_len` of them. Their alignment is not promised.
    fn read<'a>(&'a self, index: usize) -> EngineFuture<'a, Bytes>;

    /// Hands the same bytes over in order, in one piece or in several, of which all but the last
    /// hold whole elements. Sources that need not hold a large tensor as a whole do so here.
    fn read_pieces<'a>(&'a self, index: usize, sink: &'a mut dyn Sink) -> EngineFuture<'a, ()> {
        Box::pin(async move { sink.take(&self.read(index).await?) })
    }

    /// The bytes of the matrix `[rows, columns]` at `index` the other way round, `[columns, rows]`, if that is how they are stored:
    /// [`read`](Self::read) would turn them. Linear layers are stored so, and an engine that brings weights into an order of its own
    /// takes either.
    fn turned<'a>(&'a self, index: usize) -> Option<EngineFuture<'a, Bytes>> {
        let _ = index;
        None
    }

    /// The bytes of the weight at `index` where a mapped file has them as [`read`](Self::read) gives them. They may be kept, and take no
    /// memory of the process's own; the file must not be changed in place meanwhile, which a mapped file asks for anyway.
    fn lent(&self, index: usize) -> Option<Bytes> {
        let _ = index;
        None
    }
}

/// Takes bytes as they come.
pub trait Sink: MaybeSend {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// Their fault.
    fn take(&mut self, piece: &[u8]) -> Result<()>;
}

/// Weights that need no conversion: parts of files, which may be mapped or stored elsewhere, or bytes.
#[derive(Debug, Default)]
pub struct BytesWeights {
    infos: Vec<WeightInfo>,
    data: Vec<Content>,
}

impl BytesWeights {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a weight.
    ///
    /// # Errors
    /// [`EngineError::Weight`] when the length does not match the type and shape.
    pub fn push(&mut self, info: WeightInfo, data: impl Into<Content>) -> Result<()> {
        let data = data.into();
        if info.byte_len() != data.len() {
            return Err(EngineError::Weight {
                detail: format!(
                    "{} {:?} takes {} bytes, not {}",
                    info.dtype,
                    info.shape,
                    info.byte_len(),
                    data.len()
                ),
                name: info.name,
            });
        }
        self.infos.push(info);
        self.data.push(data);
        Ok(())
    }

    fn unread(&self, index: usize, error: &io::Error) -> EngineError {
        EngineError::Weight {
            name: self.infos[index].name.clone(),
            detail: format!("it cannot be read: {error}"),
        }
    }
}

impl WeightSource for BytesWeights {
    fn weights(&self) -> &[WeightInfo] {
        &self.infos
    }

    fn read<'a>(&'a self, index: usize) -> EngineFuture<'a, Bytes> {
        let data = self.data[index].bytes();
        Box::pin(async move { data.map_err(|error| self.unread(index, &error)) })
    }

    fn read_pieces<'a>(&'a self, index: usize, sink: &'a mut dyn Sink) -> EngineFuture<'a, ()> {
        Box::pin(async move {
            let take = |piece: &[u8]| sink.take(piece);
            self.data[index].pieces(take, |error| self.unread(index, &error))
        })
    }

    fn lent(&self, index: usize) -> Option<Bytes> {
        self.data[index].lent()
    }
}

/// Weights that identify a model: a BLAKE3 hash over names, types, shapes and bytes of the
/// *original* tensors, in name order. A converted or exported form carries the original's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct WeightsIdentity(pub String);

/// A shared source.
pub type Weights = Arc<dyn WeightSource>;
