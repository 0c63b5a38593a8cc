//! Looks for the model that keeps a budget of quality, size and time, and writes it.
//!
//! ```no_run
//! use isovec::optimize::OptimizeOptions;
//! use isovec::optimize::budget::Budget;
//! use isovec::{EmbeddingConfig, models};
//! use isovec_insight::budget::BudgetOptions;
//!
//! # fn texts() -> Vec<String> { Vec::new() }
//! let budget = Budget::new(["cosine>=0.99".parse()?, "size<=30MB".parse()?])?;
//! let options = BudgetOptions::new(OptimizeOptions::default().with_texts(texts()));
//! let config = EmbeddingConfig::default();
//! let source = models::ALL_MINILM_L6_V2;
//! let report = isovec_insight::blocking::optimize_within(source, "minilm-small", config, &budget, options)?;
//! println!("{}", report.to_markdown());
//! # Ok::<(), isovec::Error>(())
//! ```
//!
//! The order of candidates is that of [`isovec::optimize::budget::search`]. Each is made, loaded, compared with the original on the
//! texts, and timed beside it by a [`Trial`] of calls with one text. The one to take is made once more in its folder, with the same
//! bytes. With pictures (the feature `image`) the same is done for a model that reads pictures.

mod given;
mod picture;
mod report;
mod workshop;

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use isovec::optimize::budget::{Budget, Candidate, Tried};
use isovec::optimize::{OptimizeOptions, check_place};
use isovec::{EmbeddingConfig, Error, ModelSource, Result};
use isovec_engine::fresh::FreshFolder;
use isovec_engine::maybe_send::{MaybeSend, MaybeSync};

use self::given::Given;
use self::workshop::Workshop;
use crate::advisor::{Goal, Trial};

pub use report::{BudgetReport, Original};

/// What is done to every candidate, and how each is timed.
#[derive(Clone)]
#[non_exhaustive]
pub struct BudgetOptions {
    /// The texts or pictures that candidates are calibrated with, compared and timed on, and the texts whose tokens stay.
    pub optimize: OptimizeOptions,
    /// How a candidate is timed; its goal is [`Goal::Latency`], whatever it says.
    pub trial: Trial,
    /// Told of every candidate when it was measured.
    pub on_point: Option<Arc<dyn OnPoint>>,
}

impl BudgetOptions {
    /// With these options for every candidate, and the trials of the advisor.
    pub fn new(optimize: OptimizeOptions) -> Self {
        Self {
            optimize,
            trial: Trial::of(Goal::Latency),
            on_point: None,
        }
    }
}

impl fmt::Debug for BudgetOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BudgetOptions")
            .field("trial", &self.trial)
            .finish_non_exhaustive()
    }
}

/// Hears of candidates.
pub trait OnPoint: MaybeSend + MaybeSync {
    /// A candidate was tried.
    fn point(&self, candidate: &Candidate, tried: &Tried);
}

impl<F: Fn(&Candidate, &Tried) + MaybeSend + MaybeSync> OnPoint for F {
    fn point(&self, candidate: &Candidate, tried: &Tried) {
        self(candidate, tried);
    }
}

/// Tries candidates, and writes the fastest that keeps the budget into a new folder. Where none does, nothing is written, and
/// [`BudgetReport::chosen`] is `None`.
///
/// # Errors
/// [`Error::Config`] for options that ask for one technique, and for texts and pictures together; [`Error::Io`] for a folder with
/// something in it, and a full disk; [`Error::Optimize`] for texts or pictures that are too few; what a [`Trial`] refuses; those of
/// loading the original. A candidate that cannot be made or loaded is [refused](Tried::Refused) in the report.
pub async fn optimize_within(
    source: impl Into<ModelSource>,
    folder: impl AsRef<Path>,
    config: EmbeddingConfig,
    budget: &Budget,
    options: BudgetOptions,
) -> Result<BudgetReport> {
    let (source, folder) = (source.into(), folder.as_ref());
    let config = config.build()?;
    check(&config, &options.optimize)?;
    check_place(folder)?;
    let mut trial = options.trial.clone();
    trial.goal = Goal::Latency;
    #[cfg(feature = "image")]
    if given::has_pictures(&options.optimize) {
        let given = Given::pictures(&source, &config, &options.optimize, budget, &trial).await?;
        return Workshop::new(folder, source, config, options, trial, given)?
            .search(folder, budget)
            .await;
    }
    let given = Given::texts(&source, &config, &options.optimize, budget, &trial).await?;
    Workshop::new(folder, source, config, options, trial, given)?
        .search(folder, budget)
        .await
}

fn check(config: &EmbeddingConfig, options: &OptimizeOptions) -> Result<()> {
    let one = options.int8.is_some() || options.int4 || options.static_dimension.is_some();
    let parts = options.smooth.is_some() || options.bits.is_some();
    let parts = parts || !options.in_f32.is_empty() || options.each_node || options.seven_bits;
    match one || parts || config.model.dtype.is_some() {
        false => Ok(()),
        true => Err(Error::Config(vec![
            "a budget chooses between techniques itself: leave out products in int8 and their options, a static model, and model.dtype"
                .into(),
        ])),
    }
}

/// A folder for candidates beside the one that is wanted, on the same disk.
fn beside(folder: &Path) -> Result<FreshFolder> {
    let parent = match folder.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let made = fs::create_dir_all(parent).and_then(|()| FreshFolder::new(parent, &name));
    made.map_err(|source| io(folder, source))
}

pub(crate) fn io(path: &Path, source: std::io::Error) -> Error {
    Error::Io {
        path: path.to_path_buf(),
        source: Arc::new(source),
    }
}
