//! The frame of a decoder's pairs, from its chat template.

use std::collections::BTreeMap;

use bytes::Bytes;
use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_model::bundle::CHAT_TEMPLATE;
use isovec_model::convert;
use isovec_tokenize::PairFrame;
use serde_json::Value;

type Result<T> = std::result::Result<T, EngineError>;

/// The older names of the template: a file of its own, and the file in whose member it is.
const OLDER: [&str; 2] = ["chat_template.json", "tokenizer_config.json"];

/// The member of those files.
const MEMBER: &str = "chat_template";

/// The frame that the files of a reranker define. An encoder has none, nor has a decoder with a layer of scores and no template:
/// its pairs are what the tokenizer makes of two texts.
///
/// # Errors
/// [`EngineError::MissingFile`] for a decoder whose answer is the score and that has no template; [`EngineError::UnsupportedModel`] for
/// a template that does not write both texts; [`EngineError::InvalidModel`] for a file that cannot be read.
pub(crate) fn frame(bundle: &ModelBundle) -> Result<Option<PairFrame>> {
    let (origin, files) = (&bundle.origin, &bundle.files);
    let answers = convert::logit_score(&bundle.graph).is_some();
    let config = files.get("config.json");
    let is_decoder = config
        .is_some_and(|config| convert::family(origin, config).is_ok_and(|it| it.is_decoder()));
    if !answers && !is_decoder {
        return Ok(None);
    }
    let Some((file, template)) = template(origin, files)? else {
        return match answers {
            false => Ok(None),
            true => Err(EngineError::MissingFile {
                origin: origin.clone(),
                file: CHAT_TEMPLATE.into(),
                hint: "It says how the model is asked about a query and a document".into(),
            }),
        };
    };
    framed(&template, &variables(origin, files)?)
        .map(Some)
        .map_err(|fault| EngineError::UnsupportedModel {
            origin: origin.clone(),
            reason: format!("the chat template in {file} cannot be used: {fault}"),
            hint: "A template for pairs writes the messages of the roles query and document, as those of sentence-transformers 5.4 do"
                .into(),
        })
}

#[cfg(any(feature = "chat", not(target_arch = "wasm32")))]
fn framed(
    template: &str,
    variables: &BTreeMap<String, Value>,
) -> std::result::Result<PairFrame, String> {
    PairFrame::of_chat(template, variables)
}

#[cfg(all(target_arch = "wasm32", not(feature = "chat")))]
fn framed(_: &str, _: &BTreeMap<String, Value>) -> std::result::Result<PairFrame, String> {
    Err("the build `tract` alone reads templates; let isovec choose the build".into())
}

/// The template, and the file that it is in.
fn template(
    origin: &str,
    files: &BTreeMap<String, Bytes>,
) -> Result<Option<(&'static str, String)>> {
    if let Some(bytes) = files.get(CHAT_TEMPLATE) {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            EngineError::invalid_model(origin, format!("{CHAT_TEMPLATE}: {error}"))
        })?;
        return Ok(Some((CHAT_TEMPLATE, text.to_owned())));
    }
    for file in OLDER {
        let template = match json(origin, files, file)?.get(MEMBER) {
            Some(Value::String(template)) => Some(template.clone()),
            // Several by their names, of which transformers takes this one where nobody asks for another.
            Some(Value::Array(named)) => {
                let mut named = named.iter();
                let default = named.find(|one| one["name"] == "default");
                default
                    .and_then(|one| one["template"].as_str())
                    .map(str::to_owned)
            }
            _ => None,
        };
        if let Some(template) = template {
            return Ok(Some((file, template)));
        }
    }
    Ok(None)
}

/// What a template knows beside the messages: the special tokens, and what sentence-transformers hands over.
fn variables(origin: &str, files: &BTreeMap<String, Bytes>) -> Result<BTreeMap<String, Value>> {
    let mut variables = BTreeMap::new();
    if let Value::Object(tokenizer) = json(origin, files, "tokenizer_config.json")? {
        for (name, value) in tokenizer
            .into_iter()
            .filter(|(name, _)| name.ends_with("_token"))
        {
            let text = match value {
                Value::Object(mut token) => token.remove("content").unwrap_or_default(),
                other => other,
            };
            if text.is_string() {
                variables.insert(name, text);
            }
        }
    }
    let own = json(origin, files, "sentence_bert_config.json")?;
    if let Value::Object(more) = &own["processing_kwargs"][MEMBER] {
        variables.extend(more.clone());
    }
    Ok(variables)
}

/// A file's content; null where there is no such file.
fn json(origin: &str, files: &BTreeMap<String, Bytes>, name: &str) -> Result<Value> {
    let Some(bytes) = files.get(name) else {
        return Ok(Value::Null);
    };
    serde_json::from_slice(bytes)
        .map_err(|error| EngineError::invalid_model(origin, format!("{name}: {error}")))
}
