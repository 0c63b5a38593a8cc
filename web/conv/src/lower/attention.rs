//! Attention, as exporters write it: tokens are cut into heads, queries are multiplied with keys, and what the softmax makes of that
//! with values (<https://arxiv.org/abs/1706.03762>, section 3.2).
//!
//! A map of one row is a list of tokens: a pixel is a token, and its channels are the heads one after another. To cut it and to turn
//! its axes is no work. Here it is followed what each axis has, until the last product makes one operator of all.

use isovec_engine::onnx::axis;
use isovec_kernels::conv::Map;

use super::Lowerer;
use super::call::Call;
use crate::error::Why;
use crate::node::{HeadsOf, NodeId, Op};
use crate::value::{Axis, Data, Value};

/// Tokens that are cut into heads.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Heads {
    node: NodeId,
    /// The first of its channels.
    first: usize,
    /// Queries, keys and values beside each other; 1 where one of them was taken.
    parts: usize,
    heads: usize,
    size: usize,
    /// In the graph's order.
    axes: Vec<HeadAxis>,
    /// What all of it is multiplied by.
    scale: f64,
}

/// An axis of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeadAxis {
    Batch,
    Token,
    Part,
    Head,
    Size,
    One,
}

/// Products of queries and keys.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scores {
    queries: Heads,
    keys: Heads,
    scale: f64,
    /// Whether they are weights that sum to 1.
    softmax: bool,
}

use HeadAxis::{Batch, Head, One, Part, Size, Token};

impl Heads {
    /// How many elements an axis has; 0 for the batch and the tokens, of which there may be any number.
    fn extent(&self, axis: HeadAxis) -> usize {
        match axis {
            Batch | Token => 0,
            Part => self.parts,
            Head => self.heads,
            Size => self.size,
            One => 1,
        }
    }

    fn of(&self) -> HeadsOf {
        HeadsOf {
            x: self.node,
            first: self.first,
        }
    }
}

