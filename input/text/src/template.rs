//! Which special tokens go around a text, and around a pair of texts.
//!
//! `tokenizers` has five post-processors. As far as ids go they all say the same thing: a fixed row of special tokens
//! with one gap for each text. Because the row is read here, truncation can fill the gaps and keep both ends.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::Fault;

/// The most places of one row. A file could otherwise name one long list of ids again and again.
const LONGEST_ROW: usize = 1024;

/// One place of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    /// A special token.
    Special { id: u32, type_id: u32 },
    /// The first text.
    First { type_id: u32 },
    /// The second text of a pair.
    Second { type_id: u32 },
}

/// The rows for one text and for two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) single: Vec<Item>,
    pub(crate) pair: Vec<Item>,
}

impl Default for Template {
    /// The texts and nothing else.
    fn default() -> Self {
        Self {
            single: vec![Item::First { type_id: 0 }],
            pair: vec![Item::First { type_id: 0 }, Item::Second { type_id: 1 }],
        }
    }
}

#[derive(Deserialize)]
struct TemplateProcessing {
    single: Vec<Piece>,
    pair: Vec<Piece>,
    special_tokens: Map<String, Value>,
}

#[derive(Deserialize)]
enum Piece {
    Sequence { id: Sequence, type_id: u32 },
    SpecialToken { id: String, type_id: u32 },
}

#[derive(Deserialize)]
enum Sequence {
    A,
    B,
}

#[derive(Deserialize)]
struct SpecialToken {
    ids: Vec<u32>,
}

/// `BertProcessing` and `RobertaProcessing`.
#[derive(Deserialize)]
struct Ends {
    sep: (String, u32),
    cls: (String, u32),
}

impl Template {
    /// Reads the post-processor of a file.
    pub(crate) fn read(post_processor: Option<&Value>) -> Result<Self, Fault> {
        match post_processor {
            Some(value) => Ok(Self::of(value)?.unwrap_or_default()),
            None => Ok(Self::default()),
        }
    }

    /// Puts a token after each text, unless one text ends in it already. Says whether it did.
    pub(crate) fn end_with(&mut self, id: u32) -> bool {
        if let Some(Item::Special { id: last, .. }) = self.single.last()
            && *last == id
        {
            return false;
        }
        for row in [&mut self.single, &mut self.pair] {
            let items = std::mem::take(row).into_iter();
            *row = items
                .flat_map(|item| match item {
                    Item::First { type_id } | Item::Second { type_id } => {
                        [Some(item), Some(Item::Special { id, type_id })]
                    }
                    Item::Special { .. } => [Some(item), None],
                })
                .flatten()
                .collect();
        }
        true
    }

    /// How many special tokens one text gets.
    pub(crate) fn special_in_single(&self) -> usize {
        specials(&self.single)
    }

    /// How many special tokens a pair gets.
    pub(crate) fn special_in_pair(&self) -> usize {
        specials(&self.pair)
    }

