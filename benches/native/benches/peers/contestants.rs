//! The work of one process: load, report it, wait, embed everything, report the time.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use fastembed::{
    InitOptionsUserDefined, Pooling, TextEmbedding, TokenizerFiles, UserDefinedEmbeddingModel,
};
use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;
use isovec::config::EngineChoice;
use isovec_bench::{AnyError, Raw, memory, minilm};

use crate::MAX_TOKENS;

/// Where the texts are, one a line, and where the vectors are to go.
pub(crate) const TEXTS: &str = "ISOVEC_BENCH_TEXTS";
pub(crate) const VECTORS: &str = "ISOVEC_BENCH_VECTORS";
/// The folder with a model that does not pool.
pub(crate) const MODEL: &str = "ISOVEC_BENCH_MODEL";

/// Those of this program, by name.
pub(crate) const NAMES: [&str; 4] = ["isovec", "isovec-default", "raw", "fastembed-rs"];

/// The vectors, and the part of what was computed that was padding, where that is known.
type Embedded = (Vec<Vec<f32>>, Option<f64>);
type Embed = Box<dyn FnMut(&[String]) -> Result<Embedded, AnyError>>;

/// Runs one of them.
pub(crate) fn run(name: &str) -> Result<(), AnyError> {
    let texts = std::fs::read_to_string(path(TEXTS)?)?;
    let texts: Vec<String> = texts.lines().map(str::to_owned).collect();
    let (what, mut embed) = load(name)?;
    embed(&texts[..64])?;
    println!("ready {what}");
    std::io::stdin().lock().read_line(&mut String::new())?;
    let started = Instant::now();
    let (vectors, padding) = embed(&texts)?;
    let seconds = started.elapsed().as_secs_f64();
    let peak = memory()?.peak;
    let mut file = std::io::BufWriter::new(std::fs::File::create(path(VECTORS)?)?);
    for value in vectors.iter().flatten() {
        file.write_all(&value.to_le_bytes())?;
    }
    file.flush()?;
    let padding = padding.map_or_else(String::new, |part| part.to_string());
    println!("{seconds} {peak} {padding}");
    Ok(())
}

fn path(variable: &str) -> Result<PathBuf, AnyError> {
    let value = std::env::var_os(variable).ok_or_else(|| format!("{variable} is not set"))?;
    Ok(value.into())
}

fn load(name: &str) -> Result<(String, Embed), AnyError> {
    let model = minilm()?;
    Ok(match name {
        "isovec" => isovec(&model, EmbeddingConfig::high_throughput())?,
        "isovec-default" => isovec(&model, EmbeddingConfig::default())?,
        "raw" => {
            // An embedder finds and loads the library; it takes no part.
            drop(isovec(&model, EmbeddingConfig::default())?);
            let raw = Raw::load(&model, 0, MAX_TOKENS)?;
            (
                "raw ort, one text at a time, no padding, all threads".to_owned(),
                Box::new(move |texts: &[String]| {
                    let vectors = texts.iter().map(|text| raw.embed(text));
                    Ok((vectors.collect::<Result<_, _>>()?, Some(0.0)))
                }),
            )
        }
        "fastembed-rs" => {
            let mut model = fastembed(&path(MODEL)?)?;
            (
                "fastembed-rs 7.5.0 with its defaults".to_owned(),
                Box::new(move |texts: &[String]| Ok((model.embed(texts, None)?, None))),
            )
        }
        other => return Err(format!("there is no contestant {other}").into()),
    })
}

/// isovec on ONNX Runtime.
pub(crate) fn embedder(model: &Path, config: EmbeddingConfig) -> Result<Embedder, AnyError> {
    let config = config
        .with_engine(EngineChoice::OnnxRuntime)
        .with_max_length(MAX_TOKENS);
    Ok(Embedder::builder(model).config(config).load()?)
}

fn isovec(model: &Path, config: EmbeddingConfig) -> Result<(String, Embed), AnyError> {
    let embedder = embedder(model, config)?;
    let what = format!(
        "isovec on {}, {} runs at a time of {} threads",
        embedder.provider(),
        embedder.capabilities().concurrent_runs,
        embedder.capabilities().intra_op_threads
    );
    let embed = move |texts: &[String]| {
        let before = embedder.stats().tokens;
        let vectors = embedder.embed(texts)?.into_vecs();
        let mut own = embedder.stats().tokens;
        own.real -= before.real;
        own.padding -= before.padding;
        Ok((vectors, Some(own.padding_ratio())))
    };
    Ok((what, Box::new(embed)))
}

fn fastembed(folder: &Path) -> Result<TextEmbedding, AnyError> {
    let file = |name: &str| std::fs::read(folder.join(name));
    let tokenizer = TokenizerFiles {
        tokenizer_file: file("tokenizer.json")?,
        config_file: file("config.json")?,
        special_tokens_map_file: file("special_tokens_map.json")?,
        tokenizer_config_file: file("tokenizer_config.json")?,
    };
    let model = UserDefinedEmbeddingModel::new(file("model.onnx")?, tokenizer);
    let options = InitOptionsUserDefined::new().with_max_length(MAX_TOKENS);
    let model = model.with_pooling(Pooling::Mean);
    Ok(TextEmbedding::try_new_from_user_defined(model, options)?)
}
