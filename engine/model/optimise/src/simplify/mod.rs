//! A graph with fewer nodes, by passes that each have a name and a level.
//!
//! | level | pass | what it does |
//! |---|---|---|
//! | basic | [`constants`](Pass::Constants) | computes what depends on constants alone |
//! | basic | [`shapes`](Pass::Shapes) | writes down the extents that a `Reshape` reads off its own input |
//! | basic | [`identities`](Pass::Identities) | takes out what changes nothing |
//! | basic | [`duplicates`](Pass::Duplicates) | computes once what several nodes compute |
//! | extended | [`layer-norms`](Pass::LayerNorms) | joins the operators of a layer normalisation to one |
//! | extended | [`gelus`](Pass::Gelus) | joins the operators of a GELU to one |
//! | extended | [`hard-swishes`](Pass::HardSwishes) | joins the operators of a hard sigmoid to one |
//! | extended | [`convolutions`](Pass::Convolutions) | makes what is added to each channel, and multiplied with it, a part of the convolution before it |
//! | all | [`layout`](Pass::Layout) | moves transpositions behind what goes value by value, where they meet others |
//!
//! Passes of the level basic change no bit of what the operators say: only copies are left out, and numbers computed that every
//! engine computes so. Those above it round differently, as engines that join operators do. Every level ends with taking out what
//! leads to no output. The result has standard operators of ONNX alone. Where it needs a newer operator set than the model's, all
//! nodes are written in that one; a node that is not known to mean the same there keeps the pass from being made, and the report says so.

mod affine;
mod constants;
mod duplicates;
mod evaluate;
mod gelu;
mod hard;
mod identities;
mod layer_norm;
mod layout;
mod net;
mod opset;
mod rank;
mod shapes;
mod value;

use std::fmt;
use std::str::FromStr;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use serde::Serialize;

use crate::error::{OptimizeError, Result};
use crate::history;
use net::Net;

/// How much passes may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Level {
    /// Nothing.
    None,
    /// What every engine computes to the same bits.
    Basic,
    /// Operators are joined, which rounds differently.
    Extended,
    /// The order of values in memory changes as well.
    All,
}

impl Level {
    /// All levels, each with the passes of those before it.
    pub const ALL: [Self; 4] = [Self::None, Self::Basic, Self::Extended, Self::All];

    /// The passes of this level, in their order.
    pub fn passes(self) -> impl Iterator<Item = Pass> {
        Pass::ALL
            .into_iter()
            .filter(move |pass| pass.level() <= self)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "basic",
            Self::Extended => "extended",
            Self::All => "all",
        }
    }
}

/// A change of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Pass {
    /// Computes nodes whose inputs are all constants, and stores equal constants once. Constants are no nodes after any pass.
    Constants,
    /// Writes the extents of a `Reshape` down that are read off the value which it reshapes.
    Shapes,
    /// Takes out nodes that give what they are given.
    Identities,
    /// Computes once what several nodes compute from the same inputs.
    Duplicates,
    /// `LayerNormalization` in place of its operators.
    LayerNorms,
    /// `Gelu` in place of its operators.
    Gelus,
    /// `HardSigmoid` in place of an addition, a `Clip` and a division.
    HardSwishes,
    /// Batch normalisations, factors and summands of channels become a part of the `Conv` before them.
    Convolutions,
    /// Moves each `Transpose` behind the nodes that go value by value, and joins those that meet.
    Layout,
}

impl Pass {
    /// All passes, in the order in which they are made.
    pub const ALL: [Self; 9] = [
        Self::Constants,
        Self::Shapes,
        Self::Identities,
        Self::Duplicates,
        Self::LayerNorms,
        Self::Gelus,
        Self::HardSwishes,
        Self::Convolutions,
        Self::Layout,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Constants => "constants",
            Self::Shapes => "shapes",
            Self::Identities => "identities",
            Self::Duplicates => "duplicates",
            Self::LayerNorms => "layer-norms",
            Self::Gelus => "gelus",
            Self::HardSwishes => "hard-swishes",
            Self::Convolutions => "convolutions",
            Self::Layout => "layout",
        }
    }

    /// The lowest level that has it.
    pub fn level(self) -> Level {
        match self {
            Self::Constants | Self::Shapes | Self::Identities | Self::Duplicates => Level::Basic,
            Self::LayerNorms | Self::Gelus | Self::HardSwishes | Self::Convolutions => {
                Level::Extended
            }
            Self::Layout => Level::All,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = OptimizeError;

    fn from_str(name: &str) -> Result<Self> {
        named("the level of passes", name, &Self::ALL, Self::name)
    }
}

impl FromStr for Pass {
    type Err = OptimizeError;

    fn from_str(name: &str) -> Result<Self> {
        named("a pass", name, &Self::ALL, Self::name)
    }
}

fn named<T: Copy>(
    what: &'static str,
    name: &str,
    all: &[T],
    of: impl Fn(T) -> &'static str,
) -> Result<T> {
    let mut known = all.iter().copied();
    known.find(|one| of(*one) == name).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|one| of(*one)).collect();
        OptimizeError::Size {
            what,
            asked: name.to_owned(),
            allowed: names.join(", "),
        }
    })
}

