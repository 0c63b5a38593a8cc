//! From the names of Rust to those of JavaScript.

/// `max_batch_size` as `maxBatchSize`.
pub(crate) fn camel(name: &str) -> String {
    let mut camel = String::new();
    for (place, part) in name.split('_').enumerate() {
        let mut letters = part.chars();
        match letters.next() {
            Some(first) if place > 0 => {
                camel.extend(first.to_uppercase());
                camel.push_str(letters.as_str());
            }
            _ => camel.push_str(part),
        }
    }
    camel
}

/// Lines of documentation, in which the names between backticks are those of JavaScript. Paths of
/// files stay as they are.
pub(crate) fn spoken(lines: &[String]) -> Vec<String> {
    let text = lines.join("\n");
    let mut spoken = String::new();
    for (place, part) in text.split('`').enumerate() {
        if place > 0 {
            spoken.push('`');
        }
        // Every other part stands between two backticks.
        if place % 2 == 1 && !part.contains('/') {
            spoken.push_str(&words(part));
        } else {
            spoken.push_str(part);
        }
    }
    spoken.split('\n').map(str::to_owned).collect()
}

/// A text in which every word in small letters is a name of JavaScript.
fn words(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = text;
    let mut all = String::new();
    while let Some(start) = rest.find(is_part) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|c| !is_part(c)).unwrap_or(from.len()));
        all.push_str(before);
        if word.contains(|c: char| c.is_ascii_uppercase()) {
            all.push_str(word);
        } else {
            all.push_str(&camel(word));
        }
        rest = after;
    }
    all + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_between_backticks_are_those_of_javascript() {
        for (rust, javascript) in [
            ("As `max_wait` says.", "As `maxWait` says."),
            (
                "`batching.max_wait` and max_wait",
                "`batching.maxWait` and max_wait",
            ),
            ("`{\"embedding_cache\": {}}`", "`{\"embeddingCache\": {}}`"),
            (
                "`HF_HUB_CACHE`, `onnx/model_fp16.onnx`",
                "`HF_HUB_CACHE`, `onnx/model_fp16.onnx`",
            ),
        ] {
            assert_eq!(spoken(&[rust.to_owned()]), [javascript]);
        }
        let broken = ["`a_b".to_owned(), "c_d`".to_owned()];
        assert_eq!(spoken(&broken), ["`aB", "cD`"]);
    }
}
