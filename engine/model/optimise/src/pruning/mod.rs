//! A model without the columns, heads, channels and layers that its vectors miss least.
//!
//! What is taken out is gone from the matrices, so that the model is smaller and every engine computes less: no zeros are stored.
//!
//! 1. [`Pruning::of`] finds what can be taken out: columns of feed-forward layers, heads of attention, and, where a sum carries a value
//!    past them, such a layer as a whole (`region.rs`); channels between convolutions (`channels.rs`).
//! 2. [`Pruning::sweeps`] are models that give the inputs of the last product of each; the caller runs each on texts, one at a time, and
//!    hands what [`Moments`] add to [`Pruning::rank`], which puts the units in an order (`removal.rs`).
//! 3. [`Pruning::alone`] is the model with one change; the caller compares its vectors with the original's, and hands the differences to
//!    [`Pruning::weigh`].
//! 4. [`Pruning::share`] says how much each gives for so many bytes (`share.rs`) and multiplications (`work.rs`).
//! 5. [`Pruning::rest`] are the sweeps of those that give units; [`Pruning::settle`] fits what is left of their matrices, and
//!    [`Pruning::finish`] writes the model (`cut.rs`).

mod channels;
mod cut;
mod graph;
mod region;
mod removal;
mod share;
mod work;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::onnx::proto::GraphProto;
use serde::Serialize;

use self::channels::channels;
use self::cut::{Fate, cut};
use self::graph::Graph;
use self::region::{Region, regions};
use self::removal::{Removal, refitted, removal};
use self::share::{Amounts, Given, Giver, shared};
use self::work::Work;
use crate::error::{OptimizeError, Result};
use crate::history;
use crate::int4::Moments;
use crate::int8::check;
use crate::measure::check_changes;
use crate::sweeps::{Input, in_sweeps};

pub use self::region::Unit;
pub use crate::sweeps::Sweep;

/// Columns go in such numbers where there are enough: kernels compute as many at a time.
const TOGETHER: usize = 16;

/// The share of columns that may go: of the rest the vectors change too much for the measured ones to say anything.
const MOST: f64 = 0.75;

/// The share of units without which a region is measured.
const MEASURED: f64 = 0.3;

/// What became of columns, heads, channels, or a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Pruned {
    /// The matrix that reads them.
    pub matrix: String,
    /// What they are.
    pub unit: Unit,
    /// How many there were.
    pub units: usize,
    /// How many are left; 0: the layer is left out.
    pub kept: usize,
    /// Bytes of weights that went with them.
    pub bytes: usize,
    /// Multiplications with weights that went with them, of a token or a picture; 0 where that is not known.
    pub multiplications: usize,
}

/// A model that loses columns, heads, channels and layers.
#[derive(Debug)]
pub struct Pruning<'b> {
    bundle: &'b ModelBundle,
    plans: Vec<Plan>,
    /// Multiplications with weights, of all; 0 where that is not known.
    multiplications: usize,
}

#[derive(Debug)]
struct Plan {
    region: Region,
    /// Bytes and multiplications of a unit.
    unit: Amounts,
    step: usize,
    removal: Option<Removal>,
    /// Units that are gone when the region is measured, and the last matrix then.
    sample: (usize, Vec<f32>),
    /// What the vectors change by with the sample, and without the region.
    changes: (f64, f64),
    given: Given,
    settled: Vec<f32>,
}

