//! Where sentences begin.

use unicode_segmentation::{USentenceBoundIndices, UnicodeSegmentation};

use super::boundaries::Level;

/// Bytes in which sentences are looked for at once. Whether one ends may depend on all that
/// follows in the same line, so a line of a few megabytes could take hours as a whole.
const WINDOW: usize = 1024;

/// Where sentences and wrapped lines begin, by the rules of Unicode (UAX #29), but for the first.
///
/// Those rules end a sentence with every line. A single line break after a letter, a digit or a
/// comma is taken for a wrapped line instead.
pub(super) struct Sentences<'t> {
    text: &'t str,
    window: Option<Window<'t>>,
    /// The end of the window.
    end: usize,
}

struct Window<'t> {
    start: usize,
    sentences: USentenceBoundIndices<'t>,
    /// Whether it ends where a line does.
    is_line_end: bool,
}

impl<'t> Sentences<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            window: None,
            end: 0,
        }
    }

    /// The next line, or as much of it as is looked at at once.
    fn open(&mut self) -> Option<Window<'t>> {
        let start = self.end;
        let rest = &self.text[start..];
        if rest.is_empty() {
            return None;
        }
        let most = &rest[..rest.floor_char_boundary(WINDOW)];
        let line = most.find('\n').map(|at| at + 1);
        let length = match line {
            Some(length) => length,
            None if most.len() == rest.len() => most.len(),
            None => between_words(most).unwrap_or(most.len()),
        };
        self.end += length;
        Some(Window {
            start,
            sentences: most[..length].split_sentence_bound_indices(),
            is_line_end: line.is_some(),
        })
    }

    /// What the line break before `self.end` separates.
    fn line_end(&self) -> Level {
        let (before, after) = self.text.split_at(self.end);
        let line = before.strip_suffix('\n').unwrap_or(before);
        let last = line.strip_suffix('\r').unwrap_or(line).chars().next_back();
        let goes_on = last.is_some_and(|c| c.is_alphanumeric() || matches!(c, ',' | ';' | '-'));
        let blank = after
            .trim_start_matches([' ', '\t'])
            .starts_with(['\n', '\r']);
        if goes_on && !blank {
            Level::LINE
        } else {
            Level::SENTENCE
        }
    }
}

impl Iterator for Sentences<'_> {
    type Item = (usize, Level);

    fn next(&mut self) -> Option<(usize, Level)> {
        loop {
            let Some(window) = &mut self.window else {
                self.window = Some(self.open()?);
                continue;
            };
            match window.sentences.next() {
                // Whether one begins with the window was said at the end of the last.
                Some((0, _)) => {}
                Some((at, _)) => return Some((window.start + at, Level::SENTENCE)),
                None => {
                    let is_line_end = window.is_line_end;
                    self.window = None;
                    if is_line_end {
                        return Some((self.end, self.line_end()));
                    }
                }
            }
        }
    }
}

/// The last place of a text after white space after a letter: nothing ends there.
fn between_words(text: &str) -> Option<usize> {
    let mut spaces = text.rmatch_indices(char::is_whitespace);
    let (at, space) = spaces.find(|&(at, _)| {
        let before = text[..at].chars().next_back();
        before.is_some_and(char::is_alphanumeric)
    })?;
    Some(at + space.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(text: &str) -> Vec<&str> {
        let starts = Sentences::new(text).filter(|&(_, level)| level == Level::SENTENCE);
        let mut starts: Vec<usize> = starts.map(|(at, _)| at).collect();
        starts.insert(0, 0);
        starts.push(text.len());
        let ends = starts.iter().skip(1);
        let ranges = starts.iter().zip(ends);
        ranges
            .map(|(&start, &end)| text[start..end].trim())
            .filter(|sentence| !sentence.is_empty())
            .collect()
    }

    #[test]
    fn wrapped_lines_are_one_sentence() {
        assert_eq!(
            sentences("A line that is\nwrapped, and\r\nends. 它在这里。是吗?\n\nTitle\n\nThe last"),
            [
                "A line that is\nwrapped, and\r\nends.",
                "它在这里。",
                "是吗?",
                "Title",
                "The last"
            ]
        );
    }

    #[test]
    fn lines_longer_than_the_window_are_looked_at_in_parts() {
        let text = "One sentence of the many that there are. ".repeat(400);
        assert_eq!(sentences(&text).len(), 400);
        let endless = "word ".repeat(1000);
        assert_eq!(sentences(&endless).len(), 1);
    }
}
