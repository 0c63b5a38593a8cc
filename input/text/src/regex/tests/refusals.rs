//! Tests the refused patterns and their messages.

use super::*;

#[test]
fn what_is_not_known_is_refused_by_name() {
    for (pattern, word) in [
        (r"(a)\1", "\\\\1"),
        (r"\p{Klingon}", "Klingon"),
        (r"(?x) a", "(?x"),
        (r"(?(1)a)", "(?("),
        (r"(?~a)", "(?~"),
        (r"(*FAIL)", "callout"),
        (r"[[:alpha:]]", "alpha"),
        (r"(?<=a+)b", "look back"),
        (r"(?<=a?)b", "look back"),
        (r"(?<!(a))b", "look back"),
        (r"(?:(?<=a+)b){0}", "look back"),
        (r"(?i)é", "case"),
        (r"(?i)[ß]", "case"),
        (r"(?i)ss", "ss"),
        (r"(?i)(?:xs)(t)", "st"),
        (r"a\Kb", "\\\\K"),
        (r"\Ga", "\\\\G"),
        (r"\X", "\\\\X"),
        (r"\xe9", "byte"),
        (r"\012", "\\\\0"),
        (r"(?:a?){2}", "may be empty"),
        (r"a{1}+", "{1}"),
        (r"[^[^\p{Any}]]", "negation"),
        (r"(?:ab){20000}", "so large"),
        (r"\b.*ab", "endless dot"),
        (r"\b.?*ab", "endless dot"),
        (r"\b(?:.?)*ab", "endless dot"),
    ] {
        match Regex::new(pattern) {
            Err(Fault::Unsupported(words)) => {
                let words = words.replace("\\\\", "\\");
                assert!(
                    words.contains(&word.replace("\\\\", "\\")),
                    "{pattern}: {words}"
                );
            }
            other => panic!("{pattern}: {other:?}"),
        }
    }
}

/// What is no pattern at all, to Oniguruma neither.
pub(super) const INVALID: &[&str] = &[
    "(",
    ")",
    "a)",
    "[",
    "[a",
    "[]",
    "[^]",
    r"\",
    "*a",
    "{2}",
    "a|+",
    "(?=a)*",
    "^*",
    r"(?:\b|a)+",
    "[b-a]",
    "[a--b]",
    "a{100001}",
    r"\p{L",
    "(?)",
    "(?s)a",
    r"[\w-a]",
    r"[a-\w]",
    "(?",
    "(?#a",
    "(?<a",
    "[[:abc:]]",
];

#[test]
fn what_is_no_pattern_is_refused() {
    for pattern in INVALID {
        let made = Regex::new(pattern);
        assert!(
            matches!(made, Err(Fault::Invalid(_))),
            "{pattern}: {made:?}"
        );
    }
}

#[test]
fn what_lies_too_deep_is_refused() {
    let many = |text: &str| text.repeat(100_000);
    for pattern in [
        many("(") + &many(")"),
        many("["),
        many("(?i)"),
        String::from("a") + &many("+?"),
        String::from("a") + &many("{2}"),
        many("(?:a|"),
    ] {
        assert!(Regex::new(&pattern).is_err(), "{:?}", &pattern[..10]);
    }
}
