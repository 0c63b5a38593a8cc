//! SentencePiece's compiled normalisation rules: the normaliser `Precompiled`.
//!
//! The format (SentencePiece, `src/normalizer.cc`, and its `darts.h`): a double-array trie's length
//! in bytes as little-endian u32, its units as little-endian u32, then the replacements as UTF-8,
//! each ended by a NUL. How rules are applied follows `tokenizers` (`normalizers/precompiled.rs`)
//! and `spm_precompiled`, to the letter.
//!
//! The trie is walked by indices that come from the file. Every state is walked once when it is
//! read, so that a damaged file is refused there and never leads outside in the middle of a text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::budget::Stop;
use crate::split::pieces::Piece;
use crate::unicode::graphemes::graphemes;
use crate::unicode::normal::Edit;

/// The longest group of characters, in bytes below this, that has a rule of its own.
const LONGEST_GROUP: usize = 6;

/// Checked rules.
#[derive(Debug)]
pub(crate) struct Charsmap {
    units: Vec<Unit>,
    replacements: String,
}

impl Charsmap {
    /// Reads the rules from their base64 form.
    ///
    /// # Errors
    /// Words saying what is wrong with them.
    pub(crate) fn read(encoded: &str) -> Result<Self, String> {
        let rules = STANDARD
            .decode(encoded)
            .map_err(|error| format!("precompiled_charsmap is not valid base64: {error}"))?;
        Self::parse(&rules).map_err(|detail| format!("precompiled_charsmap is damaged: {detail}"))
    }

    /// Applies the rules to a piece: to groups that are seen as one character, where the group
    /// has a rule, else to their characters.
    pub(crate) fn normalize(&self, piece: &mut Piece) -> Result<(), Stop> {
        let mut edits: Vec<Edit> = Vec::with_capacity(piece.text().len());
        let mut modified = false;
        for group in graphemes(piece.text()) {
            if group.len() < LONGEST_GROUP
                && let Some(replacement) = self.replacement(group)
            {
                modified = true;
                replace(piece, &mut edits, group, replacement)?;
                continue;
            }
            for (start, c) in group.char_indices() {
                let part = &group[start..start + c.len_utf8()];
                match self.replacement(part) {
                    Some(replacement) => {
                        modified = true;
                        replace(piece, &mut edits, part, replacement)?;
                    }
                    None => edits.push((c, 0)),
                }
            }
        }
        match modified {
            true => piece.edit(&edits, 0),
            false => Ok(()),
        }
    }

    /// What stands for the shortest start of `text` that has a rule.
    fn replacement(&self, text: &str) -> Option<&str> {
        let mut place = self.units.first()?.offset();
        for &byte in text.as_bytes() {
            if byte == 0 {
                return None;
            }
            place ^= usize::from(byte);
            let unit = self.units.get(place)?;
            if unit.label() != u32::from(byte) {
                return None;
            }
            place ^= unit.offset();
            if unit.has_leaf() {
                let start = self.units.get(place)?.value();
                let rest = self.replacements.get(start..)?;
                return Some(rest.split('\0').next().unwrap_or(rest));
            }
        }
        None
    }

    fn parse(rules: &[u8]) -> Result<Self, String> {
        let (units, replacements) = check_rules(rules)?;
        Ok(Self {
            units,
            replacements: replacements.to_owned(),
        })
    }
}

/// Notes a replacement. Characters that are more than before are added, the last of them those
/// that have no counterpart; what is fewer is taken off the last.
///
/// # Errors
/// [`Stop::Exceeded`] where the piece would become too long: a replacement can be as long as the
/// file, and a character takes a byte at least.
fn replace(piece: &Piece, edits: &mut Vec<Edit>, old: &str, new: &str) -> Result<(), Stop> {
    let change = |text: &str| text.chars().count() as i32;
    let new_length = change(new);
    piece.may_have(edits.len().checked_add(new_length as usize))?;
    let more = new_length - change(old);
    edits.extend(new.chars().map(|c| (c, 0)));
    if more > 0 {
        for (_, change) in edits.iter_mut().rev().take(more as usize) {
            *change = 1;
        }
    } else if let Some((_, change)) = edits.last_mut() {
        *change += more;
    }
    Ok(())
}

/// One unit of the double array, taken apart as Darts defines it.
#[derive(Debug, Clone, Copy)]
struct Unit(u32);

impl Unit {
    fn has_leaf(self) -> bool {
        (self.0 >> 8) & 1 == 1
    }

    fn value(self) -> usize {
        (self.0 & 0x7fff_ffff) as usize
    }

    fn label(self) -> u32 {
        self.0 & 0x8000_00ff
    }

    fn offset(self) -> usize {
        ((self.0 >> 10) as usize) << ((self.0 & (1 << 9)) >> 6)
    }
}

