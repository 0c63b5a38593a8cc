//! The parts of a benchmark that the command line names.

/// The names that are given; without any, every part is wanted.
#[derive(Debug)]
pub struct Wanted(Vec<String>);

impl Wanted {
    /// What the command line says. Words with a dash are cargo's.
    pub fn named() -> Self {
        let words = std::env::args().skip(1);
        Self(words.filter(|word| !word.starts_with('-')).collect())
    }

    /// Whether a part is wanted.
    pub fn has(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|word| word == name)
    }
}
