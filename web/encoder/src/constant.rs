//! Small tensors whose values do not depend on the text.

use std::sync::Arc;

use crate::error::Why;
use crate::ledger::{Ledger, Numbers};

/// What kind of numbers a tensor holds. At run time all are f32: whole numbers are ids, positions
/// and flags, which f32 holds exactly up to 2^24.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Float,
    Whole,
    Flag,
}

impl Kind {
    /// What arithmetic gives a value of this kind.
    pub(crate) fn round(self, value: f64) -> f64 {
        match self {
            Self::Float => f64::from(value as f32),
            Self::Whole => value,
            Self::Flag => f64::from(u8::from(value != 0.0)),
        }
    }
}

/// A tensor in row-major order; copies share its numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Constant {
    pub(crate) kind: Kind,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Arc<Numbers>,
}

impl Constant {
    pub(crate) fn new(kind: Kind, shape: Vec<usize>, values: Arc<Numbers>) -> Self {
        debug_assert_eq!(elements(&shape), Some(values.len()));
        Self {
            kind,
            shape,
            values,
        }
    }

    pub(crate) fn scalar(kind: Kind, value: f64) -> Self {
        Self::new(kind, Vec::new(), Numbers::one(value))
    }

    /// Numbers along one axis.
    pub(crate) fn list(
        ledger: &Ledger,
        kind: Kind,
        values: impl ExactSizeIterator<Item = f64>,
    ) -> Why<Self> {
        let count = values.len();
        let values = ledger.numbers(count, values)?;
        Ok(Self::new(kind, vec![count], values))
    }

    /// The one value of a tensor that has no other.
    pub(crate) fn uniform(&self) -> Option<f64> {
        self.values.facts().uniform
    }

    /// Whether it counts 0, 1, 2, ... (from `start`) along its only axis that is not 1.
    pub(crate) fn counts_from(&self) -> Option<f64> {
        let along_one = self.shape.iter().filter(|&&extent| extent != 1).count() == 1;
        self.values.facts().counts_from.filter(|_| along_one)
    }

    pub(crate) fn map(&self, ledger: &Ledger, kind: Kind, f: impl Fn(f64) -> f64) -> Why<Self> {
        let values = self.values.iter().map(|&v| kind.round(f(v)));
        let values = ledger.numbers(self.values.len(), values)?;
        Ok(Self::new(kind, self.shape.clone(), values))
    }

    /// Elements from `offset` on, walked by other strides.
    pub(crate) fn view(
        &self,
        ledger: &Ledger,
        shape: Vec<usize>,
        offset: usize,
        strides: Vec<usize>,
    ) -> Why<Self> {
        let count = counted(&shape)?;
        let places = Walk::new(&shape, [strides]);
        let values = places.map(|[at]| self.values[offset + at]);
        let values = ledger.numbers(count, values)?;
        Ok(Self::new(self.kind, shape, values))
    }

    /// The entries of an axis at `places`, in that order; the axis becomes `extents`, whose product
    /// is their number.
    pub(crate) fn entries(
        &self,
        ledger: &Ledger,
        at: usize,
        places: &[usize],
        extents: &[usize],
    ) -> Why<Self> {
        let shape = [&self.shape[..at], extents, &self.shape[at + 1..]].concat();
        let count = counted(&shape)?;
        let inner: usize = self.shape[at + 1..].iter().product();
        let (outer, own) = (count_of(&self.shape[..at]), self.shape[at]);
        let rows = (0..outer).flat_map(|row| places.iter().map(move |place| row * own + place));
        let values = rows.flat_map(|row| self.values[row * inner..(row + 1) * inner].iter());
        let values = ledger.numbers(count, values.copied())?;
        Ok(Self::new(self.kind, shape, values))
    }

    /// Elementwise with broadcasting as ONNX (and numpy) has it.
    pub(crate) fn zip(
        &self,
        other: &Self,
        ledger: &Ledger,
        kind: Kind,
        f: impl Fn(f64, f64) -> f64,
    ) -> Why<Self> {
        let shape = broadcast(&self.shape, &other.shape)?;
        let count = counted(&shape)?;
        let walk = Walk::new(&shape, [self.repeated(&shape), other.repeated(&shape)]);
        let values = walk.map(|[a, b]| kind.round(f(self.values[a], other.values[b])));
        let values = ledger.numbers(count, values)?;
        Ok(Self::new(kind, shape, values))
    }

    /// Repeated along axes of extent 1 until it has `shape`, with which it must broadcast.
    pub(crate) fn expand(&self, ledger: &Ledger, shape: &[usize]) -> Why<Self> {
        if self.shape == shape {
            return Ok(self.clone());
        }
        self.view(ledger, shape.to_vec(), 0, self.repeated(shape))
    }

    /// The steps through it along the axes of `shape`, to which it broadcasts.
    fn repeated(&self, shape: &[usize]) -> Vec<usize> {
        let lead = shape.len() - self.shape.len();
        let own = strides(&self.shape);
        let own = own.iter().zip(&self.shape);
        let own = own.map(|(&stride, &extent)| if extent == 1 { 0 } else { stride });
        std::iter::repeat_n(0, lead).chain(own).collect()
    }

