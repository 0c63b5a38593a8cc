//! Makes a model smaller or faster, and measures what that changed.
//!
//! [`optimize`](crate::optimize()) writes a folder that loads as a model, and returns a [`Report`]. The parts that it is made of
//! are here as well, for programs that work on tensors themselves.

mod alone;
mod distil;
mod int4;
mod int8;
#[cfg(feature = "image")]
mod int8_pictures;
#[cfg(feature = "languages")]
mod languages;
mod measure;
mod observe;
mod options;
mod passes;
#[cfg(feature = "image")]
mod picture_rows;
#[cfg(feature = "image")]
mod pictures;
mod pruning;
mod report;
mod samples;
mod tokens;
mod vectors;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use isovec_engine::bundle::ModelBundle;
use isovec_engine::fingerprint::Precision;
use isovec_engine::fresh::FreshFolder;
use isovec_engine::maybe_send::BoxFuture;
use isovec_model::convert::Half;
use isovec_model::precision::narrowed;
use isovec_optimize::simplify::simplify;
use isovec_optimize::vocabulary::{TrimmedVocabulary, trim_vocabulary};

use crate::backend;
use crate::config::{Dtype, EmbeddingConfig};
use crate::error::{Error, Result};
use crate::export;
use crate::model::{Output, Purpose, complete, open, resolve};
use crate::source::ModelSource;

pub use isovec_model::precision::{
    BlockTensor, PerChannel, Plane, QuantizedTensor, block_scales, dequantize, dequantize_blocks,
    quantize_blocks, quantize_weights,
};
pub use isovec_optimize::OptimizeError;
pub use isovec_optimize::budget;
pub use isovec_optimize::calibrate::{Calibrator, Histogram, Range};
pub use isovec_optimize::distil::{PrincipalComponents, sif_weights};
pub use isovec_optimize::history::History;
pub use isovec_optimize::int4::{Matrix, Moments, quantize_for};
pub use isovec_optimize::int8::{Activations, Alone, LEAST_SQNR, Product, WeightBits};
pub use isovec_optimize::measure::{mse, sqnr};
pub use isovec_optimize::pruning::{Pruned, Unit};
pub use isovec_optimize::simplify::{Level, Pass, Passed};
pub use isovec_optimize::vocabulary::{TrimmedTokenizer, trim_tokenizer};
pub use measure::{comparable_texts, config_of_result};
pub use options::OptimizeOptions;
#[cfg(feature = "image")]
pub use picture_rows::PictureRows;
#[cfg(feature = "image")]
pub use pictures::comparable_pictures;
pub use report::{Quality, Report, Side, Speed, Step};

/// Writes a smaller or faster model into a new folder, which [`Embedder::load`](crate::Embedder::load) takes: an ONNX file as
/// [`export`](crate::export()) writes one, or the files of a static model. The files have the same bytes on every run. On an error
/// nothing is left: the folder gets its name when it is complete.
///
/// The result has a fingerprint of its own wherever its vectors can differ, and its metadata names the original.
///
/// # Errors
/// [`Error::Config`] where nothing is to be done; [`Error::Io`] for a folder with something in it, and a full disk;
/// [`Error::Optimize`] for a model or texts that this cannot be done with; those of [`Embedder::load`](crate::Embedder::load).
pub fn optimize(
    source: impl Into<ModelSource>,
    folder: impl AsRef<Path>,
    config: EmbeddingConfig,
    options: OptimizeOptions,
) -> BoxFuture<'static, Result<Report>> {
    let (source, folder) = (source.into(), folder.as_ref().to_path_buf());
    Box::pin(async move {
        let config = config.build()?;
        check(&folder, &config, &options)?;
        let (source, _) = resolve(source, &config, &options.watch).await?.split();
        let (place, opened, settings, asked) = (
            folder.clone(),
            source.clone(),
            config.clone(),
            options.clone(),
        );
        let made = backend::offload("optimising the model", async move {
            make(opened, &place, &settings, &asked).await
        })
        .await?;
        let cancel = &options.watch.cancel;
        let measured = compare(source, &made, &config, &options).await?;
        cancel.check()?;
        let (quality, speed) = measured.unzip();
        let steps = made.steps(&config, speed.as_ref());
        let inside = made.fresh.path().to_path_buf();
        let named = made.fresh.place(&folder);
        named.map_err(|source| Error::io(&folder, source))?;
        let files = made.written.files.iter();
        let files = files.map(|file| match file.strip_prefix(&inside) {
            Ok(name) => folder.join(name),
            Err(_) => file.clone(),
        });
        Ok(Report {
            before: made.before,
            after: made.after,
            steps,
            quality,
            speed,
            of_pictures: options.has_pictures(),
            passes: made.passes,
            pruned: made.pruned,
            products: made.products,
            matrices: made.matrices,
            files: files.collect(),
            bytes: made.written.bytes,
            dimension: made.written.dimension,
        })
    })
}

