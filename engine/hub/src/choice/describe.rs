//! The small files beside the weights.

use isovec_engine::error::EngineError;
use serde::Deserialize;

use super::router::{DOCUMENT, ROUTER, ROUTER_CONFIG, Routes, SPARSE_STATIC};
use super::{
    CONFIG, DESCRIPTION, Known, MODULES, Need, Presence, Question, Stop, TOKENIZER_CONFIG,
    TOKENIZERS, content, is_there,
};
use crate::paths::path_fault;

/// Where a step of the model has its weights. Steps of these classes have none.
const MODULE_WEIGHTS: &str = "model.safetensors";
const WITHOUT_WEIGHTS: [&str; 5] = [
    "Pooling",
    "Normalize",
    "Dropout",
    "MultiVectorMask",
    LOGIT_SCORE,
];

/// More steps than any model has; each is two files to ask for.
const MAX_MODULES: usize = 64;

/// The classes of a step that is a transformer. Its weights are chosen apart.
const TRANSFORMERS: [&str; 2] = ["Transformer", "MLMTransformer"];

/// The class of a step whose folder has the whole model in it: a tokenizer, and a table of tokens' vectors.
const STATIC: &str = "StaticEmbedding";

/// The class of Stanford's ColBERT, and the file of its settings.
const COLBERT: &[u8] = b"\"HF_ColBERT\"";
const COLBERT_SETTINGS: &str = "artifact.metadata";

/// The class of BGE-M3, which other models have as well.
const M3: &[u8] = b"\"XLMRobertaModel\"";

/// The files of the layers that BGE-M3 has for sparse vectors and for late interaction.
pub const HEADS_OF_M3: [&str; 2] = ["sparse_linear.pt", "colbert_linear.pt"];

/// The class of a step that makes a score of a decoder's logits.
pub const LOGIT_SCORE: &str = "LogitScore";

/// The classes of decoders with a layer of scores.
const SCORERS: [&[u8]; 5] = [
    b"\"Qwen2ForSequenceClassification\"",
    b"\"Qwen3ForSequenceClassification\"",
    b"\"LlamaForSequenceClassification\"",
    b"\"MistralForSequenceClassification\"",
    b"\"Gemma3TextForSequenceClassification\"",
];

/// The file of the template by which a decoder's input is written.
pub const CHAT_TEMPLATE: &str = "chat_template.jinja";

#[derive(Deserialize)]
struct Module {
    #[serde(default)]
    path: String,
    #[serde(default)]
    r#type: String,
}

impl Module {
    /// The class, whatever module of its library it is in.
    fn class(&self) -> &str {
        self.r#type.rsplit('.').next().unwrap_or_default()
    }

    /// A file in the step's folder, which may be the model's own.
    fn file(&self, name: &str) -> String {
        join(&self.path, name)
    }

    /// The files in the step's folder that are wanted beside those of the whole model.
    fn files(&self) -> Vec<&'static str> {
        let mut files = vec![CONFIG];
        match self.class() {
            class if WITHOUT_WEIGHTS.contains(&class) => {}
            class if TRANSFORMERS.contains(&class) => {
                files.extend(DESCRIPTION);
                files.extend(TOKENIZERS);
            }
            STATIC => files.extend([MODULE_WEIGHTS, TOKENIZERS[0]]),
            SPARSE_STATIC => files.extend([MODULE_WEIGHTS, TOKENIZERS[0], TOKENIZER_CONFIG]),
            _ => files.push(MODULE_WEIGHTS),
        }
        files
    }
}

/// The steps of a model.
#[derive(Default)]
struct Steps {
    /// Those of `modules.json`, where the way of documents stands in place of a `Router`.
    list: Vec<Module>,
    /// The steps of other ways.
    others: Vec<Module>,
    /// The file of the ways.
    router: Option<String>,
}

