//! From the recogniser's probabilities to text.

use crate::{OcrError, Result};

/// The characters that a recogniser knows. Class 0 is the blank between characters; the last class is the space.
#[derive(Debug, Clone)]
pub struct Alphabet(Vec<String>);

/// A line of text that was recognised.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Line {
    /// The text; empty where nothing was recognised.
    pub text: String,
    /// The mean probability of its characters, from 0 to 1; 0 for an empty text.
    pub score: f64,
}

impl Alphabet {
    /// Reads a list of characters, one in a line, as `character` in the metadata of PP-OCR's ONNX files has it.
    #[must_use]
    pub fn new(characters: &str) -> Self {
        // The list may end in a line break, and a character may be no line break.
        let lines = characters.strip_suffix('\n').unwrap_or(characters);
        let lines = lines.split('\n').map(|line| line.trim_end_matches('\r'));
        let blank = std::iter::once("");
        Self(blank.chain(lines).chain([" "]).map(Into::into).collect())
    }

    /// The classes, blank and space included.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.0.len()
    }

    /// Decodes greedily, as connectionist temporal classification does it: the best class of each step, without repetitions and
    /// blanks. `values` are probabilities `[steps, classes]`.
    ///
    /// # Errors
    /// [`OcrError::Output`] where the values are no whole steps, or not finite.
    pub fn decode(&self, values: &[f32]) -> Result<Line> {
        let classes = self.classes();
        if !values.len().is_multiple_of(classes) {
            return Err(refused(format!("{} values", values.len()), classes));
        }
        let (mut text, mut sum, mut count) = (String::new(), 0.0, 0_usize);
        let mut before = 0;
        for step in values.chunks_exact(classes) {
            let (mut best, mut highest) = (0, f32::NEG_INFINITY);
            for (class, &value) in step.iter().enumerate() {
                if !value.is_finite() {
                    return Err(refused(format!("the value {value}"), classes));
                }
                if value > highest {
                    (best, highest) = (class, value);
                }
            }
            if best != before && best != 0 {
                text.push_str(&self.0[best]);
                sum += f64::from(highest);
                count += 1;
            }
            before = best;
        }
        let score = match count {
            0 => 0.0,
            _ => sum / count as f64,
        };
        Ok(Line { text, score })
    }
}

fn refused(got: String, classes: usize) -> OcrError {
    OcrError::Output {
        network: "the recogniser",
        got,
        wanted: format!("finite probabilities of {classes} classes for each step"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps in which one class is sure.
    fn sure(classes: &[usize], of: usize) -> Vec<f32> {
        let step = |&sure: &usize| (0..of).map(move |class| f32::from(u8::from(class == sure)));
        classes.iter().flat_map(step).collect()
    }

    #[test]
    fn repetitions_are_one_character_and_a_blank_divides_two() {
        let alphabet = Alphabet::new("a\nb\r\n字\n");
        assert_eq!(alphabet.classes(), 5);
        let values = sure(&[0, 1, 1, 0, 1, 2, 4, 3, 3], 5);
        let line = alphabet.decode(&values).unwrap();
        assert_eq!((line.text.as_str(), line.score), ("aab 字", 1.0));
        let nothing = alphabet.decode(&sure(&[0, 0], 5)).unwrap();
        assert_eq!((nothing.text.as_str(), nothing.score), ("", 0.0));
        assert_eq!(alphabet.decode(&[]).unwrap(), nothing);
    }

    #[test]
    fn what_no_recogniser_gives_is_refused() {
        let alphabet = Alphabet::new("a\nb");
        assert!(alphabet.decode(&[0.5; 7]).is_err());
        let error = alphabet.decode(&[0.5, f32::NAN, 0.5, 0.5]).unwrap_err();
        assert!(error.to_string().contains("4 classes"), "{error}");
    }
}