impl<'b> Pruning<'b> {
    /// What can be taken out of a model.
    ///
    /// # Errors
    /// [`OptimizeError::Unsuitable`] for a model that is quantised already, whose operator set is too old, or that has nothing that can
    /// be taken out.
    pub fn of(bundle: &'b ModelBundle) -> Result<Self> {
        check(bundle)?;
        let empty = GraphProto::default();
        let proto = bundle.graph.graph.as_ref().unwrap_or(&empty);
        let graph = Graph::of(bundle, proto);
        let mut regions = regions(&graph);
        channels(&graph, &mut regions);
        if regions.is_empty() {
            return Err(OptimizeError::Unsuitable {
                origin: bundle.origin.clone(),
                reason: "no columns or heads are between two products (MatMul) with matrices of their own, and no channels between two convolutions".into(),
                hint: "Make it smaller by its bits (`--int8`, `--int4`)".into(),
            });
        }
        let work = Work::of(&graph, proto).unwrap_or_default();
        let plans = regions.into_iter().map(|region| Plan {
            unit: [region.unit_bytes, work.of_unit(&region)],
            step: match region.unit {
                Unit::Columns | Unit::Channels if region.units >= 4 * TOGETHER => TOGETHER,
                _ => 1,
            },
            removal: None,
            sample: (0, Vec::new()),
            changes: (0.0, 0.0),
            given: Given::Units(0),
            settled: Vec::new(),
            region,
        });
        Ok(Self {
            bundle,
            plans: plans.collect(),
            multiplications: work.all(),
        })
    }

    /// What can be taken out, all of it still there; `bytes` are those of the whole.
    pub fn found(&self) -> Vec<Pruned> {
        self.plans
            .iter()
            .map(|plan| plan.told(Given::Units(0), plan.all()))
            .collect()
    }

    /// Multiplications with weights that a run makes for one token, or for one picture (of 224 x 224 where the graph leaves that open); 0
    /// where they cannot be known before a run.
    pub fn multiplications(&self) -> usize {
        self.multiplications
    }

    /// The inputs of the last products in sweeps over the texts, each with moments of at most 128 MB, or of one input.
    pub fn sweeps(&self) -> Vec<Sweep> {
        self.sweep(|_| true)
    }

    fn sweep(&self, takes: impl Fn(&Plan) -> bool) -> Vec<Sweep> {
        let taken = self
            .plans
            .iter()
            .enumerate()
            .filter(|(_, plan)| takes(plan));
        let inputs = taken.map(|(at, plan)| Input {
            name: plan.region.input.clone(),
            width: plan.region.units * plan.region.size,
            matrices: vec![at],
        });
        in_sweeps(&inputs.collect::<Vec<_>>())
    }

    /// Puts the units of a sweep in the order in which they go, by the inputs that were seen, `moments` in the order of [`Sweep::inputs`].
    ///
    /// # Errors
    /// [`OptimizeError::Texts`] where nothing was seen; [`OptimizeError::NotFinite`]; those of reading weights.
    pub async fn rank(
        &mut self,
        sweep: &Sweep,
        moments: &[Moments],
        cancel: &Cancel,
    ) -> Result<()> {
        for (at, moments) in seen(sweep, moments)? {
            let matrix = self.matrix(at).await?;
            let plan = &mut self.plans[at];
            let (units, size) = (plan.region.units, plan.region.size);
            let most = match plan.region.unit {
                Unit::Columns | Unit::Channels => (units as f64 * MOST) as usize,
                Unit::Heads => units - 1,
            };
            let most = most / plan.step * plan.step;
            let found = removal(moments, &matrix, size, most, cancel)?;
            let sample = (units as f64 * MEASURED) as usize / plan.step * plan.step;
            let sample = sample.clamp(plan.step.min(most), most);
            let kept = plan.places(&found.order[..sample]);
            plan.sample = (sample, refitted(moments, &matrix, &kept));
            plan.removal = Some(found);
        }
        Ok(())
    }

    /// How many changes [`alone`](Self::alone) makes: two for each region.
    pub fn parts(&self) -> usize {
        2 * self.plans.len()
    }

