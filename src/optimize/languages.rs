//! The tokens that languages are written with.

use std::collections::BTreeSet;

use icu_locale::DataLocale;
use icu_locale::exemplar_chars::{ExemplarCharacters, ExemplarCharactersBorrowed};
use isovec_engine::bundle::ModelBundle;
use isovec_optimize::OptimizeError;
use isovec_tokenize::Tokenizer;

use crate::error::Result;

/// Tokens that are decoded at a time.
const WINDOW: usize = 4096;

/// The ids of the tokens that are written in the letters of these languages, in capitals as well: `en`, `de`, `zh-Hant` (BCP 47). The
/// tokenizer is `tokenizer.json` in `folder` of the model, which is empty for the root.
///
/// The letters of a language are CLDR's main exemplar characters (<https://unicode.org/reports/tr35/tr35-general.html#Exemplars>). A
/// letter of its auxiliary ones, which foreign words have, is kept as a token of its own. What is no letter (digits, punctuation, emoji)
/// belongs to every language, and so does a token that is a part of a character's bytes.
///
/// # Errors
/// `Optimize` for one whose letters are not known; those of the tokenizer.
pub(super) fn tokens_in(
    bundle: &ModelBundle,
    folder: &str,
    languages: &[String],
) -> Result<BTreeSet<u32>> {
    if languages.is_empty() {
        return Ok(BTreeSet::new());
    }
    let letters = Letters::of(languages)?;
    let tokenizer = Tokenizer::from_folder(&bundle.files, folder, &bundle.origin)?;
    let ids: Vec<u32> = tokenizer
        .words(0..=tokenizer.max_id())
        .into_keys()
        .collect();
    let mut found = BTreeSet::new();
    for ids in ids.chunks(WINDOW) {
        let alone: Vec<&[u32]> = ids.chunks(1).collect();
        let texts = tokenizer.decode(&alone, true)?;
        let written = ids
            .iter()
            .zip(&texts)
            .filter(|(_, text)| letters.write(text));
        found.extend(written.map(|(id, _)| *id));
    }
    Ok(found)
}

/// The letters of some languages.
struct Letters {
    main: Vec<ExemplarCharactersBorrowed<'static>>,
    auxiliary: Vec<ExemplarCharactersBorrowed<'static>>,
}

impl Letters {
    fn of(languages: &[String]) -> Result<Self> {
        let mut letters = Self {
            main: Vec::new(),
            auxiliary: Vec::new(),
        };
        for language in languages {
            let unknown = || OptimizeError::Language {
                given: language.clone(),
            };
            let locale: DataLocale = language.parse().map_err(|_| unknown())?;
            let main = ExemplarCharacters::try_new_main(&locale).map_err(|_| unknown())?;
            // Of a language that is not known the root's, which are none.
            if !main.has_strings() && main.code_points().is_empty() {
                return Err(unknown().into());
            }
            letters.main.push(main);
            let auxiliary = ExemplarCharacters::try_new_auxiliary(&locale);
            letters.auxiliary.extend(auxiliary);
        }
        Ok(letters)
    }

    /// Whether a token's text is written in them.
    fn write(&self, text: &str) -> bool {
        let mut all = text.trim().chars();
        if let (Some(only), None) = (all.next(), all.next())
            && self.has(&self.auxiliary, only)
        {
            return true;
        }
        text.chars().all(|c| self.has(&self.main, c))
    }

    fn has(&self, sets: &[ExemplarCharactersBorrowed<'_>], c: char) -> bool {
        let is = |c: char| {
            sets.iter()
                .any(|set| set.contains(c) || set.strings().iter().any(|string| string.contains(c)))
        };
        !c.is_alphabetic() || is(c) || c.to_lowercase().all(is)
    }
}