/// A file in a folder, which may be the model's own.
pub(super) fn join(folder: &str, name: &str) -> String {
    match folder {
        "" | "." => name.to_owned(),
        folder if name.is_empty() => folder.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}

/// Those of the paths that are there.
pub(super) fn optional(
    known: &dyn Known,
    paths: &[String],
    need: Need,
) -> Result<Vec<String>, Stop> {
    let mut found = Vec::new();
    let mut questions: Vec<Question> = Vec::new();
    for path in paths {
        match is_there(known, path, need) {
            Ok(true) => found.push(path.clone()),
            Ok(false) => {}
            Err(Stop::Ask(asked)) => questions.extend(asked),
            Err(refused) => return Err(refused),
        }
    }
    if questions.is_empty() {
        Ok(found)
    } else {
        Err(Stop::Ask(questions))
    }
}

/// The first of the paths that is there.
pub(super) fn first_of(known: &dyn Known, paths: &[&str]) -> Result<Vec<String>, Stop> {
    for path in paths {
        if is_there(known, path, Need::Taken)? {
            return Ok(vec![(*path).to_owned()]);
        }
    }
    Ok(Vec::new())
}

/// `modules.json` of sentence-transformers, and what lies in the folders that it names.
pub(super) fn modules(known: &dyn Known) -> Result<Vec<String>, Stop> {
    let Some(Steps {
        list,
        others,
        router,
    }) = steps(known)?
    else {
        return Ok(Vec::new());
    };
    let mut wanted = Vec::new();
    // The root's files are wanted in any case.
    let modules = list.iter().chain(&others);
    for module in modules.filter(|module| path_fault(&module.path).is_none()) {
        wanted.extend(module.files().into_iter().map(|file| module.file(file)));
    }
    // A folder's path may be as long as a path may be.
    wanted.retain(|path| path_fault(path).is_none());
    let mut found = optional(known, &wanted, Need::Taken)?;
    found.push(MODULES.to_owned());
    found.extend(router);
    Ok(found)
}

/// The folder of the transformer where a `Router` puts it in one of its own; empty for the root.
pub(super) fn routed_folder(known: &dyn Known) -> Result<String, Stop> {
    let steps = steps(known)?.unwrap_or_default();
    let first = steps.list.into_iter().next();
    let first = first.filter(|first| {
        steps.router.is_some()
            && TRANSFORMERS.contains(&first.class())
            && path_fault(&first.path).is_none()
    });
    Ok(first.map(|first| first.path).unwrap_or_default())
}

/// What Stanford's ColBERT says of itself, for a model whose `config.json` was read and names its class. Nobody else is asked.
pub(super) fn of_colbert(known: &dyn Known) -> Result<Vec<String>, Stop> {
    match names_class(known, COLBERT)? {
        true => optional(known, &[COLBERT_SETTINGS.to_owned()], Need::Taken),
        false => Ok(Vec::new()),
    }
}

/// Whether `config.json` was read and names a class, which stands in quotation marks.
fn names_class(known: &dyn Known, class: &[u8]) -> Result<bool, Stop> {
    let config = match known.presence(CONFIG) {
        Presence::There { .. } => known.content(CONFIG)?,
        _ => None,
    };
    Ok(config.is_some_and(|config| {
        let mut places = config.windows(class.len());
        places.any(|place| place == class)
    }))
}

/// The layers that BGE-M3 has beside its checkpoint, where a list of the files names them. Where there is no list, they are asked
/// for if `config.json` was read and names the class.
pub(super) fn of_m3(known: &dyn Known) -> Result<Vec<String>, Stop> {
    match known.names().is_some() || names_class(known, M3)? {
        true => optional(known, &HEADS_OF_M3.map(str::to_owned), Need::Taken),
        false => Ok(Vec::new()),
    }
}

/// The template of a decoder that scores: one with the step `LogitScore`, or with a layer of scores. Nobody else is asked.
pub(super) fn of_scorer(known: &dyn Known) -> Result<Vec<String>, Stop> {
    let steps = steps(known)?.unwrap_or_default();
    let mut scores = steps.list.iter().any(|step| step.class() == LOGIT_SCORE);
    for class in SCORERS {
        scores = scores || names_class(known, class)?;
    }
    match scores {
        true => optional(known, &[CHAT_TEMPLATE.to_owned()], Need::Taken),
        false => Ok(Vec::new()),
    }
}

/// Where a model that is sentence-transformers' `StaticEmbedding` has that file.
pub(super) fn of_static(known: &dyn Known, name: &str) -> Result<Option<String>, Stop> {
    let steps = steps(known)?.unwrap_or_default();
    let first = steps.list.first().filter(|first| first.class() == STATIC);
    let path = first.map(|first| first.file(name));
    Ok(path.filter(|path| path_fault(path).is_none()))
}

/// The steps that `modules.json` names, and those that a `Router` in it does.
fn steps(known: &dyn Known) -> Result<Option<Steps>, Stop> {
    let Some(bytes) = content(known, MODULES)? else {
        return Ok(None);
    };
    let wrong = |file: &str, detail: String| {
        EngineError::invalid_model(format!("{file} of {}", known.origin()), detail)
    };
    let list: Vec<Module> =
        serde_json::from_slice(&bytes).map_err(|error| wrong(MODULES, error.to_string()))?;
    let mut steps = Steps {
        list,
        ..Steps::default()
    };
    let router = steps.list.first().filter(|first| first.class() == ROUTER);
    let router = router.map(|router| (router.path.clone(), router.file(ROUTER_CONFIG)));
    if let Some((folder, file)) = router.filter(|(_, file)| path_fault(file).is_none()) {
        // Loading says that it is missing.
        if let Some(bytes) = content(known, &file)? {
            let routes = Routes::read(&bytes).map_err(|detail| wrong(&file, detail))?;
            let documents = routes.steps(DOCUMENT).unwrap_or_default();
            let step = |folder: &str, path: &str, class: &str| Module {
                path: join(folder, path),
                r#type: class.to_owned(),
            };
            let of_documents: Vec<Module> = documents
                .iter()
                .map(|own| step(&folder, own.folder, own.class))
                .collect();
            let others = routes.all().into_iter();
            let others = others.filter(|other| !documents.contains(other));
            steps.others = others
                .map(|own| step(&folder, own.folder, own.class))
                .collect();
            steps.list.splice(..1, of_documents);
            steps.router = Some(file);
        }
    }
    let count = steps.list.len() + steps.others.len();
    if count > MAX_MODULES {
        let detail = format!("it names {count} steps, past the limit of {MAX_MODULES}");
        return Err(wrong(MODULES, detail).into());
    }
    Ok(Some(steps))
}