/// Compares the original with what was made of it, where there is something to compare them on.
async fn compare(
    original: ModelSource,
    made: &Made,
    config: &EmbeddingConfig,
    options: &OptimizeOptions,
) -> Result<Option<(Quality, Speed)>> {
    let (texts, cancel) = (options.comparing(), &options.watch.cancel);
    if options.uncompared {
        return Ok(None);
    }
    let result = ModelSource::from(made.fresh.path());
    #[cfg(feature = "image")]
    if !options.pictures.is_empty() {
        let pictures = &options.pictures;
        let measured = pictures::compare(original, result, config, made.output, pictures, cancel);
        return Ok(Some(measured.await?));
    }
    if texts.is_empty() {
        return Ok(None);
    }
    let measured = measure::compare(original, result, config, texts.to_vec(), cancel).await?;
    Ok(Some(measured))
}

/// What was made, not yet under its name.
struct Made {
    fresh: FreshFolder,
    /// What the model gives.
    #[cfg(feature = "image")]
    output: Output,
    before: Side,
    after: Side,
    /// Nodes of the original.
    nodes: usize,
    /// What became of each pass that was asked for.
    passes: Vec<Passed>,
    trimmed: Option<TrimmedVocabulary>,
    /// What is said of a static model.
    distilled: Option<String>,
    /// What became of each region, where a share of the bytes was taken out.
    pruned: Vec<Pruned>,
    /// Multiplications with weights before that; 0 where they are not known.
    multiplications: usize,
    /// What became of each product, where they were made of whole numbers.
    products: Vec<Product>,
    /// What became of each matrix, where they were stored in 4 bits.
    matrices: Vec<Matrix>,
    written: Written,
}

/// The files of a model.
struct Written {
    files: Vec<PathBuf>,
    bytes: u64,
    precision: Precision,
    dimension: Option<usize>,
}

/// Makes the model in a folder beside the one that is wanted.
async fn make(
    source: ModelSource,
    place: &Path,
    config: &EmbeddingConfig,
    options: &OptimizeOptions,
) -> Result<Made> {
    let cancel = &options.watch.cancel;
    cancel.check()?;
    let mut asked = purpose(Output::Vectors);
    if options.has_pictures() {
        asked.half = Half::Pictures;
    }
    let original = open(source.clone(), config, &asked, cancel)?;
    #[cfg(feature = "image")]
    if let Some(output) = pictures::asked_output(&original, config, options, cancel).await? {
        asked.output = output;
    }
    #[cfg(feature = "image")]
    let output = asked.output;
    let before = Side::of(&original).stored_in(&source, &original.model_file);
    let nodes = original
        .graph
        .graph
        .as_ref()
        .map_or(0, |graph| graph.node.len());
    let asked_passes: Vec<Pass> = options.passes.iter().copied().collect();
    let (original, passes) = simplify(&original, &asked_passes, cancel).await?;
    let (bundle, trimmed) = match options.trims() {
        false => (original, None),
        true => {
            let (bundle, trimmed) = trim(&original, options, config)?;
            // Nothing was taken out: it is the same model, with the same identity.
            let same = trimmed.tokens == trimmed.tokens_before;
            (if same { original } else { bundle }, Some(trimmed))
        }
    };
    cancel.check()?;
    let (bundle, pruned, multiplications) = match options.prune {
        None => (bundle, Vec::new(), 0),
        Some(share) => pruning::make(&bundle, config, options, share, asked.output).await?,
    };
    cancel.check()?;
    let (bundle, products) = match options.int8 {
        None => (bundle, Vec::new()),
        Some(activations) => {
            int8::make(&bundle, config, options, activations, asked.output).await?
        }
    };
    let (bundle, matrices) = match options.int4 {
        false => (bundle, Vec::new()),
        true => int4::make(&bundle, config, options).await?,
    };
    let few = options.int4 || options.int8.is_some();
    let bundle = match config.model.dtype {
        Some(dtype) if few && in_halves(dtype) => {
            let to = dtype.precision().unwrap_or_default();
            narrowed(&bundle, to, cancel).await?.bundle
        }
        _ => bundle,
    };
    cancel.check()?;
    let fresh = beside(place)?;
    let (written, distilled) = match options.static_dimension {
        None => {
            let prepared = complete(bundle, config, asked, cancel).await?;
            cancel.check()?;
            let exported = export::write(&prepared, fresh.path()).await?;
            let written = Written {
                files: exported.files,
                bytes: exported.bytes,
                precision: exported.precision,
                dimension: exported.dimension,
            };
            (written, None)
        }
        Some(dimension) => {
            let mut teacher = config.clone();
            teacher.model.dtype = None;
            // What was trimmed is no file yet, and only what is a file is loaded.
            let between = beside(place)?;
            let source = match &trimmed {
                None => source,
                Some(_) => {
                    let whole = complete(bundle.clone(), &teacher, purpose(Output::AsFile), cancel);
                    export::write(&whole.await?, between.path()).await?;
                    teacher.model = EmbeddingConfig::default().model;
                    ModelSource::from(between.path())
                }
            };
            let stored = config.model.dtype;
            let made = distil::make(&bundle, source, &teacher, stored, dimension, cancel).await?;
            let detail = format!(
                "{dimension} components for each of {} tokens, {:.1} % of the variance; vectors of the original and of the result \
                 have nothing in common",
                made.tokens,
                100.0 * made.explained
            );
            (distil::write(&made, fresh.path())?, Some(detail))
        }
    };
    cancel.check()?;
    // As whoever loads it finds it.
    let result = ModelSource::from(fresh.path());
    let opened = open(
        result.clone(),
        &EmbeddingConfig::default(),
        &purpose(Output::Vectors),
        cancel,
    )?;
    let after = Side::of(&opened).stored_in(&result, &opened.model_file);
    Ok(Made {
        fresh,
        #[cfg(feature = "image")]
        output,
        before,
        after,
        nodes,
        passes,
        trimmed,
        distilled,
        pruned,
        multiplications,
        products,
        matrices,
        written,
    })
}

