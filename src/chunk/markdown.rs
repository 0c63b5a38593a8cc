//! Where the blocks of a Markdown document begin.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag};

use super::boundaries::{Boundary, Level};

/// What a block holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// Other blocks, none of which has begun yet.
    NoBlockYet,
    Blocks,
    /// Text.
    Text,
}

/// The headings, blocks and lines of code of a document, in order. What is nested deeper has a
/// lower level, so a table is cut only where it does not fit, and then between its rows.
pub(super) fn blocks(text: &str) -> Vec<Boundary> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut blocks = Vec::new();
    let mut open: Vec<Inside> = Vec::new();
    let mut after_heading = false;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        let (level, inside) = match &event {
            Event::Start(tag) => match tag {
                Tag::Heading { level, .. } => (Level::heading(number(*level)), Inside::Text),
                Tag::List(_)
                | Tag::Item
                | Tag::BlockQuote(_)
                | Tag::FootnoteDefinition(_)
                | Tag::Table(_) => (Level::block(open.len()), Inside::NoBlockYet),
                Tag::Paragraph
                | Tag::CodeBlock(_)
                | Tag::HtmlBlock
                | Tag::MetadataBlock(_)
                | Tag::TableHead
                | Tag::TableRow => (Level::block(open.len()), Inside::Text),
                _ => {
                    text_begins(&mut open);
                    open.push(Inside::Text);
                    continue;
                }
            },
            // As strong as the weakest heading.
            Event::Rule => (Level::heading(6), Inside::Text),
            Event::End(_) => {
                open.pop();
                continue;
            }
            _ => {
                text_begins(&mut open);
                continue;
            }
        };
        let is_heading = matches!(event, Event::Start(Tag::Heading { .. }));
        // The first block of another begins after its mark (`- `, `> `), which belongs to it.
        let is_first = open.last() == Some(&Inside::NoBlockYet);
        if let Some(outer) = open.last_mut() {
            *outer = Inside::Blocks;
        }
        let goes_with_last = is_first || (is_heading && after_heading);
        if !goes_with_last {
            blocks.push(Boundary {
                at: range.start,
                level,
                after_heading,
            });
        }
        if !is_first {
            after_heading = is_heading;
        }
        if matches!(event, Event::Start(Tag::CodeBlock(_))) {
            let lines = text[range.clone()].match_indices('\n');
            let lines = lines.map(|(at, _)| range.start + at + 1);
            let inside = lines.filter(|&at| at < range.end);
            blocks.extend(inside.map(|at| Boundary::new(at, Level::CODE_LINE)));
        }
        if !matches!(event, Event::Rule) {
            open.push(inside);
        }
    }
    blocks
}

/// Text of its own, as items of a list may have, comes before the blocks in them.
fn text_begins(open: &mut [Inside]) {
    if let Some(outer @ Inside::NoBlockYet) = open.last_mut() {
        *outer = Inside::Blocks;
    }
}

fn number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The levels by what stands there.
    fn seen(text: &str) -> Vec<(&str, Level)> {
        blocks(text)
            .into_iter()
            .map(|block| {
                let line = text[block.at..].lines().next().unwrap_or_default();
                (line, block.level)
            })
            .collect()
    }

    #[test]
    fn blocks_know_how_deep_they_lie() {
        let text = "# A\n\nOne.\n\n- x\n- y\n\n  more\n\n## B\n\n---\n\n> q\n\n1. z\n   - zz\n";
        assert_eq!(
            seen(text),
            [
                ("# A", Level::heading(1)),
                ("One.", Level::block(0)),
                ("- x", Level::block(0)),
                ("- y", Level::block(1)),
                ("more", Level::block(2)),
                ("## B", Level::heading(2)),
                ("---", Level::heading(6)),
                ("> q", Level::block(0)),
                ("1. z", Level::block(0)),
                ("- zz", Level::block(2)),
            ]
        );
    }

    #[test]
    fn tables_have_rows_and_code_has_lines() {
        let text = "|a|b|\n|-|-|\n|1|2|\n|3|4|\n\n```rust\nlet a;\nlet b;\n```\n";
        assert_eq!(
            seen(text),
            [
                ("|a|b|", Level::block(0)),
                ("|1|2|", Level::block(1)),
                ("|3|4|", Level::block(1)),
                ("```rust", Level::block(0)),
                ("let a;", Level::CODE_LINE),
                ("let b;", Level::CODE_LINE),
                ("```", Level::CODE_LINE),
            ]
        );
    }

    #[test]
    fn what_follows_a_heading_is_marked() {
        let blocks = blocks("# A\n## B\n\n- x\n\ntext\n");
        let marks: Vec<bool> = blocks.iter().map(|block| block.after_heading).collect();
        // The second heading is no boundary: the two stay together.
        assert_eq!(marks, [false, true, false]);
    }
}
