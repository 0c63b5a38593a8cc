//! Makes candidates, measures them, and writes the one to take.

use std::fs;
use std::path::Path;

use isovec::optimize::budget::{Budget, Candidate, Figures, Point, Span, Technique, Tried, search};
use isovec::optimize::{Activations, OptimizeOptions, Product, Side, config_of_result};
use isovec::{Dtype, EmbeddingConfig, Error, ModelSource, Result};
use isovec_engine::fresh::FreshFolder;

use super::given::{Given, Model};
use super::report::{self, BudgetReport, Original};
use super::{BudgetOptions, beside, io};
use crate::advisor::{Trial, compared};

/// Makes and measures candidates.
pub(super) struct Workshop<M, T> {
    /// Where candidates are, one at a time.
    work: FreshFolder,
    source: ModelSource,
    config: EmbeddingConfig,
    options: BudgetOptions,
    trial: Trial,
    given: Given<M, T>,
    /// For each technique with nodes, these by what they lose, most first.
    sensitive: Vec<(Technique, Vec<String>)>,
    original: Option<Original>,
}

impl<M: Model<T>, T: Clone> Workshop<M, T> {
    /// For a model that will be in this folder.
    pub(super) fn new(
        folder: &Path,
        source: ModelSource,
        config: EmbeddingConfig,
        options: BudgetOptions,
        trial: Trial,
        given: Given<M, T>,
    ) -> Result<Self> {
        Ok(Self {
            work: beside(folder)?,
            source,
            config,
            options,
            trial,
            given,
            sensitive: Vec::new(),
            original: None,
        })
    }

    /// Tries candidates, and writes the one to take.
    pub(super) async fn search(mut self, folder: &Path, budget: &Budget) -> Result<BudgetReport> {
        let techniques = self.techniques();
        let points = search(budget, &techniques, async |candidate| {
            self.tried(candidate).await
        })
        .await?;
        self.finish(folder, budget, points).await
    }

    fn techniques(&self) -> Vec<Technique> {
        let mut techniques = vec![
            Technique::F16,
            Technique::Int8,
            Technique::Int8Static,
            Technique::Int8Dynamic,
        ];
        if !M::OF_PICTURES {
            techniques.insert(2, Technique::Int4);
        }
        if self.options.optimize.prune.is_some() {
            techniques.extend([Technique::Pruned, Technique::PrunedInt8Static]);
        }
        if self.options.optimize.trims() {
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
            #[cfg(feature = "image")]
            options.calibrate_pictures.clear();
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
        let (given, trial) = (&self.given, &self.trial);
        let model = given
            .baseline
            .load_like(&ModelSource::from(place), own, trial)
            .await?;
        let quality = compared(&given.before, &model, &given.items, trial).await?;
        let trial = trial.between(&given.baseline, &model, &given.items).await?;
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
            texts: self.given.items.len(),
            of_pictures: M::OF_PICTURES,
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
