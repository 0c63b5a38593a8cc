//! Sets that have a name, as Oniguruma 6.9 has them.

use crate::error::Fault;
use crate::regex::class::Set;
use crate::unicode::{CATEGORIES, CATEGORY_NAMES, SCRIPT_NAMES, SCRIPTS, WORDS};

/// Which characters are words: Oniguruma counts raised digits and the three common fractions
/// where `\w` stands alone, and does not in a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Alone,
    InClass,
}

/// Superscripts and fractions of Latin-1.
const RAISED: [(u32, u32); 3] = [(0xb2, 0xb3), (0xb9, 0xb9), (0xbc, 0xbe)];
/// The zero-width joiners, words elsewhere.
const JOINERS: (u32, u32) = (0x200c, 0x200d);

/// `\w`, and what `\b` goes by.
pub(crate) fn is_word(character: char) -> bool {
    let code = u32::from(character);
    let within = |&(start, end): &(u32, u32)| (start..=end).contains(&code);
    match character.is_ascii() {
        true => character.is_ascii_alphanumeric() || character == '_',
        false => RAISED.iter().any(within) || (WORDS.get(character) != 0 && !within(&JOINERS)),
    }
}

/// `\w`
pub(super) fn word(word: Word) -> Set {
    let words = Set::new(WORDS.ranges(|is_word| is_word != 0));
    let words = words.difference(&Set::new(vec![JOINERS]));
    match word {
        Word::Alone => words.union(&Set::new(RAISED.to_vec())),
        Word::InClass => words,
    }
}

/// `\d`
pub(super) fn digits() -> Set {
    categories(&["Nd"])
}

/// `\s`
pub(super) fn spaces() -> Set {
    // White space has not grown since Unicode 6.3, and is in the first planes.
    let spaces = (0..0x4000).filter(|&c| char::from_u32(c).is_some_and(char::is_whitespace));
    Set::new(spaces.map(|code| (code, code)).collect())
}

/// `\h`
pub(super) fn hexadecimal() -> Set {
    Set::new(vec![(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)])
}

/// The set that `[:...:]` names.
///
/// # Errors
/// [`Fault::Invalid`] for a name that there is not, [`Fault::Unsupported`] for one whose members
/// are not known.
pub(super) fn posix(name: &str) -> Result<Set, Fault> {
    let unsupported = || Fault::Unsupported(format!("a pattern with the class [:{name}:]"));
    match name {
        "punct" => Ok(categories(&["P", "S"])),
        "word" => Ok(word(Word::InClass)),
        "blank" | "cntrl" | "digit" | "graph" | "print" | "space" | "xdigit" | "ascii" => {
            common(name).ok_or_else(unsupported)
        }
        "alnum" | "alpha" | "lower" | "upper" => Err(unsupported()),
        _ => Err(Fault::Invalid(format!(
            "a pattern with the class [:{name}:], which there is not"
        ))),
    }
}

/// Sets that have the same name in `[:...:]` and `\p{...}`.
fn common(name: &str) -> Option<Set> {
    Some(match name {
        "ascii" => Set::new(vec![(0, 0x7f)]),
        "blank" => categories(&["Zs"]).union(&Set::of('\t')),
        "cntrl" => categories(&["Cc"]),
        "digit" => digits(),
        "graph" => categories(&["Cc", "Cn", "Cs"]).union(&spaces()).negated(),
        "print" => common("graph")?.union(&categories(&["Zs"])),
        "space" => spaces(),
        "xdigit" => hexadecimal(),
        _ => return None,
    })
}

/// The set that `\p{...}` names.
///
/// # Errors
/// [`Fault::Unsupported`] for a name that is not known.
pub(super) fn property(name: &str, words: Word) -> Result<Set, Fault> {
    let plain: String = name
        .chars()
        .filter(|c| !matches!(c, ' ' | '_' | '-'))
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let known = match plain.as_str() {
        "word" => Some(word(words)),
        "any" => Some(Set::all()),
        "assigned" => Some(categories(&["Cn"]).negated()),
        "whitespace" => Some(spaces()),
        "posixpunct" => Some(categories(&["P", "S"])),
        plain => common(plain),
    };
    let known = known.or_else(|| {
        let long = LONG_NAMES.iter().find(|(long, _)| *long == plain);
        category(long.map_or(plain.as_str(), |(_, short)| short))
    });
    known
        .or_else(|| script(&plain))
        .ok_or_else(|| Fault::Unsupported(format!("a pattern with the property {name:?}")))
}

/// Names of categories in words.
pub(super) const LONG_NAMES: &[(&str, &str)] = &[
    ("letter", "l"),
    ("casedletter", "lc"),
    ("uppercaseletter", "lu"),
    ("lowercaseletter", "ll"),
    ("titlecaseletter", "lt"),
    ("modifierletter", "lm"),
    ("otherletter", "lo"),
    ("mark", "m"),
    ("combiningmark", "m"),
    ("nonspacingmark", "mn"),
    ("spacingmark", "mc"),
    ("enclosingmark", "me"),
    ("number", "n"),
    ("decimalnumber", "nd"),
    ("letternumber", "nl"),
    ("othernumber", "no"),
    ("punctuation", "p"),
    ("punct", "p"),
    ("connectorpunctuation", "pc"),
    ("dashpunctuation", "pd"),
    ("openpunctuation", "ps"),
    ("closepunctuation", "pe"),
    ("initialpunctuation", "pi"),
    ("finalpunctuation", "pf"),
    ("otherpunctuation", "po"),
    ("symbol", "s"),
    ("mathsymbol", "sm"),
    ("currencysymbol", "sc"),
    ("modifiersymbol", "sk"),
    ("othersymbol", "so"),
    ("separator", "z"),
    ("spaceseparator", "zs"),
    ("lineseparator", "zl"),
    ("paragraphseparator", "zp"),
    ("other", "c"),
    ("control", "cc"),
    ("format", "cf"),
    ("unassigned", "cn"),
    ("privateuse", "co"),
    ("surrogate", "cs"),
];

/// A general category by its short name, or a group of them.
fn category(name: &str) -> Option<Set> {
    let known = |known: &&str| known.eq_ignore_ascii_case(name);
    let groups = ["L", "M", "N", "P", "S", "Z", "C"];
    if name == "lc" {
        return Some(categories(&["Lu", "Ll", "Lt"]));
    }
    let mut all = CATEGORY_NAMES.iter().chain(&groups);
    all.find(|name| known(name)).map(|name| categories(&[name]))
}

/// The characters of some categories, or of groups of them by their first letter.
fn categories(names: &[&str]) -> Set {
    let wanted: Vec<bool> = CATEGORY_NAMES
        .iter()
        .map(|known| names.iter().any(|name| known.starts_with(name)))
        .collect();
    let is_wanted = |value: u8| wanted.get(usize::from(value)) == Some(&true);
    Set::new(CATEGORIES.ranges(is_wanted))
}

fn script(name: &str) -> Option<Set> {
    let index = SCRIPT_NAMES
        .iter()
        .position(|known| known.eq_ignore_ascii_case(name))?;
    let is_wanted = |value| usize::from(value) == index + 1;
    Some(Set::new(SCRIPTS.ranges(is_wanted)))
}
