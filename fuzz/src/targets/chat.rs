//! Chat templates: whatever stands in one, it is a frame or an error, and takes no more memory than it may.
//!
//! What a template writes is compared with another implementation by the tests of `input/text`, because that one has no bound.

use std::collections::BTreeMap;

use arbitrary::Unstructured;
use isovec_tokenize::PairFrame;

use crate::bounds::ours;

/// Parts of templates that text alone seldom finds.
const PARTS: [&str; 40] = [
    "{{",
    "}}",
    "{%",
    "%}",
    "{{-",
    "-%}",
    "{#",
    "#}",
    " set ",
    " x ",
    " = ",
    " for ",
    " in ",
    " endfor ",
    " if ",
    " elif ",
    " else ",
    " endif ",
    "messages",
    "[0]",
    "[-1]",
    ".content",
    ".role",
    "['role']",
    "[::-1]",
    " == ",
    " ~ ",
    " + ",
    "'system'",
    "'query'",
    "'document'",
    " | selectattr('role', 'eq', 'query')",
    " | map(attribute='content')",
    " | first",
    " | trim",
    ".replace('a', 'bb')",
    " is defined ",
    "namespace(x='a')",
    "range(99)",
    " endset ",
];

/// Tries one input.
pub fn run(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let template = match input.arbitrary::<u8>() {
        Ok(0) => String::from_utf8_lossy(input.take_rest()).into_owned(),
        _ => {
            let parts = std::iter::from_fn(|| match input.is_empty() {
                true => None,
                false => input.choose(&PARTS).ok().copied(),
            });
            parts.take(512).collect()
        }
    };
    let variables = BTreeMap::from([("bos_token".to_owned(), "<s>".into())]);
    let frame = ours(template.len(), || PairFrame::of_chat(&template, &variables));
    match frame {
        Ok(frame) => assert!(frame.identity().contains("first"), "{template}"),
        Err(fault) => assert!(
            !fault.is_empty() && fault.len() < 2_000,
            "{template}: {fault}"
        ),
    }
}
