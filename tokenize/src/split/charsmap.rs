//! A look into SentencePiece's compiled normalisation rules before they are trusted.
//!
//! `spm_precompiled` walks the rules' double-array trie by indices that come from the file and
//! does not look whether they are inside it. A damaged file would end the program in the middle
//! of a text; this check walks every state once at load instead.
//!
//! The format (SentencePiece, `src/normalizer.cc`, and its `darts.h`): the trie's length in
//! bytes as little-endian u32, its units as little-endian u32, then the replacements as UTF-8,
//! each ended by a NUL.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Checks every set of compiled rules inside a normaliser.
///
/// # Errors
/// Words saying what is wrong with it.
pub(crate) fn check(normalizer: &Value) -> Result<(), String> {
    match normalizer {
        Value::Object(members) => {
            if members.get("type").and_then(Value::as_str) == Some("Precompiled") {
                let encoded = members
                    .get("precompiled_charsmap")
                    .and_then(Value::as_str)
                    .ok_or("the Precompiled normalizer has no precompiled_charsmap")?;
                let rules = STANDARD.decode(encoded).map_err(|error| {
                    format!("precompiled_charsmap is not valid base64: {error}")
                })?;
                return check_rules(&rules)
                    .map_err(|detail| format!("precompiled_charsmap is damaged: {detail}"));
            }
            members.values().try_for_each(check)
        }
        Value::Array(parts) => parts.iter().try_for_each(check),
        _ => Ok(()),
    }
}

/// One unit of the double array, taken apart as Darts defines it.
#[derive(Clone, Copy)]
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

fn check_rules(rules: &[u8]) -> Result<(), String> {
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
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use tokenizers::normalizers::Precompiled;

    use super::*;

    fn encoded(units: &[u32], replacements: &[u8]) -> Value {
        let mut rules = (units.len() as u32 * 4).to_le_bytes().to_vec();
        rules.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
        rules.extend(replacements);
        json!({"type": "Sequence", "normalizers": [
            {"type": "Precompiled", "precompiled_charsmap": STANDARD.encode(rules)}
        ]})
    }

    #[test]
    fn an_empty_rule_set_is_fine() {
        assert_eq!(check(&encoded(&[0; 256], b"")), Ok(()));
        assert_eq!(check(&json!({"type": "NFKC"})), Ok(()));
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
            if check_rules(&rules).is_ok() {
                let original = Precompiled::from(&rules).unwrap();
                for text in &texts {
                    let _ = original.normalize_string(text);
                }
            }
        }
    }

    #[test]
    fn what_is_not_base64_is_refused() {
        for broken in [
            json!({"type": "Precompiled"}),
            json!({"type": "Precompiled", "precompiled_charsmap": "??"}),
            json!({"type": "Precompiled", "precompiled_charsmap": "AAA="}),
        ] {
            assert!(check(&broken).is_err(), "{broken}");
        }
    }
}
