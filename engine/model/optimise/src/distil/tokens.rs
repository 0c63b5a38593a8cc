//! The tokens of a tokenizer that have a meaning of their own.

use isovec_tokenize::TokenizeError;
use serde_json::Value;

use crate::error::Result;

/// For each id whether its token counts: a piece or an added token that is neither special nor one of BERT's places for later
/// ones (`[unused12]`). Ids without a token do not count.
///
/// # Errors
/// [`OptimizeError::Tokenize`](crate::OptimizeError::Tokenize) for a file that is no `tokenizer.json`.
pub fn counted_tokens(origin: &str, tokenizer_json: &[u8]) -> Result<Vec<bool>> {
    let file: Value = serde_json::from_slice(tokenizer_json).map_err(|error| {
        TokenizeError::InvalidTokenizer {
            origin: origin.to_owned(),
            file: isovec_tokenize::TOKENIZER_FILE.to_owned(),
            detail: error.to_string(),
        }
    })?;
    let vocabulary = &file["model"]["vocab"];
    let listed = vocabulary.as_array().into_iter().flatten().zip(0u64..);
    let listed = listed.filter_map(|(piece, id)| Some((piece[0].as_str()?, id)));
    let mapped = vocabulary.as_object().into_iter().flatten();
    let mapped = mapped.filter_map(|(piece, id)| Some((piece.as_str(), id.as_u64()?)));
    let mut counted = Vec::new();
    let mut set = |id: u64, counts: bool| {
        // Ids have 32 bits, and a table has as many rows as the largest says.
        let Some(id) = u32::try_from(id).ok().map(|id| id as usize) else {
            return;
        };
        if counted.len() <= id {
            counted.resize(id + 1, false);
        }
        counted[id] = counts;
    };
    for (piece, id) in listed.chain(mapped) {
        set(id, !is_unused(piece));
    }
    for token in file["added_tokens"].as_array().into_iter().flatten() {
        if let Some(id) = token["id"].as_u64() {
            set(id, token["special"] != true);
        }
    }
    Ok(counted)
}

fn is_unused(piece: &str) -> bool {
    let number = piece
        .strip_prefix("[unused")
        .and_then(|rest| rest.strip_suffix(']'));
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_and_unused_tokens_do_not_count() {
        let json = br#"{"added_tokens": [{"id": 0, "content": "[PAD]", "special": true}, {"id": 6, "content": "new", "special": false}],
            "model": {"vocab": {"[PAD]": 0, "[unused1]": 1, "a": 2, "[unused]": 3, "b": 4}}}"#;
        let counted = counted_tokens("test", json).unwrap();
        assert_eq!(counted, [false, false, true, true, true, false, true]);
        let listed = br#"{"model": {"vocab": [["<s>", 0], ["a", -1.5]]}, "added_tokens": [{"id": 0, "special": true}]}"#;
        assert_eq!(counted_tokens("test", listed).unwrap(), [false, true]);
        assert!(counted_tokens("test", b"{").is_err());
    }
}
