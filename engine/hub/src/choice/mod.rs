//! Which of a repository's or a folder's files are the model: the one list of rules, for the hub's
//! client, for folders and for pages.
//!
//! The rules do not read files themselves. The caller gives [`FileSelection::next`] the known facts about the files
//! ([`Known`]), and gets either the next [`Question`] or the [`Choice`]. A caller with a list of all files can answer
//! nearly everything at once. A page has no list, and answers by asking the server whether a file exists.
//!
//! The rules, for a selection without a named file:
//!
//! Where `modules.json` begins with a `Router`, its way of documents is the model. If the transformer has a folder of its own
//! there, rules 2 to 4 are about that folder.
//!
//! 1. The `model.safetensors` of sentence-transformers' `StaticEmbedding`, if `modules.json` begins with it.
//! 2. The 16-bit ONNX file, if the smallest form is wanted and that file is smaller than the checkpoint.
//! 3. `model.safetensors`, else the shards that `model.safetensors.index.json` names, if the family in `config.json`
//!    can be converted.
//! 4. `model.onnx`, then `onnx/model.onnx`, each with the files that hold its external data.

mod describe;
mod rooted;
mod router;
mod told;
mod weights;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;

use describe::join;
use isovec_engine::error::{EngineError, Result};

pub use describe::{CHAT_TEMPLATE, HEADS_OF_M3, LOGIT_SCORE};
pub use router::{DOCUMENT, QUERY, ROUTER, ROUTER_CONFIG, RouteStep, Routes, SPARSE_STATIC};
pub use told::next_told;
pub use weights::{HALF_ONNX_FILE, ONNX_FILES, SAFETENSORS, SAFETENSORS_INDEX, Weights, shards_of};

/// Small files that describe an embedding model: of transformers, of tokenizers, of
/// sentence-transformers, and of what makes pixels ready.
const DESCRIPTION: [&str; 6] = [
    CONFIG,
    TOKENIZER_CONFIG,
    "special_tokens_map.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "preprocessor_config.json",
];

/// The file that states a checkpoint's architecture.
pub const CONFIG: &str = "config.json";
/// The list of a sentence-transformers model's steps.
pub const MODULES: &str = "modules.json";
/// The settings of a tokenizer.
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
/// What turns texts into ids, the first that is there: the second is that of older BERT models.
const TOKENIZERS: [&str; 2] = ["tokenizer.json", "vocab.txt"];

/// Which weights are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WeightFiles {
    /// safetensors, sharded or not, where they are there (and the
    /// [check](FileSelection::accept_safetensors_if) lets them pass), else `model.onnx`, else
    /// `onnx/model.onnx`.
    #[default]
    Auto,
    /// [`HALF_ONNX_FILE`] where it is there and smaller than the
    /// safetensors, else as `Auto`.
    Smallest,
    /// This ONNX file and its external data.
    Onnx(String),
    /// None.
    Skip,
}

/// The known facts about one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Nothing yet.
    Unknown,
    /// It is not there.
    Absent,
    /// It is there.
    There {
        /// Its size, where that is known.
        bytes: Option<u64>,
    },
}

/// The known facts about the files of a model.
pub trait Known {
    /// The name of the source in messages.
    fn origin(&self) -> &str;

    /// Every file that is there, by its path; `None` where there is no such list.
    fn names(&self) -> Option<Vec<&str>>;

    /// The known facts about a file. Never [`Presence::Unknown`] if there is a list.
    fn presence(&self, path: &str) -> Presence;

    /// The content of a small file that is there; `None` as long as it was not read.
    ///
    /// # Errors
    /// Where it cannot be read.
    fn content(&self, path: &str) -> Result<Option<Cow<'_, [u8]>>>;
}

/// A question that has to be answered before the rules can continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The file.
    pub path: String,
    /// The needed fact.
    pub need: Need,
}

/// The fact that is needed about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Need {
    /// Whether it is there. It is chosen then, so it may be fetched at once.
    Taken,
    /// Its size, and whether it is there. It may well be chosen, so it may be begun.
    Likely,
    /// Its size, and whether it is there.
    Size,
    /// Its content.
    Content,
}