    /// The model with one change: without some units of a region, or without the region. `None` for one that cannot be left out.
    ///
    /// # Errors
    /// [`OptimizeError::Size`] for a change that is not there; those of reading weights.
    pub async fn alone(&self, part: usize) -> Result<Option<ModelBundle>> {
        let Some(plan) = self.plans.get(part / 2) else {
            return Err(OptimizeError::Size {
                what: "the number of a change",
                asked: part.to_string(),
                allowed: format!("below {}", self.parts()),
            });
        };
        let fate = match part % 2 {
            0 => {
                let (count, matrix) = &plan.sample;
                let gone = plan
                    .removal
                    .as_ref()
                    .map_or(&[][..], |found| &found.order[..*count]);
                Fate::Kept {
                    units: plan.left(gone),
                    matrix: matrix.clone(),
                }
            }
            _ if plan.region.skip.is_none() => return Ok(None),
            _ => Fate::Gone,
        };
        Ok(Some(cut(self.bundle, &[(&plan.region, fate)]).await?))
    }

    /// Takes what each change does to vectors, in the order of [`alone`](Self::alone): the mean squared change.
    ///
    /// # Errors
    /// [`OptimizeError::Size`] for changes of another number; [`OptimizeError::NotFinite`].
    pub fn weigh(&mut self, changes: &[f64]) -> Result<()> {
        check_changes(changes, self.parts(), "a vector, with columns taken out,")?;
        let (pairs, _) = changes.as_chunks::<2>();
        for (plan, &[some, all]) in self.plans.iter_mut().zip(pairs) {
            plan.changes = (some, all);
            plan.sample.1 = Vec::new();
        }
        Ok(())
    }

    /// Says how much each region gives, so that this share of the bytes of all weights is saved at least, and of the multiplications
    /// with them where that much can be had: those of a convolutional network's last layers are most of its bytes, and few of its
    /// multiplications.
    ///
    /// # Errors
    /// [`OptimizeError::Size`] for a share that is not between 0 and 1; [`OptimizeError::Unsuitable`] where less can be taken out.
    pub fn share(&mut self, share: f64) -> Result<()> {
        if !(share > 0.0 && share < 1.0) {
            return Err(OptimizeError::Size {
                what: "the share of bytes that is taken out",
                asked: share.to_string(),
                allowed: "between 0 and 1".into(),
            });
        }
        let infos = self.bundle.weights.weights();
        let all: usize = infos.iter().map(|info| info.byte_len()).sum();
        let givers: Vec<Giver> = self.plans.iter().map(Plan::giver).collect();
        let bytes = (all as f64 * share).ceil() as usize;
        let work = (self.multiplications as f64 * share).ceil() as usize;
        let given = shared(&givers, [bytes, work]).or_else(|| shared(&givers, [bytes, 0]));
        let Some(given) = given else {
            let most: usize = givers.iter().map(|giver| giver.most()[0]).sum();
            return Err(OptimizeError::Unsuitable {
                origin: self.bundle.origin.clone(),
                reason: format!(
                    "at most {:.1} % of its bytes can be taken out, and {:.1} % were asked for",
                    100.0 * most as f64 / all.max(1) as f64,
                    100.0 * share
                ),
                hint: "Ask for less, or make the table of tokens smaller (`--keep-tokens-of`)"
                    .into(),
            });
        };
        let each = self.plans.iter_mut().zip(given);
        each.for_each(|(plan, given)| plan.given = given);
        Ok(())
    }

    /// The sweeps of regions that lose units.
    pub fn rest(&self) -> Vec<Sweep> {
        self.sweep(|plan| matches!(plan.given, Given::Units(1..)))
    }

    /// Fits what is left of the matrices of a sweep to the inputs that were seen, `moments` in the order of [`Sweep::inputs`].
    ///
    /// # Errors
    /// [`OptimizeError::Texts`] where nothing was seen; those of reading weights.
    pub async fn settle(&mut self, sweep: &Sweep, moments: &[Moments]) -> Result<()> {
        for (at, moments) in seen(sweep, moments)? {
            let matrix = self.matrix(at).await?;
            let plan = &mut self.plans[at];
            let kept = plan.places(plan.gone());
            plan.settled = refitted(moments, &matrix, &kept);
        }
        Ok(())
    }

