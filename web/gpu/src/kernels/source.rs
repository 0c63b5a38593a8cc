//! WGSL as a module carries it: without comments, which every visitor of a page would fetch.

/// The text of a file in `wgsl/`, without comments, indentation and empty lines.
macro_rules! wgsl {
    ($name:literal) => {{
        const SOURCE: &str = include_str!(concat!("../wgsl/", $name));
        const STRIPPED: ([u8; SOURCE.len()], usize) = $crate::kernels::source::strip(SOURCE);
        const TEXT: &str = match str::from_utf8(STRIPPED.0.split_at(STRIPPED.1).0) {
            Ok(text) => text,
            Err(_) => panic!("cut between two characters"),
        };
        TEXT
    }};
}
pub(super) use wgsl;

/// The text and its length. WGSL has no strings, so that two slashes always begin a comment.
pub(super) const fn strip<const N: usize>(source: &str) -> ([u8; N], usize) {
    let bytes = source.as_bytes();
    let mut text = [0; N];
    let (mut from, mut to) = (0, 0);
    let mut line_begins = true;
    while from < bytes.len() {
        let byte = bytes[from];
        if byte == b'/' && from + 1 < bytes.len() && bytes[from + 1] == b'/' {
            while from < bytes.len() && bytes[from] != b'\n' {
                from += 1;
            }
            continue;
        }
        if !(line_begins && (byte == b' ' || byte == b'\n')) {
            text[to] = byte;
            to += 1;
            line_begins = byte == b'\n';
        }
        from += 1;
    }
    (text, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_indentation_go_and_code_stays() {
        let source = "// A – comment.\n\nfn f() {\n  return 1 / 2; // a half\n@i   let a = 1;\n}";
        let (text, length) = strip::<100>(source);
        assert_eq!(
            str::from_utf8(&text[..length]).unwrap(),
            "fn f() {\nreturn 1 / 2; \n@i   let a = 1;\n}"
        );
    }
}
