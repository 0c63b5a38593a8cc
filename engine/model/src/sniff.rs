//! Names the actual format of a file that has the wrong one. Downloads go wrong in few ways, and the name saves the
//! user a hex dump.

/// How many bytes of a file are enough, white space in front of them included.
pub(crate) const BYTES: usize = 4096;

/// What the bytes are, when they begin like something that is mistaken for a model.
pub(crate) fn foreign(bytes: &[u8]) -> Option<&'static str> {
    let start = bytes.trim_ascii_start();
    let begins = |prefix: &str| {
        start
            .get(..prefix.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(prefix.as_bytes()))
    };
    if bytes.is_empty() {
        Some("it is empty")
    } else if begins("version https://git-lfs") {
        Some("it is a Git LFS pointer, not the file itself; `git lfs pull` fetches that")
    } else if begins("<!doctype") || begins("<html") || begins("<?xml") {
        Some("it is a web page, as a failed download leaves behind; download it again")
    } else if begins("PK\x03\x04") {
        Some("it is a ZIP archive (PyTorch checkpoints are; isovec reads safetensors and ONNX)")
    } else if begins("GGUF") {
        Some("it is a GGUF file; isovec reads safetensors and ONNX")
    } else if bytes.starts_with(b"\x1f\x8b") {
        Some("it is a gzip archive; unpack it first")
    } else if (begins("{") || begins("[")) && is_text(bytes) {
        Some("it is a JSON document")
    } else {
        None
    }
}

/// Whether the first bytes are plain text; a length or a protobuf key has bytes that are not.
fn is_text(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .take(16)
        .all(|byte| byte.is_ascii_whitespace() || (b' '..=b'~').contains(byte))
}
