//! Decides which pooling head a model gets, or already has.

use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_model::head::{CLASSIFIER, HeadSpec, METADATA_KEY, Pooling, attach_head, keep_logits};
use isovec_model::sparse::{Over, SparseInfo, Splade, Weighting, attach_splade};
use isovec_model::tokens::{TokensInfo, attach_token_weights, attach_tokens};

use crate::config::TextConfig;
use crate::error::{Error, Result};
use crate::sentence_transformers::{FileHead, LateFiles, TokenWeightFiles};

/// The head of a graph.
#[derive(Debug, Default)]
pub(crate) struct Head {
    /// The components of a vector, where the graph says it.
    pub(crate) dim: Option<usize>,
    /// The pooling's name, or `in the graph` where the model came pooled.
    pub(crate) pooling: String,
    /// Whether vectors have unit length.
    pub(crate) normalize: bool,
    /// The dense layers by their hash; empty without any.
    pub(crate) dense: String,
    /// What makes weights of a vector's numbers, where they are words'.
    pub(crate) weighting: Option<Weighting>,
    /// Where all of it comes from.
    pub(crate) why: &'static str,
}

/// Puts the head on: the configuration's, else the model's files', else whatever the graph
/// already ends in, else the one that is usual for such models.
///
/// # Errors
/// [`EngineError::MissingFile`] when nobody says how to pool; [`Error::Config`] when the graph was
/// exported with another head than the configuration asks for; those of [`attach_head`].
pub(crate) fn resolve_head(
    bundle: &mut ModelBundle,
    text: &TextConfig,
    files: Option<&FileHead>,
    usual: Option<Pooling>,
) -> Result<Head> {
    let carried = bundle
        .graph
        .metadata_props
        .iter()
        .find(|entry| entry.key == METADATA_KEY);
    if let Some(carried) = carried.map(|entry| entry.value.clone()) {
        if carried == CLASSIFIER {
            return Err(EngineError::UnsupportedModel {
                origin: bundle.origin.clone(),
                reason: "it gives a number for each label, and no vector".into(),
                hint: "Load it with `Classifier`".into(),
            }
            .into());
        }
        return carried_head(bundle, text, &carried);
    }
    let pooling = text.pooling.or(files.map(|head| head.pooling)).or(usual);
    let spec = HeadSpec {
        pooling: pooling.unwrap_or(Pooling::Mean),
        dense: files.map(|head| head.dense.clone()).unwrap_or_default(),
        truncate_dim: text.dimension,
        // A model without files that say so gives unit vectors, which every similarity ranks alike.
        normalize: text
            .normalize
            .or(files.map(|head| head.normalize))
            .unwrap_or(true),
    };
    let info = attach_head(bundle, &spec)?;
    let pooling = match pooling {
        _ if info.pooled_by_graph => "in the graph".to_owned(),
        Some(pooling) => pooling_name(pooling),
        None => {
            return Err(EngineError::MissingFile {
                origin: bundle.origin.clone(),
                file: "modules.json, which defines the pooling".into(),
                hint: "Set text.pooling to the pooling that the model was trained with (see its card; `mean` and `cls` are the most common)"
                    .into(),
            }
            .into());
        }
    };
    let why = match (text.pooling.or(text.normalize.map(|_| spec.pooling)), files) {
        _ if info.pooled_by_graph => "the graph comes pooled",
        (Some(_), _) => "the configuration",
        (None, Some(_)) => "modules.json",
        (None, None) => "the default",
    };
    let dense = HeadSpec {
        pooling: Pooling::Mean,
        truncate_dim: None,
        normalize: false,
        ..spec.clone()
    };
    let dense = if dense.dense.is_empty() {
        String::new()
    } else {
        field(&dense.identity(), "dense")
    };
    Ok(Head {
        dim: info.dim,
        pooling,
        normalize: spec.normalize,
        dense,
        weighting: None,
        why,
    })
}

/// Leaves the graph's logits, which are no vector to pool, cut or scale.
///
/// # Errors
/// [`Error::Config`] when the configuration asks for a head of vectors; those of [`keep_logits`].
pub(crate) fn classifying_head(bundle: &mut ModelBundle, text: &TextConfig) -> Result<Head> {
    refuse_vectors(text, "a classifier gives scores")?;
    Ok(Head {
        dim: Some(keep_logits(bundle)?),
        pooling: CLASSIFIER.to_owned(),
        why: "the model classifies",
        ..Head::default()
    })
}

/// Pools the numbers that a masked language model gives words: as the model's files say, else by their maximum, which is what
/// sentence-transformers takes for a model without such files.
///
/// # Errors
/// [`Error::Config`] when the configuration asks for a head of vectors; those of [`attach_splade`].
pub(crate) fn sparse_head(
    bundle: &mut ModelBundle,
    text: &TextConfig,
    files: Option<Splade>,
) -> Result<Head> {
    refuse_vectors(text, "a sparse vector has a weight for each word")?;
    let splade = files.unwrap_or(Splade {
        over: Over::Max,
        twice: false,
    });
    let SparseInfo { words, made } = attach_splade(bundle, splade)?;
    Ok(Head {
        dim: Some(words),
        pooling: splade.identity(),
        normalize: false,
        dense: made,
        weighting: Some(splade.weighting()),
        why: match files {
            Some(_) => "modules.json",
            None => "the default",
        },
    })
}

