//! Names of files inside a model, which its publisher chose.

/// Windows leaves such an end away, so that `.. ` is another name there.
pub(crate) const ODD_END: &str = "has a part that ends with a dot or a space";

/// What is wrong with a path inside a repository, if anything: it must be relative, with `/`
/// between its parts, and stay inside the folder that it is joined to on every platform.
#[cfg_attr(
    not(feature = "client"),
    allow(unreachable_pub, reason = "the hub's client hands it on")
)]
pub fn path_fault(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("is empty");
    }
    if path.len() > 1024 {
        return Some("is longer than 1024 bytes");
    }
    if path.starts_with('/') {
        return Some("is absolute");
    }
    if path.chars().any(char::is_control) {
        return Some("holds a control character");
    }
    if path.contains('\\') {
        return Some("holds a backslash");
    }
    // `C:name` is a drive on Windows, `name:stream` an alternate stream.
    if path.contains(':') {
        return Some("holds a colon");
    }
    path.split('/').find_map(|part| match part {
        "" => Some("has an empty part"),
        "." | ".." => Some("leads out of its folder"),
        part if part.len() > 255 => Some("has a part longer than 255 bytes"),
        part if part.ends_with(['.', ' ']) => Some(ODD_END),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_leave_the_folder_are_named() {
        assert_eq!(path_fault("onnx/model.onnx"), None);
        assert_eq!(path_fault("..data/x"), None);
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a/./b",
            "a//b",
            "a/",
            "a\\b",
            "C:x",
            "a\nb",
            "a\u{7f}",
            "a/.. /b",
            ".../x",
            "name.",
        ] {
            assert!(path_fault(bad).is_some(), "{bad:?}");
        }
    }
}
