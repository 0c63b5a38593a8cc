//! Weights of which some tables have fewer rows than in their source.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use isovec_engine::error::EngineError;
use isovec_engine::maybe_send::EngineFuture;
use isovec_engine::weights::{Sink, WeightInfo, WeightSource, Weights};

/// A source's weights with the rows of some tables taken out.
#[derive(Debug)]
pub(super) struct Gathered {
    source: Weights,
    infos: Vec<WeightInfo>,
    tables: Vec<bool>,
    rows: Arc<[u32]>,
}

impl Gathered {
    /// The weights of `source`; tables of these names have `rows`, in this order.
    pub(super) fn new(source: Weights, names: &BTreeSet<String>, rows: Arc<[u32]>) -> Self {
        let mut infos = source.weights().to_vec();
        let tables: Vec<bool> = infos
            .iter()
            .map(|info| names.contains(&info.name))
            .collect();
        for (info, _) in infos.iter_mut().zip(&tables).filter(|(_, table)| **table) {
            if let Some(extent) = info.shape.first_mut() {
                *extent = rows.len();
            }
        }
        Self {
            source,
            infos,
            tables,
            rows,
        }
    }
}

impl WeightSource for Gathered {
    fn weights(&self) -> &[WeightInfo] {
        &self.infos
    }

    fn read<'a>(&'a self, index: usize) -> EngineFuture<'a, Bytes> {
        Box::pin(async move {
            let whole = self.source.read(index).await?;
            if !self.tables[index] {
                return Ok(whole);
            }
            let info = &self.source.weights()[index];
            take(&whole, info.shape.first().copied().unwrap_or(0), &self.rows)
                .map(Bytes::from)
                .ok_or_else(|| EngineError::Weight {
                    name: info.name.clone(),
                    detail: "it lacks a row that a token needs".into(),
                })
        })
    }

    fn read_pieces<'a>(&'a self, index: usize, sink: &'a mut dyn Sink) -> EngineFuture<'a, ()> {
        match self.tables[index] {
            true => Box::pin(async move { sink.take(&self.read(index).await?) }),
            false => self.source.read_pieces(index, sink),
        }
    }
}

/// These rows of a table of so many, one after another; `None` where it lacks one.
pub(super) fn take(table: &[u8], extent: usize, rows: &[u32]) -> Option<Vec<u8>> {
    let width = table.len().checked_div(extent)?;
    let mut taken = Vec::with_capacity(width * rows.len());
    for &row in rows {
        let start = usize::try_from(row).ok()?.checked_mul(width)?;
        taken.extend_from_slice(table.get(start..start.checked_add(width)?)?);
    }
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_taken_in_their_order_or_not_at_all() {
        let table = [0, 1, 10, 11, 20, 21];
        assert_eq!(take(&table, 3, &[2, 0]), Some(vec![20, 21, 0, 1]));
        assert_eq!(take(&table, 3, &[3]), None);
        assert_eq!(take(&table, 0, &[0]), None);
    }
}
