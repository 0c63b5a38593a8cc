//! Our engine against `fancy-regex`, which `tokenizers` uses.

use proptest::prelude::*;

use super::*;
use crate::unicode::{CATEGORY_NAMES, SCRIPT_NAMES};

fn ours(pattern: &str, text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    Regex::new(pattern)
        .unwrap()
        .each_match(text, |range| found.push(range))
        .unwrap();
    found
}

fn theirs(pattern: &str, text: &str) -> Vec<Range<usize>> {
    fancy_regex::Regex::new(pattern)
        .unwrap()
        .find_iter(text)
        .map(|found| found.unwrap().range())
        .collect()
}

fn same(pattern: &str, text: &str) {
    assert_eq!(
        ours(pattern, text),
        theirs(pattern, text),
        "{pattern:?} on {text:?}"
    );
}

/// Patterns of published tokenizers, and others that use every part of the syntax.
const PATTERNS: &[&str] = &[
    // GPT-2 and RoBERTa.
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    // cl100k, Llama 3.
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    // o200k.
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    // Bloom.
    r" ?[^(\s|[.,!?…。，、।۔،])]+",
    // DeepSeek.
    r#"[!"\#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"#,
    r"[一-龥぀-ゟ゠-ヿ]+",
    // Kimi.
    r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{M}&&[^\p{Han}]]+|\p{N}{1,3}",
    // CLIP.
    r"<\|startoftext\|>|<\|endoftext\|>|'s|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    " {2,}",
    r"\n| +",
    "",
    "^",
    "$",
    "a*",
    "a*?b|a+?",
    "(?:a|ab)(?:c|bcd)?",
    "(a|b)*?c|(?:a?)*",
    "(?:ab?){2,3}|(?:b|é){0,2}a",
    "(?>a+)b|(?>a|ab)c|a",
    r"\ba+\b|\Bb",
    r"(?m)^a|b$|^$",
    r"(?s).\z|\Aa.",
    "(?<=a)b|(?<!a)b(?=c)|(?<=ab|é!)c",
    r"[^a-cé\-]|[]a]|[a\]-]",
    r"[a-zé--[b]&&[^c]]+",
    r"\x41|\u00e9|\x{1F600}|\U0001F600|\t|[\b]",
    "(?i)k|S+",
    r"(?i)\w+x|[\da]|[^\sb]\S|\W",
    r"\d+|\D\W|\h+",
    "a{2}|a{,1}b|{a}|a{x",
    "(?P<name>a)(?<other>b)",
];

#[test]
fn patterns_of_published_tokenizers_match_as_the_originals() {
    let texts = [
        "I'll say: it's 12345 o'clock, DON'T  worry \n\n  be\thappy   ",
        "Ünïcode é\u{301} 野口 ひらがな カタカナ 한국어 ١٢٣ Ⅷ ½ ½",
        "aabbcc abcd éé! a{x {a} ab aab \u{17f}K\u{212a}k S",
        "\r\n\r\n  \u{a0}\u{3000}x\u{200b}😀👩\u{200d}👩 — …",
        "HTTPServer camelCase ǅ ﬁ ß A\u{8}é",
        "",
        "\n",
    ];
    for pattern in PATTERNS {
        for text in texts {
            same(pattern, text);
        }
    }
}

#[test]
fn properties_hold_what_the_originals_hold() {
    let groups = [
        "L",
        "M",
        "N",
        "P",
        "S",
        "Z",
        "C",
        "Letter",
        "gc=Number",
        "punctuation",
    ];
    let scripts = SCRIPT_NAMES.iter().map(|name| format!("script={name}"));
    let names = CATEGORY_NAMES
        .iter()
        .chain(&groups)
        .filter(|&&name| name != "Cs");
    for name in names.map(|&name| name.to_owned()).chain(scripts) {
        let pattern = format!(r"\p{{{name}}}");
        let class = class::property(&name).unwrap().class();
        let mut members = vec![false; u32::from(char::MAX) as usize + 1];
        for (start, end) in crate::unicode::tests::ranges(&pattern) {
            members[start as usize..=end as usize].fill(true);
        }
        for c in '\0'..=char::MAX {
            assert_eq!(
                class.holds(c),
                members[u32::from(c) as usize],
                "{pattern} {c:?}"
            );
        }
    }
    for letter in ["d", "s", "w"] {
        let class = class::perl(letter.chars().next().unwrap()).unwrap().class();
        let theirs = crate::unicode::tests::ranges(&format!(r"\{letter}"));
        for c in '\0'..=char::MAX {
            let holds = theirs.iter().any(|&(a, b)| (a..=b).contains(&u32::from(c)));
            assert_eq!(class.holds(c), holds, "\\{letter} {c:?}");
        }
    }
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    for (pattern, word) in [
        (r"(a)\1", "\\\\1"),
        (r"\p{Klingon}", "Klingon"),
        (r"(?x) a", "flag"),
        (r"(?(1)a)", "flag"),
        (r"[[:alpha:]]", "POSIX"),
        (r"(?<=a+)b", "looks back"),
        (r"(?i)é", "case"),
        (r"a\Kb", "\\\\K"),
        (r"a{2000}", "repeats"),
    ] {
        match Regex::new(pattern) {
            Err(Fault::Unsupported(words)) => assert!(words.contains(word), "{words}"),
            other => panic!("{pattern}: {other:?}"),
        }
    }
    for pattern in [
        "(",
        ")",
        "a)",
        "[",
        "[a",
        r"\",
        "*a",
        "a**",
        "(?=a)*",
        "[b-a]",
        "a{3,2}",
        r"\x{110000}",
        r"\p{L",
        "(?P<a",
        r"[\w-a]",
        r"[a-\w]",
        "(?",
        r"\x4",
    ] {
        assert!(
            matches!(
                Regex::new(pattern),
                Err(Fault::Invalid(_) | Fault::Unsupported(_))
            ),
            "{pattern}"
        );
        assert!(fancy_regex::Regex::new(pattern).is_err(), "{pattern}");
    }
    let deep = "(".repeat(500) + &")".repeat(500);
    assert!(Regex::new(&deep).is_err());
    assert!(Regex::new(&"[".repeat(500)).is_err());
}