/// The answer of the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// They have to know this first. All of it can be found out at the same time.
    Ask(Vec<Question>),
    /// These are the files.
    Chosen(Choice),
}

/// The files that were chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// The files of the weights.
    pub weights: Weights,
    /// The folder that the transformer has for itself; empty where its files lie in the root.
    pub folder: String,
    /// All files, that of the weights among them: sorted, none twice, each of them there.
    pub files: Vec<String>,
}

type ConfigCheck = dyn Fn(&[u8]) -> Result<()> + Send + Sync;

/// The files that are wanted from a repository.
#[derive(Clone)]
pub struct FileSelection {
    optional: Vec<String>,
    required: Vec<String>,
    embedding: bool,
    weights: WeightFiles,
    check: Option<Arc<ConfigCheck>>,
}

/// Why a part of the rules came to no end.
pub(crate) enum Stop {
    Ask(Vec<Question>),
    Refused(EngineError),
}

impl From<EngineError> for Stop {
    fn from(error: EngineError) -> Self {
        Self::Refused(error)
    }
}

impl FileSelection {
    /// The files of an embedding model: its configuration, its tokenizer, its sentence-transformers modules, and its
    /// weights.
    pub fn embedding() -> Self {
        Self {
            optional: DESCRIPTION.map(str::to_owned).to_vec(),
            required: Vec::new(),
            embedding: true,
            weights: WeightFiles::Auto,
            check: None,
        }
    }

    /// These files and no others; one that the repository lacks is an error.
    pub fn files(paths: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            optional: Vec::new(),
            required: paths.into_iter().map(Into::into).collect(),
            embedding: false,
            weights: WeightFiles::Skip,
            check: None,
        }
    }

    /// Chooses the weights; [`WeightFiles::Auto`] unless called.
    pub fn weights(mut self, weights: WeightFiles) -> Self {
        self.weights = weights;
        self
    }

    /// Wants one more file, where the repository has it.
    pub fn and(mut self, path: impl Into<String>) -> Self {
        self.optional.push(path.into());
        self
    }

    /// Shows `config.json` to `check` before safetensors are chosen. Where it answers
    /// [`EngineError::UnsupportedModel`], ONNX weights are taken instead, and where there are none,
    /// that is the error, before anything large is downloaded. Any other error ends the choice: a
    /// damaged `config.json` must not quietly lead to other weights. A repository without
    /// `config.json` counts as not supported.
    pub fn accept_safetensors_if(
        mut self,
        check: impl Fn(&[u8]) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.check = Some(Arc::new(check));
        self
    }

    /// Chooses, as far as the known facts allow.
    ///
    /// # Errors
    /// [`EngineError::MissingFile`] when a required file or every kind of weights is missing,
    /// [`EngineError::InvalidModel`] and [`EngineError::OutsideBundle`] for a deciding file that
    /// is damaged or names files outside, or the check's error.
    pub fn next(&self, known: &dyn Known) -> Result<Answer> {
        let mut files = Vec::new();
        let mut questions = Vec::new();
        let mut part = |found: Result<Vec<String>, Stop>| match found {
            Ok(found) => {
                files.extend(found);
                Ok(())
            }
            Err(Stop::Ask(asked)) => {
                questions.extend(asked);
                Ok(())
            }
            Err(Stop::Refused(error)) => Err(error),
        };
        part(self.required(known))?;
        part(describe::optional(known, &self.optional, Need::Taken))?;
        if self.embedding {
            part(describe::first_of(known, &TOKENIZERS))?;
            part(describe::modules(known))?;
            part(describe::of_colbert(known))?;
            part(describe::of_m3(known))?;
            part(describe::of_scorer(known))?;
        }
        let (mut weights, mut folder) = (Weights::None, String::new());
        part(self.choose_weights(known).map(|found| {
            weights = found.weights;
            folder = found.folder;
            found.files
        }))?;
        if !questions.is_empty() {
            return Ok(Answer::Ask(once(questions)));
        }
        files.sort_unstable();
        files.dedup();
        Ok(Answer::Chosen(Choice {
            weights,
            folder,
            files,
        }))
    }

    /// Which of alternatives a cached snapshot must have when there is no list to compare it
    /// with; the weights are looked for in any case.
    pub fn essentials(&self, known: &dyn Known) -> Vec<Vec<String>> {
        if !self.embedding {
            return Vec::new();
        }
        // Where they are in a folder of their own, static embeddings have no config. In the root they may be Model2Vec's.
        if let Ok(Some(tokenizer)) = describe::of_static(known, TOKENIZERS[0])
            && tokenizer != TOKENIZERS[0]
        {
            return vec![vec![tokenizer]];
        }
        let of_transformer: [&[&str]; 2] = [&[CONFIG], &TOKENIZERS];
        let folder = describe::routed_folder(known).unwrap_or_default();
        let owned = |paths: &&[&str]| paths.iter().map(|path| join(&folder, path)).collect();
        let all = of_transformer.iter().map(owned);
        all.chain([vec![MODULES.to_owned()]]).collect()
    }

    fn required(&self, known: &dyn Known) -> Result<Vec<String>, Stop> {
        all_there(known, &self.required, Need::Taken, |path| {
            EngineError::MissingFile {
                origin: known.origin().to_owned(),
                file: path.to_owned(),
                hint: format!("It has {}", described(known, "", "no files")),
            }
        })
    }
}

