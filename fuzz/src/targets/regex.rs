//! Patterns of tokenizers, against Oniguruma, for which models' authors wrote them: the same
//! matches, or refused by name. And no pattern takes more steps or memory than a text of that
//! length may.

use arbitrary::Unstructured;
use isovec_tokenize::fuzzing::generated;
use isovec_tokenize::fuzzing::{Pattern, Refusal};
use onig::{MatchParam, Region, SearchOptions};

use crate::bounds::ours;

/// So many steps for each byte of a text, and so many for any.
const STEPS_A_BYTE: u64 = 512;
const STEPS: u64 = 200_000;
/// How long a text is made to see what it costs.
const LONG: usize = 1 << 12;

/// Tries one input: a pattern and texts from a grammar, or as the bytes are.
pub fn run(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else {
        return;
    };
    if kind % 4 == 0 {
        let text = String::from_utf8_lossy(rest);
        let (pattern, text) = text.split_once('\0').unwrap_or((&text, "a b\nab"));
        tried(pattern, &[text.to_owned()]);
    } else {
        let mut input = Unstructured::new(rest);
        let mut choose = |below: usize| {
            let most = below.saturating_sub(1).min(usize::from(u8::MAX)) as u8;
            usize::from(input.int_in_range(0..=most).unwrap_or(0))
        };
        let pattern = generated::pattern(&mut choose);
        let texts: Vec<String> = (0..4).map(|_| generated::text(&mut choose)).collect();
        tried(&pattern, &texts);
    }
}

fn tried(pattern: &str, texts: &[String]) {
    let compiled = ours(pattern.len(), || Pattern::new(pattern));
    let original = onig::Regex::new(pattern);
    let (compiled, original) = match (compiled, original) {
        (Ok(compiled), Ok(original)) => (compiled, original),
        (Err(_), Err(_)) | (Err(Refusal::Unsupported(_)), Ok(_)) => return,
        (compiled, original) => panic!("{pattern:?}: {compiled:?}, the original {original:?}"),
    };
    // The original searches no text that is empty.
    for text in texts.iter().filter(|text| !text.is_empty()) {
        let found = ours(text.len(), || compiled.matches(text));
        let theirs = found.as_ref().and_then(|_| theirs(&original, text));
        if let (Some((found, _)), Some(theirs)) = (found, theirs) {
            let found: Vec<_> = found
                .into_iter()
                .map(|range| (range.start, range.end))
                .collect();
            assert_eq!(found, theirs, "{pattern:?} on {text:?}");
        }
        let long = text.repeat(LONG / text.len());
        if let Some((_, steps)) = ours(long.len(), || compiled.matches(&long)) {
            let most = STEPS + STEPS_A_BYTE * long.len() as u64;
            assert!(steps <= most, "{pattern:?} takes {steps} steps");
        }
    }
}

/// The matches of Oniguruma, as the crate `tokenizers` asks for them; `None` where it gives up.
fn theirs(regex: &onig::Regex, text: &str) -> Option<Vec<(usize, usize)>> {
    let mut found = Vec::new();
    let (mut from, mut last_end) = (0, None);
    while from <= text.len() {
        let mut region = Region::new();
        let mut limits = MatchParam::default();
        limits.set_retry_limit_in_match(100_000);
        let options = SearchOptions::SEARCH_OPTION_NONE;
        let searched =
            regex.search_with_param(text, from, text.len(), options, Some(&mut region), limits);
        let Ok(Some(_)) = searched else {
            return searched.ok().map(|_| found);
        };
        let (start, end) = region.pos(0)?;
        from = end;
        if start == end && last_end == Some(end) {
            from += text[end..].chars().next().map_or(1, char::len_utf8);
            continue;
        }
        last_end = Some(end);
        found.push((start, end));
    }
    Some(found)
}
