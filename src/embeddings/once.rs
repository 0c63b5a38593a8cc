//! Refuses names that occur twice in a JSON object, because readers differ in which one they use.

use std::collections::HashSet;

/// The first name that stands twice in one object of `json`, at any depth.
///
/// `json` was parsed before: its brackets and quotes match. What is passed over by that parser is
/// looked at here as well, without recursion and without reading numbers.
pub(super) fn name_twice(json: &str) -> Option<String> {
    let mut open: Vec<HashSet<String>> = Vec::new();
    let mut rest = json;
    while let Some(at) = rest.find(['"', '{', '}']) {
        let (mark, behind) = (rest.as_bytes()[at], &rest[at + 1..]);
        match mark {
            b'{' => open.push(HashSet::new()),
            b'}' => drop(open.pop()),
            _ => {
                let end = end_of_text(behind)?;
                let text = &rest[at..at + end + 2];
                rest = &behind[end + 1..];
                if rest.trim_ascii_start().starts_with(':') {
                    // Half of a character is a name to nobody but itself.
                    let name =
                        // Not `from_str`: one reader of JSON keeps the page's module small.
                        serde_json::from_slice(text.as_bytes()).unwrap_or_else(|_| text.to_owned());
                    if let Some(name) = open.last_mut()?.replace(name) {
                        return Some(name);
                    }
                }
                continue;
            }
        }
        rest = behind;
    }
    None
}

/// Where the quote stands that ends a text.
fn end_of_text(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_counts_in_its_own_object_however_it_is_spelt() {
        for (json, twice) in [
            (r#"{"a":1,"a":2}"#, Some("a")),
            (r#"{"a":1,"\u0061" : 2}"#, Some("a")),
            (r#"{"x":[{"b":{},"c":1e999,"b":[]}]}"#, Some("b")),
            (r#"{"\"":1,"\\":2,"\"":3}"#, Some("\"")),
            (r#"{"":1,"":1}"#, Some("")),
            (r#"{"a":{"a":{"a":"a"}},"b":["a","a","{","}"]}"#, None),
            (r#"{"a":"b","b":"a:","c":"\"a\":"}"#, None),
            (r#"[{"a":1},{"a":1}]"#, None),
            ("1", None),
        ] {
            assert_eq!(name_twice(json).as_deref(), twice, "{json}");
        }
    }

    proptest! {
        /// A name is put a second time into any object of what serde_json wrote.
        #[test]
        fn what_a_writer_wrote_has_no_name_twice_until_one_is_added(
            names in proptest::collection::btree_set(".{0,4}", 1..5),
            depth in 0usize..300,
        ) {
            let inner: serde_json::Map<_, _> =
                names.iter().map(|name| (name.clone(), name.clone().into())).collect();
            let inner = serde_json::to_string(&inner).unwrap();
            let around = |inner: &str| format!("{}{inner}{}", r#"[{"x":"#.repeat(depth), "}]".repeat(depth));
            prop_assert_eq!(name_twice(&around(&inner)), None);
            let name = names.last().unwrap();
            let more = format!("{},{}:0}}", inner.strip_suffix('}').unwrap(), serde_json::to_string(name).unwrap());
            prop_assert_eq!(name_twice(&around(&more)), Some(name.clone()));
        }
    }
}
