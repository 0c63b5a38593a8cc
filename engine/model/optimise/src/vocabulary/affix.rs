//! The text of a piece without the marks of its place in a word.

/// The marks that a tokenizer's model puts before or behind a piece.
#[derive(Debug, Default)]
pub(super) struct Affixes {
    /// Before a piece that continues a word: `##` of WordPiece.
    pub(super) prefix: String,
    /// Behind a piece that ends a word: `</w>` of some models of byte pair encoding.
    pub(super) suffix: String,
}

impl Affixes {
    /// The text that a piece stands for.
    pub(super) fn bare<'p>(&self, piece: &'p str) -> &'p str {
        let piece = match self.prefix.as_str() {
            "" => piece,
            prefix => strip(piece.strip_prefix(prefix), piece),
        };
        match self.suffix.as_str() {
            "" => piece,
            suffix => strip(piece.strip_suffix(suffix), piece),
        }
    }

    /// The one character that a piece stands for.
    pub(super) fn single(&self, piece: &str) -> Option<char> {
        let mut characters = self.bare(piece).chars();
        let first = characters.next()?;
        characters.next().is_none().then_some(first)
    }
}

/// What is left of a piece, unless nothing is.
fn strip<'p>(stripped: Option<&'p str>, piece: &'p str) -> &'p str {
    stripped.filter(|rest| !rest.is_empty()).unwrap_or(piece)
}
