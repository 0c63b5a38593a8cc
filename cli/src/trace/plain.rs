//! Names on a terminal.

/// A name on one line that moves no cursor and turns no text around: a trace may be anybody's. What
/// would is shown as U+FFFD, as in `isovec graph`.
pub(super) fn plain(name: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let breaks = |c: char| matches!(c, '\u{2028}' | '\u{2029}');
    let odd = |c: char| c.is_control() || turns(c) || breaks(c);
    name.chars()
        .map(|c| if odd(c) { '\u{fffd}' } else { c })
        .collect()
}
