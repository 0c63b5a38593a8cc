//! Cuts a template into text and tags, and takes the white space off that its marks and transformers' settings (`trim_blocks`,
//! `lstrip_blocks`) take off.

use super::{Fault, wrong};

/// A piece of a template.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// Text that is written as it is.
    Text(&'t str),
    /// What stands in `{{ }}`, and its line.
    Output(&'t str, usize),
    /// What stands in `{% %}`, and its line.
    Block(&'t str, usize),
}

/// The pieces of a template.
pub(super) fn cut(template: &str) -> Result<Vec<Piece<'_>>, Fault> {
    // Of the new lines at the end one is no part of it.
    let template = template.strip_suffix('\n').unwrap_or(template);
    let template = template.strip_suffix('\r').unwrap_or(template);
    let mut pieces = Vec::new();
    let (mut rest, mut before, mut line) = (template, Taken::NoTag, 1);
    while let Some(at) = next_tag(rest) {
        let (text, tag) = rest.split_at(at);
        line += lines(text);
        let (open, close) = match &tag[..2] {
            "{{" => ("{{", "}}"),
            "{%" => ("{%", "%}"),
            _ => ("{#", "#}"),
        };
        let length =
            end_of(tag, close).ok_or_else(|| wrong(line, format!("{open} is not closed")))?;
        let (inside, left) = (&tag[2..length - 2], &tag[length..]);
        let (mut text, begins_line) = before.off(text);
        match inside.as_bytes().first() {
            Some(b'-') => text = text.trim_end(),
            Some(b'+') => {}
            _ if open == "{{" => {}
            _ => text = without_indent(text, begins_line),
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        before = match inside.as_bytes().last() {
            Some(b'-') => Taken::Space,
            Some(b'+') => Taken::Nothing,
            _ if open == "{{" => Taken::Nothing,
            _ => Taken::NewLine,
        };
        let inside = inside.strip_prefix(['-', '+']).unwrap_or(inside);
        let inside = inside.strip_suffix(['-', '+']).unwrap_or(inside);
        match open {
            "{{" => pieces.push(Piece::Output(inside, line)),
            "{%" => pieces.push(Piece::Block(inside, line)),
            _ => {}
        }
        line += lines(&tag[..length]);
        rest = left;
    }
    let (text, _) = before.off(rest);
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

fn lines(text: &str) -> usize {
    text.matches('\n').count()
}

/// What a tag takes off the text behind it.
#[derive(Clone, Copy)]
enum Taken {
    /// There is no tag: the template begins.
    NoTag,
    Nothing,
    NewLine,
    Space,
}

impl Taken {
    /// What is left of the text, and whether that begins a line.
    fn off(self, text: &str) -> (&str, bool) {
        match self {
            Self::NoTag => (text, true),
            Self::Nothing => (text, false),
            Self::Space => (text.trim_start(), false),
            Self::NewLine => match text.strip_prefix("\r\n").or(text.strip_prefix('\n')) {
                Some(left) => (left, true),
                None => (text, false),
            },
        }
    }
}

/// A text without the white space of its last line, where there is nothing else on that line.
fn without_indent(text: &str, begins_line: bool) -> &str {
    let line = text.rfind('\n').map_or(0, |at| at + 1);
    let is_indent = text[line..].chars().all(char::is_whitespace);
    match (line > 0 || begins_line) && is_indent {
        true => &text[..line],
        false => text,
    }
}

/// Where the next tag begins.
fn next_tag(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut pairs = bytes.windows(2);
    pairs.position(|two| two[0] == b'{' && matches!(two[1], b'{' | b'%' | b'#'))
}

/// The length of a tag that begins here. An end within a string is none.
fn end_of(tag: &str, close: &str) -> Option<usize> {
    let bytes = tag.as_bytes();
    let (mut quote, mut at) = (None, 2);
    while at + 2 <= bytes.len() {
        match (quote, bytes[at]) {
            (Some(_), b'\\') => at += 1,
            (Some(open), byte) if byte == open => quote = None,
            (None, byte @ (b'"' | b'\'')) if close != "#}" => quote = Some(byte),
            (None, _) if &bytes[at..at + 2] == close.as_bytes() => return Some(at + 2),
            _ => {}
        }
        at += 1;
    }
    None
}
