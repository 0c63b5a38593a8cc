//! Patterns and texts made up by a grammar, for tests and for fuzzing. Every part of Oniguruma's
//! syntax is in it that this engine knows, and what it refuses.

/// Picks a number below another.
pub type Choose<'a> = &'a mut dyn FnMut(usize) -> usize;

/// How deep groups lie in each other.
const DEEPEST: usize = 4;

const LITERALS: &[&str] = &[
    "a",
    "b",
    "c",
    "é",
    " ",
    "s",
    "t",
    "K",
    "ß",
    "1",
    "²",
    "'",
    "\\n",
    "\n",
    "\u{301}",
    "\u{200d}",
    "😀",
    "]",
    "}",
    "-",
    "&",
    "{",
    ",",
    "\\.",
    "\\-",
    "\\x61",
    "\\u00e9",
    "\\x{1F600}",
    "\\t",
    "\\q",
    "\\pL",
    "\\ ",
];

const SETS: &[&str] = &[
    ".",
    "\\w",
    "\\W",
    "\\d",
    "\\D",
    "\\s",
    "\\S",
    "\\h",
    "\\H",
    "\\N",
    "\\O",
    "\\p{L}",
    "\\P{L}",
    "\\p{^L}",
    "\\P{^N}",
    "\\p{Lu}",
    "\\p{N}",
    "\\p{Word}",
    "\\p{Punct}",
    "\\p{Space}",
    "\\p{ M n }",
    "\\p{letter_number}",
    "\\p{Han}",
    "\\p{ASCII}",
    "\\p{Alpha}",
];

const MEMBERS: &[&str] = &[
    "a",
    "b",
    "c",
    "s",
    "k",
    "é",
    " ",
    "1",
    "²",
    "^",
    "-",
    "&",
    "&&",
    ":",
    "]",
    "\\]",
    "\\-",
    "\\b",
    "\\n",
    "\\\\",
    "\\x61",
    "\\u00e9",
    "a-c",
    "b-b",
    "é-ü",
    "0-9",
    "!-~",
    "\\x61-z",
    "c-a",
    "a-",
    "--",
    "\\w",
    "\\W",
    "\\d",
    "\\s",
    "\\S",
    "\\h",
    "\\R",
    "\\p{L}",
    "\\P{L}",
    "\\p{^Lu}",
    "\\p{Word}",
    "\u{200d}",
    "[:punct:]",
    "[:^space:]",
    "[:word:]",
    "[:digit:]",
    "[:upper:]",
    "[:x:]",
    "[:^ascii:]",
    "\\p{Han}",
    "K",
];

const PLACES: &[&str] = &[
    "^", "$", "\\A", "\\z", "\\Z", "\\b", "\\B", "\\G", "\\y", "(?#x)",
];

const COUNTS: &[&str] = &[
    "?", "*", "+", "?", "*", "+", "{2}", "{1}", "{0}", "{,2}", "{1,3}", "{0,2}", "{2,}", "{3,1}",
    "{,}", "{2", "{0,}", "{1,}", "{40}", "{0,33}",
];

const TEXTS: &[&str] = &[
    "a", "a", "a", "b", "b", "c", "s", "t", "x", "K", "A", "S", "é", "É", "ß", "ss", "ſ",
    "\u{212a}", " ", " ", "\n", "\n", "\r\n", "\t", "\u{301}", "\u{200d}", "²", "½", "1", "12",
    "٣", "'", "!", "-", "]", "{", "}", "^", "&", ":", "😀", "野", "_", "\u{a0}", "\u{2028}",
    "\u{85}", "ⅷ", "\u{0}",
];

/// What starts of patterns go wrong with.
const STARTS: &[&str] = &[
    "^.*",
    "$.*",
    "\\b.*",
    "(?m)^.*",
    "\\O*",
    "(?m).*",
    ".*",
    "\\A.+",
    "(?=b).*",
    "(?<=a)\\N*",
    ".*?",
    "a*",
    "\\s+",
    "(?!a)",
];

/// A pattern, not always one that there is.
pub fn pattern(choose: Choose<'_>) -> String {
    let mut pattern = String::new();
    if choose(8) == 0 {
        pattern.push_str(pick(choose, STARTS));
    }
    alternatives(choose, 0, &mut pattern);
    pattern
}

/// A short text of what patterns match.
pub fn text(choose: Choose<'_>) -> String {
    let length = choose(14);
    (0..length).map(|_| pick(choose, TEXTS)).collect()
}

fn pick(choose: Choose<'_>, from: &'static [&'static str]) -> &'static str {
    let index = choose(from.len());
    from.get(index).copied().unwrap_or("a")
}

fn alternatives(choose: Choose<'_>, depth: usize, out: &mut String) {
    sequence(choose, depth, out);
    for _ in 0..choose(8).saturating_sub(5) {
        out.push('|');
        sequence(choose, depth, out);
    }
}

fn sequence(choose: Choose<'_>, depth: usize, out: &mut String) {
    for _ in 0..choose(4) {
        atom(choose, depth, out);
        // A repeat of a repeat, now and then.
        for _ in 0..choose(6).saturating_sub(3) {
            out.push_str(pick(choose, COUNTS));
            match choose(5) {
                0 => out.push('?'),
                1 => out.push('+'),
                _ => {}
            }
        }
    }
}

fn atom(choose: Choose<'_>, depth: usize, out: &mut String) {
    match choose(if depth < DEEPEST { 16 } else { 10 }) {
        0..=3 => out.push_str(pick(choose, LITERALS)),
        4..=6 => out.push_str(pick(choose, SETS)),
        7 | 8 => class(choose, 0, out),
        9 => out.push_str(pick(choose, PLACES)),
        10 | 11 => group(choose, "(?:", depth, out),
        12 => group(choose, "(", depth, out),
        13 => {
            let looks = ["(?=", "(?!", "(?<=", "(?<!"];
            let look = looks.get(choose(looks.len())).copied().unwrap_or("(?=");
            group(choose, look, depth, out);
        }
        14 => group(choose, "(?>", depth, out),
        _ => {
            let flags = [
                "(?i:", "(?m:", "(?-i:", "(?i-m:", "(?<n>", "(?i)", "(?m)", "(?~", "(?s:", "(?P<n>",
            ];
            let flag = flags.get(choose(flags.len())).copied().unwrap_or("(?i:");
            match flag.ends_with(')') {
                true => out.push_str(flag),
                false => group(choose, flag, depth, out),
            }
        }
    }
}

fn group(choose: Choose<'_>, start: &str, depth: usize, out: &mut String) {
    out.push_str(start);
    alternatives(choose, depth + 1, out);
    out.push(')');
}

fn class(choose: Choose<'_>, depth: usize, out: &mut String) {
    out.push('[');
    if choose(3) == 0 {
        out.push('^');
    }
    for _ in 0..=choose(4) {
        match choose(9) {
            0 if depth < 2 => class(choose, depth + 1, out),
            1 => out.push_str("&&"),
            _ => out.push_str(pick(choose, MEMBERS)),
        }
    }
    out.push(']');
}
