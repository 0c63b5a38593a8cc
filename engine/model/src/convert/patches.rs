//! Pictures as the tokens of an encoder: squares that do not overlap, each the pixels of its three channels.
//!
//! A convolution whose stride is the side of its kernel is a product of these squares with a matrix. Tokens that are no
//! square (the one whose vector stands for the picture) are rows of zeros, so that their product is 0; their vectors are
//! in the table that is added.

use std::fmt;
use std::str::FromStr;

use isovec_engine::description::Dim;
use isovec_engine::error::Result;
use isovec_engine::onnx::proto::ModelProto;
use isovec_engine::tensor::DType;
use serde_json::Value;

use super::config::Config;
use super::embeddings::LAST_HIDDEN_STATE;
use super::net::Net;
use super::positions::Positions;
use super::source::Recipe;
use crate::onnx::builder::int;

/// The input of a model of pictures: f32 `[batch, tokens, 3 * side * side]`. A row is a square of the picture, from left to
/// right and from the top: its red values row by row, then the green, then the blue ones. Before the squares stand
/// [`PatchGrid::special`] rows of zeros.
pub const PATCHES: &str = "pixel_patches";

/// The metadata entry with the [`PatchGrid`].
pub(super) const GRID: &str = "isovec.patches";

/// How a picture is cut into squares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchGrid {
    /// Pixels on a side of a square.
    pub side: usize,
    /// Squares from the top to the bottom.
    pub rows: usize,
    /// Squares from left to right.
    pub columns: usize,
    /// Rows of zeros before the squares.
    pub special: usize,
}

impl PatchGrid {
    /// What a graph's metadata says, if it reads pictures.
    pub fn of(model: &ModelProto) -> Option<Self> {
        let entry = model.metadata_props.iter().find(|entry| entry.key == GRID);
        entry.and_then(|entry| entry.value.parse().ok())
    }

    /// Tokens of a picture.
    pub fn tokens(&self) -> usize {
        self.special + self.rows * self.columns
    }

    /// Numbers of a token.
    pub fn width(&self) -> usize {
        3 * self.side * self.side
    }

    /// Height and width of the picture, in pixels.
    pub fn pixels(&self) -> (usize, usize) {
        (self.rows * self.side, self.columns * self.side)
    }

    /// Cuts a picture, `[3, height, width]` of the pixels that [`pixels`](Self::pixels) says, into the rows of [`PATCHES`].
    ///
    /// # Panics
    /// Where `values` are not a picture's, or `to` has not room for [`tokens`](Self::tokens) rows of [`width`](Self::width).
    pub fn cut(&self, values: &[f32], to: &mut [f32]) {
        let (height, width) = self.pixels();
        assert_eq!(
            values.len(),
            3 * height * width,
            "a picture of {height} x {width} pixels"
        );
        assert_eq!(to.len(), self.tokens() * self.width(), "{self:?}");
        let (special, squares) = to.split_at_mut(self.special * self.width());
        special.fill(0.0);
        for (place, square) in squares.chunks_exact_mut(self.width()).enumerate() {
            let (top, left) = (
                place / self.columns * self.side,
                place % self.columns * self.side,
            );
            for (line, row) in square.chunks_exact_mut(self.side).enumerate() {
                let (channel, y) = (line / self.side, top + line % self.side);
                let from = (channel * height + y) * width + left;
                row.copy_from_slice(&values[from..][..self.side]);
            }
        }
    }

    /// Reads `image_size` and `patch_size`, each a number or a list of two.
    pub(super) fn read(
        config: &Config,
        image: usize,
        patch: usize,
        special: usize,
    ) -> Result<Self> {
        let sides = |key: &str, default: usize| match config.value(key) {
            Some(Value::Array(list)) => match &list[..] {
                [high, wide] => {
                    let sides = side(high).zip(side(wide));
                    sides.ok_or_else(|| config.wrong(key, "does not hold two sides"))
                }
                _ => Err(config.wrong(key, "does not hold two sides")),
            },
            _ => {
                let side = config.size_or(key, default)?;
                match side as u64 <= MOST {
                    true => Ok((side, side)),
                    false => Err(config.wrong(key, &format!("is {side}, more than {MOST} pixels"))),
                }
            }
        };
        let pixels = sides("image_size", image)?;
        let (side, other) = sides("patch_size", patch)?;
        if side != other {
            return Err(config.unsupported("patch_size in config.json is no square"));
        }
        if config.size_or("num_channels", 3)? != 3 {
            return Err(config.unsupported("num_channels in config.json is not 3"));
        }
        Self {
            side,
            rows: 0,
            columns: 0,
            special,
        }
        .over(config, pixels)
    }

    /// The grid of as large squares over the pictures that a `preprocessor_config.json` makes, where it says their size plainly.
    pub(super) fn made_by(self, config: &Config, preprocessor: &[u8]) -> Result<Self> {
        match input_size(preprocessor) {
            Some(pixels) => self.over(config, pixels),
            None => Ok(self),
        }
    }

    /// The same over pictures of a height and a width.
    fn over(self, config: &Config, (high, wide): (usize, usize)) -> Result<Self> {
        let side = self.side;
        if !high.is_multiple_of(side) || !wide.is_multiple_of(side) {
            return Err(config.wrong(
                "patch_size",
                &format!("is {side}, which does not divide {high} x {wide} pixels"),
            ));
        }
        Ok(Self {
            rows: high / side,
            columns: wide / side,
            ..self
        })
    }
}

/// A number of pixels.
fn side(value: &Value) -> Option<usize> {
    let side = value.as_u64().filter(|side| (1..=MOST).contains(side));
    side.map(|side| side as usize)
}

