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
//! bytes.

mod picture;
mod report;

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use isovec::optimize::budget::{
    Budget, Candidate, Figure, Figures, Point, Span, Technique, Tried, search,
};
use isovec::optimize::{
    Activations, OptimizeError, OptimizeOptions, Product, Side, check_place, comparable_texts,
    config_of_result,
};
use isovec::{Dtype, Embedder, EmbeddingConfig, Embeddings, Error, ModelSource, Result};
use isovec_engine::fresh::FreshFolder;
use isovec_engine::maybe_send::{MaybeSend, MaybeSync};

use crate::advisor::{Goal, Trial, compared, embed};

pub use report::{BudgetReport, Original};

/// What is done to every candidate, and how each is timed.
#[derive(Clone)]
#[non_exhaustive]
pub struct BudgetOptions {
    /// The texts that candidates are calibrated with, compared and timed on, and those whose tokens stay.
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
/// [`Error::Config`] for options that ask for one technique; [`Error::Io`] for a folder with something in it, and a full disk;
/// [`Error::Optimize`] for texts that are too few; what a [`Trial`] refuses; those of loading the original. A candidate that cannot
/// be made or loaded is [refused](Tried::Refused) in the report.
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
    let given = match &options.optimize.keep_tokens_of {
        Some(kept) if options.optimize.texts.is_empty() => kept,
        _ => &options.optimize.texts,
    };
    let texts = comparable_texts(given.clone())?;
    if budget.of(Figure::Recall).is_some() && texts.len() <= NEAREST {
        return Err(OptimizeError::Texts(format!(
            "{} different texts for a bound of recall@{NEAREST}; give more than {NEAREST}",
            texts.len()
        ))
        .into());
    }
    let mut trial = options.trial.clone();
    trial.goal = Goal::Latency;
    trial.check(texts.len())?;
    let baseline = load(&source, config.clone(), &trial).await?;
    let before = embed(&baseline, &texts, &trial).await?;
    let mut workshop = Workshop {
        work: beside(folder)?,
        source,
        config,
        options,
        trial,
        texts,
        baseline,
        before,
        sensitive: Vec::new(),
        original: None,
    };
    let techniques = workshop.techniques();
    let points = search(budget, &techniques, async |candidate| {
        workshop.tried(candidate).await
    })
    .await?;
    workshop.finish(folder, budget, points).await
}

/// Neighbours of a text that recall is of.
const NEAREST: usize = 10;

