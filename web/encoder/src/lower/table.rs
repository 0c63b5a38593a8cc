//! Operators that look something up, and weights that are stored in few bits.

use isovec_engine::onnx::axis;

use super::Lowerer;
use super::call::Call;
use super::elementwise::{one, with_scale};
use super::slice::index;
use crate::constant::{Constant, Kind, elements};
use crate::dim::Dim;
use crate::error::Why;
use crate::node::{Op, Rows, Table, Unary};
use crate::value::{Axis, Data, MOST_DIMS, Offsets, Value};

impl Lowerer {
    pub(super) fn tables(&mut self, operator: &str, call: &Call<'_>) -> Why<Option<Vec<Value>>> {
        Ok(match operator {
            "Gather" => one(self.gather(call)?),
            "GatherElements" if matches!(call.input(0)?, Value::ByHead(_)) => {
                let rank = call.input(0)?.shape().len();
                let at = axis(call.node.int("axis").unwrap_or(0), rank)?;
                one(self.pick(call.input(0)?, at, call.input(1)?)?)
            }
            "GatherND" | "GatherElements" => one(gather_places(operator, call)?),
            "DequantizeLinear" => one(self.dequantise(call)?),
            _ => return Ok(None),
        })
    }

    fn gather(&mut self, call: &Call<'_>) -> Why<Value> {
        let (table, ids) = (call.input(0)?, call.input(1)?);
        let shape = table.shape();
        let at = axis(call.node.int("axis").unwrap_or(0), shape.len())?;
        match ids {
            Value::Constant(ids) => self.gather_known(table, at, ids),
            Value::Dims { dims, scalar: true } if dims.len() == 1 => match dims[0].known() {
                Some(known) => self.entry(table, at, known),
                // The last of a text's tokens, by its length less one.
                None => {
                    let back = dims[0].minus(shape[at]).and_then(Dim::known);
                    let back = back
                        .filter(|&back| back < 0)
                        .ok_or("an entry beyond the text")?;
                    self.entry(table, at, back)
                }
            },
            Value::Uniform {
                value, shape: ids, ..
            } if ids.iter().all(|&dim| dim == Dim::ONE) => {
                let row = self.entry(table, at, *value as i64)?;
                let target = [&shape[..at], ids, &shape[at + 1..]].concat();
                self.reshape(&row, &target)
            }
            Value::Uniform {
                value, shape: ids, ..
            } => self.same_row(table, at, *value, ids),
            Value::Offsets(ids) => self.by_offset(table, at, ids),
            Value::Data(ids) => self.lookup(table, at, ids),
            other => Err(format!("it looks up by {}", other.what())),
        }
    }

    pub(super) fn gather_known(&mut self, table: &Value, at: usize, ids: &Constant) -> Why<Value> {
        if let (Some(known), 0) = (index(ids), ids.shape.len()) {
            return self.entry(table, at, known);
        }
        if let Value::Constant(table) = table {
            let extent = table.shape[at];
            let wrapped: Option<Vec<usize>> = ids
                .values
                .iter()
                .map(|&id| {
                    let id = if id < 0.0 { id + extent as f64 } else { id };
                    (id >= 0.0 && id < extent as f64).then_some(id as usize)
                })
                .collect();
            let wrapped = wrapped.ok_or("an entry that does not exist")?;
            let taken = table.entries(self.ledger(), at, &wrapped, &ids.shape)?;
            return Ok(Value::constant(taken));
        }
        let few = ids.shape.len() == 1 && ids.values.len() <= MOST_DIMS;
        if let Some(dims) = table.as_dims().filter(|_| few) {
            let taken = ids.values.iter().map(|&id| {
                let id = if id < 0.0 { id + dims.len() as f64 } else { id };
                (id >= 0.0).then(|| dims.get(id as usize).copied())?
            });
            let dims = taken
                .collect::<Option<_>>()
                .ok_or("an entry that does not exist")?;
            return Ok(Value::Dims {
                dims,
                scalar: false,
            });
        }
        // One entry, its axis kept.
        if let Some(known) = index(ids) {
            let entry = self.entry(table, at, known)?;
            let mut shape = entry.shape();
            for place in 0..ids.shape.len() {
                shape.insert(at + place, Dim::ONE);
            }
            return self.reshape(&entry, &shape);
        }
        let extent = shape_at(table, at)?;
        let places = ids.values.iter().map(|&id| {
            let id = if id < 0.0 { id + extent as f64 } else { id };
            (id >= 0.0 && id < extent as f64).then_some(id as usize)
        });
        let places: Vec<usize> = places
            .collect::<Option<_>>()
            .ok_or("an entry that does not exist")?;
        let picked = self.entries(table, at, &places)?;
        let shape = picked.shape();
        let ids = ids.shape.iter().map(|&extent| Dim::new(extent as i64));
        let target: Vec<Dim> = shape[..at]
            .iter()
            .copied()
            .chain(ids)
            .chain(shape[at + 1..].iter().copied())
            .collect();
        self.reshape(&picked, &target)
    }

