//! Texts of random lengths, the same ones every time.

const WORDS: [&str; 16] = [
    "the", "cat", "sat", "on", "a", "mat", "and", "stocks", "fell", "while", "rain", "came",
    "over", "old", "hills", "again",
];

/// An endless supply of texts: most of up to `usual` words, one in 32 of up to `longest`.
#[derive(Debug)]
pub struct Texts {
    usual: usize,
    longest: usize,
    state: u64,
}

impl Texts {
    /// Texts of these lengths; every word is a token.
    pub fn new(usual: usize, longest: usize) -> Self {
        Self {
            usual,
            longest,
            state: 7,
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        // Knuth's linear congruential generator, whose high bits are the good ones.
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % limit
    }
}

impl Iterator for Texts {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let most = match self.below(32) {
            0 => self.longest,
            _ => self.usual,
        };
        let words = 1 + self.below(most);
        let words: Vec<&str> = (0..words).map(|_| WORDS[self.below(WORDS.len())]).collect();
        Some(words.join(" "))
    }
}
