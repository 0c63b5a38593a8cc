//! Rotary positions (<https://arxiv.org/abs/2104.09864>), halves paired: element `i` of a head is
//! turned together with element `i + size / 2` by the angle `position * base^(-2 i / size)`, unless its wavelength is stretched. Of the
//! squares of a picture the first half of the pairs turns by the row and the second by the column, with `2 π y base^(-4 i / size)`, `y`
//! being the place of the centre between -1 and 1 (DINOv3, <https://arxiv.org/abs/2508.10104>); other tokens do not turn.

use std::f64::consts::TAU;

use isovec_engine::error::Result;

use super::attention::Heads;
use super::config::Config;
use super::net::Net;
use super::patches::PatchGrid;
use super::source::Recipe;
use super::wavelengths::Wavelengths;
use crate::onnx::builder::int;

/// The longest table that is made; a longer one would be a mistake in `config.json`.
const MAX_POSITIONS: usize = 1 << 17;

/// Cosine or sine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Cosine,
    Sine,
}

/// Where tokens are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Places {
    /// In a row of up to so many.
    Row(usize),
    /// On a picture.
    Grid(PatchGrid),
}

impl Places {
    fn count(&self) -> usize {
        match self {
            Self::Row(count) => *count,
            Self::Grid(grid) => grid.tokens(),
        }
    }

    fn axes(&self) -> usize {
        match self {
            Self::Row(_) => 1,
            Self::Grid(_) => 2,
        }
    }

    /// How far a token is along an axis, in radians of the fastest pair.
    fn place(&self, token: usize, axis: usize) -> f64 {
        match self {
            Self::Row(_) => token as f64,
            Self::Grid(grid) => token.checked_sub(grid.special).map_or(0.0, |square| {
                let (place, of) = match axis {
                    0 => (square / grid.columns, grid.rows),
                    _ => (square % grid.columns, grid.columns),
                };
                TAU * ((place as f64 + 0.5) / of as f64 * 2.0 - 1.0)
            }),
        }
    }
}

/// The tables cut to the sequence, ready to turn queries and keys.
#[derive(Debug)]
pub(super) struct Rotary {
    cosine: String,
    sine: String,
    pairs: usize,
}

impl Rotary {
    /// Reads how many positions there are under `key`.
    pub(super) fn positions(config: &Config, key: &str) -> Result<usize> {
        let positions = config.size(key)?;
        if positions > MAX_POSITIONS {
            return Err(config.unsupported(format!(
                "{key} in config.json is {positions}; the table of rotary positions is made for \
                 up to {MAX_POSITIONS}"
            )));
        }
        Ok(positions)
    }

    /// Elements are turned in pairs, so a head must have an even number of them.
    pub(super) fn check_heads(config: &Config, heads: Heads) -> Result<()> {
        if !heads.size.is_multiple_of(2) {
            return Err(config.unsupported(format!(
                "heads of size {} cannot be turned in pairs",
                heads.size
            )));
        }
        Ok(())
    }

    /// Tables for tokens at `places`, cut to `length` (a tensor of one i64).
    ///
    /// They are made at f64 and stored as weights: computing the angles in the graph at f32 would
    /// be up to 5e-4 radians off at position 8191.
    pub(super) fn new(
        net: &mut Net<'_>,
        heads: Heads,
        waves: Wavelengths,
        places: Places,
        length: &str,
    ) -> Self {
        let pairs = heads.size / 2;
        let mut table = |part, name: &str| {
            let recipe = Recipe::Rotary {
                waves,
                places,
                pairs,
                part,
            };
            let axis = net.builder().ints(&[1]);
            let table = net.recipe(
                format!("rotary.{name}.{waves}"),
                vec![places.count(), pairs],
                recipe,
            );
            let rows = net.rows(&table, length);
            // [sequence, 1, pairs], to broadcast over the heads.
            net.node("Unsqueeze", &[&rows, &axis], vec![])
        };
        let cosine = table(Part::Cosine, "cosine");
        let sine = table(Part::Sine, "sine");
        Self {
            cosine,
            sine,
            pairs,
        }
    }

    /// Turns `x`, `[batch, sequence, heads, size]`.
    pub(super) fn turn(&self, net: &mut Net<'_>, x: &str) -> String {
        let first = net.slice(x, 3, 0..self.pairs);
        let second = net.slice(x, 3, self.pairs..2 * self.pairs);
        let first_cosine = net.node("Mul", &[&first, &self.cosine], vec![]);
        let second_sine = net.node("Mul", &[&second, &self.sine], vec![]);
        let second_cosine = net.node("Mul", &[&second, &self.cosine], vec![]);
        let first_sine = net.node("Mul", &[&first, &self.sine], vec![]);
        let turned_first = net.node("Sub", &[&first_cosine, &second_sine], vec![]);
        let turned_second = net.node("Add", &[&second_cosine, &first_sine], vec![]);
        net.node(
            "Concat",
            &[&turned_first, &turned_second],
            vec![int("axis", 3)],
        )
    }
}

/// The table `[tokens, pairs]`.
pub(super) fn rotary_table(
    waves: &Wavelengths,
    places: &Places,
    pairs: usize,
    part: Part,
) -> Vec<f32> {
    let axes = places.axes();
    let frequencies = waves.frequencies(pairs / axes);
    (0..places.count() * axes)
        .flat_map(|at| {
            let place = places.place(at / axes, at % axes);
            frequencies.iter().map(move |frequency| match part {
                Part::Cosine => libm::cos(place * frequency) as f32,
                Part::Sine => libm::sin(place * frequency) as f32,
            })
        })
        .collect()
}