impl Default for FileSelection {
    fn default() -> Self {
        Self::embedding()
    }
}

impl fmt::Debug for FileSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSelection")
            .field("optional", &self.optional)
            .field("required", &self.required)
            .field("embedding", &self.embedding)
            .field("weights", &self.weights)
            .field("check", &self.check.is_some())
            .finish()
    }
}

/// Each file once. Who knows what is in a file knows that it is there, and how large it is.
fn once(questions: Vec<Question>) -> Vec<Question> {
    let mut kept: Vec<Question> = Vec::with_capacity(questions.len());
    let mut places = BTreeMap::new();
    for question in questions {
        match places.entry(question.path.clone()) {
            Entry::Vacant(free) => {
                free.insert(kept.len());
                kept.push(question);
            }
            Entry::Occupied(place) if question.need == Need::Content => {
                kept[*place.get()].need = Need::Content;
            }
            Entry::Occupied(_) => {}
        }
    }
    kept
}

fn ask<T>(path: &str, need: Need) -> Result<T, Stop> {
    Err(Stop::Ask(vec![Question {
        path: path.to_owned(),
        need,
    }]))
}

/// Whether a file is there.
fn is_there(known: &dyn Known, path: &str, need: Need) -> Result<bool, Stop> {
    match known.presence(path) {
        Presence::Unknown => ask(path, need),
        Presence::Absent => Ok(false),
        Presence::There { .. } => Ok(true),
    }
}

/// The content of a file; `None` where it is not there.
fn content<'k>(known: &'k dyn Known, path: &str) -> Result<Option<Cow<'k, [u8]>>, Stop> {
    match known.presence(path) {
        Presence::Absent => Ok(None),
        Presence::Unknown => ask(path, Need::Content),
        Presence::There { .. } => match known.content(path)? {
            Some(content) => Ok(Some(content)),
            None => ask(path, Need::Content),
        },
    }
}

/// Those paths, all of which have to be there.
fn all_there(
    known: &dyn Known,
    paths: &[String],
    need: Need,
    missing: impl Fn(&str) -> EngineError,
) -> Result<Vec<String>, Stop> {
    let mut questions = Vec::new();
    for path in paths {
        match is_there(known, path, need) {
            Ok(true) => {}
            Ok(false) => return Err(Stop::Refused(missing(path))),
            Err(Stop::Ask(asked)) => questions.extend(asked),
            Err(refused) => return Err(refused),
        }
    }
    if questions.is_empty() {
        Ok(paths.to_vec())
    } else {
        Err(Stop::Ask(questions))
    }
}

/// The names of files with that ending, for a message: the first few.
fn described(known: &dyn Known, ending: &str, none: &str) -> String {
    let names = known.names().unwrap_or_default();
    let names: Vec<&str> = names
        .into_iter()
        .filter(|name| name.ends_with(ending))
        .collect();
    match names.as_slice() {
        [] => none.to_owned(),
        few if few.len() <= 8 => few.join(", "),
        many => format!("{} and {} more", many[..8].join(", "), many.len() - 8),
    }
}