    /// Every special token's id.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> {
        self.single
            .iter()
            .chain(&self.pair)
            .filter_map(|item| match item {
                Item::Special { id, .. } => Some(*id),
                _ => None,
            })
    }

    /// The template of one post-processor; `None` for one that only moves offsets.
    fn of(value: &Value) -> Result<Option<Self>, Fault> {
        let kind = value
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match kind {
            "ByteLevel" => Ok(None),
            "TemplateProcessing" => {
                let template = TemplateProcessing::deserialize(value).map_err(invalid)?;
                Self::from_pieces(&template).map(Some)
            }
            "BertProcessing" => {
                let ends = Ends::deserialize(value).map_err(invalid)?;
                Ok(Some(Self::from_ends(&ends, 1, false)))
            }
            "RobertaProcessing" => {
                let ends = Ends::deserialize(value).map_err(invalid)?;
                Ok(Some(Self::from_ends(&ends, 0, true)))
            }
            "Sequence" => {
                let mut found = None;
                let processors = value
                    .get("processors")
                    .and_then(Value::as_array)
                    .ok_or_else(|| {
                        Fault::Invalid(
                            "its post_processor is a Sequence without processors".to_owned(),
                        )
                    })?;
                for processor in processors {
                    if let Some(template) = Self::of(processor)? {
                        if found.is_some() {
                            return Err(Fault::Unsupported(
                                "two post-processors that both add special tokens".to_owned(),
                            ));
                        }
                        found = Some(template);
                    }
                }
                Ok(found)
            }
            other => Err(Fault::Unsupported(format!("the post_processor {other:?}"))),
        }
    }

    fn from_pieces(template: &TemplateProcessing) -> Result<Self, Fault> {
        let row = |pieces: &[Piece], texts: usize| {
            let mut row = Vec::new();
            for piece in pieces {
                match piece {
                    Piece::Sequence { id, type_id } => row.push(match id {
                        Sequence::A => Item::First { type_id: *type_id },
                        Sequence::B => Item::Second { type_id: *type_id },
                    }),
                    Piece::SpecialToken { id, type_id } => {
                        let token = template.special_tokens.get(id).ok_or_else(|| {
                            Fault::Invalid(format!(
                                "its template uses the special token {id:?} and does not define it"
                            ))
                        })?;
                        let token = SpecialToken::deserialize(token).map_err(invalid)?;
                        if row.len().saturating_add(token.ids.len()) > LONGEST_ROW {
                            return Err(Fault::Excess(format!(
                                "its post_processor puts more than {LONGEST_ROW} tokens around a text"
                            )));
                        }
                        row.extend(token.ids.iter().map(|&id| Item::Special {
                            id,
                            type_id: *type_id,
                        }));
                    }
                }
            }
            let first = row.iter().filter(|i| matches!(i, Item::First { .. }));
            let second = row.iter().filter(|i| matches!(i, Item::Second { .. }));
            if first.count() != 1 || second.count() + 1 != texts {
                return Err(Fault::Invalid(format!(
                    "its template for {texts} text(s) does not hold each of them once"
                )));
            }
            Ok(row)
        };
        Ok(Self {
            single: row(&template.single, 1)?,
            pair: row(&template.pair, 2)?,
        })
    }

    /// `[CLS] first [SEP]`, and `[CLS] first [SEP] second [SEP]` with one more `[SEP]` between
    /// the texts where `doubled`.
    fn from_ends(ends: &Ends, second_type: u32, doubled: bool) -> Self {
        let cls = Item::Special {
            id: ends.cls.1,
            type_id: 0,
        };
        let sep = |type_id| Item::Special {
            id: ends.sep.1,
            type_id,
        };
        let single = vec![cls, Item::First { type_id: 0 }, sep(0)];
        let mut pair = single.clone();
        if doubled {
            pair.push(sep(second_type));
        }
        pair.push(Item::Second {
            type_id: second_type,
        });
        pair.push(sep(second_type));
        Self { single, pair }
    }
}

fn specials(row: &[Item]) -> usize {
    row.iter()
        .filter(|item| matches!(item, Item::Special { .. }))
        .count()
}

fn invalid(error: serde_json::Error) -> Fault {
    Fault::Invalid(format!("its post_processor: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_post_processor_adds_nothing() {
        assert_eq!(Template::read(None), Ok(Template::default()));
        assert_eq!(
            Template::read(Some(&json!({"type": "ByteLevel"}))),
            Ok(Template::default())
        );
    }

    #[test]
    fn the_three_ways_of_writing_a_template() {
        let bert = json!({"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]});
        let written = json!({"type": "Sequence", "processors": [{"type": "ByteLevel"}, {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "C", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "S", "type_id": 0}}],
            "pair": [{"SpecialToken": {"id": "C", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "S", "type_id": 0}},
                     {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "S", "type_id": 1}}],
            "special_tokens": {"C": {"id": "C", "ids": [2], "tokens": ["C"]}, "S": {"id": "S", "ids": [3], "tokens": ["S"]}},
        }]});
        assert_eq!(Template::read(Some(&bert)), Template::read(Some(&written)));
        let roberta = json!({"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0]});
        let roberta = Template::read(Some(&roberta)).unwrap();
        assert_eq!(
            (roberta.special_in_single(), roberta.special_in_pair()),
            (2, 4)
        );
    }

    #[test]
    fn contradictions_are_refused() {
        let template = |single: Value| {
            json!({"type": "TemplateProcessing", "single": single, "special_tokens": {},
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}]})
        };
        for single in [
            json!([{"SpecialToken": {"id": "C", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]),
            json!([{"Sequence": {"id": "B", "type_id": 0}}]),
            json!([]),
            json!([{"Sequence": {"id": "A", "type_id": -1}}]),
        ] {
            assert!(matches!(
                Template::read(Some(&template(single))),
                Err(Fault::Invalid(_))
            ));
        }
        assert!(matches!(
            Template::read(Some(&json!({"type": "Novel"}))),
            Err(Fault::Unsupported(_))
        ));
    }
}