/// Height and width of the input that a `preprocessor_config.json` makes, where it says them plainly.
fn input_size(preprocessor: &[u8]) -> Option<(usize, usize)> {
    let file: Value = serde_json::from_slice(preprocessor).ok()?;
    let crop = &file["crop_size"];
    let size = match crop.is_null() || file["do_center_crop"] == false {
        true => &file["size"],
        false => crop,
    };
    match size {
        Value::Object(_) => side(&size["height"]).zip(side(&size["width"])),
        both => side(both).map(|side| (side, side)),
    }
}

/// More pixels on a side than any encoder of pictures sees.
const MOST: u64 = 1 << 14;

impl fmt::Display for PatchGrid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            side,
            rows,
            columns,
            special,
        } = self;
        write!(f, "{special}+{rows}x{columns}/{side}")
    }
}

impl FromStr for PatchGrid {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        let number = |text: &str| {
            let number = text.parse::<u32>().ok().filter(|&n| u64::from(n) <= MOST);
            number.map(|number| number as usize).ok_or(())
        };
        let (special, rest) = text.split_once('+').ok_or(())?;
        let (rows, rest) = rest.split_once('x').ok_or(())?;
        let (columns, side) = rest.split_once('/').ok_or(())?;
        let grid = Self {
            side: number(side)?,
            rows: number(rows)?,
            columns: number(columns)?,
            special: number(special)?,
        };
        (grid.side * grid.rows * grid.columns > 0)
            .then_some(grid)
            .ok_or(())
    }
}

/// Names of what makes tokens of squares.
#[derive(Debug, Clone)]
pub(super) struct PatchNames<'a> {
    /// The convolution: its tensors are `{name}.weight` and, where it has one, `{name}.bias`.
    pub(super) kernel: &'a str,
    /// Whether it has a bias.
    pub(super) bias: bool,
    /// Vectors of tokens that are no square, with their shapes.
    pub(super) special: &'a [(&'a str, &'a [usize])],
    /// The positions that are added, if any are.
    pub(super) positions: Option<StoredPositions<'a>>,
}

/// Positions that a checkpoint holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredPositions<'a> {
    pub(super) name: &'a str,
    /// Its axes before the last two.
    pub(super) axes: &'a [usize],
    /// The grid that they are of, with as many rows before the squares as have a position.
    pub(super) grid: PatchGrid,
    /// Whether those of another grid are smoothed where this makes them fewer.
    pub(super) smooth: bool,
}

impl<'a> StoredPositions<'a> {
    /// Those of the grid that the model reads.
    pub(super) fn of(name: &'a str, axes: &'a [usize], grid: PatchGrid) -> Self {
        Self {
            name,
            axes,
            grid,
            smooth: false,
        }
    }
}

/// Declares the input and makes hidden vectors of it.
pub(super) fn embed(
    net: &mut Net<'_>,
    grid: &PatchGrid,
    hidden: usize,
    names: &PatchNames<'_>,
) -> Result<String> {
    let dims = [
        Dim::Symbolic("batch".into()),
        Dim::Fixed(grid.tokens()),
        Dim::Fixed(grid.width()),
    ];
    net.builder().input(PATCHES, DType::F32, &dims);
    net.scope("embeddings");
    let weight = format!("{}.weight", names.kernel);
    let kernel = net.patch_kernel(&weight, [hidden, 3, grid.side, grid.side])?;
    let special = names
        .special
        .iter()
        .map(|(name, axes)| net.checked(name, &[axes, &[hidden][..]].concat()));
    let special = special.collect::<Result<Vec<_>>>()?;
    let positions = names.positions.map(|stored| {
        let shape = [stored.axes, &[stored.grid.tokens(), hidden]].concat();
        Ok(Positions {
            tensor: net.checked(stored.name, &shape)?,
            stored: stored.grid,
            smooth: stored.smooth,
        })
    });
    let positions = positions.transpose()?;
    let bias = match names.bias {
        true => Some(net.checked(&format!("{}.bias", names.kernel), &[hidden])?),
        false => None,
    };
    let recipe = Recipe::Patches {
        special,
        positions,
        bias,
        grid: *grid,
        width: hidden,
    };
    let table = net.recipe(
        "embeddings.patches".into(),
        vec![grid.tokens(), hidden],
        recipe,
    );
    let products = net.node("MatMul", &[PATCHES, &kernel], vec![]);
    let length = token_count(net);
    let places = net.rows(&table, &length);
    Ok(net.node("Add", &[&products, &places], vec![]))
}

/// The number of tokens, a tensor of one i64.
pub(super) fn token_count(net: &mut Net<'_>) -> String {
    net.node("Shape", &[PATCHES], vec![int("start", 1), int("end", 2)])
}

/// Declares the output, f32 `[batch, tokens, hidden]`, and gives its name to what the last node computes.
pub(super) fn declare_hidden(net: &mut Net<'_>, grid: &PatchGrid, hidden: usize) {
    let dims = [
        Dim::Symbolic("batch".into()),
        Dim::Fixed(grid.tokens()),
        Dim::Fixed(hidden),
    ];
    let name = net.name_last(LAST_HIDDEN_STATE);
    net.builder().output(&name, DType::F32, &dims);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_is_read_back_from_its_text() {
        let grid = PatchGrid {
            side: 16,
            rows: 14,
            columns: 12,
            special: 1,
        };
        assert_eq!(grid.to_string().parse(), Ok(grid));
        assert_eq!(
            (grid.tokens(), grid.width(), grid.pixels()),
            (169, 768, (224, 192))
        );
        for wrong in [
            "",
            "1+14x12",
            "1+0x12/16",
            "x+1x1/1",
            "1+1x1/99999999999",
            "1+20000x1/1",
        ] {
            assert_eq!(wrong.parse::<PatchGrid>(), Err(()), "{wrong}");
        }
    }
}