    pub(crate) fn reshaped(&self, shape: Vec<usize>) -> Why<Self> {
        if elements(&shape) != Some(self.values.len()) {
            return Err(format!("{:?} cannot be reshaped to {shape:?}", self.shape));
        }
        Ok(Self::new(self.kind, shape, Arc::clone(&self.values)))
    }
}

/// The elements of a shape, where they can be counted.
pub(crate) fn elements(shape: &[usize]) -> Option<usize> {
    let mut extents = shape.iter();
    extents.try_fold(1_usize, |all, &extent| all.checked_mul(extent))
}

/// The elements of a shape that somebody asks for.
fn counted(shape: &[usize]) -> Why<usize> {
    elements(shape).ok_or_else(|| format!("{shape:?} are too many constants"))
}

fn count_of(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// The shape that two shapes broadcast to.
pub(crate) fn broadcast(a: &[usize], b: &[usize]) -> Why<Vec<usize>> {
    let rank = a.len().max(b.len());
    let at = |shape: &[usize], axis: usize| {
        (axis + shape.len())
            .checked_sub(rank)
            .map_or(1, |own| shape[own])
    };
    (0..rank)
        .map(|axis| match (at(a, axis), at(b, axis)) {
            (x, y) if x == y || y == 1 => Ok(x),
            (1, y) => Ok(y),
            _ => Err(format!("{a:?} and {b:?} do not broadcast")),
        })
        .collect()
}

/// Row-major strides. Those of a shape that no memory could hold, as one without elements may be,
/// mean nothing.
pub(crate) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1_usize; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis]);
    }
    strides
}

/// The places of a shape's elements in several tensors at once, each by its own strides, the last
/// axis fastest.
#[derive(Debug)]
pub(crate) struct Walk<const N: usize> {
    extents: Vec<usize>,
    strides: [Vec<usize>; N],
    at: Vec<usize>,
    places: [usize; N],
    left: usize,
}

impl<const N: usize> Walk<N> {
    /// The shape's elements can be counted.
    pub(crate) fn new(shape: &[usize], strides: [Vec<usize>; N]) -> Self {
        Self {
            extents: shape.to_vec(),
            strides,
            at: vec![0; shape.len()],
            places: [0; N],
            left: elements(shape).unwrap_or(0),
        }
    }
}

impl<const N: usize> Iterator for Walk<N> {
    type Item = [usize; N];

    fn next(&mut self) -> Option<[usize; N]> {
        self.left = self.left.checked_sub(1)?;
        let places = self.places;
        for axis in (0..self.extents.len()).rev() {
            self.at[axis] += 1;
            let ended = self.at[axis] == self.extents[axis];
            for (place, strides) in self.places.iter_mut().zip(&self.strides) {
                match ended {
                    true => *place -= strides[axis] * (self.extents[axis] - 1),
                    false => *place += strides[axis],
                }
            }
            if !ended {
                break;
            }
            self.at[axis] = 0;
        }
        Some(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constant(shape: &[usize], values: &[f64]) -> Constant {
        let ledger = Ledger::default();
        let values = ledger.numbers(values.len(), values.iter().copied());
        Constant::new(Kind::Whole, shape.to_vec(), values.unwrap())
    }

    #[test]
    fn broadcasting_follows_numpy() {
        let ledger = Ledger::default();
        let column = constant(&[2, 1], &[10.0, 20.0]);
        let row = constant(&[3], &[1.0, 2.0, 3.0]);
        let sum = column.zip(&row, &ledger, Kind::Whole, |a, b| a + b);
        let sum = sum.unwrap();
        assert_eq!(sum.shape, [2, 3]);
        assert_eq!(sum.values[..], [11.0, 12.0, 13.0, 21.0, 22.0, 23.0]);
        assert!(broadcast(&[2], &[3]).is_err());
        assert_eq!(broadcast(&[], &[4, 1]).unwrap(), [4, 1]);
    }

    #[test]
    fn parts_and_turns_are_walked_by_strides() {
        let ledger = Ledger::default();
        let numbers: Vec<f64> = (0..12).map(f64::from).collect();
        let all = constant(&[2, 3, 2], &numbers);
        let turned = all.view(&ledger, vec![2, 3, 2], 0, vec![1, 2, 6]).unwrap();
        let wanted = [0.0, 6.0, 2.0, 8.0, 4.0, 10.0, 1.0, 7.0, 3.0, 9.0, 5.0, 11.0];
        assert_eq!(turned.values[..], wanted);
        let picked = all.entries(&ledger, 1, &[2, 0], &[1, 2]).unwrap();
        assert_eq!(picked.shape, [2, 1, 2, 2]);
        assert_eq!(
            picked.values[..],
            [4.0, 5.0, 0.0, 1.0, 10.0, 11.0, 6.0, 7.0]
        );
        let nothing = all.view(&ledger, vec![0, usize::MAX], 0, vec![1, 1]);
        assert!(nothing.unwrap().values.is_empty());
    }

    #[test]
    fn what_is_uniform_and_what_counts() {
        let three = constant(&[1, 3], &[2.0, 3.0, 4.0]);
        assert_eq!(three.counts_from(), Some(2.0));
        assert_eq!(three.uniform(), None);
        let repeated = three.expand(&Ledger::default(), &[2, 3]).unwrap();
        assert_eq!(repeated.counts_from(), None);
        assert_eq!(constant(&[2], &[0.5, 0.5]).uniform(), Some(0.5));
    }
}
