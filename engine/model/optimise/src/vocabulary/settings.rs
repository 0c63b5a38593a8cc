//! The ids that a model's other files name.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use serde_json::{Map, Value, json};

/// Files with the vocabulary in another form: they belong to the original.
const OTHER_FORMS: [&str; 8] = [
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "added_tokens.json",
    "sentencepiece.bpe.model",
    "spiece.model",
    "tokenizer.model",
    "generation_config.json",
];

/// Brings the ids in `config.json` and `tokenizer_config.json` up to date, and leaves out what else holds the vocabulary.
/// An id whose token is gone becomes `null`.
pub(super) fn update(files: &mut BTreeMap<String, Bytes>, ids: &HashMap<u32, u32>) {
    files.retain(|path, _| {
        let name = path.rsplit('/').next().unwrap_or(path);
        !OTHER_FORMS.contains(&name)
    });
    for (path, content) in files.iter_mut() {
        let name = path.rsplit('/').next().unwrap_or(path);
        let Ok(Value::Object(mut settings)) = serde_json::from_slice(content) else {
            continue;
        };
        match name {
            "config.json" => in_config(&mut settings, ids),
            "tokenizer_config.json" => in_tokenizer_config(&mut settings, ids),
            _ => continue,
        }
        *content = format!("{:#}\n", Value::Object(settings))
            .into_bytes()
            .into();
    }
}

fn in_config(settings: &mut Map<String, Value>, ids: &HashMap<u32, u32>) {
    for (name, value) in settings {
        match value {
            Value::Object(inner) if name == "text_config" => in_config(inner, ids),
            Value::Number(_) if name == "vocab_size" => *value = json!(ids.len()),
            Value::Number(_) if name.ends_with("_token_id") => *value = new(value, ids),
            Value::Array(list) if name.ends_with("_token_id") => {
                list.iter_mut().for_each(|value| *value = new(value, ids));
            }
            _ => {}
        }
    }
}

fn in_tokenizer_config(settings: &mut Map<String, Value>, ids: &HashMap<u32, u32>) {
    let Some(Value::Object(tokens)) = settings.get_mut("added_tokens_decoder") else {
        return;
    };
    let moved = std::mem::take(tokens)
        .into_iter()
        .filter_map(|(id, token)| {
            let new = ids.get(&id.parse().ok()?)?;
            Some((new.to_string(), token))
        });
    *tokens = moved.collect();
}

fn new(id: &Value, ids: &HashMap<u32, u32>) -> Value {
    let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
    json!(id.and_then(|id| ids.get(&id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_follows_its_token() {
        let ids = HashMap::from([(0, 0), (101, 2), (250_001, 3)]);
        let config = json!({
            "vocab_size": 250_002, "type_vocab_size": 2, "pad_token_id": 0, "mask_token_id": 250_001,
            "eos_token_id": [101, 7], "hidden_size": 101, "text_config": {"vocab_size": 9},
        });
        let tokens = json!({"added_tokens_decoder": {"101": {"content": "x"}, "7": {"content": "gone"}}, "max": 101});
        let mut files = BTreeMap::from([
            ("config.json".to_owned(), Bytes::from(config.to_string())),
            (
                "tokenizer_config.json".to_owned(),
                Bytes::from(tokens.to_string()),
            ),
            ("vocab.txt".to_owned(), Bytes::from("[PAD]")),
            ("1_Pooling/config.json".to_owned(), Bytes::from("{}")),
        ]);
        update(&mut files, &ids);
        let read = |name: &str| serde_json::from_slice::<Value>(&files[name]).unwrap();
        assert_eq!(
            read("config.json"),
            json!({
                "vocab_size": 3, "type_vocab_size": 2, "pad_token_id": 0, "mask_token_id": 3,
                "eos_token_id": [2, null], "hidden_size": 101, "text_config": {"vocab_size": 3},
            })
        );
        let expected = json!({"added_tokens_decoder": {"2": {"content": "x"}}, "max": 101});
        assert_eq!(read("tokenizer_config.json"), expected);
        assert!(!files.contains_key("vocab.txt"));
    }
}