/// What a pass did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Passed {
    /// The pass.
    pub pass: Pass,
    /// How often it found something to change.
    pub changes: usize,
    /// Nodes that the graph lost by it; what led to no output afterwards is among them.
    pub nodes: usize,
    /// Why it was not made, or not everywhere; empty where nothing kept it.
    pub reason: String,
}

/// Rounds in which passes may find what others left: more than any model was seen to need.
const ROUNDS: usize = 12;

/// The same model after these passes, which are made in their own order, again and again until none finds anything; and what each did.
/// Where nothing was found it is the same model, with the same identity.
///
/// # Errors
/// Those of reading weights; [`Cancel::check`].
pub async fn simplify(
    bundle: &ModelBundle,
    passes: &[Pass],
    cancel: &Cancel,
) -> Result<(ModelBundle, Vec<Passed>)> {
    let mut net = Net::of(bundle);
    let asked = Pass::ALL.into_iter().filter(|pass| passes.contains(pass));
    let mut told: Vec<Passed> = asked
        .map(|pass| Passed {
            pass,
            changes: 0,
            nodes: 0,
            reason: String::new(),
        })
        .collect();
    let before = net.nodes().len();
    let stated = constants::settle_stated(&mut net);
    if let Some(passed) = told
        .iter_mut()
        .find(|passed| passed.pass == Pass::Constants)
    {
        passed.changes = stated;
        passed.nodes = before - net.nodes().len();
    }
    for _ in 0..ROUNDS {
        let mut changed = false;
        for passed in &mut told {
            cancel.check().map_err(OptimizeError::from)?;
            let before = net.nodes().len();
            let made = match passed.pass {
                Pass::Constants => constants::run(&mut net).await?,
                Pass::Shapes => shapes::run(&mut net),
                Pass::Identities => identities::run(&mut net),
                Pass::Duplicates => duplicates::run(&mut net),
                Pass::LayerNorms => layer_norm::run(&mut net, &mut passed.reason),
                Pass::Gelus => gelu::run(&mut net, &mut passed.reason),
                Pass::HardSwishes => hard::run(&mut net),
                Pass::Convolutions => affine::run(&mut net).await?,
                Pass::Layout => layout::run(&mut net),
            };
            net.drop_dead();
            passed.changes += made;
            passed.nodes += before.saturating_sub(net.nodes().len());
            changed |= made > 0;
        }
        if !changed {
            break;
        }
    }
    if told.iter().all(|passed| passed.changes == 0) {
        return Ok((bundle.clone(), told));
    }
    let names = told.iter().filter(|passed| passed.changes > 0);
    let names: Vec<&str> = names.map(|passed| passed.pass.name()).collect();
    let made = net.finish(&format!("isovec simplified 1 {}", names.join(" ")));
    let step = format!("passes: {}", names.join(", "));
    Ok((history::noted(made, &bundle.identity.0, step), told))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_has_the_passes_of_those_before_it() {
        let names = |level: Level| -> Vec<&str> { level.passes().map(Pass::name).collect() };
        assert!(names(Level::None).is_empty());
        let basic = names(Level::Basic);
        assert_eq!(basic, ["constants", "shapes", "identities", "duplicates"]);
        assert!(names(Level::Extended).starts_with(&basic));
        assert_eq!(names(Level::Extended).len(), 8);
        assert_eq!(Level::All.passes().count(), Pass::ALL.len());
    }

    #[test]
    fn names_are_read_back_and_others_are_refused_with_those_that_there_are() {
        for level in Level::ALL {
            assert_eq!(level.to_string().parse::<Level>().unwrap(), level);
        }
        for pass in Pass::ALL {
            assert_eq!(pass.to_string().parse::<Pass>().unwrap(), pass);
            assert_eq!(serde_json::to_value(pass).unwrap(), pass.name());
        }
        let error = "fast".parse::<Level>().unwrap_err().to_string();
        assert!(error.contains("none, basic, extended, all"), "{error}");
        let error = "".parse::<Pass>().unwrap_err().to_string();
        assert!(error.contains("hard-swishes"), "{error}");
    }
}