    /// A row of a table for each token.
    pub(super) fn lookup(&mut self, table: &Value, at: usize, ids: &Data) -> Why<Value> {
        if at != 0 || ids.width() != 1 {
            return Err("it looks up along an axis that is not the first".into());
        }
        let shape = table.shape();
        let extents: Option<Vec<usize>> = shape.iter().map(|dim| dim.extent()).collect();
        let extents = extents.ok_or("it looks up in a text")?;
        let (rows, width) = (extents[0], elements(&extents[1..]));
        let width = width.ok_or("a row that is too long")?;
        if rows == 0 {
            return Err("it looks up in a table without rows".into());
        }
        let source = match table {
            Value::Constant(constant) => Table::Constant(self.builder.floats(constant)?),
            Value::Weight(weight) if !weight.transposed => Table::Weight(weight.clone()),
            other => return Err(format!("it looks up in {}", other.what())),
        };
        let node = self.builder.matrix(ids);
        let per = self.builder.node(node).rows;
        if let Some(start) = self.builder.counts_from(ids) {
            // Positions: the table is as long as a text may be.
            let reach = rows as f64 - start;
            if start < 0.0 || reach < 1.0 {
                return Err(format!("positions from {start} on in a table of {rows}"));
            }
            self.builder.limit_positions(reach as usize);
        }
        let op = Op::Gather {
            table: source,
            ids: node,
        };
        let node = self.builder.push(op, per, width);
        debug_assert!(per == Rows::Tokens || !ids.axes.contains(&Axis::Tokens));
        let data = Data::whole(node, table.kind(), &ids.axes, &extents[1..]);
        Ok(Value::Data(data))
    }

    /// The same row for each token.
    fn same_row(&mut self, table: &Value, at: usize, id: f64, ids: &[Dim]) -> Why<Value> {
        let axes = ids.iter().map(|&dim| match dim {
            Dim::ONE => Ok(Axis::Unit),
            Dim::TOKENS => Ok(Axis::Tokens),
            _ => Err("the same row, as often as neither one nor the tokens are".to_owned()),
        });
        let axes: Vec<Axis> = axes.collect::<Why<_>>()?;
        let rows = table.shape()[at].known().unwrap_or_default() as f64;
        let id = if id < 0.0 { id + rows } else { id };
        if !(0.0..rows).contains(&id) || axes.iter().filter(|&&a| a == Axis::Tokens).count() > 1 {
            return Err(format!("row {id} of {rows} for {ids:?}"));
        }
        let ids = Data {
            node: self.builder.position(),
            kind: Kind::Whole,
            offset: 0,
            axes,
        };
        let f = Unary::Affine {
            factor: 0.0,
            shift: id as f32,
        };
        let ids = self.builder.map(&ids, f, Kind::Whole);
        self.lookup(table, at, &ids)
    }