fn purpose(output: Output) -> Purpose {
    Purpose {
        output,
        keep: None,
        half: Half::Texts,
    }
}

impl Made {
    /// What was done, and what was not, with the reason.
    fn steps(&self, config: &EmbeddingConfig, speed: Option<&Speed>) -> Vec<Step> {
        let vocabulary = match &self.trimmed {
            None => Step::left_out(
                "vocabulary",
                "no texts or languages were given whose tokens are to be kept",
            ),
            Some(trimmed) if trimmed.tokens == trimmed.tokens_before => Step::left_out(
                "vocabulary",
                "the texts or languages have all tokens of the model",
            ),
            Some(trimmed) => Step::done(
                "vocabulary",
                format!(
                    "{} of {} tokens are kept, and their rows: {} of {} bytes",
                    trimmed.tokens,
                    trimmed.tokens_before,
                    trimmed.table_bytes,
                    trimmed.table_bytes_before
                ),
            ),
        };
        let distilled = match &self.distilled {
            Some(detail) => Step::done("static", detail.clone()),
            None => Step::left_out("static", "no static model was asked for"),
        };
        let stored = self.written.precision;
        let precision = match config.model.dtype {
            None => Step::left_out(
                "precision",
                "no dtype was asked for: weights are stored as they were, a static table in f32",
            ),
            Some(asked) if !self.products.is_empty() || !self.matrices.is_empty() => Step::done(
                "precision",
                format!("matrices that are not in fewer bits are stored in {asked}"),
            ),
            Some(asked) => Step::done(
                "precision",
                format!("{asked} was asked for, and {stored} is stored"),
            ),
        };
        vec![
            passes::step(&self.passes, self.nodes),
            vocabulary,
            distilled,
            pruning::step(&self.pruned, self.multiplications, speed),
            int8::step(&self.products),
            int4::step(&self.matrices),
            precision,
        ]
    }
}

/// Whether weights that are in fewer bits already stay beside others in it.
fn in_halves(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F16 | Dtype::Bf16)
}