/// Takes the rules apart, and walks every state.
fn check_rules(rules: &[u8]) -> Result<(Vec<Unit>, &str), String> {
    let (length, rest) = rules
        .split_first_chunk::<4>()
        .ok_or("shorter than its own length field")?;
    let length = u32::from_le_bytes(*length) as usize / 4 * 4;
    let (trie, replacements) = rest
        .split_at_checked(length)
        .ok_or("shorter than its trie")?;
    let units: Vec<Unit> = trie
        .chunks_exact(4)
        .filter_map(|unit| {
            unit.try_into()
                .ok()
                .map(|unit| Unit(u32::from_le_bytes(unit)))
        })
        .collect();
    let replacements = std::str::from_utf8(replacements)
        .map_err(|error| format!("a replacement is not UTF-8: {error}"))?;

    let root = units.first().ok_or("its trie is empty")?;
    let mut seen = vec![false; units.len()];
    let mut bases = vec![root.offset()];
    while let Some(base) = bases.pop() {
        // Every byte may follow, and each is looked up before its label is compared.
        if base | 0xff >= units.len() {
            return Err(format!(
                "a state points at {base}, its trie has {} units",
                units.len()
            ));
        }
        if std::mem::replace(&mut seen[base], true) {
            continue;
        }
        for byte in 1..=255_u32 {
            let place = base ^ byte as usize;
            let unit = units[place];
            if unit.label() != byte {
                continue;
            }
            let next = place ^ unit.offset();
            if unit.has_leaf() {
                let value = units
                    .get(next)
                    .ok_or("a leaf lies outside its trie")?
                    .value();
                if !replacements.is_char_boundary(value) {
                    return Err(format!(
                        "a replacement starts at {value}, inside a character"
                    ));
                }
            }
            bases.push(next);
        }
    }
    Ok((units, replacements))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokenizers::normalizers::Precompiled;

    use super::*;
    use crate::budget::Budget;

    fn check(encoded: &str) -> Result<(), String> {
        Charsmap::read(encoded).map(|_| ())
    }

    fn encoded(units: &[u32], replacements: &[u8]) -> String {
        let mut rules = (units.len() as u32 * 4).to_le_bytes().to_vec();
        rules.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
        rules.extend(replacements);
        STANDARD.encode(rules)
    }

    #[test]
    fn an_empty_rule_set_is_fine() {
        assert_eq!(check(&encoded(&[0; 256], b"")), Ok(()));
    }

    #[test]
    fn indices_outside_are_refused() {
        assert!(check(&encoded(&[], b"")).is_err());
        assert!(check(&encoded(&[0; 255], b"")).is_err());
        // The root's offset leads far outside.
        let mut units = [0_u32; 256];
        units[0] = 4096 << 10;
        assert!(check(&encoded(&units, b"")).unwrap_err().contains("4096"));
        // A leaf for "a" whose value is past the replacements.
        let mut units = [0_u32; 512];
        let place = usize::from(b'a');
        units[place] = u32::from(b'a') | 1 << 8 | 256 << 10;
        units[place ^ 256] = 99;
        assert!(check(&encoded(&units, b"x\0")).unwrap_err().contains("99"));
        units[place ^ 256] = 0;
        // The state after "a" starts at 353, and 353 | 255 = 511 is the last unit.
        assert_eq!(check(&encoded(&units, b"x\0")), Ok(()));
        assert!(
            check(&encoded(&units, b"\xff"))
                .unwrap_err()
                .contains("UTF-8")
        );
    }

    /// A unit that the root or a state near the start may well lead to.
    fn unit(place: u32) -> impl Strategy<Value = u32> {
        let linked = (any::<bool>(), 0..6_u32, any::<u8>()).prop_map(move |(leaf, block, low)| {
            let offset = block << 8 | u32::from(low);
            (place & 0xff) | u32::from(leaf) << 8 | offset << 10
        });
        prop_oneof![6 => linked, 2 => 0..40_u32, 1 => any::<u32>()]
    }

    proptest! {
        #[test]
        fn what_passes_never_leads_outside(
            units in prop_oneof![Just(256_u32), Just(512), Just(1024), 250..520_u32]
                .prop_flat_map(|length| (0..length).map(unit).collect::<Vec<_>>()),
            root in prop_oneof![Just(0_u32), any::<u32>()],
            replacements in "[a\u{e9}\u{0}]{0,40}",
            texts in prop::collection::vec(any::<String>(), 1..20),
        ) {
            let mut units = units;
            units[0] = root;
            let mut rules = (units.len() as u32 * 4).to_le_bytes().to_vec();
            rules.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
            rules.extend(replacements.as_bytes());
            if let Ok(ours) = Charsmap::parse(&rules) {
                let original = Precompiled::from(&rules).unwrap();
                for text in &texts {
                    let mut piece = Piece::new(text, Budget::of(text.len()));
                    ours.normalize(&mut piece).unwrap();
                    prop_assert_eq!(piece.text(), original.normalize_string(text));
                }
            }
        }
    }

    #[test]
    fn what_is_not_base64_is_refused() {
        for broken in ["??", "AAA="] {
            assert!(check(broken).is_err(), "{broken}");
        }
    }
}
