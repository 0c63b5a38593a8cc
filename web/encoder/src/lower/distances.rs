//! Terms of attention scores by the content of one token and the distance of both, as DeBERTa has them
//! (<https://arxiv.org/abs/2006.03654>, section 3.1): a product of each head with a matrix of its own, and of its columns the one that
//! belongs to the offset of the pair.

use std::sync::Arc;

use super::Lowerer;
use crate::constant::elements;
use crate::error::Why;
use crate::ledger::Ledger;
use crate::node::{Relative, Side, Table};
use crate::value::{Axis, ByDistance, ByHead, Data, Offsets, Scores, Value, Weight};

impl Lowerer {
    /// Tokens cut into heads, times a matrix for each head, `[heads, size, columns]`; which columns are wanted is not known yet.
    pub(super) fn by_head(&mut self, data: &Data, matrices: &Value) -> Option<Value> {
        let extents: Option<Vec<usize>> = matrices.shape().iter().map(|dim| dim.extent()).collect();
        let [heads, size, columns] = extents?[..] else {
            return None;
        };
        let rank = data.axes.len();
        let fits = rank == 4
            && data.axes[rank - 2] == Axis::Tokens
            && data.axes[rank - 3].dim().extent() == Some(heads)
            && data.axes[rank - 1].dim().extent() == Some(size);
        let table = match matrices {
            Value::Constant(constant) => Table::Constant(self.builder.floats(constant).ok()?),
            // A row of the table is a head's matrix, and has one scale.
            Value::Weight(weight) if !weight.transposed && of_rows(weight) => {
                Table::Weight(weight.clone())
            }
            _ => return None,
        };
        fits.then(|| {
            Value::ByHead(Arc::new(ByHead {
                tokens: data.clone(),
                matrices: matrices.clone(),
                side: Side { table, place: 0 },
                columns,
            }))
        })
    }

    /// Of each token's products by head those that belong to the offset of a pair.
    pub(super) fn pick(&mut self, value: &Value, at: usize, ids: &Value) -> Why<Value> {
        let (Value::ByHead(products), Value::Offsets(ids)) = (value, ids) else {
            return Err("places in what differs from place to place".into());
        };
        let columns = products.columns;
        let (of, heads, size) = self.builder.heads(&products.tokens, false)?;
        if at != 3 || ids.lead != [1, heads] {
            return Err("places along another axis, or for other heads".into());
        }
        let span = ids.span();
        let mut own = ids.values.chunks(span);
        let first = own.next().unwrap_or_default();
        if own.any(|other| other != first) {
            return Err("other places for each head".into());
        }
        let column = |&id: &f64| {
            let id = if id < 0.0 { id + columns as f64 } else { id };
            (id >= 0.0 && id < columns as f64).then_some(id as u32)
        };
        let by_offset: Option<Vec<u32>> = first.iter().map(column).collect();
        self.builder.limit_positions(ids.positions);
        Ok(Value::ByDistance(ByDistance {
            of,
            heads,
            size,
            of_keys: false,
            side: products.side.clone(),
            columns,
            by_offset: by_offset.ok_or("an entry that does not exist")?.into(),
        }))
    }

    /// Products by head as any other value, where no operator follows that is known for them.
    pub(super) fn known_products(&mut self, value: Value) -> Why<Value> {
        match value {
            Value::ByHead(products) => {
                let tokens = Value::Data(products.tokens.clone());
                let terms = self.product_by_terms(&tokens, &products.matrices);
                terms.map_err(|_| "a product with a stack of matrices".into())
            }
            other => Ok(other),
        }
    }
}

/// Whether a weight has no scale, or one for each of its rows at most.
fn of_rows(weight: &Weight) -> bool {
    let scale = weight.scale.as_ref();
    scale.is_none_or(|(scale, axis)| *axis == 0 || scale.values.len() == 1)
}

impl ByDistance {
    /// With queries and keys in each other's place.
    pub(super) fn turned(&self) -> Self {
        Self {
            of_keys: !self.of_keys,
            ..self.clone()
        }
    }
}

impl Scores {
    /// With such terms added.
    pub(super) fn with_terms(mut self, terms: &ByDistance) -> Why<Self> {
        let other = || Err("terms by distance of other heads, or of scores that are scaled".into());
        let own = if terms.of_keys { self.key } else { self.query };
        if self.scale != 1.0
            || self.rank != 4
            || (own, self.heads, self.size) != (terms.of, terms.heads, terms.size)
        {
            return other();
        }
        let mut relative = match self.relative.take() {
            None => Relative {
                queries: None,
                keys: None,
                columns: terms.columns,
                by_offset: terms.by_offset.clone(),
            },
            Some(known) if known.columns == terms.columns && known.by_offset == terms.by_offset => {
                *known
            }
            Some(_) => return other(),
        };
        let side = match terms.of_keys {
            true => &mut relative.keys,
            false => &mut relative.queries,
        };
        if side.replace(terms.side.clone()).is_some() {
            return other();
        }
        self.relative = Some(Box::new(relative));
        Ok(self)
    }
}

impl Offsets {
    /// The same for each of `lead`.
    pub(super) fn repeated(&self, ledger: &Ledger, lead: Vec<usize>) -> Why<Self> {
        let count = elements(&lead).and_then(|all| all.checked_mul(self.span()));
        let count = count.ok_or("values for pairs of tokens are repeated too often")?;
        let values = (0..count).map(|at| self.values[at % self.span()]);
        Ok(Self {
            lead,
            values: ledger.numbers(count, values)?,
            ..self.clone()
        })
    }
}