    /// A table's entry for the offset of each pair of tokens.
    fn by_offset(&mut self, table: &Value, at: usize, ids: &Offsets) -> Why<Value> {
        let Value::Constant(table) = table else {
            return Err(format!("it looks up in {} by offsets", table.what()));
        };
        if table.shape.len() != 2 || ids.lead.iter().any(|&extent| extent != 1) {
            return Err("a table of more axes, looked up by offsets".into());
        }
        if at == 0 {
            return Err("heads after the pairs of tokens".into());
        }
        let (heads, rows) = (table.shape[0], table.shape[1]);
        // No text may be so long that it asks for an entry that does not exist.
        let is_there = |id: f64| id >= -(rows as f64) && id < rows as f64;
        let offsets = ids.values.iter().enumerate();
        let missing = offsets.filter(|&(_, &id)| !is_there(id));
        let reach = missing
            .map(|(offset, _)| offset.abs_diff(ids.positions - 1))
            .min();
        match reach {
            Some(0) => return Err("entries that do not exist".into()),
            Some(reach) => self.builder.limit_positions(reach),
            None => {}
        }
        let span = ids.values.len();
        let count = heads
            .checked_mul(span)
            .ok_or("a table for too many heads")?;
        let values = (0..count).map(|at| {
            let id = ids.values[at % span];
            let id = if id < 0.0 { id + rows as f64 } else { id };
            // Offsets that no text within the table's reach has: any entry does.
            let row = (id.max(0.0) as usize).min(rows.saturating_sub(1));
            table.values[at / span * rows + row]
        });
        let values = self.ledger().numbers(count, values)?;
        let mut lead = vec![heads];
        lead.extend(&ids.lead);
        Ok(Value::Offsets(Offsets {
            kind: table.kind,
            lead,
            values,
            positions: ids.positions,
        }))
    }

    fn dequantise(&mut self, call: &Call<'_>) -> Why<Value> {
        let (x, scale) = (call.input(0)?, call.constant(1)?);
        let zero = match call.optional(2) {
            Some(zero) => Some(zero.uniform().ok_or("zero points differ")?),
            None => None,
        };
        if scale.shape.len() > 1 {
            return Err("scales for blocks of a weight".into());
        }
        let shape = x.shape();
        let at = match scale.values.len() {
            1 => None,
            _ => Some(axis(call.node.int("axis").unwrap_or(1), shape.len())?),
        };
        if at.is_some_and(|at| shape[at] != Dim::new(scale.values.len() as i64)) {
            return Err(format!("{} scales for {shape:?}", scale.values.len()));
        }
        match x {
            Value::Constant(x) => {
                let zero = Constant::scalar(Kind::Whole, zero.unwrap_or(0.0));
                let mut shape = vec![1; shape.len()];
                if let Some(at) = at {
                    shape[at] = scale.values.len();
                }
                let scale = scale.reshaped(shape)?;
                let whole = x.zip(&zero, self.ledger(), Kind::Whole, |x, zero| x - zero)?;
                let scaled = whole.zip(&scale, self.ledger(), Kind::Float, |x, s| x * s)?;
                Ok(Value::constant(scaled))
            }
            Value::Weight(weight)
                if weight.kind == Kind::Whole
                    && weight.scale.is_none()
                    && zero.unwrap_or(0.0) == 0.0 =>
            {
                with_scale(weight, scale, at).map(Value::Weight)
            }
            Value::Weight(_) => Err("a weight with a zero point".into()),
            other => Err(format!("{} in few bits", other.what())),
        }
    }
}

/// The extent of an axis whose entries are picked.
fn shape_at(table: &Value, at: usize) -> Why<i64> {
    let extent = table.shape()[at].known();
    extent.ok_or_else(|| format!("some entries of {}", table.what()))
}

/// Elements by their places, of what is the same everywhere.
fn gather_places(operator: &str, call: &Call<'_>) -> Why<Value> {
    let (value, places) = (call.input(0)?, call.input(1)?);
    let number = value
        .uniform()
        .ok_or("places in what differs from place to place")?;
    let mut shape = places.shape();
    if operator == "GatherND" {
        let depth = shape.pop().and_then(Dim::known).unwrap_or(0);
        let batch = call.node.int("batch_dims").unwrap_or(0);
        let rest = value.shape();
        let taken = depth.checked_add(batch);
        let taken = taken.and_then(|taken| usize::try_from(taken).ok());
        let rest = taken.and_then(|taken| rest.get(taken..));
        shape.extend(rest.ok_or("places of more axes than there are")?);
    }
    Ok(Value::Uniform {
        kind: value.kind(),
        value: number,
        shape,
    })
}