/// What can be known before a model is opened.
fn check(folder: &Path, config: &EmbeddingConfig, options: &OptimizeOptions) -> Result<()> {
    let nothing = !options.trims() && options.static_dimension.is_none();
    let mut faults = Vec::new();
    let nothing = nothing && options.int8.is_none() && options.prune.is_none() && !options.int4;
    let nothing = nothing && options.passes.is_empty();
    if nothing && config.model.dtype.is_none() {
        faults.push(
            "nothing is to be optimised: give a level of passes, texts or languages whose tokens are kept, a share of the bytes that is taken out, the dimension of a static model, products in int8, matrices in 4 bits, or model.dtype",
        );
    }
    if !options.passes.is_empty() && options.static_dimension.is_some() {
        faults.push("a static model has no graph that passes change: choose one of the two");
    }
    if options.prune.is_some() && options.static_dimension.is_some() {
        faults.push("a static model has no columns and heads to take out: choose one of the two");
    }
    if options.int8.is_some() && options.static_dimension.is_some() {
        faults.push("a static model has no products to make in int8: choose one of the two");
    }
    if options.int4 && (options.int8.is_some() || options.static_dimension.is_some()) {
        faults.push("matrices in 4 bits go neither with products in int8 nor with a static model: choose one of them");
    }
    if options.int4 && config.model.dtype.is_some_and(|dtype| !in_halves(dtype)) {
        faults.push("matrices in 4 bits would be stored once more by model.dtype: choose one of the two, or f16 or bf16 for the other weights");
    }
    if options.int8.is_some() && config.model.dtype.is_some_and(|dtype| !in_halves(dtype)) {
        faults.push("products in int8 have their own weights, which model.dtype would store once more: choose one of the two, or f16 or bf16 for the other weights");
    }
    if options.smooth.is_some() && options.int8.is_none() {
        faults.push("smoothing belongs to products in int8, which were not asked for");
    }
    if options.bits.is_some() && !options.int4 {
        faults.push("a number of bits belongs to matrices in 4 bits, which were not asked for");
    }
    let calibrated = options.int8.is_some() || options.int4 || options.prune.is_some();
    if options.calibrates_apart() && !calibrated {
        faults.push(match options.has_pictures() {
            true => "pictures to calibrate with belong to pruning or products in int8, which were not asked for",
            false => "texts to calibrate with belong to pruning, products in int8 or matrices in 4 bits, which were not asked for",
        });
    }
    if options.has_pictures()
        && !(options.comparing().is_empty() && options.calibrating().is_empty())
    {
        faults.push("pictures are for models that read pictures, and texts for models that read texts: give one of the two");
    }
    let of_texts = options.static_dimension.is_some() || options.int4;
    if options.has_pictures() && of_texts {
        faults.push("pictures go with passes, pruning, products in int8 and model.dtype alone");
    }
    if !options.in_f32.is_empty() && options.int8.is_none() {
        faults.push("only products in int8, which were not asked for, leave nodes in f32");
    }
    if options.seven_bits && options.int8.is_none() {
        faults.push("7 bits are those of weights in int8, which were not asked for");
    }
    if options.each_node && options.int8.is_none() {
        faults.push(
            "nodes are looked at one by one where they are made in int8, which was not asked for",
        );
    }
    if !faults.is_empty() {
        return Err(Error::Config(faults.into_iter().map(Into::into).collect()));
    }
    check_place(folder)
}

/// Refuses a folder that [`optimize`](crate::optimize()) would not write into.
///
/// # Errors
/// [`Error::Io`] for one with something in it, and one that cannot be read.
pub fn check_place(folder: &Path) -> Result<()> {
    match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Err(Error::io(
            folder,
            io::Error::new(
                ErrorKind::AlreadyExists,
                "something is in this folder; name another one, or empty it",
            ),
        )),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(folder, error)),
        _ => Ok(()),
    }
}

/// A folder beside the one that is wanted, on the same disk.
fn beside(folder: &Path) -> Result<FreshFolder> {
    let parent = match folder.parent() {
        Some(parent) if parent != Path::new("") => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let made = fs::create_dir_all(&parent).and_then(|()| FreshFolder::new(&parent, &name));
    made.map_err(|source| Error::io(folder, source))
}

/// Takes out what no text and no language has.
fn trim(
    bundle: &ModelBundle,
    options: &OptimizeOptions,
    config: &EmbeddingConfig,
) -> Result<(ModelBundle, TrimmedVocabulary)> {
    let languages = options.languages();
    let texts = match &options.keep_tokens_of {
        Some(texts) => texts.as_slice(),
        None => &[],
    };
    if languages.is_empty() && texts.iter().all(|text| text.trim().is_empty()) {
        let empty = "there is no text whose tokens are to be kept; give texts like those that will be embedded";
        return Err(OptimizeError::Texts(empty.into()).into());
    }
    let tokens = tokens::used(bundle, texts, languages, config)?;
    Ok(trim_vocabulary(bundle, &tokens.folder, &tokens.ids)?)
}
