//! From the sentences of Rust's documentation to those of TypeScript's.

use anyhow::{Result, bail};

/// What is said of `None`, which JavaScript does not know: a knob is left out there.
const LEFT_OUT: [(&str, &str); 3] = [
    ("`None`:", "Default:"),
    ("`None` in a field means", "A knob that is left out means"),
    ("`None` means", "What is left out means"),
];

/// The lines of a comment on `name`: without examples in Rust, without links, and of knobs that are
/// left out instead of `None`.
pub(crate) fn lines(name: &str, rust: &str) -> Result<Vec<String>> {
    let mut text = String::new();
    for (at, part) in rust.split("```").enumerate() {
        // Every other part stands between the fences of an example.
        if at % 2 == 0 {
            text.push_str(part);
        }
    }
    let mut text = without_links(text.trim_end());
    for (rust, typescript) in LEFT_OUT {
        text = text.replace(rust, typescript);
    }
    if let Some(left) = ["None", "::", "*/"]
        .iter()
        .find(|left| text.contains(**left))
    {
        bail!("the documentation of {name} says {left:?}, which TypeScript has no use for: {text}");
    }
    Ok(text.lines().map(str::to_owned).collect())
}

/// ``[`Type::name`](target)`` and ``[`Type::name`]`` as `` `name` ``.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[`") {
        plain.push_str(before);
        let Some((path, after)) = link.split_once("`]") else {
            plain.push_str("[`");
            rest = link;
            continue;
        };
        let name = path.rsplit("::").next().unwrap_or(path);
        plain.push_str(&format!("`{name}`"));
        rest = match after
            .strip_prefix('(')
            .and_then(|after| after.split_once(')'))
        {
            Some((_, after)) => after,
            None => after,
        };
    }
    plain + rest
}

/// A comment of these lines.
pub(crate) fn comment(lines: &[String], indent: &str) -> String {
    match lines {
        [] => String::new(),
        [line] => format!("{indent}/** {line} */\n"),
        lines => {
            let mut comment = format!("{indent}/**\n");
            for line in lines {
                comment.push_str(format!("{indent} * {line}").trim_end());
                comment.push('\n');
            }
            comment + indent + " */\n"
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_only_rust_has_is_left_out() {
        let rust = "Whether a [`Batcher`](crate::Batcher) waits, see [`Config::wait`]. `None`: true.\n\n```\nlet x = 1;\n```\n";
        let lines = lines("x", rust).unwrap();
        assert_eq!(
            lines,
            ["Whether a `Batcher` waits, see `wait`. Default: true."]
        );
        assert_eq!(
            comment(&lines, "  "),
            "  /** Whether a `Batcher` waits, see `wait`. Default: true. */\n"
        );
    }

    #[test]
    fn what_would_make_no_sense_is_an_error() {
        for rust in [
            "`None` or `Some`.",
            "As `Error::Config`.",
            "Ends a comment: */",
        ] {
            assert!(lines("x", rust).is_err(), "{rust}");
        }
    }

    #[test]
    fn paragraphs_stay_apart() {
        let lines = lines("x", "One.\n\nTwo.").unwrap();
        assert_eq!(comment(&lines, ""), "/**\n * One.\n *\n * Two.\n */\n");
    }
}
