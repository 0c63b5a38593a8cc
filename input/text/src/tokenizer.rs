//! The tokenizer: files in, ids out.

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use crate::budget::Stop;
use crate::config::TokenizerConfig;
use crate::definition::Definition;
use crate::encoding::{self, Encoding, Limits, TruncationSide};
use crate::error::{Fault, Result, TokenizeError};
use crate::identity::identity;
use crate::legacy::{self, BertSettings};
use crate::model::{Model, NoIds, Scratch};
use crate::split::{Bert, BertScratch, General, Needles, Part, Pieces};
use crate::template::Template;

/// The file of a Hugging Face fast tokenizer.
pub const TOKENIZER_FILE: &str = "tokenizer.json";

const CONFIG_FILE: &str = "tokenizer_config.json";
const VOCABULARY_FILE: &str = "vocab.txt";

/// Where the files lie inside a bundle: at its root, or where old sentence-transformers put them.
const FOLDERS: &[&str] = &["", "0_Transformer/"];

/// Below this many bytes of text in all, handing work to other threads costs more than it saves.
#[cfg(feature = "parallel")]
const PARALLEL_MIN_BYTES: usize = 16 * 1024;

/// What to do about a file that uses what is not implemented.
const UNSUPPORTED_HINT: &str = if cfg!(all(feature = "tokenizers", not(target_arch = "wasm32"))) {
    "Please report the model"
} else if cfg!(target_arch = "wasm32") {
    "Use the model natively, built with the feature `tokenizers`; and please report it"
} else {
    "Build with the Cargo feature `tokenizers`, which reads such files; and please report the model"
};

/// Turns texts into token ids.
///
/// Loading reads `tokenizer.json` in one pass into flat tables; the file's own truncation and
/// padding are not used (many published files hard-code 128 tokens), [`Limits`] are. The ids are
/// those of Hugging Face `tokenizers` on every text. Shared between threads as it is.
pub struct Tokenizer {
    pub(crate) origin: String,
    identity: String,
    pub(crate) reader: Reader,
    kind: &'static str,
    pub(crate) template: Template,
    /// As the file has it: pages, which never decode, do not have the code that reads it.
    pub(crate) decoder: Option<Value>,
    /// The added tokens that the file calls special.
    pub(crate) special: HashSet<u32>,
    pad_id: u32,
    pad_type_id: u32,
    max_id: u32,
    vocab_size: usize,
    model_max_tokens: Option<usize>,
    own_max_tokens: Option<usize>,
    truncation_side: TruncationSide,
    unknown_id: Option<u32>,
    tokens: Tokens,
}

/// Which tokens a model reads of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Tokens {
    /// The text's, and the special tokens that the file puts around them.
    #[default]
    All,
    /// The text's alone.
    OfText,
    /// The text's alone, without the token that stands for whatever the vocabulary lacks (`unk_token`).
    Known,
}

/// Who turns a text into ids.
pub(crate) enum Reader {
    /// This crate.
    Own(Box<Own>),
    /// The crate `tokenizers`.
    #[cfg(all(feature = "tokenizers", not(target_arch = "wasm32")))]
    Library(crate::library::Library),
}

/// What this crate makes of a file.
pub(crate) struct Own {
    model: Model,
    general: General,
    /// The short way, where the file asks for BERT's splitting and the text holds no added token.
    bert: Option<(Bert, Needles)>,
}

impl Own {
    fn build(definition: Definition) -> Result<Self, Fault> {
        let bert = Bert::recognise(
            definition.normalizer.as_ref(),
            definition.pre_tokenizer.as_ref(),
        )
        .zip(Needles::new(&definition.added_tokens));
        let model = Model::build(definition.model)?;
        let general = General::build(
            &definition.added_tokens,
            definition.normalizer.as_ref(),
            definition.pre_tokenizer.as_ref(),
            &model,
        )?;
        Ok(Self {
            model,
            general,
            bert,
        })
    }
}

