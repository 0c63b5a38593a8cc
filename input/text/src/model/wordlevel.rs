//! WordLevel: a word is a piece or it is unknown.

use crate::definition::ModelDefinition;
use crate::model::{NoIds, mapped};
use crate::trie::Trie;

/// See the module's words.
#[derive(Debug)]
pub(crate) struct WordLevel {
    trie: Trie,
    unknown: String,
    unknown_id: Option<u32>,
}

impl WordLevel {
    pub(crate) fn build(definition: ModelDefinition) -> Result<Self, String> {
        let trie = mapped(definition.vocabulary, "WordLevel", definition.repeats)?;
        let unknown = definition.unk_token.unwrap_or_else(|| "<unk>".to_owned());
        Ok(Self {
            unknown_id: trie.get(&unknown),
            unknown,
            trie,
        })
    }

    pub(crate) fn trie(&self) -> &Trie {
        &self.trie
    }

    pub(crate) fn tokenize(&self, word: &str, ids: &mut Vec<u32>) -> Result<(), NoIds> {
        let id = self.trie.get(word).or(self.unknown_id);
        ids.push(id.ok_or_else(|| NoIds::NoUnknown(self.unknown.clone()))?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_known_or_it_is_not() {
        let definition = serde_json::from_str(r#"{"vocab":{"<unk>":7,"a":1}}"#).unwrap();
        let model = WordLevel::build(definition).unwrap();
        let mut ids = vec![];
        model.tokenize("a", &mut ids).unwrap();
        model.tokenize("b", &mut ids).unwrap();
        assert_eq!(ids, [1, 7]);
    }
}