#[test]
fn a_pattern_that_explodes_is_stopped() {
    let regex = Regex::new("(?:a|a)*(?:a|a)*b").unwrap();
    assert_eq!(regex.each_match(&"a".repeat(100), |_| {}), Err(TooHard));
    // Long runs that do not explode pass.
    let spaces = " ".repeat(300_000);
    assert_eq!(
        ours(r"\s+(?!\S)|\s+", &format!("{spaces}a")),
        [0..299_999, 299_999..300_000]
    );
}

/// Small patterns over a few letters.
fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => prop::sample::select(vec!["a", "b", "é", " ", "'s"]).prop_map(str::to_owned),
        2 => prop::sample::select(vec![
            r"\s", r"\S", r"\w", r"\p{L}", r"\P{L}", "[ab]", "[^a]", "[^\\s\\p{N}]", ".", "[a-c&&[^b]]",
        ]).prop_map(str::to_owned),
        1 => prop::sample::select(vec!["^", "$", r"\b", r"\B", r"(?!\S)", "(?=b)", "(?<=a)", "(?<!é)"])
            .prop_map(|place| format!("(?:{place})")),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 1..4).prop_map(|all| all.concat()),
            2 => prop::collection::vec(inner.clone(), 2..4)
                .prop_map(|all| format!("(?:{})", all.join("|"))),
            // What a repeat of something that may be empty matches is nobody's convention.
            3 => (inner.clone(), prop::sample::select(vec!["?", "*", "+", "{2}", "{1,2}", "{0,3}"]),
                  prop::sample::select(vec!["", "?", "+"]))
                .prop_map(|(node, count, how)| format!("(?:x{node}){count}{how}")),
            2 => (prop::sample::select(vec!["a", r"\s", "[^a]", r"\p{L}", "."]),
                  prop::sample::select(vec!["?", "*", "+", "{2}", "{1,2}", "{0,3}"]),
                  prop::sample::select(vec!["", "?", "+"]))
                .prop_map(|(node, count, how)| format!("{node}{count}{how}")),
            1 => inner.clone().prop_map(|node| format!("(?>{node})")),
            1 => inner.clone().prop_map(|node| format!("(?={node})")),
            1 => inner.prop_map(|node| format!("(?i:{node})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn random_patterns_match_as_the_originals(
        pattern in pattern(),
        texts in prop::collection::vec("[abxéAS ' \n1\u{3000}😀]{0,12}", 1..8),
    ) {
        // Patterns that ignore the case of what we do not fold are refused.
        if Regex::new(&pattern).is_ok() {
            for text in &texts {
                same(&pattern, text);
            }
        }
    }

    #[test]
    fn any_pattern_is_compiled_or_refused(pattern in any::<String>(), text in any::<String>(),
        pieces in prop::collection::vec(prop::sample::select(vec![
            "a", "(", ")", "[", "]", "^", "-", "\\", "{", "}", "1", ",", "?", "*", "+", "|", "p", "&&", ":", "<", "=", "!", "i", "é",
        ]), 0..12),
    ) {
        for pattern in [pattern, pieces.concat()] {
            if let Ok(regex) = Regex::new(&pattern) {
                let mut end = 0;
                let _ = regex.each_match(&text, |range| {
                    assert!(range.start >= end && text.get(range.clone()).is_some());
                    end = range.end;
                });
            }
        }
    }
}
