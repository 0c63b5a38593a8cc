//! Small tensors that are known before any text is.

use crate::error::Why;

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

/// The most elements of a constant that is made while a graph is read.
const MOST: usize = 1 << 24;

/// A tensor in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Constant {
    pub(crate) kind: Kind,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f64>,
}

impl Constant {
    pub(crate) fn new(kind: Kind, shape: Vec<usize>, values: Vec<f64>) -> Self {
        debug_assert_eq!(shape.iter().product::<usize>(), values.len());
        Self {
            kind,
            shape,
            values,
        }
    }

    pub(crate) fn scalar(kind: Kind, value: f64) -> Self {
        Self::new(kind, Vec::new(), vec![value])
    }

    /// The one value of a tensor that has no other.
    pub(crate) fn uniform(&self) -> Option<f64> {
        let (first, rest) = self.values.split_first()?;
        rest.iter()
            .all(|value| value.to_bits() == first.to_bits())
            .then_some(*first)
    }

    /// Whether it counts 0, 1, 2, ... (from `start`) along its only axis that is not 1.
    pub(crate) fn counts_from(&self) -> Option<f64> {
        let start = *self.values.first()?;
        let along_one = self.shape.iter().filter(|&&extent| extent != 1).count() == 1;
        let mut places = self.values.iter().enumerate();
        (along_one && places.all(|(at, value)| *value == start + at as f64)).then_some(start)
    }

    pub(crate) fn map(&self, kind: Kind, f: impl Fn(f64) -> f64) -> Self {
        let values = self.values.iter().map(|&v| kind.round(f(v))).collect();
        Self::new(kind, self.shape.clone(), values)
    }

    /// The elements that an index into each axis gives, for every index of `shape`.
    pub(crate) fn pick(&self, shape: Vec<usize>, index: impl Fn(&[usize]) -> Vec<usize>) -> Self {
        let strides = strides(&self.shape);
        let values = indices(&shape)
            .map(|at| {
                let from: usize = index(&at).iter().zip(&strides).map(|(i, s)| i * s).sum();
                self.values[from]
            })
            .collect();
        Self::new(self.kind, shape, values)
    }

    /// Elementwise with broadcasting as ONNX (and numpy) has it.
    pub(crate) fn zip(&self, other: &Self, kind: Kind, f: impl Fn(f64, f64) -> f64) -> Why<Self> {
        let shape = broadcast(&self.shape, &other.shape)?;
        within_bounds(&shape)?;
        let (a, b) = (self.expand(&shape), other.expand(&shape));
        let values = a.values.iter().zip(&b.values);
        let values = values.map(|(&a, &b)| kind.round(f(a, b))).collect();
        Ok(Self::new(kind, shape, values))
    }

    /// Repeated along axes of extent 1 until it has `shape`, with which it must broadcast.
    pub(crate) fn expand(&self, shape: &[usize]) -> Self {
        let lead = shape.len() - self.shape.len();
        self.pick(shape.to_vec(), |at| {
            let own = at[lead..].iter().zip(&self.shape);
            own.map(|(&i, &extent)| if extent == 1 { 0 } else { i })
                .collect()
        })
    }

    pub(crate) fn reshaped(&self, shape: Vec<usize>) -> Why<Self> {
        if elements(&shape) != Some(self.values.len()) {
            return Err(format!("{:?} cannot be reshaped to {shape:?}", self.shape));
        }
        Ok(Self::new(self.kind, shape, self.values.clone()))
    }
}

/// The elements of a shape, where they can be counted.
pub(crate) fn elements(shape: &[usize]) -> Option<usize> {
    let mut extents = shape.iter();
    extents.try_fold(1_usize, |all, &extent| all.checked_mul(extent))
}

/// Refuses shapes of more elements than are worth making.
pub(crate) fn within_bounds(shape: &[usize]) -> Why<()> {
    match elements(shape).is_some_and(|elements| elements <= MOST) {
        true => Ok(()),
        false => Err(format!("{shape:?} are too many constants")),
    }
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

/// Row-major strides.
pub(crate) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// All indices of a shape, the last axis fastest.
pub(crate) fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let shape = shape.to_vec();
    let strides = strides(&shape);
    (0..shape.iter().product::<usize>()).map(move |flat| {
        strides
            .iter()
            .zip(&shape)
            .map(|(stride, extent)| flat / stride % extent)
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_follows_numpy() {
        let column = Constant::new(Kind::Whole, vec![2, 1], vec![10.0, 20.0]);
        let row = Constant::new(Kind::Whole, vec![3], vec![1.0, 2.0, 3.0]);
        let sum = column.zip(&row, Kind::Whole, |a, b| a + b).unwrap();
        assert_eq!(sum.shape, [2, 3]);
        assert_eq!(sum.values, [11.0, 12.0, 13.0, 21.0, 22.0, 23.0]);
        assert!(broadcast(&[2], &[3]).is_err());
        assert_eq!(broadcast(&[], &[4, 1]).unwrap(), [4, 1]);
    }

    #[test]
    fn what_is_uniform_and_what_counts() {
        let three = Constant::new(Kind::Whole, vec![1, 3], vec![2.0, 3.0, 4.0]);
        assert_eq!(three.counts_from(), Some(2.0));
        assert_eq!(three.uniform(), None);
        assert_eq!(three.expand(&[2, 3]).counts_from(), None);
        let same = Constant::new(Kind::Float, vec![2], vec![0.5, 0.5]);
        assert_eq!(same.uniform(), Some(0.5));
    }
}
