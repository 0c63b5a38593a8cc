//! The tokens of texts and languages, as the model would read them.

use std::collections::BTreeSet;

use isovec_engine::bundle::ModelBundle;
use isovec_tokenize::Limits;

use crate::config::EmbeddingConfig;
use crate::error::Result;
use crate::model::reader::{Input, Reader};
use crate::model::{Prompts, prepared};
use crate::sentence_transformers;

/// Texts that are tokenised at a time.
const WINDOW: usize = 1024;

/// The tokens that texts have.
pub(super) struct Used {
    /// Their ids.
    pub(super) ids: BTreeSet<u32>,
    /// The folder of the tokenizer in the bundle.
    pub(super) folder: String,
}

/// The tokens of texts behind every prompt of the model, however long the texts are, and those in the letters of languages.
pub(super) fn used(
    bundle: &ModelBundle,
    texts: &[String],
    languages: &[String],
    config: &EmbeddingConfig,
) -> Result<Used> {
    let files = sentence_transformers::read(&bundle.origin, &bundle.files)?;
    let table = files.table.as_ref();
    let reader = Reader::read(&mut bundle.clone(), &Input::Texts, files.lowercase, table)?;
    let reader = reader.texts()?;
    let prompts = Prompts::new(&files, &config.text);
    let mut ids = BTreeSet::new();
    // A prompt has its tokens where there is no text as well.
    let texts = if texts.is_empty() {
        &[String::new()]
    } else {
        texts
    };
    for prefix in prompts.texts() {
        for window in texts.chunks(WINDOW) {
            let whole: Vec<_> = window
                .iter()
                .map(|text| prepared(prefix, text, reader.lowercase))
                .collect();
            let whole: Vec<&str> = whole.iter().map(AsRef::as_ref).collect();
            for encoding in reader.tokenizer.encode(&whole, &Limits::default())? {
                ids.extend(encoding.ids);
            }
        }
    }
    let folder = files.table.map(|table| table.folder).unwrap_or_default();
    #[cfg(feature = "languages")]
    ids.extend(super::languages::tokens_in(bundle, &folder, languages)?);
    #[cfg(not(feature = "languages"))]
    let _ = languages;
    Ok(Used { ids, folder })
}
