//! The beginning of a text, for people.

/// Characters of a text that are shown.
const SHOWN: usize = 60;

/// The beginning of a text, on one line: what would move a terminal's cursor is a space.
pub(crate) fn start(text: &str) -> String {
    let mut shown = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut start: String = shown.by_ref().take(SHOWN).collect();
    if shown.next().is_some() {
        start.push('…');
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_line_of_bounded_length() {
        assert_eq!(start("a\tb\nc\u{1b}[2J"), "a b c [2J");
        assert_eq!(start(&"ä".repeat(SHOWN)), "ä".repeat(SHOWN));
        let long = start(&"ä".repeat(SHOWN + 1));
        assert_eq!(long, format!("{}…", "ä".repeat(SHOWN)));
    }
}
