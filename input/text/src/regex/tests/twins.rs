//! The same matches as Oniguruma, or refused by name.

use proptest::prelude::*;

use super::refusals::INVALID;
use super::*;
use crate::regex::class::Class;
use crate::regex::generated;
use crate::unicode::{CATEGORY_NAMES, SCRIPT_NAMES};

/// The matches of Oniguruma as the crate `tokenizers` asks for them; `None` where it gives up.
fn theirs(regex: &onig::Regex, text: &str) -> Option<Vec<Range<usize>>> {
    let mut found = Vec::new();
    let mut from = 0;
    let mut last_end = None;
    while from <= text.len() {
        let mut region = onig::Region::new();
        let searched = regex.search_with_param(
            text,
            from,
            text.len(),
            onig::SearchOptions::SEARCH_OPTION_NONE,
            Some(&mut region),
            onig::MatchParam::default(),
        );
        let (start, end) = match searched {
            Ok(Some(_)) => region.pos(0)?,
            Ok(None) => break,
            Err(_) => return None,
        };
        from = end;
        if start == end && last_end == Some(end) {
            from += text[end..].chars().next().map_or(1, char::len_utf8);
            continue;
        }
        last_end = Some(end);
        found.push(start..end);
    }
    Some(found)
}

fn same(pattern: &str, text: &str) {
    let regex = onig::Regex::new(pattern).unwrap_or_else(|e| panic!("{pattern:?}: {e}"));
    // The original searches no text that is empty.
    let theirs = match text {
        "" => return,
        text => theirs(&regex, text),
    };
    assert_eq!(ours(pattern, text).ok(), theirs, "{pattern:?} on {text:?}");
    // The loop above is that of the original.
    let iterated: Vec<_> = regex
        .find_iter(text)
        .map(|(start, end)| start..end)
        .collect();
    assert_eq!(theirs, Some(iterated), "{pattern:?} on {text:?}");
}

#[test]
fn patterns_of_published_tokenizers_match_as_the_originals() {
    for pattern in PUBLISHED.iter().chain(MADE_UP) {
        for text in TEXTS {
            same(pattern, text);
        }
    }
}

#[test]
fn what_is_no_pattern_is_none_to_the_original() {
    for pattern in INVALID {
        assert!(onig::Regex::new(pattern).is_err(), "{pattern}");
    }
}

/// The characters that the original has in a class of one character, by code point.
fn members(pattern: &str, every: &str) -> Vec<bool> {
    let regex = onig::Regex::new(pattern).unwrap_or_else(|e| panic!("{pattern}: {e}"));
    let mut members = vec![false; u32::from(char::MAX) as usize + 1];
    for (start, end) in regex.find_iter(every) {
        for c in every[start..end].chars() {
            members[u32::from(c) as usize] = true;
        }
    }
    members
}

#[test]
fn properties_hold_what_the_originals_hold() {
    // The planes with letters whole, of the others every sixteenth.
    let rest = ('\u{20000}'..=char::MAX).step_by(16);
    let every: String = ('\0'..'\u{20000}').chain(rest).collect();
    let groups = [
        "L",
        "M",
        "N",
        "P",
        "S",
        "Z",
        "C",
        "LC",
        "Any",
        "Assigned",
        "White_Space",
    ];
    let posix = [
        "ascii", "blank", "cntrl", "digit", "graph", "print", "punct", "space", "xdigit", "word",
    ];
    let names = CATEGORY_NAMES
        .iter()
        .chain(&groups)
        .chain(&SCRIPT_NAMES)
        .chain(&posix);
    let long = named::LONG_NAMES.iter().map(|(long, _)| long);
    let properties = names.chain(long).map(|name| format!(r"\p{{{name}}}"));
    let brackets = posix.iter().map(|name| format!("[[:{name}:]]"));
    let others = [
        r"\w",
        r"\W",
        r"[\w]",
        r"[^\w]",
        r"[\W]",
        r"[\p{Word}]",
        r"\d",
        r"\s",
        r"\S",
        r"\h",
        r"\N",
        r"\O",
        ".",
        r"\p{PosixPunct}",
        r"(?i)k",
        r"(?i)[a-z]",
        r"(?i)[^s]",
        r"\R",
    ];
    let others = others.iter().map(|&other| other.to_owned());
    for pattern in properties.chain(brackets).chain(others) {
        let theirs = members(&pattern, &every);
        let regex = Regex::new(&pattern).unwrap();
        let holds = |c: char| regex.classes.iter().any(|class: &Class| class.holds(c));
        let wrong = every
            .chars()
            .find(|&c| holds(c) != theirs[u32::from(c) as usize]);
        // The one pattern whose second class is the first of a pair.
        assert!(pattern == r"\R" || wrong.is_none(), "{pattern}: {wrong:?}");
    }
    // The edges of words go by the same characters.
    let words = members(r"\w", &every);
    for c in every.chars() {
        assert_eq!(named::is_word(c), words[u32::from(c) as usize], "{c:?}");
    }
}

/// A pattern and texts, made of numbers.
fn held_to_the_original(numbers: &[u16]) {
    let mut numbers = numbers.iter().copied().map(usize::from).cycle();
    let mut choose = |below: usize| numbers.next().unwrap_or(0) % below.max(1);
    let pattern = generated::pattern(&mut choose);
    let texts: Vec<String> = (0..6).map(|_| generated::text(&mut choose)).collect();
    let (regex, original) = match (Regex::new(&pattern), onig::Regex::new(&pattern)) {
        (Ok(regex), Ok(original)) => (regex, original),
        (Err(_), Err(_)) | (Err(Fault::Unsupported(_)), Ok(_)) => return,
        (regex, original) => panic!("{pattern:?}: {regex:?}, the original {original:?}"),
    };
    for text in texts.iter().filter(|text| !text.is_empty()) {
        let mut found = Vec::new();
        let ended = regex.each_match(text, |range| found.push(range));
        if let (Ok(_), Some(theirs)) = (ended, theirs(&original, text)) {
            assert_eq!(found, theirs, "{pattern:?} on {text:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(8000) })]

    #[test]
    fn random_patterns_match_as_the_originals(
        numbers in prop::collection::vec(any::<u16>(), 1..300),
    ) {
        held_to_the_original(&numbers);
    }

    #[test]
    fn any_pattern_is_compiled_or_refused(pattern in any::<String>(), text in any::<String>(),
        pieces in prop::collection::vec(prop::sample::select(vec![
            "a", "(", ")", "[", "]", "^", "-", "\\", "{", "}", "1", ",", "?", "*", "+", "|", "p", "&&", ":", "<", "=", "!", "i", "é",
        ]), 0..12),
    ) {
        for pattern in [pattern, pieces.concat()] {
            let (ours, theirs) = (Regex::new(&pattern), onig::Regex::new(&pattern));
            if let (Err(Fault::Invalid(_)), Ok(_)) | (Ok(_), Err(_)) = (&ours, &theirs) {
                panic!("{pattern:?}: {ours:?}, the original {theirs:?}");
            }
            if let Ok(regex) = ours {
                let mut end = 0;
                let _ = regex.each_match(&text, |range| {
                    assert!(range.start >= end && text.get(range.clone()).is_some());
                    end = range.end;
                });
            }
        }
    }
}