impl Lowerer<'_> {
    /// Tokens cut into heads, where extents without the batch say so: `[tokens, parts, heads, size]` or `[tokens, heads, size]`.
    pub(super) fn heads(&mut self, data: &Data, extents: &[i64]) -> Option<Value> {
        let map = self.builder.map(data.node);
        let tokens = [Axis::Batch, Axis::Column, Axis::Channel];
        let (parts, heads, size) = match *extents {
            [_, parts, heads, size] => (parts, heads, size),
            [_, heads, size] => (1, heads, size),
            _ => return None,
        };
        let whole = |extent: i64| usize::try_from(extent).ok().filter(|&extent| extent > 0);
        let (parts, heads, size) = (whole(parts)?, whole(heads)?, whole(size)?);
        let channels = parts.checked_mul(heads)?.checked_mul(size)?;
        let fits = map.height == 1 && extents[0] == map.width as i64 && channels == map.channels;
        if !fits || !self.has(data, &tokens) {
            return None;
        }
        let axes = match extents.len() {
            4 => vec![Batch, Token, Part, Head, Size],
            _ => vec![Batch, Token, Head, Size],
        };
        Some(Value::Heads(Heads {
            node: data.node,
            first: 0,
            parts,
            heads,
            size,
            axes,
            scale: 1.0,
        }))
    }

    /// What an operator makes of heads or scores; `None` where it reads neither.
    ///
    /// # Errors
    /// If it is not a part of attention.
    pub(super) fn attention(&mut self, operator: &str, call: &Call<'_>) -> Why<Option<Value>> {
        let value = match (operator, call.optional(0), call.optional(1)) {
            ("MatMul", Some(Value::Heads(queries)), Some(Value::Heads(keys))) => {
                scores(queries, keys)?
            }
            ("MatMul", Some(Value::Scores(scores)), Some(Value::Heads(values))) => {
                self.attend(scores, values)?
            }
            ("Mul" | "Div", Some(Value::Heads(heads)), _) => {
                let by = factor(operator, call)?;
                let scale = heads.scale * by;
                Value::Heads(Heads {
                    scale,
                    ..heads.clone()
                })
            }
            ("Mul" | "Div", Some(Value::Scores(scores)), _) if !scores.softmax => {
                let scale = scores.scale * factor(operator, call)?;
                Value::Scores(Box::new(Scores {
                    scale,
                    ..(**scores).clone()
                }))
            }
            ("Softmax", Some(Value::Scores(scores)), _) if !scores.softmax => {
                // By queries, keys: the last of four axes. Before operator set 13 the first of all that are joined was named.
                let last = call.opset >= 13 && call.node.int("axis").is_none();
                if !last && !matches!(call.node.int("axis"), Some(-1 | 3)) {
                    return Err("a softmax over another axis than the keys".into());
                }
                let softmax = true;
                Value::Scores(Box::new(Scores {
                    softmax,
                    ..(**scores).clone()
                }))
            }
            (_, Some(Value::Heads(heads)), _) => self.turned(operator, call, heads)?,
            (_, Some(Value::Scores(_)), _) | (_, _, Some(Value::Heads(_) | Value::Scores(_))) => {
                return Err("it is no step of attention".into());
            }
            _ => return Ok(None),
        };
        Ok(Some(value))
    }

    /// Axes that are moved, taken or joined.
    fn turned(&mut self, operator: &str, call: &Call<'_>, heads: &Heads) -> Why<Value> {
        let rank = heads.axes.len();
        let mut made = heads.clone();
        match operator {
            "Identity" | "Dropout" | "Cast" => {}
            "Transpose" => {
                let order = call.node.ints("perm").ok_or("it reverses all axes")?;
                let places = order.iter().map(|&at| Ok(axis(at, rank)?));
                let places = places.collect::<Why<Vec<_>>>()?;
                let mut all = places.clone();
                all.sort_unstable();
                if !all.into_iter().eq(0..rank) {
                    return Err(format!("it moves its axes to {order:?}").into());
                }
                made.axes = places.iter().map(|&at| heads.axes[at]).collect();
            }
            "Slice" => {
                let one = |name: &str, at: usize| -> Why<Option<i64>> {
                    match call.whole_numbers(name, at)?.as_deref() {
                        None => Ok(None),
                        Some([one]) => Ok(Some(*one)),
                        Some(_) => Err("it takes a part of several axes".into()),
                    }
                };
                let at = axis(one("axes", 3)?.unwrap_or(0), rank)?;
                let (Some(start), Some(end)) = (one("starts", 1)?, one("ends", 2)?) else {
                    return Err("it does not say what it takes".into());
                };
                let parts = heads.parts as i64;
                let start = if start < 0 { start + parts } else { start };
                let end = if end < 0 { end + parts } else { end.min(parts) };
                let single =
                    end.checked_sub(start) == Some(1) && one("steps", 4)?.unwrap_or(1) == 1;
                made.take(at, start)?;
                if !single {
                    return Err("it takes several parts".into());
                }
                made.axes[at] = One;
            }
            "Gather" => {
                let at = axis(call.node.int("axis").unwrap_or(0), rank)?;
                let places = call.numbers(1)?;
                let (true, Some(place)) = (places.shape.is_empty() && places.whole, places.one())
                else {
                    return Err("it takes several parts".into());
                };
                let place = place as i64;
                made.take(
                    at,
                    if place < 0 {
                        place + heads.parts as i64
                    } else {
                        place
                    },
                )?;
                made.axes.remove(at);
            }
            "Squeeze" => {
                let axes = call.whole_numbers("axes", 1)?.ok_or("it names no axes")?;
                let axes = axes.iter().map(|&at| Ok(axis(at, rank)?));
                let axes = axes.collect::<Why<Vec<_>>>()?;
                if axes.iter().any(|&at| heads.axes[at] != One) {
                    return Err("it drops an axis of several elements".into());
                }
                let left = (0..rank).filter(|at| !axes.contains(at));
                made.axes = left.map(|at| heads.axes[at]).collect();
            }
            "Reshape" => return self.joined(call, heads),
            _ => return Err("it is no step of attention".into()),
        }
        Ok(Value::Heads(made))
    }

    /// Heads that become channels again.
    fn joined(&mut self, call: &Call<'_>, heads: &Heads) -> Why<Value> {
        let map = self.builder.map(heads.node);
        let shape = call.input(1)?.extents();
        let extents = shape.as_deref().unwrap_or_default();
        let whole = heads.axes == [Batch, Token, Head, Size]
            && heads.heads * heads.size == map.channels
            && heads.scale == 1.0;
        let axes = [Axis::Batch, Axis::Column, Axis::Channel];
        let (tokens, channels) = (map.width as i64, map.channels as i64);
        // One of them may follow from the others, and 0 stands for the extent that was there.
        let batch = self.is_batch(extents.first());
        let fits = match *extents {
            [_, tokens_of, channels_of] => {
                use crate::value::Extent::Known;
                let follows = extents
                    .iter()
                    .filter(|&&extent| extent == Known(-1))
                    .count();
                batch
                    && follows <= 1
                    && [Known(tokens), Known(0), Known(-1)].contains(&tokens_of)
                    && [Known(channels), Known(-1)].contains(&channels_of)
            }
            _ => false,
        };
        match whole && fits {
            true => Ok(self.data(heads.node, &axes)),
            false => Err(format!("a shape of {extents:?} of heads").into()),
        }
    }

    /// One operator that computes all of it.
    fn attend(&mut self, scores: &Scores, values: &Heads) -> Why<Value> {
        let Scores {
            queries,
            keys,
            scale,
            softmax,
        } = scores;
        let alike = values.heads == queries.heads && values.axes == [Batch, Head, Token, Size];
        let tokens = [queries, keys, values].map(|heads| self.builder.map(heads.node).width);
        if !softmax || !alike || values.scale != 1.0 || values.size != queries.size {
            return Err("it is not the softmax of scores, times values".into());
        }
        if tokens.iter().any(|&count| count != tokens[0]) {
            return Err("its values are of other tokens".into());
        }
        let op = Op::Attention {
            queries: queries.of(),
            keys: keys.of(),
            values: values.of(),
            heads: queries.heads,
            scale: (scale * queries.scale * keys.scale) as f32,
        };
        let map = Map {
            height: 1,
            width: tokens[0],
            channels: queries.heads * queries.size,
        };
        Ok(Value::Heads(Heads {
            node: self.builder.push(op, map),
            first: 0,
            ..values.clone()
        }))
    }
}