impl Reader {
    /// Reads a file with this crate, or with the one that is there for what this one lacks.
    fn build(definition: Definition, json: Option<&[u8]>) -> Result<Self, Fault> {
        let own = Own::build(definition).map(|own| Self::Own(Box::new(own)));
        #[cfg(all(feature = "tokenizers", not(target_arch = "wasm32")))]
        if let (Err(Fault::Unsupported(feature)), Some(json)) = (&own, json) {
            let library = crate::library::Library::read(json);
            return library.map(Self::Library).map_err(|words| {
                Fault::Unsupported(format!("{feature} (the crate tokenizers: {words})"))
            });
        }
        let _ = json;
        own
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        match self {
            Self::Own(own) => {
                let added = own.general.added_id(token);
                added.or_else(|| own.model.token_to_id(token))
            }
            #[cfg(all(feature = "tokenizers", not(target_arch = "wasm32")))]
            Self::Library(library) => library.token_to_id(token),
        }
    }

    /// How the vocabulary spells these ids; an added token's own spelling counts.
    pub(crate) fn words(&self, ids: &HashSet<u32>) -> HashMap<u32, String> {
        match self {
            Self::Own(own) => {
                let mut words = own.model.pieces(ids);
                let added = own.general.added().filter(|(_, id)| ids.contains(id));
                words.extend(added.map(|(token, id)| (id, token.to_owned())));
                words
            }
            #[cfg(all(feature = "tokenizers", not(target_arch = "wasm32")))]
            Self::Library(library) => {
                let word = |&id: &u32| Some((id, library.id_to_token(id)?));
                ids.iter().filter_map(word).collect()
            }
        }
    }

    /// The largest id of a piece or an added token.
    fn max_id(&self) -> Option<u32> {
        match self {
            Self::Own(own) => {
                let added = own.general.added().map(|(_, id)| id);
                added.chain(own.model.max_id()).max()
            }
            #[cfg(all(feature = "tokenizers", not(target_arch = "wasm32")))]
            Self::Library(library) => library.max_id(),
        }
    }

