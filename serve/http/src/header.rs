//! What requests and answers say in their heads, and how it is written.

use axum::http::{HeaderName, HeaderValue};

/// The model and settings that computed: the `id` of the SDK's `Fingerprint`. Vectors of equal ids
/// may be compared.
pub const FINGERPRINT: &str = "x-isovec-fingerprint";

/// All models of a server: a hash over their names, tasks and fingerprints. Servers of equal values give the same vectors for
/// a name.
pub const MODELS: &str = "x-isovec-models";

/// Tokens of each text that the model saw, as `5,9,3`. In a request it asks for them in the answer.
pub const TEXT_TOKENS: &str = "x-isovec-text-tokens";

/// How much a request matters, in the request: `low` or `normal`.
pub const PRIORITY: &str = "x-request-priority";

/// The exact time of `retry-after`, which only has whole seconds, as OpenAI's clients read it.
pub const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// The engine, provider and version that computed.
pub const COMPUTED_BY: &str = "x-isovec-computed-by";

/// How many texts were truncated, where any was.
pub const TRUNCATED: &str = "x-isovec-truncated";

/// Which ones: places in the list, from 0, as `0-3,7`. Where they do not fit, the list ends with `...`.
pub const TRUNCATED_TEXTS: &str = "x-isovec-truncated-texts";

/// Characters of that list, at most: well below what clients and proxies take for all headers.
const LONGEST_LIST: usize = 1000;

/// A value for a header: what is no visible ASCII becomes `?`.
pub fn header(text: impl Into<String>) -> HeaderValue {
    let text: String = text.into();
    let visible = text.chars().map(|c| {
        if c == ' ' || c.is_ascii_graphic() {
            c
        } else {
            '?'
        }
    });
    HeaderValue::from_str(&visible.collect::<String>()).unwrap_or(HeaderValue::from_static(""))
}

/// Ascending places as ranges: `0-3,7`.
pub fn ranges(places: impl IntoIterator<Item = usize>) -> String {
    let mut places = places.into_iter().peekable();
    let mut list = String::new();
    while let Some(first) = places.next() {
        let mut last = first;
        while places.next_if_eq(&(last + 1)).is_some() {
            last += 1;
        }
        let mut range = first.to_string();
        if last > first {
            range = format!("{first}-{last}");
        }
        if list.len() + range.len() > LONGEST_LIST {
            list.push_str(",...");
            break;
        }
        if !list.is_empty() {
            list.push(',');
        }
        list.push_str(&range);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_listed_as_ranges() {
        assert_eq!(ranges([]), "");
        assert_eq!(ranges([3]), "3");
        assert_eq!(ranges([0, 1, 2, 7, 9, 10]), "0-2,7,9-10");
        assert_eq!(ranges(0..2048), "0-2047");
    }

    #[test]
    fn a_list_that_does_not_fit_says_that_it_is_cut() {
        let list = ranges((0..2048).step_by(2));
        assert!(
            list.starts_with("0,2,4,") && list.ends_with(",..."),
            "{list}"
        );
        assert!(list.len() < LONGEST_LIST + 10, "{}", list.len());
    }

    #[test]
    fn a_header_holds_visible_characters_only() {
        assert_eq!(header("portable 1\n\u{e4}"), "portable 1??");
    }
}