impl Heads {
    /// One of the parts, from an axis that has them.
    fn take(&mut self, at: usize, place: i64) -> Why<()> {
        let place = usize::try_from(place)
            .ok()
            .filter(|&place| place < self.parts);
        let (Part, Some(place)) = (self.axes[at], place) else {
            return Err("it takes no part of queries, keys and values".into());
        };
        self.first += place * self.heads * self.size;
        self.parts = 1;
        Ok(())
    }
}

/// Queries times keys.
fn scores(queries: &Heads, keys: &Heads) -> Why<Value> {
    let turned =
        queries.axes == [Batch, Head, Token, Size] && keys.axes == [Batch, Head, Size, Token];
    let alike = [Head, Size]
        .iter()
        .all(|&axis| queries.extent(axis) == keys.extent(axis));
    if !turned || !alike {
        return Err("it is not queries times keys".into());
    }
    Ok(Value::Scores(Box::new(Scores {
        queries: queries.clone(),
        keys: keys.clone(),
        scale: 1.0,
        softmax: false,
    })))
}

/// The number that a value is multiplied by.
fn factor(operator: &str, call: &Call<'_>) -> Why<f64> {
    let numbers = call.numbers(1)?;
    let one = numbers.one().filter(|_| numbers.shape.len() <= 4);
    let by = one.ok_or("it is multiplied by several numbers")?;
    Ok(if operator == "Div" { 1.0 / by } else { by })
}