fn check(config: &EmbeddingConfig, options: &OptimizeOptions) -> Result<()> {
    let one = options.int8.is_some() || options.int4 || options.static_dimension.is_some();
    let parts = options.smooth.is_some() || options.bits.is_some() || !options.in_f32.is_empty();
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

async fn load(
    source: &ModelSource,
    mut config: EmbeddingConfig,
    trial: &Trial,
) -> Result<Embedder> {
    // Kept vectors would answer for both sides of a comparison.
    config.embedding_cache = EmbeddingConfig::default().embedding_cache;
    let mut builder = Embedder::builder(source.clone()).config(config);
    if let Some(cancel) = &trial.cancel {
        builder = builder.cancel(cancel.clone());
    }
    builder.load().await
}

/// Makes and measures candidates.
struct Workshop {
    /// Where candidates are, one at a time.
    work: FreshFolder,
    source: ModelSource,
    config: EmbeddingConfig,
    options: BudgetOptions,
    trial: Trial,
    texts: Vec<String>,
    baseline: Embedder,
    /// The original's vectors of the texts.
    before: Embeddings,
    /// For each technique with nodes, these by what they lose, most first.
    sensitive: Vec<(Technique, Vec<String>)>,
    original: Option<Original>,
}

impl Workshop {
    fn techniques(&self) -> Vec<Technique> {
        let mut techniques = vec![
            Technique::F16,
            Technique::Int8,
            Technique::Int4,
            Technique::Int8Static,
            Technique::Int8Dynamic,
        ];
        if self.options.optimize.prune.is_some() {
            techniques.extend([Technique::Pruned, Technique::PrunedInt8Static]);
        }
        if self.options.optimize.keep_tokens_of.is_some() {
            techniques.insert(0, Technique::Tokens);
        }
        techniques
    }

    /// The configuration and the options that make a candidate.
    fn how(&self, candidate: Candidate) -> (EmbeddingConfig, OptimizeOptions) {
        let mut config = self.config.clone();
        let mut options = self.options.optimize.clone();
        match candidate.technique {
            Technique::F16 | Technique::Pruned => config.model.dtype = Some(Dtype::F16),
            Technique::Int8 => config.model.dtype = Some(Dtype::Int8),
            Technique::Int4 => options.int4 = true,
            Technique::Int8Static | Technique::PrunedInt8Static => {
                options.int8 = Some(Activations::Static)
            }
            Technique::Int8Dynamic => options.int8 = Some(Activations::Dynamic),
            _ => {}
        }
        if options.int8.is_some() || options.int4 {
            config.model.dtype = Some(Dtype::F16);
        }
        if !candidate.technique.prunes() {
            options.prune = None;
        }
        if options.int8.is_none() && !options.int4 && options.prune.is_none() {
            // Nothing is calibrated.
            options.calibrate_with.clear();
        }
        options.in_f32 = self.in_f32(candidate).iter().cloned().collect();
        (config, options)
    }

    /// The nodes of a candidate that stay in f32 beside those that always do.
    fn in_f32(&self, candidate: Candidate) -> &[String] {
        &self.nodes(candidate.technique)[..candidate.kept]
    }

    /// The nodes of a technique that can stay in f32, those that lose most first.
    fn nodes(&self, technique: Technique) -> &[String] {
        let mut all = self.sensitive.iter();
        let own = all.find(|(own, _)| *own == technique);
        own.map_or(&[], |(_, nodes)| nodes)
    }

    async fn tried(&mut self, candidate: Candidate) -> Result<Tried> {
        let place = self.work.path().join("candidate");
        let tried = match self.measured(candidate, &place).await {
            Ok(tried) => tried,
            Err(error) if error.is_cancelled() || matches!(error, Error::Io { .. }) => {
                return Err(error);
            }
            Err(error) => Tried::Refused(error.to_string()),
        };
        if place.exists() {
            fs::remove_dir_all(&place).map_err(|source| io(&place, source))?;
        }
        if let Some(hears) = &self.options.on_point {
            hears.point(&candidate, &tried);
        }
        Ok(tried)
    }

    async fn measured(&mut self, candidate: Candidate, place: &Path) -> Result<Tried> {
        let (config, options) = self.how(candidate);
        let source = self.source.clone();
        let made = isovec::optimize(source, place, config, options.without_comparison()).await?;
        if candidate.technique.has_nodes() && candidate.kept == 0 {
            let nodes = by_sensitivity(&made.products);
            self.sensitive.push((candidate.technique, nodes));
        }
        let own = config_of_result(&self.config);
        let embedder = load(&ModelSource::from(place), own, &self.trial).await?;
        let quality = compared(&self.before, &embedder, &self.texts, &self.trial).await?;
        let trial = self
            .trial
            .run(&self.baseline, &embedder, &self.texts)
            .await?;
        self.original
            .get_or_insert_with(|| Original::new(&made.before, trial.times().0));
        Ok(Tried::Measured {
            figures: Figures {
                cosine: quality.cosine_worst.unwrap_or(f64::NAN),
                recall: quality.recall_at_10,
                bytes: made.bytes,
                latency: trial.times().1,
                speedup: Span {
                    estimate: trial.speedup,
                    low: trial.low.unwrap_or(0.0),
                    high: trial.high.unwrap_or(f64::INFINITY),
                },
            },
            nodes: self.nodes(candidate.technique).len().saturating_sub(1),
        })
    }

    /// Writes what is to be taken, and says why.
    async fn finish(
        self,
        folder: &Path,
        budget: &Budget,
        points: Vec<Point>,
    ) -> Result<BudgetReport> {
        let bytes = self
            .original
            .as_ref()
            .map_or(u64::MAX, |original| original.bytes);
        let chosen = budget.choice(bytes, &points);
        let candidate = chosen.map(|place| points[place].candidate);
        let optimized = match candidate {
            None => None,
            Some(candidate) => {
                let (config, options) = self.how(candidate);
                Some(isovec::optimize(self.source.clone(), folder, config, options).await?)
            }
        };
        Ok(BudgetReport {
            model: self.source.to_string(),
            budget: budget.clone(),
            texts: self.texts.len(),
            why: report::why(budget, bytes, &points, chosen),
            in_f32: match candidate {
                None => Vec::new(),
                Some(candidate) => self.in_f32(candidate).to_vec(),
            },
            original: self.original,
            points,
            chosen,
            optimized,
        })
    }
}

/// The nodes in int8, those with the least signal to noise first; of equal ones in the order of the graph.
fn by_sensitivity(products: &[Product]) -> Vec<String> {
    let mut nodes: Vec<&Product> = products.iter().filter(|product| product.int8).collect();
    let ratio = |product: &Product| product.sqnr.unwrap_or(f64::INFINITY);
    nodes.sort_by(|a, b| f64::total_cmp(&ratio(a), &ratio(b)));
    nodes.iter().map(|product| product.node.clone()).collect()
}

impl Original {
    fn new(side: &Side, latency: Span) -> Self {
        Self {
            bytes: side.bytes(),
            latency,
        }
    }
}
