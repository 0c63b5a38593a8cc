//! Real texts of mixed lengths, which `cargo xtask setup corpus` cuts from a package's
//! documentation.

use isovec::blocking::Embedder;

use crate::AnyError;

/// How many of the texts are used.
const TEXTS: usize = 5120;
/// Tokens of a text, special ones included.
const TOKENS: std::ops::RangeInclusive<usize> = 3..=500;
/// The longest text of each band, in tokens.
pub const BANDS: [usize; 6] = [16, 32, 64, 128, 256, 500];
/// How many texts each band has: what `benches/corpus/README.md` says.
const HISTOGRAM: [usize; 6] = [1321, 1404, 1180, 669, 327, 219];

/// The texts, in no order.
#[derive(Debug)]
pub struct Corpus {
    /// The texts.
    pub texts: Vec<String>,
    /// Their tokens by all-MiniLM-L6-v2's tokenizer, special ones included.
    pub tokens: Vec<usize>,
}

impl Corpus {
    /// Reads the texts and counts their tokens with the embedder's tokenizer, which has to be
    /// all-MiniLM-L6-v2's.
    ///
    /// # Errors
    /// When they are not there, or others than those that figures were published for.
    pub fn load(embedder: &Embedder) -> Result<Self, AnyError> {
        let path = isovec::cache_dir().ok_or("there is no cache folder")?;
        let path = path.join("corpus.txt");
        let all = std::fs::read_to_string(&path)
            .map_err(|error| format!("run `cargo xtask setup corpus` first: {error}"))?;
        let mut corpus = Self {
            texts: Vec::with_capacity(TEXTS),
            tokens: Vec::with_capacity(TEXTS),
        };
        for text in all.lines() {
            let tokens = embedder.count_tokens(text)?;
            if TOKENS.contains(&tokens) {
                corpus.texts.push(text.to_owned());
                corpus.tokens.push(tokens);
            }
            if corpus.texts.len() == TEXTS {
                break;
            }
        }
        let histogram = corpus.histogram();
        if histogram != HISTOGRAM {
            return Err(format!("the corpus has texts by length {histogram:?}").into());
        }
        Ok(corpus)
    }

    /// How many texts each band has.
    pub fn histogram(&self) -> [usize; 6] {
        let mut counts = [0; 6];
        for &tokens in &self.tokens {
            counts[BANDS.partition_point(|&longest| longest < tokens)] += 1;
        }
        counts
    }

    /// The texts of a band.
    pub fn band(&self, band: usize) -> Vec<&str> {
        let texts = self.texts.iter().zip(&self.tokens);
        texts
            .filter(|&(_, &tokens)| BANDS.partition_point(|&longest| longest < tokens) == band)
            .map(|(text, _)| text.as_str())
            .collect()
    }
}