    /// Number of different tokens, added ones included.
    fn size(&self) -> usize {
        match self {
            Self::Own(own) => {
                let added = own.general.added();
                let beside = added.filter(|(token, _)| own.model.token_to_id(token).is_none());
                own.model.size() + beside.count()
            }
            #[cfg(all(feature = "tokenizers", not(target_arch = "wasm32")))]
            Self::Library(library) => library.size(),
        }
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer")
            .field("origin", &self.origin)
            .field("model", &self.kind)
            .field("vocab_size", &self.vocab_size)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// Working memory of one thread.
#[derive(Default)]
pub(crate) struct Workspace {
    model: Scratch,
    bert: BertScratch,
    pieces: Pieces,
    pub(crate) ids: Vec<u32>,
}

impl Tokenizer {
    /// Builds a tokenizer from the small files of a model bundle, by their path inside it.
    ///
    /// Reads `tokenizer.json`, or, where that is missing, BERT's `vocab.txt`; in both cases
    /// `tokenizer_config.json` beside it. `origin` names the bundle in messages.
    ///
    /// # Errors
    /// [`TokenizeError::MissingTokenizer`], [`TokenizeError::InvalidTokenizer`],
    /// [`TokenizeError::UnsupportedTokenizer`] and [`TokenizeError::TooCostly`]; no content of a file makes this panic.
    pub fn from_files(files: &BTreeMap<String, Bytes>, origin: &str) -> Result<Self> {
        for folder in FOLDERS {
            if let Some(tokenizer) = Self::in_folder(files, folder, origin)? {
                return Ok(tokenizer);
            }
        }
        Err(TokenizeError::MissingTokenizer {
            origin: origin.to_owned(),
            hint: missing_hint(files),
        })
    }

    /// The tokenizer in one folder of a model bundle, else that of [`from_files`](Self::from_files).
    ///
    /// # Errors
    /// As [`from_files`](Self::from_files).
    pub fn from_folder(
        files: &BTreeMap<String, Bytes>,
        folder: &str,
        origin: &str,
    ) -> Result<Self> {
        match Self::in_folder(files, &format!("{folder}/"), origin)? {
            Some(tokenizer) => Ok(tokenizer),
            None => Self::from_files(files, origin),
        }
    }

    fn in_folder(
        files: &BTreeMap<String, Bytes>,
        folder: &str,
        origin: &str,
    ) -> Result<Option<Self>> {
        let find = |name: &str| {
            let path = format!("{folder}{name}");
            files.get(&path).map(|content| (path, content))
        };
        let config_file = find(CONFIG_FILE);
        if let Some((path, json)) = find(TOKENIZER_FILE) {
            let config = read_config(config_file.as_ref(), origin)?;
            let definition =
                Definition::parse(json).map_err(|fault| at_fault(fault, origin, &path))?;
            return Self::build(definition, Some(json), &config, origin, &path).map(Some);
        }
        if let Some((path, vocabulary)) = find(VOCABULARY_FILE) {
            let config = read_config(config_file.as_ref(), origin)?;
            let settings: BertSettings = read_config(config_file.as_ref(), origin)?;
            let definition = legacy::definition(vocabulary, &config, &settings)
                .map_err(|detail| invalid(origin, &path, detail))?;
            return Self::build(definition, None, &config, origin, &path).map(Some);
        }
        Ok(None)
    }

    fn build(
        definition: Definition,
        json: Option<&[u8]>,
        config: &TokenizerConfig,
        origin: &str,
        file: &str,
    ) -> Result<Self> {
        let at_fault = |fault: Fault| at_fault(fault, origin, file);
        let mut identity = identity(&definition);
        let mut template = Template::read(definition.post_processor.as_ref()).map_err(at_fault)?;
        let kind = definition.model.kind().map_err(at_fault)?;
        let padding = definition.padding.clone();
        let truncation = definition.truncation.clone();
        let unknown = definition.model.unk_token.clone();
        let decoder = definition.decoder.clone();
        let special = definition.added_tokens.iter().filter(|token| token.special);
        let special: Vec<String> = special.map(|token| token.content.clone()).collect();
        let reader = Reader::build(definition, json).map_err(at_fault)?;

        let (pad_id, pad_type_id) = match &padding {
            Some(padding) => (padding.pad_id, padding.pad_type_id),
            None => {
                let named = config.pad_token.as_ref().map(|token| token.content());
                let id = named
                    .into_iter()
                    .chain(["[PAD]", "<pad>"])
                    .find_map(|token| reader.token_to_id(token))
                    .unwrap_or(0);
                (id, 0)
            }
        };
        let special = special.iter().filter_map(|token| reader.token_to_id(token));
        let special = special.collect();
        if let Some(end) = config.end() {
            let id = reader.token_to_id(end).ok_or_else(|| {
                let detail =
                    format!("its eos_token {end:?}, which add_eos_token asks for, has no id");
                invalid(origin, CONFIG_FILE, detail)
            })?;
            if template.end_with(id) {
                identity = format!("{identity}, ended by {id}");
            }
        }
        let unknown_id = unknown.and_then(|token| reader.token_to_id(&token));
        let max_id = template.ids().chain(reader.max_id()).chain([pad_id]).max();
        Ok(Self {
            origin: origin.to_owned(),
            identity,
            vocab_size: reader.size(),
            reader,
            kind,
            template,
            decoder,
            special,
            pad_id,
            pad_type_id,
            max_id: max_id.unwrap_or(0),
            model_max_tokens: config.max_tokens(),
            own_max_tokens: truncation
                .and_then(|own| own.get("max_length")?.as_u64()?.try_into().ok())
                .filter(|&length| length > 0),
            truncation_side: config.side(),
            unknown_id,
            tokens: Tokens::All,
        })
    }

    /// The same tokenizer with other tokens of its texts. Its [`identity`](Self::identity) is another one.
    #[must_use]
    pub fn with_tokens(mut self, tokens: Tokens) -> Self {
        if tokens != Tokens::All {
            self.template = Template::default();
            let max_id = self.reader.max_id().into_iter().chain([self.pad_id]).max();
            self.max_id = max_id.unwrap_or(0);
            self.identity = format!("{}, {tokens}", self.identity);
        }
        self.tokens = tokens;
        self
    }

    /// Encodes texts, each on its own, in order. With the feature `parallel` the work is shared
    /// between rayon's threads when there is enough of it.
    ///
    /// # Errors
    /// [`TokenizeError::LimitTooSmall`], [`TokenizeError::NoUnknownToken`],
    /// [`TokenizeError::TooCostly`] and [`TokenizeError::Failed`], all but the first for the first text that has the fault.
    pub fn encode(&self, texts: &[&str], limits: &Limits) -> Result<Vec<Encoding>> {
        limits.room(self.template.special_in_single())?;
        #[cfg(feature = "parallel")]
        if texts.len() > 1
            && texts.iter().map(|text| text.len()).sum::<usize>() > PARALLEL_MIN_BYTES
        {
            use rayon::prelude::*;
            return texts
                .par_iter()
                .map_init(Workspace::default, |workspace, text| {
                    self.encode_with(text, limits, workspace)
                })
                .collect();
        }
        let mut workspace = Workspace::default();
        texts
            .iter()
            .map(|text| self.encode_with(text, limits, &mut workspace))
            .collect()
    }

    /// Encodes two texts as one input, for models that compare them. Where they are too long
    /// together the longer one is cut first.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_pair(&self, first: &str, second: &str, limits: &Limits) -> Result<Encoding> {
        limits.room(self.template.special_in_pair())?;
        let mut workspace = Workspace::default();
        self.tokenize(first, &mut workspace)?;
        let boundary = workspace.ids.len();
        self.tokenize(second, &mut workspace)?;
        let (first, second) = workspace.ids.split_at(boundary);
        encoding::pair(&self.template, first, second, *limits)
    }

    /// Puts the special tokens around a text that is there as its ids, and cuts it to the limit: with the ids that a text
    /// has without special tokens, the result is that of [`Tokenizer::encode`]. The ids of `before` stand before them, as
    /// those of a text of its own.
    ///
    /// # Errors
    /// [`TokenizeError::UnknownId`], and those of [`Tokenizer::encode`].
    pub fn encode_ids(&self, before: &str, ids: &[u32], limits: &Limits) -> Result<Encoding> {
        ids.iter().try_for_each(|&id| self.check_id(id))?;
        limits.room(self.template.special_in_single())?;
        let mut workspace = Workspace::default();
        if !before.is_empty() {
            self.tokenize(before, &mut workspace)?;
        }
        let from = workspace.ids.len();
        workspace.ids.extend_from_slice(ids);
        self.keep_known(from, &mut workspace.ids);
        encoding::single(&self.template, &workspace.ids, *limits)
    }

    /// How many tokens a text has, special tokens included and nothing truncated.
    ///
    /// # Errors
    /// [`TokenizeError::NoUnknownToken`], [`TokenizeError::TooCostly`] and
    /// [`TokenizeError::Failed`].
    pub fn count_tokens(&self, text: &str) -> Result<usize> {
        let mut workspace = Workspace::default();
        self.tokenize(text, &mut workspace)?;
        Ok(workspace.ids.len() + self.special_tokens_count())
    }

    /// Number of different tokens, added ones included.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// The largest id that can occur, padding included. A model whose embedding table has no row
    /// for it belongs to another tokenizer.
    pub fn max_id(&self) -> u32 {
        self.max_id
    }

    /// The id to pad with.
    pub fn pad_id(&self) -> u32 {
        self.pad_id
    }

    /// The type id to pad with.
    pub fn pad_type_id(&self) -> u32 {
        self.pad_type_id
    }

    /// How many special tokens a single text gets.
    pub fn special_tokens_count(&self) -> usize {
        self.template.special_in_single()
    }

    /// How many special tokens a pair of texts gets.
    pub fn special_tokens_count_pair(&self) -> usize {
        self.template.special_in_pair()
    }

    /// The id of a token, if there is one.
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.reader.token_to_id(token)
    }