/// Leaves a number of each token, of which the largest of a word's tokens becomes its weight.
///
/// # Errors
/// [`Error::Config`] when the configuration asks for a head of vectors; those of [`attach_token_weights`].
pub(crate) fn token_weights_head(
    bundle: &mut ModelBundle,
    text: &TextConfig,
    files: &TokenWeightFiles,
) -> Result<Head> {
    refuse_vectors(text, "a sparse vector has a weight for each word")?;
    let TokensInfo { dim, identity } = attach_token_weights(bundle, &files.layer)?;
    Ok(Head {
        dim: Some(dim),
        pooling: identity,
        weighting: Some(Weighting::RELU),
        why: files.from,
        ..Head::default()
    })
}

/// Leaves a vector of each token, as the model's files say.
///
/// # Errors
/// [`Error::Config`] when the configuration asks for a head of vectors; those of [`attach_tokens`].
pub(crate) fn late_head(
    bundle: &mut ModelBundle,
    text: &TextConfig,
    files: &LateFiles,
) -> Result<Head> {
    refuse_vectors(text, "late interaction has one for each token")?;
    let TokensInfo { dim, identity } = attach_tokens(bundle, &files.dense)?;
    Ok(Head {
        dim: Some(dim),
        pooling: identity,
        normalize: true,
        why: files.from,
        ..Head::default()
    })
}

/// Refuses settings of a head that this model does not have.
fn refuse_vectors(text: &TextConfig, why: &str) -> Result<()> {
    let asked = [
        ("text.pooling", text.pooling.is_some()),
        ("text.normalize", text.normalize.is_some()),
        ("text.dimension", text.dimension.is_some()),
    ];
    let faults: Vec<String> = asked
        .into_iter()
        .filter(|(_, asked)| *asked)
        .map(|(knob, _)| format!("{knob} is about vectors, and {why}; leave it out"))
        .collect();
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Error::Config(faults)),
    }
}

/// A graph that was exported with its head keeps it.
fn carried_head(bundle: &mut ModelBundle, text: &TextConfig, carried: &str) -> Result<Head> {
    let has = |name: &str| field(carried, name);
    let asked = [
        ("text.pooling", "pooling", text.pooling.map(pooling_name)),
        (
            "text.normalize",
            "normalize",
            text.normalize.map(|normalize| normalize.to_string()),
        ),
        (
            "text.dimension",
            "truncate_dim",
            text.dimension.map(|dimension| dimension.to_string()),
        ),
    ];
    let faults: Vec<String> = asked
        .into_iter()
        .filter_map(|(knob, name, asked)| Some((knob, has(name), asked?)))
        .filter(|(_, has, asked)| has != asked)
        .map(|(knob, has, asked)| {
            format!("{knob} is {asked}, but the graph was exported with {has}")
        })
        .collect();
    if !faults.is_empty() {
        return Err(Error::Config(faults));
    }
    let output = isovec_engine::description::describe(bundle)
        .outputs
        .into_iter()
        .next();
    let dim = output
        .and_then(|output| output.dims?.pop())
        .and_then(|dim| match dim {
            isovec_engine::description::Dim::Fixed(dim) => Some(dim),
            isovec_engine::description::Dim::Symbolic(_) => None,
        });
    let dense = Some(has("dense"))
        .filter(|dense| dense != "[]")
        .unwrap_or_default();
    let (pooling, normalize) = (has("pooling"), has("normalize") == "true");
    Ok(Head {
        dim,
        pooling,
        normalize,
        dense,
        weighting: None,
        why: "the graph was exported with it",
    })
}

/// The pooling as the configuration writes it.
pub(crate) fn pooling_name(pooling: Pooling) -> String {
    field(&HeadSpec::new(pooling, false).identity(), "pooling")
}

/// One entry of a head's canonical text, `pooling=mean;dense=[];truncate_dim=none;normalize=true`.
fn field(identity: &str, name: &str) -> String {
    let mut fields = identity
        .split(';')
        .filter_map(|entry| entry.split_once('='));
    let found = fields.find(|(field, _)| *field == name);
    found.map_or("", |(_, value)| value).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canonical_text_is_read_back() {
        let identity = HeadSpec {
            truncate_dim: Some(64),
            ..HeadSpec::new(Pooling::LastToken, true)
        }
        .identity();
        assert_eq!(field(&identity, "pooling"), "last_token");
        assert_eq!(field(&identity, "truncate_dim"), "64");
        assert_eq!(field(&identity, "normalize"), "true");
        assert_eq!(field(&identity, "dense"), "[]");
        assert_eq!(pooling_name(Pooling::MeanSqrtLen), "mean_sqrt_len");
    }
}
