//! Columns that are picked one by one, and columns that are the same in every row.

use isovec_engine::onnx::axis;

use super::Lowerer;
use super::call::Call;
use crate::builder::WIDEST;
use crate::constant::{Constant, Kind};
use crate::error::Why;
use crate::node::{Binary, Unary};
use crate::value::{Axis, Data, Value};

/// The most entries of an axis that are picked one by one: each is an operand of the copy.
const MOST_PICKED: usize = 64;

impl Lowerer {
    /// The entries of an axis at `places`, in that order.
    pub(super) fn entries(&mut self, value: &Value, at: usize, places: &[usize]) -> Why<Value> {
        let data = match value {
            Value::Constant(constant) => {
                let picked = constant.entries(self.ledger(), at, places, &[places.len()]);
                return picked.map(Value::constant);
            }
            Value::Data(data) => data,
            other => return Err(format!("some entries of {}", other.what())),
        };
        let stride = match data.axes[at] {
            Axis::Columns { stride, .. } => stride,
            Axis::Unit => 0,
            Axis::Tokens => return Err("some of a text's tokens".into()),
        };
        if places.is_empty() || places.len() > MOST_PICKED {
            return Err(format!("{} entries picked one by one", places.len()));
        }
        let parts: Vec<Data> = places
            .iter()
            .map(|&place| {
                let mut part = data.clone();
                part.offset += place * stride;
                part.axes[at] = Axis::Unit;
                part
            })
            .collect();
        match &parts[..] {
            [only] => Ok(Value::Data(only.clone())),
            parts => self
                .concat_data(&parts.iter().collect::<Vec<_>>(), at)
                .map(Value::Data),
        }
    }

    /// The same number wherever `like` has one, with `extent` entries along one axis.
    fn filled(&mut self, like: &Data, at: usize, extent: usize, number: f64) -> Data {
        let node = match like.axes.contains(&Axis::Tokens) {
            true => self.builder.position(),
            false => self.builder.length(),
        };
        let axes = like.axes.iter().enumerate().map(|(own, axis)| match *axis {
            _ if own == at => Axis::columns(extent, 0),
            Axis::Columns { extent, .. } => Axis::columns(extent, 0),
            other => other,
        });
        let one = Data::whole(node, like.kind, &[], &[]);
        let f = Unary::Affine {
            factor: 0.0,
            shift: number as f32,
        };
        let one = self.builder.map(&one, f, like.kind);
        Data {
            axes: axes.collect(),
            ..one
        }
    }

    /// A constant as what is computed beside `like`, of which it is to be a part along one axis.
    pub(super) fn constant_rows(
        &mut self,
        constant: &Constant,
        like: &Data,
        at: usize,
    ) -> Why<Data> {
        let extent = *constant.shape.get(at).ok_or("parts of different shapes")?;
        let zeros = self.filled(like, at, extent, 0.0);
        let kind = constant.kind;
        self.builder
            .zip_constant(Binary::Add, &zeros, constant, false, kind)
    }

    pub(super) fn pad(&mut self, call: &Call<'_>) -> Why<Value> {
        let mut value = call.input(0)?.clone();
        let rank = value.shape().len();
        let pads = match call.whole_numbers(1)? {
            Some(pads) => pads,
            None => call
                .node
                .ints("pads")
                .ok_or("it does not say how much")?
                .to_vec(),
        };
        let axes: Vec<usize> = match call.whole_numbers(3)? {
            Some(axes) => axes.iter().map(|&at| axis(at, rank)).collect::<Why<_>>()?,
            None => (0..rank).collect(),
        };
        if pads.len() != 2 * axes.len() {
            return Err(format!("{} pads for {} axes", pads.len(), axes.len()));
        }
        let number = match call.optional(2) {
            Some(number) => number.uniform().ok_or("the padding value is not known")?,
            None => f64::from(call.node.float("value").unwrap_or(0.0)),
        };
        let mode = call.node.text("mode").unwrap_or("constant");
        for (place, &at) in axes.iter().enumerate() {
            let (before, after) = (pads[place], pads[place + axes.len()]);
            if (before, after) != (0, 0) {
                value = self.pad_axis(&value, at, (before, after), (mode, number))?;
            }
        }
        Ok(value)
    }

    fn pad_axis(
        &mut self,
        value: &Value,
        at: usize,
        (before, after): (i64, i64),
        (mode, number): (&str, f64),
    ) -> Why<Value> {
        let extent = value.shape()[at].known().ok_or("it pads a text")?;
        if [before, after]
            .iter()
            .any(|pad| pad.unsigned_abs() > WIDEST)
        {
            return Err(format!("it pads by {before} and {after}"));
        }
        // The places of what is padded, of which those outside are to be filled.
        let places: Vec<i64> = (-before..extent.saturating_add(after)).collect();
        let inside = |place: i64| (0..extent).contains(&place);
        if extent == 0 || places.is_empty() {
            return Err("it pads nothing".into());
        }
        if mode != "constant" {
            let last = extent - 1;
            let places: Vec<usize> = places
                .iter()
                .map(|&place| match mode {
                    "edge" => Ok(place.clamp(0, last)),
                    "wrap" => Ok(place.rem_euclid(extent)),
                    "reflect" if last == 0 => Ok(0),
                    // There and back again.
                    "reflect" => Ok(last - (place.rem_euclid(2 * last) - last).abs()),
                    other => Err(format!("the mode {other} is not known")),
                })
                .map(|place| place.map(|place| place as usize))
                .collect::<Why<_>>()?;
            return self.entries(value, at, &places);
        }
        let kept: Vec<i64> = places
            .iter()
            .copied()
            .filter(|&place| inside(place))
            .collect();
        let (Some(&first), Some(&end)) = (kept.first(), kept.last()) else {
            return Err("it removes all of its input".into());
        };
        let part = self.stretch(value, at, first, end + 1)?;
        let Value::Data(data) = &part else {
            return Err(format!("it pads {}", part.what()));
        };
        let outside = |side: &dyn Fn(i64) -> bool| places.iter().filter(|&&p| side(p)).count();
        let (front, back) = (
            outside(&|place| place < 0),
            outside(&|place| place >= extent),
        );
        let mut parts = vec![data.clone()];
        if front > 0 {
            parts.insert(0, self.filled(data, at, front, number));
        }
        if back > 0 {
            parts.push(self.filled(data, at, back, number));
        }
        match &parts[..] {
            [only] => Ok(Value::Data(only.clone())),
            parts => self
                .concat_data(&parts.iter().collect::<Vec<_>>(), at)
                .map(Value::Data),
        }
    }
}

/// Whether a kind of numbers can stand beside another in one matrix.
pub(super) fn together(a: Kind, b: Kind) -> Why<()> {
    match a == b {
        true => Ok(()),
        false => Err("it puts values of different kinds together".into()),
    }
}