    /// The longest input, in tokens, that `tokenizer_config.json` names, if it names one. A
    /// sentence-transformers `max_seq_length` comes before it.
    pub fn model_max_tokens(&self) -> Option<usize> {
        self.model_max_tokens
    }

    /// The length to which `tokenizer.json` itself cuts texts, if it does. Only models of static embeddings go by it.
    pub fn own_max_tokens(&self) -> Option<usize> {
        self.own_max_tokens
    }

    /// Which end of a long text `tokenizer_config.json` leaves out.
    pub fn truncation_side(&self) -> TruncationSide {
        self.truncation_side
    }

    /// The model's kind as its file names it: `WordPiece`, `Unigram`, `BPE` or `WordLevel`.
    pub fn model_kind(&self) -> &'static str {
        self.kind
    }

    /// The code that turns texts into ids: `isovec`, or `tokenizers` for a file that uses features that isovec does
    /// not implement (the Cargo feature of that name, native only).
    pub fn tokenized_by(&self) -> &'static str {
        match self.reader {
            Reader::Own(_) => "isovec",
            #[cfg(all(feature = "tokenizers", not(target_arch = "wasm32")))]
            Reader::Library(_) => "tokenizers",
        }
    }

    /// A hash (BLAKE3, hexadecimal) of everything that decides ids. Files that differ only in
    /// their own truncation, padding, decoder or layout have the same one.
    pub fn identity(&self) -> String {
        self.identity.clone()
    }

    fn encode_with(
        &self,
        text: &str,
        limits: &Limits,
        workspace: &mut Workspace,
    ) -> Result<Encoding> {
        workspace.ids.clear();
        self.tokenize(text, workspace)?;
        encoding::single(&self.template, &workspace.ids, *limits)
    }

    /// Refuses an id beyond the vocabulary.
    pub(crate) fn check_id(&self, id: u32) -> Result<()> {
        if id <= self.max_id {
            return Ok(());
        }
        Err(TokenizeError::UnknownId {
            origin: self.origin.clone(),
            id,
            largest: self.max_id,
        })
    }

    /// A text's ids, without special tokens.
    pub(crate) fn ids(&self, text: &str) -> Result<Vec<u32>> {
        let mut workspace = Workspace::default();
        self.tokenize(text, &mut workspace)?;
        Ok(workspace.ids)
    }

    /// Appends a text's ids, without special tokens, to the workspace.
    pub(crate) fn tokenize(&self, text: &str, workspace: &mut Workspace) -> Result<()> {
        let from = workspace.ids.len();
        self.append_ids(text, workspace)?;
        self.keep_known(from, &mut workspace.ids);
        Ok(())
    }

    /// Takes the unknown token out of the ids from a place on, where that is wanted.
    fn keep_known(&self, from: usize, ids: &mut Vec<u32>) {
        if let (Tokens::Known, Some(unknown)) = (self.tokens, self.unknown_id) {
            let mut kept = from;
            for at in from..ids.len() {
                ids[kept] = ids[at];
                kept += usize::from(ids[at] != unknown);
            }
            ids.truncate(kept);
        }
    }

    fn append_ids(&self, text: &str, workspace: &mut Workspace) -> Result<()> {
        let failed = |detail: String| TokenizeError::Failed {
            origin: self.origin.clone(),
            bytes: text.len(),
            detail,
        };
        let stopped = |stop: Stop| match stop {
            Stop::Failed(detail) => failed(detail),
            Stop::Exceeded {
                part,
                resource,
                limit,
            } => TokenizeError::TooCostly {
                origin: self.origin.clone(),
                detail: Stop::excess(&part, resource, limit),
                of: format!("a text of {} bytes", text.len()),
            },
        };
        // Places in a text are kept in 32 bits.
        if u32::try_from(text.len()).is_err() {
            return Err(failed("a text may be 4 GiB long at most".to_owned()));
        }
        let Workspace {
            model,
            bert,
            pieces,
            ids,
        } = workspace;
        #[allow(
            clippy::infallible_destructuring_match,
            reason = "with its feature there is a second one"
        )]
        let own = match &self.reader {
            Reader::Own(own) => own,
            #[cfg(all(feature = "tokenizers", not(target_arch = "wasm32")))]
            Reader::Library(library) => return library.tokenize(text, ids).map_err(failed),
        };
        model.start(text.len(), ids.len());
        let result = match &own.bert {
            Some((splitter, needles)) if !needles.any_in(text) => {
                splitter.split(text, bert, |word| own.model.tokenize(word, model, ids))
            }
            _ => own
                .general
                .split(text, pieces, |part| match part {
                    Part::Text(piece) => own.model.tokenize(piece, model, ids),
                    Part::Token(id) => {
                        ids.push(id);
                        Ok(())
                    }
                })
                .map_err(stopped)?,
        };
        result.map_err(|reason| match reason {
            NoIds::NoUnknown(unknown) => TokenizeError::NoUnknownToken {
                origin: self.origin.clone(),
                unknown,
            },
            NoIds::Stop(stop) => stopped(stop),
        })
    }
}

