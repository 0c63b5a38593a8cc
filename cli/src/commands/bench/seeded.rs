//! Seeded texts of exactly so many tokens, by the model's own tokenizer.

use isovec::blocking::Embedder;

use crate::error::Result;

/// Words that most vocabularies have as one token each.
const WORDS: [&str; 40] = [
    "time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world",
    "school", "state", "family", "student", "group", "country", "problem", "hand", "part", "place",
    "case", "week", "company", "system", "program", "question", "work", "number", "night", "point",
    "home", "water", "room", "mother", "area", "money", "story", "fact", "month",
];
/// What is tried where the words are not: single letters are tokens of their own nearly everywhere.
const LETTERS: [&str; 4] = ["a", "e", "i", "o"];

/// Makes texts.
pub(super) struct Seeded<'a> {
    embedder: &'a Embedder,
    /// Each is a token more.
    words: Vec<&'static str>,
    /// Tokens of a text without words: the special ones, and the prompt's.
    around: usize,
    state: u64,
}

impl<'a> Seeded<'a> {
    /// `None` where no word is one token: then no text can have a length that was chosen.
    pub(super) fn new(embedder: &'a Embedder) -> Result<Option<Self>> {
        let mut words = Vec::new();
        let mut around = None;
        for word in WORDS.into_iter().chain(LETTERS) {
            let few = embedder.count_tokens([word; 4].join(" "))?;
            let more = embedder.count_tokens([word; 8].join(" "))?;
            let own = few.checked_sub(4);
            if more == few + 4 && own.is_some() && (around.is_none() || around == own) {
                around = own;
                words.push(word);
            }
        }
        Ok(around.map(|around| Self {
            embedder,
            words,
            around,
            state: 0x9E37_79B9_7F4A_7C15,
        }))
    }

    /// So many texts, each another; `None` where a text of that length cannot be made.
    pub(super) fn texts(&mut self, count: usize, tokens: usize) -> Result<Option<Vec<String>>> {
        let Some(words) = tokens.checked_sub(self.around).filter(|&words| words > 0) else {
            return Ok(None);
        };
        let mut texts = Vec::with_capacity(count);
        for _ in 0..count {
            let words: Vec<&str> = (0..words).map(|_| self.word()).collect();
            let text = words.join(" ");
            if self.embedder.count_tokens(&text)? != tokens {
                return Ok(None);
            }
            texts.push(text);
        }
        Ok(Some(texts))
    }

    fn word(&mut self) -> &'static str {
        // Marsaglia's xorshift: who asks for the same texts in the same order gets the same every time, so that two
        // runs have the same work.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.words[(self.state >> 33) as usize % self.words.len()]
    }
}