    /// The same model without what was taken out, and what became of each region. The identity is a new one, because vectors are others.
    ///
    /// # Errors
    /// Those of reading weights.
    pub async fn finish(mut self) -> Result<(ModelBundle, Vec<Pruned>)> {
        let (mut fates, mut told) = (Vec::new(), Vec::new());
        for plan in &mut self.plans {
            let matrix = std::mem::take(&mut plan.settled);
            told.push(plan.told(plan.given, plan.giver().amounts(plan.given)));
            let fate = match plan.given {
                Given::Units(0) => continue,
                Given::Whole => Fate::Gone,
                Given::Units(_) => Fate::Kept {
                    units: plan.left(plan.gone()),
                    matrix,
                },
            };
            fates.push((&plan.region, fate));
        }
        let made = cut(self.bundle, &fates).await?;
        let bytes: usize = told.iter().map(|pruned| pruned.bytes).sum();
        let step = format!("pruning: {bytes} bytes of columns, heads, channels and layers");
        Ok((history::noted(made, &self.bundle.identity.0, step), told))
    }

    async fn matrix(&self, at: usize) -> Result<Vec<f32>> {
        let empty = GraphProto::default();
        let proto = self.bundle.graph.graph.as_ref().unwrap_or(&empty);
        let graph = Graph::of(self.bundle, proto);
        let region = &self.plans[at].region;
        Ok(region.rows(graph.floats(&region.matrix).await?))
    }
}

/// The regions of a sweep, each with what its input was seen to be.
fn seen<'a>(sweep: &'a Sweep, moments: &'a [Moments]) -> Result<Vec<(usize, &'a Moments)>> {
    if moments.len() != sweep.inputs.len() || moments.iter().any(|moments| moments.rows() == 0) {
        return Err(OptimizeError::Texts(
            "there is no text or picture to prune with; give some like those that the model will see".into(),
        ));
    }
    let inputs = sweep.inputs.iter().zip(moments);
    let all =
        inputs.flat_map(|(input, moments)| input.matrices.iter().map(move |&at| (at, moments)));
    Ok(all.collect())
}

impl Plan {
    fn told(&self, given: Given, [bytes, multiplications]: Amounts) -> Pruned {
        Pruned {
            matrix: self.region.matrix.clone(),
            unit: self.region.unit,
            units: self.region.units,
            kept: match given {
                Given::Units(units) => self.region.units - units,
                Given::Whole => 0,
            },
            bytes,
            multiplications,
        }
    }

    fn all(&self) -> Amounts {
        self.unit.map(|unit| self.region.units * unit)
    }

    /// The units that go.
    fn gone(&self) -> &[usize] {
        match (&self.removal, self.given) {
            (Some(found), Given::Units(units)) => &found.order[..units],
            _ => &[],
        }
    }

    /// The units that stay when others go.
    fn left(&self, gone: &[usize]) -> Vec<usize> {
        let mut left = vec![true; self.region.units];
        gone.iter().for_each(|&unit| left[unit] = false);
        (0..left.len()).filter(|&unit| left[unit]).collect()
    }

    /// The columns that stay when units go.
    fn places(&self, gone: &[usize]) -> Vec<usize> {
        let size = self.region.size;
        let left = self.left(gone).into_iter();
        left.flat_map(|unit| unit * size..(unit + 1) * size)
            .collect()
    }

    /// What the region can give: the errors of its product, in the measure of what the sample did to vectors.
    fn giver(&self) -> Giver {
        let none = [0.0];
        let errors = self
            .removal
            .as_ref()
            .map_or(&none[..], |found| &found.errors);
        let (some, all) = self.changes;
        let measured = errors.get(self.sample.0).copied().unwrap_or(0.0);
        let by = if measured > 0.0 { some / measured } else { 0.0 };
        Giver {
            costs: errors
                .iter()
                .step_by(self.step)
                .map(|error| by * error)
                .collect(),
            step: self.step,
            unit: self.unit,
            whole: self.region.skip.is_some().then_some((all, self.all())),
        }
    }
}