impl std::fmt::Display for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::All => "all tokens",
            Self::OfText => "the text's own tokens",
            Self::Known => "the text's known tokens",
        })
    }
}

/// A fault with the place of the file.
fn at_fault(fault: Fault, origin: &str, file: &str) -> TokenizeError {
    match fault {
        Fault::Invalid(detail) => invalid(origin, file, detail),
        Fault::Unsupported(feature) => TokenizeError::UnsupportedTokenizer {
            origin: origin.to_owned(),
            file: file.to_owned(),
            feature,
            hint: UNSUPPORTED_HINT.to_owned(),
        },
        Fault::Excess(detail) => TokenizeError::TooCostly {
            origin: origin.to_owned(),
            detail,
            of: file.to_owned(),
        },
    }
}

fn invalid(origin: &str, file: &str, detail: String) -> TokenizeError {
    TokenizeError::InvalidTokenizer {
        origin: origin.to_owned(),
        file: file.to_owned(),
        detail,
    }
}

/// Reads the settings beside the tokenizer, where there are any.
fn read_config<T: Default + for<'de> Deserialize<'de>>(
    file: Option<&(String, &Bytes)>,
    origin: &str,
) -> Result<T> {
    match file {
        Some((path, json)) => {
            serde_json::from_slice(json).map_err(|error| invalid(origin, path, error.to_string()))
        }
        None => Ok(T::default()),
    }
}

/// What to do about a bundle without a tokenizer, by what it holds instead.
fn missing_hint(files: &BTreeMap<String, Bytes>) -> String {
    let slow = [
        "sentencepiece.bpe.model",
        "spiece.model",
        "tokenizer.model",
        "vocab.json",
    ];
    let found = files
        .keys()
        .find(|path| slow.iter().any(|name| path.ends_with(name)));
    match found {
        Some(path) => format!(
            "It has {path}, from which transformers writes one: AutoTokenizer.from_pretrained(MODEL).save_pretrained(FOLDER)"
        ),
        None => {
            "Add the model's tokenizer.json (or a BERT model's vocab.txt) to the bundle".to_owned()
        }
    }
}
